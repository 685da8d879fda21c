//! API keys: made, revoked, given permissions; across restarts and captures.

use tanda_engine::{
    AdminReply, AdminRequest, ApiKeyId, ApiKeyInfo, ApiKeyNotFound, Bootstrapped,
    CreateApiKeyError, CredentialError, EngineConfig, Grant, KeyHash, Limits, Millis, NewApiKey,
    Permission, SetAclError,
};

use crate::broker::Broker;
use crate::harness::Harness;

fn broker() -> Broker {
    Broker::over(Harness::new())
}

fn create(b: &mut Broker, name: &str, secret: &str) -> Result<ApiKeyInfo, CreateApiKeyError> {
    let new = NewApiKey {
        name: name.to_owned(),
        expires_at: None,
        is_superadmin: false,
        hash: KeyHash::of(secret.as_bytes()),
    };
    match b.admin(AdminRequest::CreateApiKey(Box::new(new))) {
        AdminReply::ApiKeyCreated(result) => result,
        other => panic!("{other:?}"),
    }
}

fn bootstrap(b: &mut Broker, secret: &str) -> Result<Bootstrapped, CreateApiKeyError> {
    let hash = KeyHash::of(secret.as_bytes());
    match b.admin(AdminRequest::Bootstrap { hash }) {
        AdminReply::Bootstrapped(result) => result,
        other => panic!("{other:?}"),
    }
}

fn revoke(b: &mut Broker, id: &str) -> Result<ApiKeyInfo, ApiKeyNotFound> {
    match b.admin(AdminRequest::RevokeApiKey { id: id.to_owned() }) {
        AdminReply::ApiKeyRevoked(result) => result,
        other => panic!("{other:?}"),
    }
}

fn set_acl(b: &mut Broker, id: &str, grants: Vec<Grant>) -> Result<ApiKeyInfo, SetAclError> {
    let id = id.to_owned();
    match b.admin(AdminRequest::SetAcl { id, grants }) {
        AdminReply::AclSet(result) => result,
        other => panic!("{other:?}"),
    }
}

fn grants_of(b: &mut Broker, id: &str) -> Result<Vec<Grant>, ApiKeyNotFound> {
    match b.admin(AdminRequest::GetAcl { id: id.to_owned() }) {
        AdminReply::Acl(result) => result.map(|acl| acl.grants.to_vec()),
        other => panic!("{other:?}"),
    }
}

