//! What is wrong with a frame whatever it asks for, and continuation frames.

use tanda_engine::Request;
use tanda_wire::fila::consume::{CancelConsume, Credit};
use tanda_wire::fila::control::Ping;
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::queue_admin::{DeleteQueue, ListQueues};
use tanda_wire::fila::{Capabilities, Direction, ErrorCode, Opcode};

use super::{Peer, config, frame_of, raw_frame};
use crate::fila::SessionConfig;

/// An `Enqueue` body of one message.
fn enqueue_body() -> Vec<u8> {
    let mut body = vec![0, 0, 0, 1, 0, 1, b'q', 0, 0, 0, 0, 0, 5];
    body.extend_from_slice(b"hello");
    body.extend_from_slice(&[0; 4]);
    body
}

#[test]
fn a_ping_is_answered_at_once() {
    let mut peer = Peer::open();
    peer.call(0x7FFF_FFFF, &Ping {});
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::Pong, 0x7FFF_FFFF)
    );
}

#[test]
fn request_ids_outside_the_clients_range_are_invalid() {
    let mut peer = Peer::open();
    let text = peer.expect_invalid(&frame_of(0, &ListQueues {}), 0);
    assert!(text.contains("reserved for the handshake"), "{text}");
    for id in [0x8000_0000, 0x8000_0001, 0xFFFF_FFFF] {
        let text = peer.expect_invalid(&frame_of(id, &ListQueues {}), id);
        assert!(text.contains("bit 31"), "{text}");
        peer.expect_invalid(&frame_of(id, &Ping {}), id);
    }
}

#[test]
fn a_live_subscription_owns_its_request_id() {
    let mut peer = Peer::open();
    peer.subscribe(3);
    let text = peer.expect_invalid(&frame_of(3, &ListQueues {}), 3);
    assert!(text.contains("live subscription"), "{text}");
    peer.expect_invalid(&frame_of(3, &Ping {}), 3);
    peer.expect_invalid(&raw_frame(0x12, 0, 3, &[0, 1, b'q', 0, 0, 0, 0, 0, 0]), 3);
    peer.call(3, &CancelConsume {});
    assert!(matches!(peer.request(), Request::Unsubscribe { .. }));
    peer.call(3, &ListQueues {});
    assert!(matches!(peer.request(), Request::Admin { .. }));
}

#[test]
fn frames_with_ids_of_their_own_are_excepted() {
    let mut peer = Peer::open();
    let token = peer.subscribe(3);
    peer.call(
        3,
        &Credit {
            additional_credit: 4,
        },
    );
    let Request::Grant { sub, credit: 4 } = peer.request() else {
        panic!("no Grant")
    };
    assert_eq!(sub.token, token);
    for id in [0, 4, 0x8000_0009] {
        peer.call(
            id,
            &Credit {
                additional_credit: 4,
            },
        );
        peer.call(id, &CancelConsume {});
        peer.send(&raw_frame(0x04, 0, id, &[]));
    }
    assert!(peer.frames().is_empty());
    assert!(peer.requests().is_empty());
    peer.send(&raw_frame(0x05, 0, 0, &[]));
    assert!(peer.session.is_closing());
}

#[test]
fn reserved_flags_are_invalid() {
    let mut peer = Peer::open();
    for flags in [0x02, 0x80, 0xFE, 0xFF] {
        for opcode in [0x03, 0x10, 0x15, 0xF7, 0x04] {
            let text = peer.expect_invalid(&raw_frame(opcode, flags, 5, &[0; 4]), 5);
            assert!(text.contains("reserved bit"), "{text}");
        }
    }
}

#[test]
fn unknown_and_server_opcodes_are_named_and_the_connection_kept() {
    let mut peer = Peer::open();
    for number in 0..=u8::MAX {
        let opcode = Opcode::from_wire(number);
        let name = match opcode.direction() {
            Direction::ToClient => opcode.name().to_owned(),
            Direction::Unknown => format!("0x{number:02X}"),
            Direction::ToServer | Direction::Either => continue,
        };
        let text = peer.expect_invalid(&raw_frame(number, 0, 9, &[1, 2, 3]), 9);
        assert!(text.contains(&name), "{text}");
    }
}

#[test]
fn a_body_that_does_not_parse_is_invalid_for_its_request_only() {
    let mut peer = Peer::open();
    let token = peer.subscribe(3);
    let bad: [(u8, &[u8]); 9] = [
        (0x10, &[0, 0, 0]),
        (0x10, &[0, 0, 0, 9, 0, 1, b'q']),
        (0x10, &[0xFF, 0xFF, 0xFF, 0xFF, 0, 1, b'q']),
        (0x17, &[0, 0, 0, 1, 0, 1, 0xFF]),
        (0x19, &[0, 0, 0, 1]),
        (0x1B, &[]),
        (0x12, &[0, 9]),
        (0xFD, &[0]),
        (0xDD, &[0, 0, 0, 1, 0, 1, 0xFF]),
    ];
    for (opcode, body) in bad {
        let text = peer.expect_invalid(&raw_frame(opcode, 0, 5, body), 5);
        assert!(text.contains("offset"), "{text}");
    }
    // A presence byte of 2; an invalid bool.
    let mut enqueue = enqueue_body();
    let at = enqueue.len() - 4;
    enqueue[at] = 2;
    peer.expect_invalid(&raw_frame(0x10, 0, 5, &enqueue), 5);
    peer.expect_invalid(&raw_frame(0xDB, 0, 5, &[0, 0, 0, 0, 0, 0, 0, 1, 2]), 5);
    // These have no answer, except for this.
    peer.expect_invalid(&raw_frame(0x15, 0, 3, &[0, 0]), 3);
    peer.call(
        3,
        &Credit {
            additional_credit: 1,
        },
    );
    assert_eq!(super::token(&peer.request()), token);
}

