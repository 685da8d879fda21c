//! What was on its way when a key or a permission goes (fila-semantics: Connection).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

use tanda_engine::{DeliveryBatch, Event, MessageId, Permission, Request, Settlement};
use tanda_wire::fila::consume::Consume;
use tanda_wire::fila::control::Ping;
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::{ErrorCode, Opcode};

use super::authentication::{open_as, worker};
use super::{deliveries, parse};

#[test]
fn a_revocation_ends_subscriptions_and_deliveries_at_once() {
    let (mut keys, id) = worker();
    let mut peer = open_as("worker", &keys.table());
    let live = peer.subscribe(7);
    // A delivery that has not begun to leave, behind an answer.
    peer.call(5, &Ping {});
    peer.event(Event::Delivery {
        token: live,
        batch: deliveries(&[b"never", b"seen"]),
    });
    peer.call(6, &Ping {});
    // A subscription that the engine has not answered.
    let consume = Consume {
        queue: "q2",
        ..Consume::default()
    };
    peer.call(8, &consume);
    let Request::Subscribe { sub: wanted, .. } = peer.request() else {
        panic!("no Subscribe")
    };
    keys.revoke(&id);
    peer.session.on_keys(peer.now, &keys.table());
    peer.session.assert_invariants();
    let requests = peer.requests();
    assert_eq!(ended(&requests), [live, wanted.token]);
    let batch = deliveries(&[b"never", b"seen"]);
    assert_eq!(drained(&requests), batch.budget_bytes());
    assert_eq!(returned(&requests), unsent(&batch));
    let frames = peer.frames();
    let heads: Vec<_> = frames.iter().map(|frame| frame.header).collect();
    let expected = [(Opcode::Pong, 5), (Opcode::Pong, 6), (Opcode::Error, 7)];
    assert_eq!(
        heads,
        expected.map(|(opcode, id)| FrameHeader::new(opcode, id))
    );
    assert_eq!(frames[2].error().error_code, ErrorCode::Unauthorized);
    // What was on its way goes back, and what comes late is refused.
    let late = deliveries(&[b"late"]);
    peer.event(Event::Delivery {
        token: live,
        batch: late.clone(),
    });
    assert!(peer.frames().is_empty());
    assert_eq!(returned(&peer.requests()), unsent(&late));
    peer.event(Event::Subscribed {
        token: wanted.token,
        consumer: 1,
    });
    peer.refusal(8, ErrorCode::Unauthorized);
}

/// Of what waits to leave, only what may not leave goes back, and what is around it stays whole.
#[test]
fn a_permission_that_goes_takes_back_what_it_had_allowed() {
    let (mut keys, id) = worker();
    let mut peer = open_as("worker", &keys.table());
    let (lost, kept) = (peer.subscribe_to(7, "q"), peer.subscribe_to(8, "q2"));
    let of = |queue: &str, payload: &[u8]| DeliveryBatch {
        queue: queue.into(),
        consumer: 3,
        ..deliveries(&[payload])
    };
    // A part of the first has left, so it has to come to its end.
    let begun = of("q", b"begun");
    peer.event(Event::Delivery {
        token: lost,
        batch: begun,
    });
    let head = peer.session.output().split_to(9);
    peer.session.on_written(head.len());
    let gone = [of("q", b"one"), of("q", b"two")];
    let stays = of("q2", b"stays");
    for (token, batch) in [(lost, &gone[0]), (kept, &stays), (lost, &gone[1])] {
        let batch = batch.clone();
        peer.event(Event::Delivery { token, batch });
    }
    peer.call(5, &Ping {});
    peer.requests();
    keys.set_acl(&id, &[(Permission::Consume, "q2")]);
    peer.session.on_keys(peer.now, &keys.table());
    peer.session.assert_invariants();
    let requests = peer.requests();
    assert_eq!(ended(&requests), [lost]);
    assert_eq!(returned(&requests), gone.each_ref().map(unsent).concat());
    let rest = peer.session.output().split();
    peer.session.on_written(rest.len());
    peer.session.assert_invariants();
    let frames = parse(&[&*head, &*rest].concat());
    let heads: Vec<_> = frames.iter().map(|frame| frame.header).collect();
    let expected = [
        (Opcode::Delivery, 7),
        (Opcode::Delivery, 8),
        (Opcode::Pong, 5),
        (Opcode::Error, 7),
    ];
    assert_eq!(
        heads,
        expected.map(|(opcode, id)| FrameHeader::new(opcode, id))
    );
    assert_eq!(frames[3].error().error_code, ErrorCode::Forbidden);
}

/// Subscriptions that the engine is to end.
fn ended(requests: &[Request]) -> Vec<u32> {
    let ended = requests.iter().filter_map(|request| match request {
        Request::Unsubscribe { sub, .. } => Some(sub.token),
        _ => None,
    });
    ended.collect()
}

/// What the engine hears to have left.
fn drained(requests: &[Request]) -> u64 {
    let drained = requests.iter().map(|request| match request {
        Request::Drained { bytes, .. } => *bytes,
        _ => 0,
    });
    drained.sum()
}

/// What the engine gets back.
fn returned(requests: &[Request]) -> Vec<(MessageId, Settlement)> {
    let settled = requests.iter().filter_map(|request| match request {
        Request::Settle { batch, .. } => Some(batch),
        _ => None,
    });
    let items = settled.flat_map(|batch| &batch.items);
    let items = items.map(|item| (item.id, item.settlement));
    items.collect()
}

/// How a delivery that did not leave goes back.
fn unsent(batch: &DeliveryBatch) -> Vec<(MessageId, Settlement)> {
    let items = batch.items.iter().map(|item| {
        let settlement = Settlement::Unsent {
            consumer: batch.consumer,
            deliveries: item.deliveries,
            redrives: item.redrives,
        };
        (item.id, settlement)
    });
    items.collect()
}
