//! The engine's channel is full.

use tanda_engine::{Event, Request, SettleBatch};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::consume::{CancelConsume, Consume, Credit};
use tanda_wire::fila::error::META_RETRY_AFTER_MS;
use tanda_wire::fila::queue_admin::{DeleteQueue, ListQueues};

use super::{Peer, deliveries, handshake, raw_frame, token};

#[test]
fn what_the_peer_can_repeat_is_refused() {
    let consume = Consume {
        queue: "q",
        ..Consume::default()
    };
    for bytes in [
        raw_frame(0x10, 0, 5, &[0; 4]),
        raw_frame(0x17, 0, 5, &[0; 4]),
        raw_frame(0x19, 0, 5, &[0; 4]),
        raw_frame(0x1B, 0, 5, &[0; 4]),
        super::frame_of(5, &consume),
        super::frame_of(5, &ListQueues {}),
        super::frame_of(5, &DeleteQueue { queue: "q" }),
    ] {
        let mut peer = Peer::open();
        peer.send(&bytes);
        let request = peer.request();
        let stale = token(&request);
        peer.session.on_refused(request);
        let frame = peer.frame();
        let error = frame.error();
        assert_eq!(frame.header.request_id, 5);
        assert_eq!(error.error_code, ErrorCode::ChannelFull);
        assert_eq!(error.meta(META_RETRY_AFTER_MS), Some("100"));
        assert!(!peer.session.is_closing());
        // It is over: the ID is free, and a late answer would be nobody's.
        peer.call(5, &consume);
        assert!(matches!(peer.request(), Request::Subscribe { .. }));
        peer.event(Event::Published {
            token: stale,
            results: vec![],
        });
        assert!(peer.frames().is_empty());
    }
}

#[test]
fn what_has_no_answer_is_offered_again_merged() {
    let mut peer = Peer::open();
    let first = peer.subscribe(1);
    let second = peer.subscribe(2);
    for (id, additional_credit) in [(1, 2), (2, 3), (1, 5)] {
        peer.call(id, &Credit { additional_credit });
        let request = peer.request();
        peer.session.on_refused(request);
        assert!(peer.requests().is_empty(), "not again at once");
    }
    peer.call(2, &CancelConsume {});
    let request = peer.request();
    peer.session.on_refused(request);
    // Others are not held up.
    peer.call(9, &ListQueues {});
    assert!(matches!(peer.request(), Request::Admin { .. }));

    let wait = peer.now.until(peer.session.next_deadline().unwrap());
    peer.pass_ms(wait);
    let requests = peer.requests();
    let [
        Request::Grant { sub: a, credit: 7 },
        Request::Grant { sub: b, credit: 3 },
        Request::Unsubscribe {
            sub: c,
            held: tanda_engine::Held::Requeue,
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!([a.token, b.token, c.token], [first, second, second]);
    assert!(peer.frames().is_empty());
}

#[test]
fn a_refused_connect_holds_everything_back() {
    let mut peer = Peer::accepted(super::config());
    peer.send(&handshake(1, tanda_wire::fila::Capabilities::NONE));
    peer.send(&super::frame_of(9, &ListQueues {}));
    let connect = peer.session.next_request().unwrap();
    assert!(matches!(connect, Request::Connect { .. }));
    peer.session.on_refused(connect);
    assert!(peer.requests().is_empty());
    let wait = peer.now.until(peer.session.next_deadline().unwrap());
    peer.pass_ms(wait);
    let requests = peer.requests();
    assert!(matches!(
        requests[..],
        [Request::Connect { .. }, Request::Admin { .. }]
    ));
}

#[test]
fn a_connection_the_engine_never_heard_of_says_nothing_at_its_end() {
    let mut peer = Peer::accepted(super::config());
    peer.send(&handshake(1, tanda_wire::fila::Capabilities::NONE));
    let connect = peer.session.next_request().unwrap();
    peer.session.on_refused(connect);
    peer.session.close();
    assert!(peer.requests().is_empty());
}

#[test]
fn messages_that_go_back_are_not_lost_to_a_full_channel() {
    let mut peer = Peer::open();
    let token = peer.subscribe(1);
    peer.call(1, &CancelConsume {});
    assert_eq!(peer.requests().len(), 1);
    peer.event(Event::Delivery {
        token,
        batch: deliveries(&[b"a", b"b"]),
    });
    for request in peer.requests() {
        peer.session.on_refused(request);
    }
    assert!(peer.frames().is_empty());
    peer.session.close();
    let requests = peer.requests();
    let [
        Request::Settle {
            batch: SettleBatch { items, .. },
            ..
        },
        Request::Disconnect { .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(items.len(), 2);
}
