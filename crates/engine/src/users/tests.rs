use super::record::{encode_gone, encode_permissions, encode_topic_permissions, encode_user};
use super::*;
use crate::record::{Kind, Reader};
use crate::{Millis, ReplayError};

fn user(id: u64, name: &str) -> User {
    User {
        id: UserId(id),
        name: name.into(),
        password: Some(PasswordHash::new("$x")),
        password_version: id,
        tags: ["monitoring".into()].into(),
        permissions: Default::default(),
        topics: Default::default(),
    }
}

fn all() -> VhostPermissions {
    VhostPermissions {
        configure: "".into(),
        write: "w".into(),
        read: ".*".into(),
    }
}

fn apply(users: &mut Users, record: &[u8]) -> Result<(), ReplayError> {
    let mut reader = Reader::new(record);
    let header = reader.header()?;
    if header.kind == Kind::User {
        return users.apply_user(&mut reader);
    }
    assert_eq!(header.kind, Kind::Permission);
    users.apply_permission(&mut reader)
}

/// The bytes after the 26 of every record's head.
fn body(record: &[u8]) -> &[u8] {
    &record[26..]
}

#[test]
fn records_are_these_bytes() {
    let mut record = Vec::new();
    encode_user(&mut record, Millis(9), &user(7, "anna"));
    assert_eq!(record[..2], [25, 1]);
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7];
    expected.extend(b"\0\x04anna\0\x02$x\x01\0\x0amonitoring");
    assert_eq!(body(&record), expected);

    encode_gone(&mut record, Millis(9), "anna");
    assert_eq!(body(&record), b"\x02\0\x04anna");

    let mut users = Users::new();
    users.encode_seeded(&mut record, Millis(9));
    assert_eq!(body(&record), [3, 0, 0, 0, 0, 0, 0, 0, 1, 1]);

    encode_permissions(&mut record, Millis(9), ("anna", "/"), Some(&all()));
    assert_eq!(record[..2], [26, 1]);
    assert_eq!(body(&record), b"\x01\0\x04anna\0\x01/\0\0\0\x01w\0\x02.*");
    encode_permissions(&mut record, Millis(9), ("anna", "/"), None);
    assert_eq!(body(&record), b"\x02\0\x04anna\0\x01/");

    let topic = TopicPermissions {
        write: "a".into(),
        read: "b".into(),
    };
    encode_topic_permissions(&mut record, Millis(9), ("anna", "/", "x"), Some(&topic));
    assert_eq!(body(&record), b"\x03\0\x04anna\0\x01/\0\x01x\0\x01a\0\x01b");
    encode_topic_permissions(&mut record, Millis(9), ("anna", "/", "x"), None);
    assert_eq!(body(&record), b"\x04\0\x04anna\0\x01/\0\x01x");
}

#[test]
fn a_user_of_another_id_has_no_permissions_of_its_namesake() {
    let mut users = Users::new();
    let mut record = Vec::new();
    let mut steps: Vec<Vec<u8>> = Vec::new();
    for step in 0..3 {
        match step {
            0 => encode_user(&mut record, Millis(9), &user(1, "anna")),
            1 => encode_permissions(&mut record, Millis(9), ("anna", "/"), Some(&all())),
            // The same user with another password.
            _ => encode_user(
                &mut record,
                Millis(9),
                &User {
                    password_version: 5,
                    ..user(1, "anna")
                },
            ),
        }
        steps.push(record.clone());
    }
    for step in &steps {
        apply(&mut users, step).unwrap();
        users.assert_invariants();
    }
    let found = users.table.find("anna").unwrap();
    assert_eq!((found.password_version, found.permissions.len()), (5, 1));
    assert_eq!(users.next_id, 6);
    encode_user(&mut record, Millis(9), &user(9, "anna"));
    apply(&mut users, &record).unwrap();
    users.assert_invariants();
    assert_eq!(users.table.find("anna").unwrap().permissions.len(), 0);
}

#[test]
fn records_of_unknown_users_are_passed_over() {
    let mut users = Users::new();
    let mut record = Vec::new();
    encode_gone(&mut record, Millis(9), "anna");
    apply(&mut users, &record).unwrap();
    encode_permissions(&mut record, Millis(9), ("anna", "/"), Some(&all()));
    apply(&mut users, &record).unwrap();
    users.assert_invariants();
    assert!(users.table.is_empty());
}

#[test]
fn damaged_records_are_refused_and_never_panic() {
    let mut records = Vec::new();
    let mut users = Users::new();
    users.insert(user(1, "anna"));
    users.change("anna", |user| {
        user.permissions.insert("/".into(), all());
        let topic = TopicPermissions::default();
        user.topics.insert(("/".into(), "x".into()), topic);
    });
    users.capture(Millis(9), None, &mut records);
    assert_eq!(records.len(), 4);
    for record in &records {
        for len in 0..record.len() {
            apply(&mut Users::new(), &record[..len]).unwrap_err();
        }
        let mut unknown = record.clone();
        unknown[26] = 99;
        apply(&mut Users::new(), &unknown).unwrap_err();
    }
    let mut copy = Users::new();
    for record in &records {
        apply(&mut copy, record).unwrap();
    }
    assert_eq!(copy.table.find("anna"), users.table.find("anna"));
}

#[test]
fn hashes_do_not_show_themselves() {
    let shown = format!("{:?}", user(1, "anna"));
    assert!(shown.contains("PasswordHash(..)"), "{shown}");
    assert!(!shown.contains("$x"), "{shown}");
}
