//! Keepalive, backpressure and the ways a connection ends.

use tanda_engine::{Event, Request};
use tanda_wire::fila::consume::Consume;
use tanda_wire::fila::control::Disconnect;
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::queue_admin::ListQueues;
use tanda_wire::fila::{Capabilities, Opcode};

use super::{Peer, config, deliveries, frame_of, raw_frame, token};
use crate::fila::SessionConfig;

#[test]
fn silence_is_pinged_and_no_pong_closes() {
    let mut peer = Peer::open();
    assert_eq!(
        peer.now.until(peer.session.next_deadline().unwrap()),
        15_000
    );
    peer.pass_ms(14_999);
    assert!(peer.frames().is_empty());
    peer.pass_ms(1);
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::Ping, 0x8000_0001)
    );
    assert_eq!(
        peer.now.until(peer.session.next_deadline().unwrap()),
        30_000
    );
    // A pong to another ping, or another frame, is not the pong.
    peer.send(&raw_frame(0x04, 0, 0x8000_0002, &[]));
    peer.send(&raw_frame(0x15, 0, 1, &[0; 4]));
    peer.pass_ms(29_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
    assert!(peer.frames().is_empty());
}

#[test]
fn nothing_follows_the_part_of_a_frame_that_a_dead_peer_got() {
    let mut peer = Peer::open();
    let subscription = peer.subscribe(1);
    peer.call(2, &ListQueues {});
    let asked = token(&peer.request());
    peer.pass_ms(15_000);
    let part = peer.session.output().split_to(7).len();
    peer.session.on_written(part);
    peer.pass_ms(30_000);
    assert!(peer.session.is_closing());
    // Answers that were under way, and a delivery.
    peer.event(Event::StorageFailed { token: asked });
    peer.event(Event::Delivery {
        token: subscription,
        batch: deliveries(&[b"a"]),
    });
    peer.send(&raw_frame(0x04, 0, 0x8000_0001, &[]));
    assert!(peer.session.output().is_empty());
    peer.session.assert_invariants();
}

#[test]
fn a_pong_or_any_byte_postpones_the_next_ping() {
    let mut peer = Peer::open();
    peer.pass_ms(15_000);
    assert_eq!(peer.frame().header.request_id, 0x8000_0001);
    peer.pass_ms(29_000);
    peer.send(&raw_frame(0x04, 0, 0x8000_0001, &[]));
    peer.pass_ms(14_000);
    peer.send(&[0]);
    peer.pass_ms(14_999);
    assert!(peer.frames().is_empty());
    peer.pass_ms(1);
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::Ping, 0x8000_0002)
    );
}

