//! Who may do what, and what happens when a key or a permission goes.

use std::sync::Arc;

use tanda_engine::{KeyError, KeyTable, Permission, Request, VhostId};
use tanda_wire::amaquet::Opcode;

use super::*;
use crate::audit::AuditOutcome;
use crate::test_keys::Keys;

fn closed() -> AmaquetConfig {
    AmaquetConfig {
        authentication: Authentication::On,
        ..config()
    }
}

fn failed(opcode: &str, id: u64, code: &str, message: &str) -> String {
    format!(r#"{opcode} {id} {{"ok":false,"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

/// A connection that has shown the key of this name.
fn open_as(name: &str, table: &Arc<KeyTable>) -> Peer {
    let mut peer = Peer::with(closed());
    Session::on_keys(&mut peer.session, START, table);
    peer.say(Opcode::Auth, 1, &format!(r#"{{"api_key":"{name}"}}"#));
    let told = peer.read();
    assert!(told[0].starts_with(r#"AUTH 1 {"ok":true"#), "{told:?}");
    assert_eq!(peer.requests(), [connect()]);
    peer
}

#[test]
fn a_key_says_who_it_is() {
    let mut keys = Keys::new();
    keys.create("root", None);
    keys.create("some", None);
    let table = keys.table();
    let mut peer = Peer::with(closed());
    Session::on_keys(&mut peer.session, START, &table);
    for name in ["root", "nobody", "some"] {
        peer.say(Opcode::Auth, 1, &format!(r#"{{"api_key":"{name}"}}"#));
    }
    peer.say(Opcode::Hello, 2, "");
    let told = peer.read();
    let is = |at: usize, start: &str| assert!(told[at].starts_with(start), "{told:?}");
    is(
        0,
        r#"AUTH 1 {"ok":true,"result":{"key_id":"k1","name":"root","superadmin":true}}"#,
    );
    is(
        1,
        r#"AUTH 1 {"ok":false,"error":{"code":"UNAUTHENTICATED","message":""#,
    );
    is(
        2,
        r#"AUTH 1 {"ok":true,"result":{"key_id":"k2","name":"some","superadmin":false}}"#,
    );
    assert!(told[3].contains(r#""auth_required":true"#));
    let audit = Session::take_audit(&mut peer.session);
    assert!(
        matches!(audit[0].outcome, AuditOutcome::Denied(_)),
        "{audit:?}"
    );
    assert_eq!(audit.len(), 1);
    // A failure leaves the connection as it was.
    peer.say(Opcode::Auth, 1, r#"{"api_key":"nobody"}"#);
    peer.ask(3, r#"{"command":"server.ping"}"#);
    let told = peer.read();
    assert_eq!(told[1], r#"COMMAND 3 {"ok":true,"result":{"pong":true}}"#);
}

/// A connection that may do something with some names.
fn some() -> Peer {
    let mut keys = Keys::new();
    let id = keys.create("some", None);
    let grants = [
        (Permission::Consume, "r.*"),
        (Permission::Produce, "w.*"),
        (Permission::Admin, "a.*"),
    ];
    keys.set_acl(&id, &grants);
    open_as("some", &keys.table())
}

#[test]
fn each_command_needs_its_permission_on_each_name() {
    let mut peer = some();
    for (command, needed) in [
        (
            r#""value.get","key":"x""#,
            r#"value.get needs the permission consume on \"x\""#,
        ),
        (
            r#""value.get_many","keys":["r.1","w.1"]"#,
            r#"value.get_many needs the permission consume on \"w.1\""#,
        ),
        (
            r#""value.set","key":"r.1","value":1"#,
            r#"value.set needs the permission produce on \"r.1\""#,
        ),
        (
            r#""key.rename","key":"a.1","to":"b.1""#,
            r#"key.rename needs the permission admin on \"b.1\""#,
        ),
        (
            r#""queue.pop","queue":"w.1""#,
            r#"queue.pop needs the permission consume on \"w.1\""#,
        ),
        (
            r#""queue.delete","queue":"w.1""#,
            r#"queue.delete needs the permission admin on \"w.1\""#,
        ),
        (
            r#""pubsub.publish","key":"r.1","channel":"c","payload":1"#,
            r#"pubsub.publish needs the permission produce on \"r.1\""#,
        ),
        (
            r#""server.info""#,
            r#"server.info needs the permission admin on \"*\""#,
        ),
    ] {
        peer.ask(5, &format!(r#"{{"command":{command}}}"#));
        assert_eq!(peer.read(), [failed("COMMAND", 5, "FORBIDDEN", needed)]);
    }
    peer.say(Opcode::Subscribe, 5, r#"{"key":"w.1","channel":"c"}"#);
    let needed = r#"SUBSCRIBE needs the permission consume on \"w.1\""#;
    assert_eq!(peer.read(), [failed("SUBSCRIBE", 5, "FORBIDDEN", needed)]);
    assert_eq!(peer.requests(), [""; 0]);
    let audit = Session::take_audit(&mut peer.session);
    assert_eq!(audit.len(), 9);
    assert_eq!((&*audit[0].action, &*audit[0].object), ("value.get", "x"));
}

#[test]
fn with_its_permission_a_command_is_run() {
    let mut peer = some();
    for command in [
        r#""value.get","key":"r.1""#,
        r#""value.set","key":"w.1","value":1"#,
        r#""key.rename","key":"a.1","to":"a.2""#,
        r#""key.scan""#,
    ] {
        peer.ask(5, &format!(r#"{{"command":{command}}}"#));
        let Some(Request::Keys { reply, request }) = peer.session.next_request() else {
            panic!("{command}: {:?}", peer.read())
        };
        let asked = format!("{request:?}");
        assert_eq!(
            asked.contains("caller: Key("),
            command.contains("scan"),
            "{asked}"
        );
        peer.event(Event::Keys {
            token: reply.token,
            vhost: VhostId::DEFAULT,
            result: Box::new(Err(KeyError::NotFound)),
        });
        assert_eq!(peer.read().len(), 1);
    }
}

/// A connection that waits for an item and has a subscription; their tokens.
fn waiting(table: &Arc<KeyTable>) -> (Peer, u32, u32) {
    let mut peer = open_as("some", table);
    peer.ask(5, r#"{"command":"list.pop","key":"l","wait_ms":500}"#);
    let Some(Request::Keys { reply, .. }) = peer.session.next_request() else {
        panic!("{:?}", peer.read())
    };
    peer.say(Opcode::Subscribe, 6, r#"{"key":"bus","channel":"c"}"#);
    let Some(Request::Watch { sub, .. }) = peer.session.next_request() else {
        panic!("{:?}", peer.read())
    };
    let (token, result) = (sub.token, Ok(()));
    peer.event(Event::Watching { token, result });
    assert_eq!(peer.read().len(), 1);
    (peer, reply.token, token)
}

fn cancelled(token: u32) -> Event {
    Event::Keys {
        token,
        vhost: VhostId::DEFAULT,
        result: Box::new(Err(KeyError::Cancelled)),
    }
}

const ALL: [(Permission, &str); 2] = [(Permission::Produce, "*"), (Permission::Consume, "*")];

#[test]
fn who_loses_its_key_loses_waits_and_subscriptions() {
    let mut keys = Keys::new();
    let id = keys.create("some", None);
    keys.create("root", None);
    keys.set_acl(&id, &ALL);
    let (mut peer, wait, _) = waiting(&keys.table());
    keys.revoke(&id);
    Session::on_keys(&mut peer.session, START, &keys.table());
    let told = peer.requests();
    assert!(
        told[0].starts_with("CancelWait") && told[1].starts_with("Unwatch"),
        "{told:?}"
    );
    peer.event(cancelled(wait));
    peer.ask(7, r#"{"command":"server.ping"}"#);
    let text = "the API key of this connection is no good any more";
    let nobody = "nobody has logged in on this connection: send AUTH with an API key";
    let all = [
        failed("SUBSCRIBE", 6, "UNAUTHENTICATED", text),
        failed("COMMAND", 5, "UNAUTHENTICATED", text),
        failed("COMMAND", 7, "UNAUTHENTICATED", nobody),
    ];
    assert_eq!(peer.read(), all);
    // It may log in again.
    peer.say(Opcode::Auth, 8, r#"{"api_key":"root"}"#);
    peer.ask(9, r#"{"command":"server.ping"}"#);
    assert!(peer.read()[1].contains("pong"));
}

#[test]
fn who_loses_a_permission_loses_what_it_was_for() {
    let mut keys = Keys::new();
    let id = keys.create("some", None);
    keys.set_acl(&id, &ALL);
    let (mut peer, wait, _) = waiting(&keys.table());
    keys.set_acl(&id, &[(Permission::Produce, "*")]);
    Session::on_keys(&mut peer.session, START, &keys.table());
    let told = peer.requests();
    assert!(
        told[0].starts_with("Unwatch") && told.len() == 1,
        "{told:?}"
    );
    let text = "the permission to consume this was taken away";
    assert_eq!(peer.read(), [failed("SUBSCRIBE", 6, "FORBIDDEN", text)]);
    keys.set_acl(&id, &[]);
    Session::on_keys(&mut peer.session, START, &keys.table());
    assert!(peer.requests()[0].starts_with("CancelWait"));
    peer.event(cancelled(wait));
    let text = "the permission to wait for this was taken away";
    assert_eq!(peer.read(), [failed("COMMAND", 5, "FORBIDDEN", text)]);
}

#[test]
fn a_key_expires_by_itself() {
    let mut keys = Keys::new();
    let id = keys.create("some", Some(START.after_ms(100)));
    keys.set_acl(&id, &ALL);
    let (mut peer, _, _) = waiting(&keys.table());
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(100)));
    peer.wait(100);
    assert_eq!(peer.requests().len(), 2);
    assert!(peer.read()[0].contains("UNAUTHENTICATED"));
    assert_eq!(peer.session.next_deadline(), None);
}
