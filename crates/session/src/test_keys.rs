//! API keys for tests, made by an engine, and items of its lists.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

use std::sync::Arc;

use tanda_engine::{
    AddedPart, AdminReply, AdminRequest, ConnId, ContentRead, Datum, Engine, EngineConfig, Event,
    Grant, Journal, KeyAnswer, KeyHash, KeyOp, KeyRequest, KeyTable, KeyWrite, ListSide, Lsn,
    Millis, NewApiKey, PageSlot, Permission, ReplyTo, Request, VhostId,
};

/// When the engine starts.
const START: Millis = Millis(1_000_000);

/// A journal that keeps nothing.
struct NoJournal;

impl Journal for NoJournal {
    fn append(&mut self, _record: &[u8]) -> Lsn {
        Lsn::ZERO
    }

    fn end(&self) -> Lsn {
        Lsn::ZERO
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}

/// The keys of an engine.
pub(crate) struct Keys {
    engine: Engine,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let mut engine = Engine::new(EngineConfig::default());
        engine.start(START, &mut NoJournal).unwrap();
        Self { engine }
    }

    fn ask(&mut self, request: AdminRequest) -> AdminReply {
        let mut out = Vec::new();
        let reply = ReplyTo {
            conn: ConnId(1),
            token: 1,
        };
        let request = Request::Admin { reply, request };
        self.engine.handle(START, &mut NoJournal, request, &mut out);
        match out.pop().map(|output| output.event) {
            Some(Event::Admin { reply, .. }) => *reply,
            other => panic!("{other:?}"),
        }
    }

    /// Makes a key whose secret is its name; returns its id.
    pub(crate) fn create(&mut self, name: &str, expires_at: Option<Millis>) -> String {
        let new = NewApiKey {
            name: name.to_owned(),
            expires_at,
            is_superadmin: name == "root",
            hash: KeyHash::of(name.as_bytes()),
        };
        match self.ask(AdminRequest::CreateApiKey(Box::new(new))) {
            AdminReply::ApiKeyCreated(Ok(key)) => key.id.to_string(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn set_acl(&mut self, id: &str, grants: &[(Permission, &str)]) {
        let grant = |(permission, pattern): &(Permission, &str)| Grant {
            permission: *permission,
            pattern: (*pattern).into(),
        };
        let grants = grants.iter().map(grant).collect();
        let id = id.to_owned();
        let reply = self.ask(AdminRequest::SetAcl { id, grants });
        assert!(matches!(reply, AdminReply::AclSet(Ok(_))), "{reply:?}");
    }

    pub(crate) fn revoke(&mut self, id: &str) {
        let id = id.to_owned();
        let reply = self.ask(AdminRequest::RevokeApiKey { id });
        assert!(matches!(reply, AdminReply::ApiKeyRevoked(Ok(_))));
    }

    pub(crate) fn table(&mut self) -> Arc<KeyTable> {
        self.engine.take_keys().expect("the keys have changed")
    }
}

/// An item, as an engine gives it to who pops it.
pub(crate) fn taken(item: Datum) -> KeyAnswer {
    let mut engine = Engine::new(EngineConfig::default());
    engine.start(START, &mut NoJournal).unwrap();
    let mut out = Vec::new();
    let part = AddedPart::Items {
        values: vec![item],
        side: ListSide::Back,
    };
    let push = KeyOp::Write {
        key: "l".into(),
        write: KeyWrite::Add { part, ttl_ms: None },
    };
    let pop = KeyOp::Pop {
        key: "l".into(),
        side: ListSide::Front,
        wait_ms: 0,
    };
    for op in [push, pop] {
        let request = Box::new(KeyRequest {
            vhost: VhostId::DEFAULT,
            answer_bytes_max: usize::MAX,
            op,
        });
        let reply = ReplyTo {
            conn: ConnId(1),
            token: 1,
        };
        let request = Request::Keys { reply, request };
        engine.handle(START, &mut NoJournal, request, &mut out);
    }
    match out.pop().map(|output| output.event) {
        Some(Event::Keys { result, .. }) => result.unwrap(),
        other => panic!("{other:?}"),
    }
}