#[test]
fn looking_again_at_what_waits_is_not_hearing() {
    let limits = SessionConfig {
        requests_in_flight_max: 1,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    peer.send(&[0]);
    peer.pass_ms(10_000);
    peer.session.on_bytes(peer.now, &mut peer.input);
    peer.pass_ms(5_000);
    assert_eq!(peer.frame().header.opcode, Opcode::Ping);
}

#[test]
fn a_peer_that_is_not_read_cannot_be_blamed_for_silence() {
    let limits = SessionConfig {
        requests_in_flight_max: 1,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    peer.call(1, &ListQueues {});
    assert!(!peer.session.wants_read());
    let token = token(&peer.request());
    peer.pass_ms(1_000_000);
    assert!(peer.frames().is_empty());
    assert!(!peer.session.is_closing());
    peer.event(Event::StorageFailed { token });
    assert!(peer.session.wants_read());
    assert_eq!(peer.frames().len(), 1);
    assert_eq!(
        peer.now.until(peer.session.next_deadline().unwrap()),
        15_000
    );
}

#[test]
fn requests_beyond_the_bound_wait_in_the_input() {
    let limits = SessionConfig {
        requests_in_flight_max: 2,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let mut out = Vec::new();
    for id in 1..=4 {
        out.extend_from_slice(&raw_frame(0x10, 0, id, &[0; 4]));
    }
    peer.send(&out);
    let requests = peer.requests();
    assert_eq!(requests.len(), 2);
    assert!(!peer.session.wants_read());
    assert_eq!(peer.input.len(), 28);
    peer.event(Event::Published {
        token: token(&requests[1]),
        results: vec![],
    });
    assert_eq!(peer.requests().len(), 1);
    assert_eq!(peer.input.len(), 14);
    peer.event(Event::Published {
        token: token(&requests[0]),
        results: vec![],
    });
    assert_eq!(peer.requests().len(), 1);
    assert!(peer.input.is_empty());
}

#[test]
fn rare_requests_have_a_bound_of_their_own() {
    let limits = SessionConfig {
        admin_in_flight_max: 1,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    peer.send(&raw_frame(0x10, 0, 1, &[0; 4]));
    assert!(peer.session.wants_read());
    peer.call(2, &ListQueues {});
    assert!(!peer.session.wants_read());
}

#[test]
fn answers_that_nobody_reads_stop_the_decoding() {
    let limits = SessionConfig {
        reply_bytes_max: 50,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let mut out = Vec::new();
    for id in 1..=9 {
        out.extend_from_slice(&raw_frame(0x03, 0, id, &[]));
    }
    peer.send(&out);
    assert!(!peer.session.wants_read());
    assert_eq!(peer.input.len(), 30);
    assert_eq!(peer.frames().len(), 6);
    assert!(peer.session.wants_read());
    peer.session.on_bytes(peer.now, &mut peer.input);
    assert_eq!(peer.frames().len(), 3);
}

#[test]
fn deliveries_that_nobody_reads_stop_nothing() {
    let limits = SessionConfig {
        reply_bytes_max: 50,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let token = peer.subscribe(1);
    peer.event(Event::Delivery {
        token,
        batch: deliveries(&[&[0; 1000]]),
    });
    assert!(peer.session.wants_read());
    peer.send(&raw_frame(0x17, 0, 2, &[0; 4]));
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn disconnect_finishes_what_is_under_way() {
    let mut peer = Peer::open();
    let sub = peer.subscribe(7);
    peer.send(&raw_frame(0x10, 0, 1, &[0; 4]));
    peer.call(
        8,
        &Consume {
            queue: "q",
            ..Consume::default()
        },
    );
    let mut last = frame_of(0, &Disconnect {});
    last.extend_from_slice(&raw_frame(0x10, 0, 2, &[0; 4]));
    peer.send(&last);
    let requests = peer.requests();
    let [
        Request::Publish { reply, .. },
        Request::Subscribe { sub: wanted, .. },
        Request::Unsubscribe {
            sub: first,
            held: tanda_engine::Held::Requeue,
        },
        Request::Unsubscribe {
            sub: second,
            held: tanda_engine::Held::Requeue,
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!([first.token, second.token], [sub, wanted.token]);
    assert!(!peer.session.is_closing());
    assert!(peer.session.wants_read());
    peer.send(&raw_frame(0x03, 0, 3, &[]));
    assert!(peer.frames().is_empty());
    peer.event(Event::Subscribed {
        token: wanted.token,
        consumer: 1,
    });
    assert_eq!(peer.frame().header.opcode, Opcode::ConsumeOk);
    assert!(!peer.session.is_closing());
    peer.event(Event::Published {
        token: reply.token,
        results: vec![],
    });
    assert!(peer.session.is_closing());
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::EnqueueResult, 1)
    );
    peer.session.close();
    assert!(matches!(peer.request(), Request::Disconnect { .. }));
    assert!(!peer.session.wants_read());
    assert_eq!(peer.session.next_deadline(), None);
    peer.session.close();
    assert!(peer.requests().is_empty());
}

#[test]
fn the_end_of_the_input_is_like_a_disconnect() {
    let mut peer = Peer::open();
    let subscribed = peer.subscribe(1);
    peer.call(2, &ListQueues {});
    let asked = token(&peer.request());
    // A frame that never ends, and then the end.
    peer.send(&[0, 0, 0, 100, 0x10]);
    peer.session.on_end(peer.now);
    let request = peer.request();
    assert!(matches!(request, Request::Unsubscribe { sub, .. } if sub.token == subscribed));
    assert!(!peer.session.is_closing());
    peer.event(Event::StorageFailed { token: asked });
    assert_eq!(peer.frame().header, FrameHeader::new(Opcode::Error, 2));
    assert!(peer.session.is_closing());
    // Before the handshake there is nothing to wait for.
    let mut silent = Peer::accepted(config());
    silent.session.on_end(silent.now);
    assert!(silent.session.is_closing());
}

#[test]
fn answers_that_never_come_do_not_keep_a_connection() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x10, 0, 1, &[0; 4]));
    peer.call(0, &Disconnect {});
    assert_eq!(
        peer.now.until(peer.session.next_deadline().unwrap()),
        30_000
    );
    peer.pass_ms(29_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
}

#[test]
fn a_server_that_stops_says_goodbye() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x10, 0, 1, &[0; 4]));
    let token = token(&peer.request());
    peer.session.begin_shutdown(peer.now);
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::Disconnect, 0x8000_0001)
    );
    peer.send(&raw_frame(0x10, 0, 2, &[0; 4]));
    assert!(peer.requests().is_empty());
    assert!(!peer.session.is_closing());
    peer.event(Event::Published {
        token,
        results: vec![],
    });
    assert_eq!(peer.frames().len(), 1);
    assert!(peer.session.is_closing());
    // Before the handshake there is nobody to talk to.
    let mut peer = Peer::accepted(config());
    peer.session.begin_shutdown(peer.now);
    assert!(peer.session.is_closing());
    assert!(peer.frames().is_empty());
}

#[test]
fn what_came_before_the_end_still_counts() {
    let mut peer = Peer::open();
    let sub = peer.subscribe(7);
    peer.send(&raw_frame(0x17, 0, 1, &[0; 4]));
    peer.send(&raw_frame(0x15, 0, 7, &[0, 0, 0, 1]));
    peer.event(Event::Delivery {
        token: sub,
        batch: deliveries(&[b"unsent"]),
    });
    peer.session.close();
    let requests = peer.requests();
    assert!(
        matches!(
            requests[..],
            [Request::Settle { .. }, Request::Disconnect { .. }]
        ),
        "{requests:?}"
    );
    peer.event(Event::Settled {
        token: token(&requests[0]),
        results: vec![],
    });
    assert!(peer.frames().is_empty());
    assert!(peer.session.is_closing());
}
