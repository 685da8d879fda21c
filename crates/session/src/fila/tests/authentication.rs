//! Who gets in, and what happens when a key goes (fila-semantics: Connection).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

use std::sync::Arc;

use tanda_engine::{AdminReply, ApiKeyId, CredentialError, Event, KeyTable, Permission, Request};
use tanda_wire::fila::consume::{Consume, ConsumeOk};
use tanda_wire::fila::control::{Disconnect, Handshake, HandshakeOk, Ping, Pong};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::queue_admin::ListQueues;
use tanda_wire::fila::{Capabilities, ErrorCode, Opcode};

use super::{Peer, START, config, deliveries, frame_of, raw_frame};
use crate::audit::AuditOutcome;
use crate::fila::{Authentication, SessionConfig};
pub(super) use crate::test_keys::Keys;

pub(super) fn closed_config() -> SessionConfig {
    SessionConfig {
        authentication: Authentication::On,
        ..config()
    }
}

fn handshake_with(api_key: Option<&str>) -> Vec<u8> {
    let handshake = Handshake {
        protocol_version: 1,
        api_key,
        client_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
    };
    frame_of(0, &handshake)
}

/// A peer with the key of this name.
pub(super) fn open_as(name: &str, table: &Arc<KeyTable>) -> Peer {
    let mut peer = Peer::accepted(closed_config());
    peer.session.on_keys(peer.now, table);
    peer.send(&handshake_with(Some(name)));
    let _: HandshakeOk = peer.frame().decode();
    assert!(matches!(peer.request(), Request::Connect { .. }));
    peer
}

/// A key `worker` that may do everything with queues whose names begin with `q`.
pub(super) fn worker() -> (Keys, String) {
    let mut keys = Keys::new();
    let id = keys.create("worker", None);
    let grants = Permission::ALL.map(|permission| (permission, "q*"));
    keys.set_acl(&id, &grants);
    (keys, id)
}

fn outcomes(peer: &mut Peer) -> Vec<(String, AuditOutcome)> {
    let events = peer.session.take_audit();
    events
        .into_iter()
        .map(|event| (event.action, event.outcome))
        .collect()
}

#[test]
fn a_key_that_is_good_opens_the_connection() {
    let (mut keys, _) = worker();
    let mut peer = open_as("worker", &keys.table());
    peer.call(5, &Ping {});
    let _: Pong = peer.frame().decode();
    assert_eq!(outcomes(&mut peer), []);
}

#[test]
fn a_key_that_is_missing_unknown_or_expired_is_unauthorized_and_closes() {
    let (mut keys, _) = worker();
    keys.create("old", Some(START));
    let table = keys.table();
    let expired = CredentialError::Expired { key: ApiKeyId(2) };
    for (api_key, expected) in [
        (None, CredentialError::Missing),
        (Some(""), CredentialError::Missing),
        (Some("Worker"), CredentialError::Unknown),
        (Some("old"), expired),
    ] {
        let mut peer = Peer::accepted(closed_config());
        peer.session.on_keys(peer.now, &table);
        peer.send(&handshake_with(api_key));
        let text = peer.refusal(0, ErrorCode::Unauthorized);
        assert_eq!(text, expected.to_string());
        assert!(peer.session.is_closing());
        assert!(peer.requests().is_empty(), "the engine hears nothing of it");
        let events = peer.session.take_audit();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].outcome, AuditOutcome::Denied(expected));
        let by = events[0].by.as_ref().map(|key| &*key.name);
        assert_eq!(by, (expected == expired).then_some("old"));
    }
}

#[test]
fn without_a_table_of_keys_nobody_gets_in() {
    let mut peer = Peer::accepted(closed_config());
    peer.send(&handshake_with(Some("worker")));
    peer.refusal(0, ErrorCode::Unauthorized);
    assert!(peer.session.is_closing());
}

