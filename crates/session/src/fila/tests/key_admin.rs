//! Keys and permissions over the protocol (fila: CreateApiKey to GetAcl).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

use std::sync::Arc;

use tanda_engine::{
    AclOf, AdminReply, AdminRequest, ApiKeyId, ApiKeyInfo, ApiKeyNotFound, CreateApiKeyError,
    Event, Grant, Millis, Permission, Request, SetAclError,
};
use tanda_wire::fila::keys::{
    ApiKeyInfo as Listed, CreateApiKey, CreateApiKeyResult, GetAcl, GetAclResult, ListApiKeys,
    ListApiKeysResult, Permission as Granted, RevokeApiKey, RevokeApiKeyResult, SetAcl,
    SetAclResult,
};
use tanda_wire::fila::{Body, Capabilities, ErrorCode};

use super::{Peer, START, Seen, config};
use crate::audit::AuditOutcome;
use crate::fila::SessionConfig;
use crate::secret::{Entropy, Secret};

#[derive(Debug)]
struct Drawn(Option<[u8; 32]>);

impl Entropy for Drawn {
    fn draw(&self) -> Option<[u8; 32]> {
        self.0
    }
}

const BITS: [u8; 32] = [0xA5; 32];

fn open(bits: Option<[u8; 32]>) -> Peer {
    let config = SessionConfig {
        entropy: Some(Arc::new(Drawn(bits))),
        ..config()
    };
    Peer::open_with(config, Capabilities::CREDIT_FLOW_CONTROL)
}

fn ask<'a, B: Body<'a>>(peer: &mut Peer, body: &B) -> (u32, AdminRequest) {
    peer.call(6, body);
    match peer.request() {
        Request::Admin { reply, request } => (reply.token, request),
        other => panic!("{other:?}"),
    }
}

/// Asks, answers, and returns what the peer sees.
fn answer<'a, B: Body<'a>>(peer: &mut Peer, body: &B, reply: AdminReply) -> Seen {
    let (token, _) = ask(peer, body);
    let reply = Box::new(reply);
    peer.event(Event::Admin { token, reply });
    let frame = peer.frame();
    assert_eq!(frame.header.request_id, 6);
    frame
}

fn info() -> ApiKeyInfo {
    ApiKeyInfo {
        id: ApiKeyId(7),
        name: "billing".into(),
        created_at: START,
        expires_at: Some(Millis(9)),
        is_superadmin: false,
    }
}

fn noted(peer: &mut Peer) -> Vec<(String, String, AuditOutcome)> {
    let events = peer.session.take_audit().into_iter();
    events
        .map(|it| (it.action, it.object, it.outcome))
        .collect()
}

#[test]
fn the_secret_is_made_here_shown_once_and_kept_nowhere() {
    let mut peer = open(Some(BITS));
    let create = CreateApiKey {
        name: "billing",
        expires_at_ms: 9,
        is_superadmin: true,
    };
    let (token, request) = ask(&mut peer, &create);
    let AdminRequest::CreateApiKey(new) = &request else {
        panic!("{request:?}")
    };
    let secret = Secret::of(BITS);
    assert_eq!(new.name, "billing");
    assert_eq!(new.expires_at, Some(Millis(9)));
    assert!(new.is_superadmin);
    assert_eq!(new.hash, secret.hash());
    for shown in [format!("{request:?}"), format!("{:?}", peer.session)] {
        assert!(!shown.contains(secret.reveal()), "{shown}");
    }
    let reply = AdminReply::ApiKeyCreated(Ok(ApiKeyInfo {
        is_superadmin: true,
        ..info()
    }));
    peer.event(Event::Admin {
        token,
        reply: Box::new(reply),
    });
    let frame = peer.frame();
    let expected = CreateApiKeyResult {
        error_code: ErrorCode::Ok,
        key_id: "k7",
        key: secret.reveal(),
        is_superadmin: true,
    };
    assert_eq!(frame.decode::<CreateApiKeyResult<'_>>(), expected);
    let object = "superadmin k7 billing".to_owned();
    let done = ("CreateApiKey".to_owned(), object, AuditOutcome::Done);
    assert_eq!(noted(&mut peer), [done]);
    assert!(!format!("{:?}", peer.session).contains(secret.reveal()));
}

#[test]
fn a_key_that_is_not_made_has_no_secret() {
    for (error, error_code) in [
        (
            CreateApiKeyError::BadName {
                problem: String::new(),
            },
            ErrorCode::InvalidConfigValue,
        ),
        (
            CreateApiKeyError::TooMany { max: 1 },
            ErrorCode::InvalidConfigValue,
        ),
        (CreateApiKeyError::SecretInUse, ErrorCode::InternalError),
        (CreateApiKeyError::Storage, ErrorCode::StorageError),
    ] {
        let mut peer = open(Some(BITS));
        let reply = AdminReply::ApiKeyCreated(Err(error));
        let frame = answer(&mut peer, &CreateApiKey::default(), reply);
        let expected = CreateApiKeyResult {
            error_code,
            ..CreateApiKeyResult::default()
        };
        assert_eq!(frame.decode::<CreateApiKeyResult<'_>>(), expected);
        let refused = AuditOutcome::Refused(error_code.name());
        let noted = noted(&mut peer);
        assert_eq!(noted, [("CreateApiKey".to_owned(), String::new(), refused)]);
    }
    let mut peer = open(Some(BITS));
    let (token, _) = ask(&mut peer, &CreateApiKey::default());
    peer.event(Event::StorageFailed { token });
    peer.refusal(6, ErrorCode::StorageError);
}

#[test]
fn without_random_bytes_no_key_is_made() {
    for mut peer in [open(None), Peer::open()] {
        peer.call(6, &CreateApiKey::default());
        peer.refusal(6, ErrorCode::InternalError);
        assert!(peer.requests().is_empty());
    }
}

#[test]
fn a_key_without_an_end_has_none() {
    let mut peer = open(Some(BITS));
    let (_, request) = ask(&mut peer, &CreateApiKey::default());
    let AdminRequest::CreateApiKey(new) = request else {
        panic!("{request:?}")
    };
    assert_eq!((new.expires_at, new.is_superadmin), (None, false));
}

#[test]
fn revoke_and_list() {
    let mut peer = open(Some(BITS));
    let revoke = RevokeApiKey { key_id: "k7" };
    let (_, request) = ask(&mut peer, &revoke);
    assert!(matches!(request, AdminRequest::RevokeApiKey { id } if id == "k7"));
    let results = [
        (Ok(info()), ErrorCode::Ok),
        (Err(ApiKeyNotFound), ErrorCode::ApiKeyNotFound),
    ];
    for (result, error_code) in results {
        let frame = answer(&mut peer, &revoke, AdminReply::ApiKeyRevoked(result));
        let expected = RevokeApiKeyResult { error_code };
        assert_eq!(frame.decode::<RevokeApiKeyResult>(), expected);
    }
    let action = || "RevokeApiKey".to_owned();
    let not_found = AuditOutcome::Refused(ErrorCode::ApiKeyNotFound.name());
    let expected = [
        (action(), "k7 billing".to_owned(), AuditOutcome::Done),
        (action(), "k7".to_owned(), not_found),
    ];
    assert_eq!(noted(&mut peer), expected);

    let (_, request) = ask(&mut peer, &ListApiKeys {});
    assert!(matches!(request, AdminRequest::ListApiKeys));
    let forever = ApiKeyInfo {
        expires_at: None,
        is_superadmin: true,
        ..info()
    };
    let reply = AdminReply::ApiKeys(vec![info(), forever]);
    let frame = answer(&mut peer, &ListApiKeys {}, reply);
    let listed = Listed {
        key_id: "k7",
        name: "billing",
        created_at_ms: START.0,
        expires_at_ms: 9,
        is_superadmin: false,
    };
    let second = Listed {
        expires_at_ms: 0,
        is_superadmin: true,
        ..listed.clone()
    };
    let expected = ListApiKeysResult {
        error_code: ErrorCode::Ok,
        keys: vec![listed, second],
    };
    assert_eq!(frame.decode::<ListApiKeysResult<'_>>(), expected);
}

fn granted<'a>(kinds: &[&'a str]) -> Vec<Granted<'a>> {
    let granted = |kind: &&'a str| Granted {
        kind,
        pattern: "q*",
    };
    kinds.iter().map(granted).collect()
}

