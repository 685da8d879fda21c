//! Users: made, changed, given permissions, deleted; across restarts and captures.

use std::sync::Arc;

use tanda_engine::{
    AdminReply, AdminRequest, EngineConfig, Limits, NewTopicPermissions, NewUser,
    NewVhostPermissions, PasswordChange, PasswordHash, PermissionError, PutUserError,
    TopicPermissions, User, UserNotFound, UserReply, UserRequest, UserTable, VhostPermissions,
};

use crate::broker::Broker;
use crate::harness::Harness;

fn broker() -> Broker {
    Broker::over(Harness::new())
}

fn new(name: &str, hash: &str, tags: &[&str]) -> NewUser {
    NewUser {
        name: name.to_owned(),
        password: PasswordChange::Set(PasswordHash::new(hash)),
        tags: Some(tags.iter().map(|tag| (*tag).to_owned()).collect()),
    }
}

fn put(b: &mut Broker, new: NewUser) -> Result<bool, PutUserError> {
    match b.admin(AdminRequest::User(UserRequest::Put(Box::new(new)))) {
        AdminReply::User(UserReply::Put(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn seed(b: &mut Broker) -> bool {
    let guest = new("guest", "$guest", &["administrator"]);
    match b.admin(AdminRequest::User(UserRequest::Seed(Box::new(guest)))) {
        AdminReply::User(UserReply::Seeded(result)) => result.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn delete(b: &mut Broker, name: &str) -> Result<(), UserNotFound> {
    let name = name.to_owned();
    match b.admin(AdminRequest::User(UserRequest::Delete { name })) {
        AdminReply::User(UserReply::Deleted(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn changed(b: &mut Broker, request: UserRequest) -> Result<(), PermissionError> {
    match b.admin(AdminRequest::User(request)) {
        AdminReply::User(UserReply::PermissionsChanged(result)) => result,
        other => panic!("{other:?}"),
    }
}

fn permit(b: &mut Broker, user: &str, vhost: &str, read: &str) -> Result<(), PermissionError> {
    let new = NewVhostPermissions {
        user: user.to_owned(),
        vhost: vhost.to_owned(),
        permissions: VhostPermissions {
            configure: "^$".into(),
            write: "".into(),
            read: read.into(),
        },
    };
    changed(b, UserRequest::SetPermissions(Box::new(new)))
}

fn permit_topic(b: &mut Broker, place: (&str, &str, &str)) -> Result<(), PermissionError> {
    let (user, vhost, exchange) = place;
    let new = NewTopicPermissions {
        user: user.to_owned(),
        vhost: vhost.to_owned(),
        exchange: exchange.to_owned(),
        permissions: TopicPermissions {
            write: "^a".into(),
            read: "^b".into(),
        },
    };
    changed(b, UserRequest::SetTopicPermissions(Box::new(new)))
}

fn vhost(b: &mut Broker, name: &str) {
    let name = name.to_owned();
    let reply = b.admin(AdminRequest::CreateVhost { name });
    assert!(matches!(reply, AdminReply::VhostChanged(Ok(()))));
}

/// The newest table; it must have changed.
fn table(b: &mut Broker) -> Arc<UserTable> {
    b.h.engine.take_users().expect("the table has changed")
}

fn find(b: &mut Broker, name: &str) -> User {
    let table = table(b);
    User::clone(table.find(name).expect("the user is there"))
}

#[test]
fn users_live_until_they_are_deleted_and_are_another_when_they_come_again() {
    let mut b = broker();
    assert_eq!(put(&mut b, new("anna", "$1", &["management"])), Ok(true));
    let first = find(&mut b, "anna");
    assert!(first.has_tag("management") && !first.has_tag("administrator"));
    permit(&mut b, "anna", "/", ".*").unwrap();

    // Tags alone leave the password.
    let tags = NewUser {
        password: PasswordChange::Keep,
        ..new("anna", "", &[])
    };
    assert_eq!(put(&mut b, tags), Ok(false));
    let second = find(&mut b, "anna");
    assert_eq!(second.password_version, first.password_version);
    assert_eq!((second.id, second.permissions.len()), (first.id, 1));

    // A password alone leaves the tags.
    let password = NewUser {
        tags: None,
        ..new("anna", "$2", &[])
    };
    put(&mut b, password).unwrap();
    b.restart(0);
    let third = find(&mut b, "anna");
    assert_eq!(third.id, first.id);
    assert!(third.password_version > first.password_version);
    assert_eq!(third.permissions, second.permissions);

    assert_eq!(delete(&mut b, "anna"), Ok(()));
    assert_eq!(delete(&mut b, "anna"), Err(UserNotFound));
    b.restart(0);
    assert!(table(&mut b).is_empty());
    assert_eq!(put(&mut b, new("anna", "$1", &[])), Ok(true));
    let fourth = find(&mut b, "anna");
    assert!(fourth.id > third.id);
    assert!(fourth.permissions.is_empty());
    assert!(b.h.engine.take_users().is_none(), "nothing has changed");
}

#[test]
fn the_first_user_comes_once() {
    let mut b = broker();
    assert!(seed(&mut b));
    let guest = find(&mut b, "guest");
    assert_eq!(&*guest.permissions["/"].read, ".*");
    assert!(!seed(&mut b));
    delete(&mut b, "guest").unwrap();
    for turn in 0..2 {
        assert!(!seed(&mut b));
        b.restart(0);
        assert!(table(&mut b).is_empty(), "{turn}");
    }
    // Somebody who has the name already stays who it is.
    let mut b = broker();
    put(&mut b, new("guest", "$own", &[])).unwrap();
    assert!(!seed(&mut b));
    assert!(find(&mut b, "guest").permissions.is_empty());
}

#[test]
fn permissions_are_set_and_cleared_and_go_with_their_virtual_host() {
    let mut b = broker();
    put(&mut b, new("anna", "$1", &[])).unwrap();
    let lost = permit(&mut b, "berta", "/", "");
    assert_eq!(lost, Err(PermissionError::UserNotFound));
    let lost = permit(&mut b, "anna", "shop", "");
    assert_eq!(lost, Err(PermissionError::VhostNotFound));
    vhost(&mut b, "shop");
    permit(&mut b, "anna", "shop", "a").unwrap();
    permit(&mut b, "anna", "/", "b").unwrap();
    permit_topic(&mut b, ("anna", "shop", "t")).unwrap();
    permit_topic(&mut b, ("anna", "/", "t")).unwrap();
    permit_topic(&mut b, ("anna", "/", "u")).unwrap();
    b.restart(0);
    let anna = find(&mut b, "anna");
    let vhosts: Vec<_> = anna.permissions.keys().map(|it| &**it).collect();
    assert_eq!(vhosts, ["/", "shop"]);
    assert_eq!(anna.topics.len(), 3);

    let name = "shop".to_owned();
    b.admin(AdminRequest::DeleteVhost { name });
    for _ in 0..2 {
        let anna = find(&mut b, "anna");
        assert_eq!((anna.permissions.len(), anna.topics.len()), (1, 2));
        b.restart(0);
    }
    // Made again, it is open to nobody.
    vhost(&mut b, "shop");
    assert_eq!(find(&mut b, "anna").permissions.len(), 1);

    let (user, vhost) = ("anna".to_owned(), "/".to_owned());
    let clear = UserRequest::ClearPermissions {
        user: user.clone(),
        vhost: vhost.clone(),
    };
    changed(&mut b, clear.clone()).unwrap();
    changed(&mut b, clear).unwrap();
    let clear_topics = |exchange: Option<&str>| UserRequest::ClearTopicPermissions {
        user: user.clone(),
        vhost: vhost.clone(),
        exchange: exchange.map(str::to_owned),
    };
    changed(&mut b, clear_topics(Some("u"))).unwrap();
    b.restart(0);
    let anna = find(&mut b, "anna");
    assert_eq!((anna.permissions.len(), anna.topics.len()), (0, 1));
    changed(&mut b, clear_topics(None)).unwrap();
    assert!(find(&mut b, "anna").topics.is_empty());
}

#[test]
fn a_password_is_hashed_anew_only_while_it_is_the_same() {
    let mut b = broker();
    put(&mut b, new("anna", "$old", &[])).unwrap();
    let before = find(&mut b, "anna");
    let rehash = |b: &mut Broker, from: &str, to: &str| {
        let reply = b.admin(AdminRequest::User(UserRequest::Rehash {
            user: "anna".to_owned(),
            from: PasswordHash::new(from),
            to: PasswordHash::new(to),
        }));
        matches!(reply, AdminReply::User(UserReply::Rehashed(true)))
    };
    assert!(!rehash(&mut b, "$other", "$new"));
    assert!(!rehash(&mut b, "$old", ""));
    assert!(rehash(&mut b, "$old", "$new"));
    assert!(!rehash(&mut b, "$old", "$newer"));
    b.restart(0);
    let after = find(&mut b, "anna");
    assert_eq!(after.password_version, before.password_version);
    assert_eq!(after.password.unwrap().reveal(), "$new");
}

#[test]
fn everything_has_a_limit() {
    let limits = Limits {
        users_max: 2,
        regex_bytes_max: 8,
        regex_total_bytes_max: 38,
        topic_permissions_max: 1,
        ..Limits::default()
    };
    let config = EngineConfig {
        limits,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    let long = "x".repeat(256);
    for bad in [
        new("", "$", &[]),
        new(&long, "$", &[]),
        new("a\nb", "$", &[]),
        new("a", "", &[]),
        new("a", &"$".repeat(1_025), &[]),
        new("a", "$", &[""]),
        new("a", "$", &[&long]),
        new("a", "$", &["x"; 17]),
    ] {
        let refused = put(&mut b, bad);
        assert!(matches!(refused, Err(PutUserError::Invalid { .. })));
    }
    put(&mut b, new(&long[1..], "$", &["x"; 16])).unwrap();
    put(&mut b, new("anna", "$", &[])).unwrap();
    let full = put(&mut b, new("berta", "$", &[]));
    assert_eq!(full, Err(PutUserError::TooMany { max: 2 }));
    put(&mut b, new("anna", "$2", &[])).unwrap();

    let refused = permit(&mut b, "anna", "/", "123456789");
    assert!(matches!(refused, Err(PermissionError::Invalid { .. })));
    permit_topic(&mut b, ("anna", "/", "t")).unwrap();
    permit_topic(&mut b, ("anna", "/", "t")).unwrap();
    let refused = permit_topic(&mut b, ("anna", "/", "u"));
    assert!(matches!(refused, Err(PermissionError::TooMany { .. })));
    // 6 bytes of topics, 11 each.
    for name in ["anna", &long[1..]] {
        permit(&mut b, name, "/", "12345678").unwrap();
        permit(&mut b, name, "/", "12345678").unwrap();
    }
    vhost(&mut b, "v");
    let refused = permit(&mut b, "anna", "v", "12345678");
    assert!(matches!(refused, Err(PermissionError::TooMany { .. })));
}

#[test]
fn a_capture_has_all_users() {
    let mut b = broker();
    seed(&mut b);
    for name in ["anna", "berta", "carla"] {
        put(&mut b, new(name, "$1", &["monitoring"])).unwrap();
        permit(&mut b, name, "/", name).unwrap();
        permit_topic(&mut b, (name, "/", "t")).unwrap();
    }
    delete(&mut b, "berta").unwrap();
    let from = b.h.engine.begin_capture(b.h.now, &b.h.journal);
    // While the capture goes on: one is another when it comes to her, one after that.
    delete(&mut b, "carla").unwrap();
    put(&mut b, new("carla", "$2", &[])).unwrap();
    let mut records = Vec::new();
    while !b.h.engine.capture_slice(1, &mut records) {}
    permit(&mut b, "anna", "/", "late").unwrap();
    let before: Vec<_> = table(&mut b).iter().cloned().collect();
    b.h.restart_from_snapshot(from, &records, 0);
    let after: Vec<_> = table(&mut b).iter().cloned().collect();
    assert_eq!(after, before);
    let names: Vec<_> = after.iter().map(|user| &*user.name).collect();
    assert_eq!(names, ["anna", "carla", "guest"]);
    assert!(!seed(&mut b));
    put(&mut b, new("berta", "$1", &[])).unwrap();
    let newest = before.iter().map(|user| user.id).max();
    assert!(Some(find(&mut b, "berta").id) > newest);
}
