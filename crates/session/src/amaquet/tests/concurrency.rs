//! Commands beside each other: order, ids, limits, cancellation, and what goes back.

use tanda_engine::{Datum, DatumForm, KeyAnswer, KeyError, Request, VhostId};
use tanda_wire::amaquet::Opcode;

use super::*;

const GET: &str = r#"{"command":"counter.get","key":"a"}"#;
const POP: &str = r#"{"command":"list.pop","key":"l","wait_ms":500}"#;

fn keys(token: u32, result: Result<KeyAnswer, KeyError>) -> Event {
    Event::Keys {
        token,
        vhost: VhostId::DEFAULT,
        result: Box::new(result),
    }
}

/// The tokens of the requests that are there, all about keys.
fn tokens(peer: &mut Peer) -> Vec<u32> {
    let requests = core::iter::from_fn(|| peer.session.next_request());
    let token = |request| {
        let Request::Keys { reply, .. } = request else {
            panic!("{request:?}")
        };
        reply.token
    };
    requests.map(token).collect()
}

fn counted(id: u64, value: i64) -> String {
    format!(r#"COMMAND {id} {{"ok":true,"result":{{"value":{value}}}}}"#)
}

fn failed(opcode: &str, id: u64, code: &str, message: &str) -> String {
    format!(r#"{opcode} {id} {{"ok":false,"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

/// An item, as an engine gives it.
fn taken(text: &str) -> KeyAnswer {
    let item = Datum::new(DatumForm::Text, text.as_bytes());
    crate::test_keys::taken(item)
}

#[test]
fn answers_come_as_the_engine_gives_them() {
    let mut peer = Peer::open();
    for id in [u64::MAX, 0, 7] {
        peer.ask(id, GET);
    }
    let tokens = tokens(&mut peer);
    for at in [2, 0, 1] {
        peer.event(keys(tokens[at], Ok(KeyAnswer::Integer(1))));
    }
    let all = [counted(7, 1), counted(u64::MAX, 1), counted(0, 1)];
    assert_eq!(peer.read(), all);
    // An answer that comes again is nobody's.
    peer.event(keys(tokens[0], Ok(KeyAnswer::Integer(1))));
    assert_eq!(peer.read(), [""; 0]);
}

#[test]
fn a_request_id_is_free_when_its_command_is_answered() {
    let mut peer = Peer::open();
    peer.ask(7, GET);
    let first = tokens(&mut peer);
    peer.ask(7, GET);
    peer.say(Opcode::Hello, 7, "{}");
    peer.say(Opcode::Cancel, 7, r#"{"request_id":7}"#);
    let text = "a command with the request ID 7 is not answered yet";
    let refused = |opcode| failed(opcode, 7, "DUPLICATE_REQUEST", text);
    let all = ["COMMAND", "HELLO", "CANCEL"].map(refused);
    assert_eq!(peer.read(), all);
    peer.event(keys(first[0], Ok(KeyAnswer::Integer(1))));
    peer.ask(7, GET);
    assert_eq!(peer.read(), [counted(7, 1)]);
    let second = tokens(&mut peer);
    assert_ne!(first, second);
    peer.event(keys(first[0], Ok(KeyAnswer::Integer(1))));
    assert_eq!(peer.read(), [""; 0]);
    peer.event(keys(second[0], Ok(KeyAnswer::Integer(2))));
    assert_eq!(peer.read(), [counted(7, 2)]);
}

#[test]
fn commands_over_the_limit_are_told_to_come_again() {
    let mut config = config();
    config.limits.active_per_connection = 1;
    let shared = Arc::clone(&config.shared);
    let mut peer = Peer::with(config);
    peer.ask(7, GET);
    peer.ask(8, "{");
    peer.say(Opcode::Cancel, 9, r#"{"request_id":1}"#);
    let busy = "COMMAND 8 {\"ok\":false,\"error\":{\"code\":\"OVERLOADED\",\"message\":\"1 com\
        mands of this connection are not answered yet\",\"retry_after_ms\":100}}";
    let cancel = r#"CANCEL 9 {"ok":true,"result":{"request_id":1,"cancelled":false}}"#;
    assert_eq!(peer.read(), [busy, cancel]);
    assert_eq!(shared.active(), 1);
    assert_eq!(peer.requests().len(), 2);
}

#[test]
fn commands_of_all_connections_have_a_limit_too() {
    let mut config = config();
    config.limits.active_total = 1;
    let shared = Arc::clone(&config.shared);
    let mut first = Peer::with(config.clone());
    let mut second = Peer::with(config);
    first.ask(7, GET);
    second.ask(7, GET);
    let busy = "COMMAND 7 {\"ok\":false,\"error\":{\"code\":\"OVERLOADED\",\"message\":\"1 com\
        mands are not answered yet\",\"retry_after_ms\":100}}";
    assert_eq!(second.read(), [busy]);
    drop(first);
    assert_eq!(shared.active(), 0);
    second.ask(7, GET);
    assert_eq!(second.read(), [""; 0]);
    assert_eq!(shared.active(), 1);
    assert!(shared.payload_bytes() > 0);
}

#[test]
fn what_the_engine_has_no_room_for_is_told_to_come_again() {
    let mut peer = Peer::open();
    peer.ask(7, GET);
    let request = peer.session.next_request().unwrap();
    peer.session.on_refused(request);
    let busy = "COMMAND 7 {\"ok\":false,\"error\":{\"code\":\"OVERLOADED\",\"message\":\"the b\
        roker has no room for more now\",\"retry_after_ms\":100}}";
    assert_eq!(peer.read(), [busy]);
    // What has no answer is offered again.
    peer.ask(8, POP);
    let token = tokens(&mut peer)[0];
    peer.say(Opcode::Cancel, 9, r#"{"request_id":8}"#);
    let cancel = peer.session.next_request().unwrap();
    let name = format!("{cancel:?}");
    peer.session.on_refused(cancel);
    assert!(!peer.session.wants_read());
    assert_eq!(peer.requests(), [""; 0]);
    peer.wait(2);
    assert_eq!(peer.requests(), [name]);
    assert!(peer.session.wants_read());
    peer.event(keys(token, Err(KeyError::Cancelled)));
    let cancelled = failed("COMMAND", 8, "CANCELLED", "the command was cancelled");
    let told = r#"CANCEL 9 {"ok":true,"result":{"request_id":8,"cancelled":true}}"#;
    assert_eq!(peer.read(), [told.to_owned(), cancelled]);
}

#[test]
fn a_cancel_finds_what_is_not_answered_once() {
    let mut peer = Peer::open();
    peer.ask(7, POP);
    let token = tokens(&mut peer)[0];
    peer.say(Opcode::Cancel, 8, r#"{"request_id":7}"#);
    peer.say(Opcode::Cancel, 8, r#"{"request_id":7}"#);
    peer.say(Opcode::Cancel, 8, r#"{"request_id":8}"#);
    let found = |id: u64, found: bool| {
        format!(r#"CANCEL 8 {{"ok":true,"result":{{"request_id":{id},"cancelled":{found}}}}}"#)
    };
    assert_eq!(
        peer.read(),
        [found(7, true), found(7, true), found(8, false)]
    );
    let cancel = peer.requests();
    assert_eq!(cancel.len(), 1, "{cancel:?}");
    assert!(cancel[0].starts_with("CancelWait"), "{cancel:?}");
    peer.event(keys(token, Err(KeyError::Cancelled)));
    peer.say(Opcode::Cancel, 8, r#"{"request_id":7}"#);
    let cancelled = failed("COMMAND", 7, "CANCELLED", "the command was cancelled");
    assert_eq!(peer.read(), [cancelled, found(7, false)]);
    // What does not wait goes on.
    peer.ask(7, GET);
    let token = tokens(&mut peer)[0];
    peer.say(Opcode::Cancel, 8, r#"{"request_id":7}"#);
    assert_eq!(peer.requests(), [""; 0]);
    peer.event(keys(token, Ok(KeyAnswer::Integer(1))));
    assert_eq!(peer.read(), [found(7, true), counted(7, 1)]);
    peer.say(Opcode::Cancel, 8, "{}");
    let text = "request_id is missing; it must be an integer of 64 bits that is not below zero";
    assert_eq!(peer.read(), [failed("CANCEL", 8, "BAD_REQUEST", text)]);
}

#[test]
fn what_was_taken_and_not_written_goes_back_newest_first() {
    let mut peer = Peer::open();
    for id in 2..6 {
        peer.ask(id, POP);
    }
    let tokens = tokens(&mut peer);
    peer.event(keys(tokens[0], Ok(taken("a"))));
    assert_eq!(peer.read().len(), 1);
    peer.event(keys(tokens[1], Ok(taken("b"))));
    peer.event(keys(tokens[2], Ok(taken("c"))));
    // All of it but one byte.
    let half = peer.session.output().split_to(10);
    peer.session.on_written(half.len());
    peer.session.close();
    peer.event(keys(tokens[3], Ok(taken("d"))));
    let back = peer.requests();
    let with = |at: usize, text: &str| {
        assert!(back[at].starts_with("KeysUndelivered"), "{back:?}");
        assert!(back[at].contains(text), "{back:?}");
    };
    with(0, "\"c\"");
    with(1, "\"b\"");
    assert!(back[2].starts_with("Disconnect"), "{back:?}");
    with(3, "\"d\"");
    assert_eq!(back.len(), 4);
}

#[test]
fn a_taken_item_that_fits_no_frame_goes_back() {
    let mut peer = Peer::open();
    peer.ask(7, POP);
    let token = tokens(&mut peer)[0];
    peer.event(keys(token, Ok(taken(&"\u{1}".repeat(12 << 20)))));
    let back = peer.requests();
    assert_eq!(back.len(), 1);
    assert!(back[0].starts_with("KeysUndelivered"), "{}", &back[0][..90]);
    let read = peer.read();
    assert!(read[0].contains("PAYLOAD_TOO_LARGE"), "{read:?}");
}

#[test]
fn answers_wait_in_their_short_form_for_a_peer_that_does_not_read() {
    let mut config = config();
    config.limits.reply_bytes_max = 100;
    let mut peer = Peer::with(config);
    for id in 1..5 {
        peer.ask(id, POP);
    }
    assert!(peer.session.next_request().is_some());
    let tokens = tokens(&mut peer);
    let long = "x".repeat(200);
    for token in &tokens {
        peer.event(keys(*token, Ok(taken(&long))));
    }
    let first = peer.session.output().len();
    assert!((200..300).contains(&first), "{first}");
    assert!(peer.session.held_bytes() > first + 600);
    assert_eq!(peer.read().len(), 4);
    assert_eq!(peer.session.held_bytes(), 0);
    assert!(peer.session.link.active.is_empty());
}

#[test]
fn a_shutdown_cancels_what_waits_and_answers_the_rest() {
    let mut peer = Peer::open();
    peer.ask(7, POP);
    peer.ask(8, GET);
    let tokens = tokens(&mut peer);
    peer.session.begin_shutdown(START);
    assert!(!peer.session.is_closing());
    assert!(peer.requests()[0].starts_with("CancelWait"));
    peer.event(keys(tokens[0], Err(KeyError::Cancelled)));
    peer.event(keys(tokens[1], Ok(KeyAnswer::Integer(1))));
    assert!(peer.session.is_closing());
    let cancelled = failed("COMMAND", 7, "CANCELLED", "the connection is being closed");
    assert_eq!(peer.read(), [cancelled, counted(8, 1)]);
    // And does not wait for ever.
    let mut peer = Peer::open();
    peer.ask(8, GET);
    peer.session.begin_shutdown(START);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(5_000)));
    peer.wait(5_000);
    assert!(peer.session.is_closing());
}

/// A connection that was closed looks the same, and what is taken for its peer would be lost.
#[test]
fn a_half_close_cancels_what_waits_and_answers_the_rest() {
    let mut peer = Peer::open();
    peer.ask(7, POP);
    peer.ask(8, GET);
    let tokens = tokens(&mut peer);
    peer.session.on_end(START);
    assert!(!peer.session.is_closing());
    assert!(peer.requests()[0].starts_with("CancelWait"));
    peer.event(keys(tokens[0], Err(KeyError::Cancelled)));
    peer.event(keys(tokens[1], Ok(KeyAnswer::Integer(1))));
    let cancelled = failed("COMMAND", 7, "CANCELLED", "the connection is being closed");
    assert_eq!(peer.read(), [cancelled, counted(8, 1)]);
    assert!(peer.session.is_closing());
}

#[test]
fn a_failed_log_is_told_of() {
    let mut peer = Peer::open();
    peer.ask(7, GET);
    let token = tokens(&mut peer)[0];
    peer.event(Event::StorageFailed { token });
    let text = "the log failed: the outcome of this command is unknown";
    assert_eq!(peer.read(), [failed("COMMAND", 7, "INTERNAL", text)]);
}
