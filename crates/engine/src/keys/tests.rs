use super::record::{encode_acl, encode_key, encode_revoked};
use super::*;
use crate::record::{Kind, Reader};
use crate::{Millis, ReplayError};

fn key(id: u64, secret: &str) -> ApiKey {
    ApiKey {
        id: ApiKeyId(id),
        name: "billing".into(),
        created_at: Millis(1_000),
        expires_at: Some(Millis(5_000)),
        is_superadmin: false,
        is_bootstrap: false,
        grants: [].into(),
        hash: KeyHash::of(secret.as_bytes()),
    }
}

fn grant(permission: Permission, pattern: &str) -> Grant {
    Grant {
        permission,
        pattern: pattern.into(),
    }
}

fn keys() -> Keys {
    Keys::new(&RandomState::with_seeds(1, 2, 3, 4))
}

fn apply(keys: &mut Keys, record: &[u8]) -> Result<(), ReplayError> {
    let mut reader = Reader::new(record);
    let header = reader.header()?;
    if header.kind == Kind::ApiKey {
        return keys.apply_key(&mut reader);
    }
    assert_eq!(header.kind, Kind::Acl);
    keys.apply_acl(&mut reader)
}

/// The bytes after the 26 of every record's head.
fn body(record: &[u8]) -> &[u8] {
    &record[26..]
}