fn list(b: &mut Broker) -> Vec<String> {
    match b.admin(AdminRequest::ListApiKeys) {
        AdminReply::ApiKeys(keys) => keys
            .iter()
            .map(|key| format!("{} {}", key.id, key.name))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn grant(permission: Permission, pattern: &str) -> Grant {
    Grant {
        permission,
        pattern: pattern.into(),
    }
}

/// Which key a secret belongs to, by the newest table.
fn holder(b: &mut Broker, secret: &str) -> Result<ApiKeyId, CredentialError> {
    let table = b.h.engine.take_keys().expect("the table has changed");
    let found = table.authenticate(Some(secret.as_bytes()), Millis(0));
    found.map(|key| key.id)
}

#[test]
fn keys_live_until_they_are_revoked_and_ids_are_never_used_again() {
    let mut b = broker();
    let first = create(&mut b, "first", "one").unwrap();
    assert_eq!((first.id, &*first.name), (ApiKeyId(1), "first"));
    assert_eq!(first.created_at, b.h.now);
    create(&mut b, "second", "two").unwrap();
    assert_eq!(list(&mut b), ["k1 first", "k2 second"]);
    assert_eq!(holder(&mut b, "two"), Ok(ApiKeyId(2)));
    assert_eq!(revoke(&mut b, "k2").unwrap().id, ApiKeyId(2));
    assert_eq!(holder(&mut b, "two"), Err(CredentialError::Unknown));
    assert_eq!(revoke(&mut b, "k2"), Err(ApiKeyNotFound));
    assert_eq!(revoke(&mut b, "nonsense"), Err(ApiKeyNotFound));
    b.restart(0);
    assert_eq!(list(&mut b), ["k1 first"]);
    assert_eq!(create(&mut b, "third", "two").unwrap().id, ApiKeyId(3));
    assert_eq!(holder(&mut b, "one"), Ok(ApiKeyId(1)));
    assert!(b.h.engine.take_keys().is_none(), "nothing has changed");
}

#[test]
fn permissions_are_replaced_as_a_whole_and_survive_a_restart() {
    let mut b = broker();
    create(&mut b, "worker", "one").unwrap();
    assert_eq!(grants_of(&mut b, "k1"), Ok(vec![]));
    let first = vec![
        grant(Permission::Produce, "a"),
        grant(Permission::Admin, "*"),
    ];
    set_acl(&mut b, "k1", first.clone()).unwrap();
    assert_eq!(grants_of(&mut b, "k1"), Ok(first));
    let second = vec![grant(Permission::Consume, "jobs.*")];
    set_acl(&mut b, "k1", second.clone()).unwrap();
    b.restart(0);
    assert_eq!(grants_of(&mut b, "k1"), Ok(second));
    assert_eq!(grants_of(&mut b, "k2"), Err(ApiKeyNotFound));
    assert_eq!(set_acl(&mut b, "k2", vec![]), Err(SetAclError::NotFound));
    let table = b.h.engine.take_keys().unwrap();
    let key = table.find(ApiKeyId(1)).unwrap();
    assert!(key.may(Permission::Consume, "jobs.eu"));
    assert!(!key.may(Permission::Produce, "a"));
}

#[test]
fn limits_of_keys_and_permissions() {
    let limits = Limits {
        api_keys_max: 2,
        permissions_max: 2,
        pattern_bytes_max: 4,
        pattern_total_bytes_max: 10,
        ..Limits::default()
    };
    let config = EngineConfig {
        limits,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    create(&mut b, "first", "one").unwrap();
    assert_eq!(
        create(&mut b, "same", "one"),
        Err(CreateApiKeyError::SecretInUse)
    );
    create(&mut b, "second", "two").unwrap();
    assert_eq!(
        create(&mut b, "third", "three"),
        Err(CreateApiKeyError::TooMany { max: 2 })
    );
    let of = |patterns: &[&str]| {
        let grant = |pattern: &&str| grant(Permission::Produce, pattern);
        patterns.iter().map(grant).collect::<Vec<_>>()
    };
    assert_eq!(
        set_acl(&mut b, "k1", of(&["a", "b", "c"])),
        Err(SetAclError::TooMany { max: 2 })
    );
    for (pattern, len) in [("", 0), ("abcde", 5)] {
        assert_eq!(
            set_acl(&mut b, "k1", of(&["a", pattern])),
            Err(SetAclError::BadPattern { len, max: 4 })
        );
    }
    set_acl(&mut b, "k1", of(&["abcd", "abcd"])).unwrap();
    assert_eq!(
        set_acl(&mut b, "k2", of(&["abc"])),
        Err(SetAclError::TooManyBytes { max: 10 })
    );
    // What is replaced does not count, and what is gone neither.
    set_acl(&mut b, "k1", of(&["abcd", "abc"])).unwrap();
    set_acl(&mut b, "k2", of(&["abc"])).unwrap();
    revoke(&mut b, "k1").unwrap();
    set_acl(&mut b, "k2", of(&["abcd", "abcd"])).unwrap();
    for bad in ["x".repeat(256), "a\nb".to_owned()] {
        let refused = create(&mut b, &bad, "three");
        assert!(matches!(refused, Err(CreateApiKeyError::BadName { .. })));
    }
}

#[test]
fn a_full_disk_refuses_new_keys_and_lets_old_ones_be_revoked() {
    let mut b = broker();
    create(&mut b, "first", "one").unwrap();
    b.h.engine.set_storage_full(true);
    assert_eq!(
        create(&mut b, "second", "two"),
        Err(CreateApiKeyError::Storage)
    );
    set_acl(&mut b, "k1", vec![grant(Permission::Produce, "a")]).unwrap();
    revoke(&mut b, "k1").unwrap();
    assert_eq!(list(&mut b), Vec::<String>::new());
}

#[test]
fn the_bootstrap_key_comes_once_for_each_secret() {
    let mut b = broker();
    let Ok(Bootstrapped::Made { key, replaced }) = bootstrap(&mut b, "one") else {
        panic!("not made")
    };
    assert!(key.is_superadmin && replaced.is_none());
    let known = |is_revoked| Ok(Bootstrapped::Known { is_revoked });
    assert_eq!(bootstrap(&mut b, "one"), known(false));
    b.restart(0);
    assert_eq!(bootstrap(&mut b, "one"), known(false));
    assert_eq!(list(&mut b), ["k1 bootstrap"]);
    // Revoked, it does not come back because it still stands in a file.
    revoke(&mut b, "k1").unwrap();
    assert_eq!(bootstrap(&mut b, "one"), known(true));
    b.restart(0);
    assert_eq!(bootstrap(&mut b, "one"), known(true));
    // Another secret is wanted, and takes the place of the one before.
    create(&mut b, "ordinary", "x").unwrap();
    assert!(bootstrap(&mut b, "two").is_ok());
    let Ok(Bootstrapped::Made { key, replaced }) = bootstrap(&mut b, "three") else {
        panic!("not made")
    };
    assert_eq!(replaced, Some(ApiKeyId(3)));
    assert_eq!(key.id, ApiKeyId(4));
    assert_eq!(list(&mut b), ["k2 ordinary", "k4 bootstrap"]);
    assert_eq!(bootstrap(&mut b, "x"), Err(CreateApiKeyError::SecretInUse));
}

#[test]
fn a_capture_holds_keys_permissions_and_what_is_gone() {
    let mut b = broker();
    let made = bootstrap(&mut b, "boot").is_ok();
    assert!(made);
    for n in 0..5 {
        create(&mut b, &format!("n{n}"), &format!("s{n}")).unwrap();
    }
    set_acl(&mut b, "k3", vec![grant(Permission::Admin, "*")]).unwrap();
    revoke(&mut b, "k1").unwrap();
    revoke(&mut b, "k6").unwrap();
    let from = b.h.engine.begin_capture(b.h.now, &b.h.journal);
    // While the capture goes on.
    revoke(&mut b, "k2").unwrap();
    let mut records = Vec::new();
    while !b.h.engine.capture_slice(1, &mut records) {}
    set_acl(&mut b, "k3", vec![grant(Permission::Consume, "j")]).unwrap();
    create(&mut b, "late", "late").unwrap();

    let after: Vec<_> = b.h.journal.records.clone();
    let mut engine = tanda_engine::Engine::new(EngineConfig::default());
    for record in &records {
        engine.replay(tanda_engine::Lsn(0), record).unwrap();
    }
    for (at, record) in after.iter().filter(|(at, _)| *at >= from) {
        engine.replay(*at, record).unwrap();
    }
    b.h.engine = engine;
    let now = b.h.now;
    b.h.engine.start(now, &mut b.h.journal).unwrap();
    assert_eq!(list(&mut b), ["k3 n1", "k4 n2", "k5 n3", "k7 late"]);
    let consume = vec![grant(Permission::Consume, "j")];
    assert_eq!(grants_of(&mut b, "k3"), Ok(consume));
    let known = bootstrap(&mut b, "boot");
    assert_eq!(known, Ok(Bootstrapped::Known { is_revoked: true }));
    assert_eq!(create(&mut b, "next", "next").unwrap().id, ApiKeyId(8));
}