#[test]
fn set_and_get_permissions() {
    let mut peer = open(Some(BITS));
    let set = SetAcl {
        key_id: "k7",
        permissions: granted(&["produce", "consume", "admin"]),
    };
    let (_, request) = ask(&mut peer, &set);
    let grants = Permission::ALL.map(|permission| Grant {
        permission,
        pattern: "q*".into(),
    });
    let AdminRequest::SetAcl { id, grants: asked } = request else {
        panic!("{request:?}")
    };
    assert_eq!((&*id, &*asked), ("k7", &grants[..]));
    for (result, error_code) in [
        (Ok(info()), ErrorCode::Ok),
        (Err(SetAclError::NotFound), ErrorCode::ApiKeyNotFound),
        (
            Err(SetAclError::TooMany { max: 1 }),
            ErrorCode::InvalidConfigValue,
        ),
        (
            Err(SetAclError::BadPattern { len: 0, max: 1 }),
            ErrorCode::InvalidConfigValue,
        ),
        (
            Err(SetAclError::TooManyBytes { max: 1 }),
            ErrorCode::InvalidConfigValue,
        ),
    ] {
        let frame = answer(&mut peer, &set, AdminReply::AclSet(result));
        assert_eq!(frame.decode::<SetAclResult>(), SetAclResult { error_code });
    }
    assert_eq!(noted(&mut peer).len(), 5);

    let get = GetAcl { key_id: "k7" };
    let (_, request) = ask(&mut peer, &get);
    assert!(matches!(request, AdminRequest::GetAcl { id } if id == "k7"));
    let acl = AclOf {
        key: info(),
        grants: grants.into(),
    };
    let frame = answer(&mut peer, &get, AdminReply::Acl(Ok(acl)));
    let expected = GetAclResult {
        error_code: ErrorCode::Ok,
        key_id: "k7",
        is_superadmin: false,
        permissions: granted(&["produce", "consume", "admin"]),
    };
    assert_eq!(frame.decode::<GetAclResult<'_>>(), expected);
    let frame = answer(&mut peer, &get, AdminReply::Acl(Err(ApiKeyNotFound)));
    let expected = GetAclResult {
        error_code: ErrorCode::ApiKeyNotFound,
        ..GetAclResult::default()
    };
    assert_eq!(frame.decode::<GetAclResult<'_>>(), expected);
}

#[test]
fn an_unknown_kind_of_permission_is_an_invalid_value() {
    for kind in ["", "Produce", "superadmin", "produce "] {
        let mut peer = open(Some(BITS));
        let set = SetAcl {
            key_id: "k7",
            permissions: granted(&["produce", kind]),
        };
        peer.call(6, &set);
        let error_code = ErrorCode::InvalidConfigValue;
        let frame = peer.frame();
        assert_eq!(frame.decode::<SetAclResult>(), SetAclResult { error_code });
        assert!(peer.requests().is_empty());
    }
}