#[test]
fn records_are_these_bytes() {
    let mut record = Vec::new();
    let mut made = key(7, "abc");
    made.is_superadmin = true;
    encode_key(&mut record, Millis(9), &made);
    assert_eq!(record[..2], [20, 1]);
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 7];
    expected.extend(b"billing");
    expected.extend([0, 0, 0, 0, 0, 0, 0x03, 0xe8]);
    expected.extend([0, 0, 0, 0, 0, 0, 0x13, 0x88]);
    expected.push(1);
    expected.extend(made.hash.bytes());
    assert_eq!(body(&record), expected);

    encode_revoked(&mut record, Millis(9), ApiKeyId(258));
    assert_eq!(record[..2], [20, 1]);
    assert_eq!(body(&record), [2, 0, 0, 0, 0, 0, 0, 1, 2]);

    let mut keys = keys();
    keys.encode_counters(&mut record, Millis(9));
    assert_eq!(body(&record), [3, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    made.is_bootstrap = true;
    keys.insert(made.clone());
    keys.encode_counters(&mut record, Millis(9));
    let mut expected = vec![3, 0, 0, 0, 0, 0, 0, 0, 8, 1];
    expected.extend(made.hash.bytes());
    assert_eq!(body(&record), expected);

    let grants = [
        grant(Permission::Produce, "a"),
        grant(Permission::Admin, "*"),
    ];
    encode_acl(&mut record, Millis(9), ApiKeyId(7), &grants);
    assert_eq!(record[..2], [21, 1]);
    let expected = [
        0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 1, 0, 1, b'a', 3, 0, 1, b'*',
    ];
    assert_eq!(body(&record), expected);
}

#[test]
fn records_come_back_whole_and_cut_ones_are_errors() {
    let mut made = key(7, "abc");
    made.is_bootstrap = true;
    made.expires_at = None;
    let grants = vec![
        grant(Permission::Consume, "orders.*"),
        grant(Permission::Admin, "*"),
    ];
    let mut records = vec![Vec::new(); 3];
    encode_key(&mut records[0], Millis(9), &made);
    encode_acl(&mut records[1], Millis(9), made.id, &grants);
    let mut before = keys();
    before.insert(made.clone());
    before.encode_counters(&mut records[2], Millis(9));

    let mut read = keys();
    for record in &records {
        for cut in 0..record.len() {
            assert!(apply(&mut read, &record[..cut]).is_err(), "cut at {cut}");
        }
        apply(&mut read, record).unwrap();
        read.assert_invariants();
    }
    made.grants = grants.into();
    assert_eq!(read.table.find(made.id).map(|key| &**key), Some(&made));
    assert_eq!(read.table.bootstrap, Some(made.hash));
    assert_eq!(read.next_id, 8);

    let mut revoked = Vec::new();
    encode_revoked(&mut revoked, Millis(9), made.id);
    apply(&mut read, &revoked).unwrap();
    read.assert_invariants();
    assert!(read.table.is_empty());
    assert_eq!((read.next_id, read.table.bootstrap), (8, Some(made.hash)));
}

#[test]
fn what_is_no_record_of_a_key_is_refused() {
    let mut record = Vec::new();
    encode_key(&mut record, Millis(9), &key(1, "a"));
    let flags = record.len() - 33;
    record[flags] = 4;
    assert!(apply(&mut keys(), &record).is_err(), "an unknown flag");
    record[26] = 9;
    assert!(apply(&mut keys(), &record).is_err(), "an unknown change");
    encode_acl(&mut record, Millis(9), ApiKeyId(1), &[]);
    let count = record.len() - 4;
    record[count..].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(apply(&mut keys(), &record).is_err(), "a lying count");
    encode_acl(
        &mut record,
        Millis(9),
        ApiKeyId(1),
        &[grant(Permission::Produce, "a")],
    );
    record[26 + 12] = 4;
    assert!(apply(&mut keys(), &record).is_err(), "unknown permission");
}

#[test]
fn a_secret_finds_its_key_until_it_expires() {
    let mut keys = keys();
    keys.insert(key(1, "one"));
    let mut other = key(2, "two");
    other.expires_at = None;
    keys.insert(other);
    let table = &keys.table;
    let ask = |secret: Option<&str>, now| {
        let found = table.authenticate(secret.map(str::as_bytes), Millis(now));
        found.map(|key| key.id.0)
    };
    assert_eq!(ask(Some("one"), 4_999), Ok(1));
    assert_eq!(ask(Some("two"), u64::MAX), Ok(2));
    let expired = CredentialError::Expired { key: ApiKeyId(1) };
    assert_eq!(ask(Some("one"), 5_000), Err(expired));
    assert_eq!(ask(None, 0), Err(CredentialError::Missing));
    assert_eq!(ask(Some(""), 0), Err(CredentialError::Missing));
    for unknown in ["three", "on", "one ", &"x".repeat(5_000)] {
        assert_eq!(ask(Some(unknown), 0), Err(CredentialError::Unknown));
    }
    assert!(
        KeyTable::default()
            .authenticate(Some(b"one"), Millis(0))
            .is_err()
    );
}

#[test]
fn a_key_may_do_what_its_grants_cover() {
    let mut limited = key(1, "one");
    limited.grants = [
        grant(Permission::Produce, "orders.*"),
        grant(Permission::Consume, "jobs"),
        grant(Permission::Admin, "?*"),
    ]
    .into();
    let caller = Caller::Key(Arc::new(limited.clone()));
    assert!(caller.may(Permission::Produce, "orders.eu"));
    assert!(!caller.may(Permission::Produce, "jobs"));
    assert!(!caller.may(Permission::Consume, "orders.eu"));
    assert!(caller.may(Permission::Consume, "jobs"));
    assert!(caller.may(Permission::Admin, "anything"));
    assert!(caller.may_touch("jobs") && caller.may_touch("orders.eu"));
    assert!(!caller.may_administer_all(), "`?*` is not `*`");
    assert!(!caller.is_superadmin());

    limited.grants = [grant(Permission::Admin, "*")].into();
    let caller = Caller::Key(Arc::new(limited.clone()));
    assert!(caller.may_administer_all() && !caller.is_superadmin());
    assert!(
        !caller.may(Permission::Produce, "q"),
        "admin is not produce"
    );

    limited.grants = [].into();
    assert!(!Caller::Key(Arc::new(limited.clone())).may_touch("q"));
    limited.is_superadmin = true;
    let caller = Caller::Key(Arc::new(limited));
    for permission in Permission::ALL {
        assert!(caller.may(permission, "q"));
        assert!(Caller::Anyone.may(permission, "q"));
    }
    assert!(caller.is_superadmin() && caller.may_administer_all());
    assert!(Caller::Anyone.is_superadmin());
}

#[test]
fn ids_are_read_as_they_are_written() {
    for id in [1, 10, u64::MAX] {
        let text = ApiKeyId(id).to_string();
        assert_eq!(ApiKeyId::parse(&text), Some(ApiKeyId(id)));
    }
    for bad in ["", "k", "1", "K1", "k01", "k0", "k+1", "k-1", "k 1", "k1 "] {
        assert_eq!(ApiKeyId::parse(bad), None, "{bad:?}");
    }
    assert_eq!(ApiKeyId::parse("k18446744073709551616"), None);
}
