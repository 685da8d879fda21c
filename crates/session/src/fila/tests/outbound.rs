//! What the engine hears of deliveries that left.

use tanda_engine::{Event, Request};
use tanda_wire::fila::queue_admin::ListQueues;
use tanda_wire::fila::{Capabilities, Opcode};

use super::{Peer, config, deliveries};
use crate::fila::SessionConfig;

fn peer_with_budget(outbound_bytes_max: u64) -> Peer {
    let limits = SessionConfig {
        outbound_bytes_max,
        ..config()
    };
    Peer::open_with(limits, Capabilities::NONE)
}

fn drained(peer: &mut Peer) -> Vec<u64> {
    let requests = peer.requests();
    let bytes = requests.iter().map(|request| {
        let Request::Drained { bytes, .. } = request else {
            panic!("{request:?}")
        };
        *bytes
    });
    bytes.collect()
}

/// Takes `n` bytes off the output and reports them.
fn write(peer: &mut Peer, n: usize) {
    let taken = peer.session.output().split_to(n).len();
    peer.session.on_written(taken);
    peer.session.assert_invariants();
}

#[test]
fn much_is_reported_at_once() {
    let batch = deliveries(&[b"a", b"b"]);
    let budget = batch.budget_bytes();
    let mut peer = peer_with_budget(budget * 4);
    let token = peer.subscribe(1);
    peer.event(Event::Delivery { token, batch });
    let size = peer.session.output().len();
    write(&mut peer, size - 1);
    assert!(peer.requests().is_empty());
    write(&mut peer, 1);
    assert_eq!(drained(&mut peer), [budget]);
    assert!(peer.session.output().is_empty());
}

#[test]
fn little_is_reported_with_the_next_request_or_soon() {
    let batch = deliveries(&[b"a"]);
    let budget = batch.budget_bytes();
    let mut peer = peer_with_budget(budget * 1000);
    let token = peer.subscribe(1);
    peer.event(Event::Delivery {
        token,
        batch: batch.clone(),
    });
    assert_eq!(peer.frames().len(), 1);
    assert!(peer.requests().is_empty());
    peer.call(5, &ListQueues {});
    let requests = peer.requests();
    let [Request::Admin { .. }, Request::Drained { bytes, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(*bytes, budget);

    peer.event(Event::Delivery {
        token,
        batch: batch.clone(),
    });
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.frames().len(), 2);
    let wait = peer.now.until(peer.session.next_deadline().unwrap());
    assert!(wait <= 20, "{wait}");
    assert!(peer.requests().is_empty());
    peer.pass_ms(wait);
    assert_eq!(drained(&mut peer), [2 * budget]);
}

#[test]
fn each_frame_of_a_large_batch_is_reported_when_it_left() {
    let payload = vec![b'x'; 600 << 10];
    let batch = deliveries(&[&payload[..]; 4]);
    let one = batch.budget_bytes() / 4;
    let mut peer = peer_with_budget(one);
    let token = peer.subscribe(1);
    peer.event(Event::Delivery { token, batch });
    let frame = peer.session.output().len() / 4;
    for left in (0..4).rev() {
        write(&mut peer, frame);
        assert_eq!(drained(&mut peer), [one]);
        assert_eq!(peer.session.output().len(), left * frame);
    }
}

#[test]
fn answers_and_deliveries_keep_their_order_through_both_buffers() {
    let mut peer = peer_with_budget(1 << 20);
    let token = peer.subscribe(1);
    let payload = vec![b'x'; 50_000];
    let mut bytes = Vec::new();
    for round in 1..=20_u32 {
        // Some of it is written while more is appended.
        let take = peer.session.output().len() / 3;
        bytes.extend_from_slice(&peer.session.output().split_to(take));
        peer.session.on_written(take);
        let size = if round % 3 == 0 { 50_000 } else { 10 };
        peer.event(Event::Delivery {
            token,
            batch: deliveries(&[&payload[..size]]),
        });
        peer.send(&super::raw_frame(0x03, 0, round + 1, &[]));
    }
    bytes.extend_from_slice(&peer.bytes());
    let frames = super::parse(&bytes);
    assert_eq!(frames.len(), 40);
    for (pair, round) in frames.chunks(2).zip(1_u32..) {
        let size = if round % 3 == 0 { 50_000 } else { 10 };
        assert!(pair[0].body.len() > size && pair[0].body.len() < size + 200);
        assert_eq!(pair[1].header.opcode, Opcode::Pong);
        assert_eq!(pair[1].header.request_id, round + 1);
    }
}

#[test]
fn an_idle_connection_gives_its_buffers_back() {
    let mut peer = peer_with_budget(8 << 20);
    let token = peer.subscribe(1);
    let payload = vec![b'x'; 900 << 10];
    for _ in 0..3 {
        peer.event(Event::Delivery {
            token,
            batch: deliveries(&[&payload]),
        });
        let size = peer.session.output().len();
        bytes::Buf::advance(peer.session.output(), size);
        peer.session.on_written(size);
    }
    peer.pass_ms(15_000);
    assert_eq!(peer.frame().header.opcode, Opcode::Ping);
    assert!(
        peer.session.output().capacity() < 1024,
        "{}",
        peer.session.output().capacity()
    );
}