#[test]
fn the_next_request_after_a_revocation_is_unauthorized_and_closes() {
    let (mut keys, id) = worker();
    for request in [
        frame_of(5, &Ping {}),
        frame_of(5, &ListQueues {}),
        raw_frame(0x10, 0, 5, &[0; 4]),
        // Also one that has no answer otherwise, is only begun, or is wrong.
        raw_frame(0x15, 0, 5, &[0; 4]),
        raw_frame(0x10, 1, 5, &[0; 4]),
        raw_frame(0x77, 0, 5, &[]),
    ] {
        let mut peer = open_as("worker", &keys.table());
        let mut after = Keys::new();
        peer.session.on_keys(peer.now, &after.table());
        assert!(!peer.session.is_closing(), "it may say something first");
        assert!(peer.frames().is_empty());
        peer.send(&[request, frame_of(6, &Ping {})].concat());
        let text = peer.refusal(5, ErrorCode::Unauthorized);
        assert!(text.contains("revoked"), "{text}");
        assert!(peer.session.is_closing());
        assert!(peer.requests().is_empty());
        let revoked = CredentialError::Revoked { key: ApiKeyId(1) };
        let denied = AuditOutcome::Denied(revoked);
        assert_eq!(outcomes(&mut peer), [("connection".to_owned(), denied)]);
        // For the next round.
        keys.set_acl(&id, &[(Permission::Produce, "*")]);
    }
}

#[test]
fn a_pong_is_no_request_and_a_goodbye_is_not_answered() {
    let (mut keys, _) = worker();
    let mut peer = open_as("worker", &keys.table());
    peer.session.on_keys(peer.now, &Keys::new().table());
    peer.send(&raw_frame(0x04, 0, 0x8000_0001, &[]));
    assert!(!peer.session.is_closing());
    peer.send(&frame_of(0, &Disconnect {}));
    assert!(peer.session.is_closing());
    assert!(peer.frames().is_empty());
}

#[test]
fn a_connection_that_says_nothing_closes_by_itself() {
    let (mut keys, _) = worker();
    let mut peer = open_as("worker", &keys.table());
    peer.session.on_keys(peer.now, &Keys::new().table());
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(2_000)));
    peer.pass_ms(1_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    peer.refusal(0, ErrorCode::Unauthorized);
    assert!(peer.session.is_closing());
}

#[test]
fn what_was_accepted_before_a_revocation_is_answered() {
    let (mut keys, _) = worker();
    let mut peer = open_as("worker", &keys.table());
    peer.call(5, &ListQueues {});
    let token = super::token(&peer.request());
    peer.session.on_keys(peer.now, &Keys::new().table());
    peer.call(6, &Ping {});
    peer.refusal(6, ErrorCode::Unauthorized);
    assert!(!peer.session.is_closing(), "an answer is owed");
    peer.event(Event::Admin {
        token,
        reply: Box::new(AdminReply::Queues(vec![])),
    });
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::ListQueuesResult, 5)
    );
    assert!(peer.session.is_closing());
}

#[test]
fn a_key_expires_while_it_is_in_use() {
    let mut keys = Keys::new();
    let id = keys.create("worker", Some(START.after_ms(500)));
    keys.set_acl(&id, &[(Permission::Consume, "q")]);
    let mut peer = open_as("worker", &keys.table());
    peer.subscribe(7);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(500)));
    peer.pass_ms(499);
    assert!(peer.frames().is_empty());
    peer.pass_ms(1);
    let text = peer.refusal(7, ErrorCode::Unauthorized);
    assert!(text.contains("expired"), "{text}");
    assert!(matches!(peer.request(), Request::Unsubscribe { .. }));
    peer.pass_ms(2_000);
    peer.refusal(0, ErrorCode::Unauthorized);
    assert!(peer.session.is_closing());
}

#[test]
fn expiry_is_seen_by_a_request_before_any_timer() {
    let mut keys = Keys::new();
    keys.create("worker", Some(START.after_ms(500)));
    let mut peer = open_as("worker", &keys.table());
    peer.now = START.after_ms(500);
    peer.call(5, &Ping {});
    peer.refusal(5, ErrorCode::Unauthorized);
    assert!(peer.session.is_closing());
}

