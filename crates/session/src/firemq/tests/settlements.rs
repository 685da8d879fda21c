//! `ack` and `nack`.

use tanda_engine::{Event, QueueId, SettleQueue, Settlement};
use tanda_wire::firemq::consume::{Ack, Nack, Subscribe};

use super::{Peer, deliveries, id, to_q};

/// A peer that holds messages 1 to 5 with the tags 1 to 5.
fn holding() -> Peer {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.deliver(token, 5);
    peer.requests();
    peer
}

fn ack(tag: u64, multiple: bool) -> Ack {
    Ack { tag, multiple }
}

/// The messages that are settled, and how.
fn settled(peer: &mut Peer) -> Vec<(u64, Settlement)> {
    let (_, batch) = peer.settled();
    let items = batch.items.iter();
    let items = items.map(|item| {
        let (queue, holder) = (QueueId(7), 5);
        assert_eq!(item.queue, SettleQueue::Held { queue, holder });
        let number = (1..=5).find(|number| id(*number) == item.id).unwrap();
        (number, item.settlement)
    });
    items.collect()
}

const UNKNOWN: [&str; 1] = ["error code=406 msg=unknown delivery tag 3"];

#[test]
fn an_ack_settles_one_and_has_no_reply() {
    let mut peer = holding();
    peer.say(&ack(3, false));
    assert_eq!(settled(&mut peer), [(3, Settlement::Ack)]);
    assert_eq!(peer.bytes(), b"");
    peer.event(Event::Settled {
        token: 0,
        results: Vec::new(),
    });
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn with_multiple_all_up_to_the_tag_are_settled() {
    let mut peer = holding();
    peer.say(&ack(2, false));
    peer.say(&ack(4, true));
    let mut settled = Vec::new();
    for request in peer.requests() {
        if let tanda_engine::Request::Settle { batch, .. } = request {
            settled.push(batch.items.len());
        }
    }
    assert_eq!(settled, [1, 3]);
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_nack_requeues_or_not() {
    for requeue in [true, false] {
        let mut peer = holding();
        peer.say(&Nack {
            tag: 2,
            multiple: true,
            requeue,
        });
        let nack = Settlement::Nack { requeue };
        assert_eq!(settled(&mut peer), [(1, nack), (2, nack)]);
        assert_eq!(peer.bytes(), b"");
    }
}

#[test]
fn an_unknown_tag_is_406_without_rid_and_not_fatal() {
    let mut peer = Peer::open();
    for multiple in [true, false] {
        peer.say(&ack(3, multiple));
        assert_eq!(peer.lines(), UNKNOWN);
        peer.say(&Nack {
            tag: 3,
            multiple,
            requeue: true,
        });
        assert_eq!(peer.lines(), UNKNOWN);
    }
    assert!(!peer.session.is_closing());
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn a_tag_is_settled_once() {
    let mut peer = holding();
    peer.say(&ack(3, false));
    peer.requests();
    peer.say(&ack(3, false));
    assert_eq!(peer.lines(), UNKNOWN);
    // The one that is named must be unsettled: nothing below it is settled either.
    peer.say(&ack(3, true));
    assert_eq!(peer.lines(), UNKNOWN);
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn tag_0_and_tags_to_come_are_unknown() {
    let mut peer = holding();
    for tag in [0, 6, u64::MAX] {
        peer.say(&ack(tag, true));
        let line = format!("error code=406 msg=unknown delivery tag {tag}");
        assert_eq!(peer.lines(), [line]);
    }
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn a_delivery_without_ack_cannot_be_settled() {
    let mut peer = Peer::open();
    let token = peer.subscribe(&Subscribe {
        no_ack: true,
        ..to_q(1)
    });
    let batch = deliveries(1, 3);
    peer.event(Event::Delivery { token, batch });
    peer.bytes();
    peer.say(&ack(3, false));
    assert_eq!(peer.lines(), UNKNOWN);
}

#[test]
fn settlements_come_behind_the_messages_of_the_same_read() {
    let mut peer = holding();
    let both = [
        super::frame(&ack(1, false)),
        super::message(1, "q", b"passed on"),
    ];
    peer.send(&both.concat());
    let requests = peer.requests();
    use tanda_engine::Request::{Pool, Publish, Settle};
    assert!(
        matches!(&requests[..], [Publish { .. }, Settle { .. }, Pool { .. }]),
        "{requests:?}"
    );
}
