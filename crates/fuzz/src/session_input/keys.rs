//! Tables of API keys, as an engine that makes and revokes them hands them out.

use std::sync::{Arc, OnceLock};

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, Engine, EngineConfig, Event, Grant, KeyHash, KeyTable,
    NewApiKey, Permission, ReplyTo, Request,
};
use tanda_session::secret::Entropy;

use super::peer::START;
use crate::engine_replay::journal::MemJournal;

/// The tables of a key's life, one after the other: none, all three, one less permission, one
/// revoked. A key's secret is its name: `root` may do everything, `some` a part, `late` expires.
pub(crate) fn tables() -> &'static [Arc<KeyTable>] {
    static TABLES: OnceLock<Vec<Arc<KeyTable>>> = OnceLock::new();
    TABLES.get_or_init(make)
}

/// Not random: the same input does the same again.
#[derive(Debug)]
pub(super) struct Fixed;

impl Entropy for Fixed {
    fn draw(&self) -> Option<[u8; 32]> {
        Some([7; 32])
    }
}

fn make() -> Vec<Arc<KeyTable>> {
    let mut journal = MemJournal::new(tanda_engine::Lsn(4096));
    let mut engine = Engine::new(EngineConfig::default());
    assert_eq!(engine.start(START, &mut journal), Ok(()));
    let mut ask = |request| {
        let reply = ReplyTo {
            conn: ConnId(1),
            token: 1,
        };
        let mut out = Vec::new();
        let request = Request::Admin { reply, request };
        engine.handle(START, &mut journal, request, &mut out);
        let id = match out.pop().map(|output| output.event) {
            Some(Event::Admin { reply, .. }) => key_id(&reply),
            _ => None,
        };
        (id, engine.take_keys())
    };
    let mut tables = vec![Arc::default()];
    let mut ids = Vec::new();
    for (name, expires_at) in [
        ("root", None),
        ("some", None),
        ("late", Some(START.after_ms(60_000))),
    ] {
        let (id, _) = ask(AdminRequest::CreateApiKey(Box::new(NewApiKey {
            name: name.to_owned(),
            expires_at,
            is_superadmin: name == "root",
            hash: KeyHash::of(name.as_bytes()),
        })));
        ids.push(id.unwrap_or_default());
    }
    let [root, some, late] = ids.as_slice() else {
        unreachable!("three keys were made, not {ids:?}");
    };
    let all = [Permission::Produce, Permission::Consume, Permission::Admin];
    let mut grant = |id: &String, permissions: &[Permission], pattern: &str| {
        let grants = permissions.iter().map(|permission| Grant {
            permission: *permission,
            pattern: pattern.into(),
        });
        let grants = grants.collect();
        let id = id.clone();
        ask(AdminRequest::SetAcl { id, grants }).1
    };
    grant(late, &all, "*");
    tables.extend(grant(some, &all, "q*"));
    tables.extend(grant(some, &[Permission::Produce], "q*"));
    for id in [some, root] {
        tables.extend(ask(AdminRequest::RevokeApiKey { id: id.clone() }).1);
    }
    assert_eq!(tables.len(), 5, "a table for each step");
    tables
}

fn key_id(reply: &AdminReply) -> Option<String> {
    if let AdminReply::ApiKeyCreated(Ok(key)) = reply {
        return Some(key.id.to_string());
    }
    None
}

#[cfg(test)]
mod tests {
    use tanda_engine::Millis;

    use super::*;

    #[test]
    fn keys_come_and_go() {
        let knows = |name: &str, at: Millis| -> Vec<bool> {
            let tables = tables().iter();
            tables
                .map(|table| table.authenticate(Some(name.as_bytes()), at).is_ok())
                .collect()
        };
        assert_eq!(knows("root", START), [false, true, true, true, false]);
        assert_eq!(knows("some", START), [false, true, true, false, false]);
        assert_eq!(knows("late", START), [false, true, true, true, true]);
        assert_eq!(knows("late", START.after_ms(60_000)), [false; 5]);
    }
}