#[test]
fn new_permissions_are_in_force_at_once() {
    let (mut keys, id) = worker();
    keys.set_acl(
        &id,
        &[(Permission::Consume, "q"), (Permission::Consume, "r")],
    );
    let mut peer = open_as("worker", &keys.table());
    let consume = |queue| Consume {
        queue,
        ..Consume::default()
    };
    let q = peer.subscribe(7);
    peer.call(8, &consume("r"));
    let Request::Subscribe { sub: r, .. } = peer.request() else {
        panic!("no Subscribe")
    };
    // Another key's permissions do not matter.
    keys.create("other", None);
    peer.session.on_keys(peer.now, &keys.table());
    assert!(peer.frames().is_empty() && peer.requests().is_empty());

    keys.set_acl(
        &id,
        &[(Permission::Consume, "r"), (Permission::Consume, "s")],
    );
    peer.session.on_keys(peer.now, &keys.table());
    let text = peer.refusal(7, ErrorCode::Forbidden);
    assert!(text.contains("\"q\""), "{text}");
    assert!(matches!(peer.request(), Request::Unsubscribe { sub, .. } if sub.token == q));
    peer.event(Event::Subscribed {
        token: r.token,
        consumer: 1,
    });
    let _: ConsumeOk<'_> = peer.frame().decode();
    peer.call(9, &consume("q"));
    peer.refusal(9, ErrorCode::Forbidden);
    peer.call(9, &consume("s"));
    assert!(matches!(peer.request(), Request::Subscribe { .. }));

    // The one that is not answered yet ends too, and says so when it is.
    keys.set_acl(&id, &[]);
    peer.session.on_keys(peer.now, &keys.table());
    peer.refusal(8, ErrorCode::Forbidden);
    let ends = peer.requests();
    assert_eq!(ends.len(), 2);
    peer.event(Event::Subscribed {
        token: super::token(&ends[1]),
        consumer: 2,
    });
    peer.refusal(9, ErrorCode::Forbidden);
    assert!(!peer.session.is_closing(), "the key is still good");
}

#[test]
fn only_whole_deliveries_that_have_not_begun_are_taken_back() {
    let (mut keys, _) = worker();
    let table = keys.table();
    let delivery = |token, payload: &[u8]| Event::Delivery {
        token,
        batch: deliveries(&[payload]),
    };
    let gone = Keys::new().table();
    // How much of the first delivery has left.
    for (written, kept) in [(0, false), (1, true), (9_000, true)] {
        let mut peer = open_as("worker", &table);
        let token = peer.subscribe(7);
        peer.event(delivery(token, &[1; 10_000]));
        let mut stream = peer.session.output().split_to(written).to_vec();
        peer.session.on_written(written);
        peer.event(delivery(token, &[2; 10_000]));
        peer.call(5, &Ping {});
        peer.event(delivery(token, &[3; 10_000]));
        peer.session.on_keys(peer.now, &gone);
        peer.session.assert_invariants();
        stream.extend(peer.bytes());
        let frames = super::parse(&stream);
        let opcodes: Vec<_> = frames.iter().map(|frame| frame.header.opcode).collect();
        let rest = [Opcode::Pong, Opcode::Error];
        let expected = [&[Opcode::Delivery][..usize::from(kept)], &rest].concat();
        assert_eq!(opcodes, expected, "{written} bytes written");
        let drained = peer
            .requests()
            .into_iter()
            .find_map(|request| match request {
                Request::Drained { bytes, .. } => Some(bytes),
                _ => None,
            });
        let one = deliveries(&[&[0; 10_000]]).budget_bytes();
        // One that has left is reported later.
        let all = drained.unwrap_or(0);
        assert!(all == 3 * one || all == 0, "{all} of 3 x {one}");
    }
}

/// The answers above are whole frames.
#[test]
fn an_unauthorized_answer_is_an_error_frame() {
    let mut peer = Peer::accepted(closed_config());
    peer.send(&handshake_with(None));
    let frame = peer.frame();
    let error: ErrorFrame<'_> = frame.decode();
    assert!(error.metadata.is_empty());
    assert_eq!(frame.header, FrameHeader::new(Opcode::Error, 0));
}