#[test]
fn bytes_after_a_body_are_ignored() {
    let mut peer = Peer::open();
    let mut enqueue = enqueue_body();
    enqueue.extend_from_slice(b"from the future");
    peer.send(&raw_frame(0x10, 0, 5, &enqueue));
    let Request::Publish { batch, .. } = peer.request() else {
        panic!("no Publish")
    };
    assert_eq!(batch.items.len(), 1);
    peer.send(&raw_frame(0xF7, 0, 6, b"more"));
    assert!(matches!(peer.request(), Request::Admin { .. }));
}

#[test]
fn a_length_over_the_limit_closes() {
    let mut peer = Peer::open();
    peer.send(&[1, 0, 0, 1, 0x10, 0, 0, 0, 0, 42, 1, 2, 3]);
    let text = peer.refusal(42, ErrorCode::InvalidFrame);
    assert!(text.contains("16777217"), "{text}");
    assert!(peer.session.is_closing());
    // The largest length is fine.
    let mut peer = Peer::open();
    peer.send(&[1, 0, 0, 0, 0x10, 0, 0, 0, 0, 42, 1, 2, 3]);
    assert!(!peer.session.is_closing());
}

#[test]
fn a_lone_length_over_the_limit_is_answered_without_its_id() {
    let mut peer = Peer::open();
    peer.send(&[0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(peer.frames().is_empty());
    let deadline = peer.session.next_deadline().unwrap();
    peer.pass_ms(peer.now.until(deadline) - 1);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    peer.refusal(0, ErrorCode::InvalidFrame);
    assert!(peer.session.is_closing());
}

#[test]
fn a_length_without_room_for_a_header_closes() {
    for length in 0..6 {
        let mut peer = Peer::open();
        peer.send(&[0, 0, 0, length]);
        peer.refusal(0, ErrorCode::InvalidFrame);
        assert!(peer.session.is_closing());
    }
}

#[test]
fn room_is_made_for_what_came_not_for_what_was_claimed() {
    let mut peer = Peer::open();
    peer.send(&[0, 0xFF, 0xFF, 0xFF, 0x10, 0, 0, 0, 0, 42]);
    assert!(peer.input.capacity() < 1 << 20, "{}", peer.input.capacity());
    peer.send(&vec![0; 400_000]);
    assert!(peer.input.capacity() < 2 << 20, "{}", peer.input.capacity());
}

#[test]
fn parts_are_joined_per_request() {
    let mut peer = Peer::open();
    let body = enqueue_body();
    let delete = frame_of(8, &DeleteQueue { queue: "gone" });
    peer.send(&raw_frame(0x10, 1, 7, &body[..3]));
    peer.send(&raw_frame(0xFB, 1, 8, &delete[10..12]));
    peer.send(&raw_frame(0x10, 1, 7, &[]));
    // Whole requests pass in between.
    peer.call(9, &ListQueues {});
    assert!(matches!(peer.request(), Request::Admin { .. }));
    peer.send(&raw_frame(0x10, 1, 7, &body[3..10]));
    assert!(peer.requests().is_empty());
    peer.send(&raw_frame(0x10, 0, 7, &body[10..]));
    let Request::Publish { batch, .. } = peer.request() else {
        panic!("no Publish")
    };
    assert_eq!(batch.data, body);
    peer.send(&raw_frame(0xFB, 0, 8, &delete[12..]));
    assert!(matches!(peer.request(), Request::Admin { .. }));
    assert!(peer.frames().is_empty());
}

#[test]
fn a_part_that_changes_the_opcode_is_invalid_and_kept() {
    let mut peer = Peer::open();
    let body = enqueue_body();
    peer.send(&raw_frame(0x10, 1, 7, &body[..9]));
    let text = peer.expect_invalid(&raw_frame(0x17, 0, 7, &body[9..]), 7);
    assert!(text.contains("Enqueue"), "{text}");
    // The parts are gone; the ID is free.
    peer.send(&raw_frame(0x10, 0, 7, &body));
    assert!(matches!(peer.request(), Request::Publish { .. }));
}

#[test]
fn a_subscriptions_id_cannot_begin_a_body_in_parts() {
    let mut peer = Peer::open();
    peer.subscribe(3);
    peer.expect_invalid(&raw_frame(0x10, 1, 3, &[0, 0]), 3);
}

#[test]
fn too_many_bytes_or_unfinished_bodies_close() {
    let small = SessionConfig {
        max_body_bytes: 100,
        unfinished_max: 3,
        ..config()
    };
    let mut peer = Peer::open_with(small.clone(), Capabilities::NONE);
    peer.send(&raw_frame(0x10, 1, 1, &[0; 60]));
    peer.send(&raw_frame(0x10, 1, 2, &[0; 40]));
    assert!(peer.frames().is_empty());
    peer.send(&raw_frame(0x10, 1, 1, &[0; 1]));
    let text = peer.refusal(1, ErrorCode::InvalidFrame);
    assert!(text.contains("100 at most"), "{text}");
    assert!(peer.session.is_closing());

    let mut peer = Peer::open_with(small, Capabilities::NONE);
    for id in 1..=3 {
        peer.send(&raw_frame(0x10, 1, id, &[0; 1]));
    }
    assert!(peer.frames().is_empty());
    peer.send(&raw_frame(0x10, 1, 4, &[0; 1]));
    peer.refusal(4, ErrorCode::InvalidFrame);
    assert!(peer.session.is_closing());
}
