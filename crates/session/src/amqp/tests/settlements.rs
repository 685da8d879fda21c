//! Acknowledgements: which messages they speak of, and what the engine is told.

use tanda_engine::{Event, Got, PoolChange, QueueId, Request, SettleQueue, Settlement};
use tanda_wire::amqp::basic;

use super::{Peer, frame, id, line, short};

fn ack(delivery_tag: u64, multiple: bool) -> basic::Ack {
    basic::Ack {
        delivery_tag,
        multiple,
    }
}

/// A consumer that holds messages with the tags 1 to `count`.
fn holding(count: u64) -> Peer {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    peer.deliver(token, count);
    peer
}

fn numbers(batch: &tanda_engine::SettleBatch) -> Vec<u64> {
    let mut numbers = Vec::new();
    for item in &batch.items {
        let (queue, holder) = (QueueId(7), 5);
        assert_eq!(item.queue, SettleQueue::Held { queue, holder });
        numbers.push((1..100).find(|number| id(*number) == item.id).unwrap());
    }
    numbers
}

#[test]
fn acks_of_one_read_are_one_request_and_their_credit_comes_back() {
    let mut peer = holding(5);
    let acks = [
        frame(1, ack(1, false)),
        frame(1, ack(3, true)),
        frame(1, ack(5, false)),
    ];
    peer.send(&acks.concat());
    let requests = peer.requests();
    let [
        Request::Settle { batch, .. },
        Request::Grant { credit: 4, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(numbers(batch), [1, 2, 3, 5]);
    assert!(
        batch
            .items
            .iter()
            .all(|item| item.settlement == Settlement::Ack)
    );
    assert_eq!(batch.vhost, super::VHOST);
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn pitfall_38_a_tag_is_settled_once_by_whatever_method() {
    let unknown = |tag: u64| format!("PRECONDITION_FAILED - unknown delivery tag {tag}");
    let mut peer = holding(2);
    peer.say(1, ack(3, false));
    peer.expect_channel_close(1, 406, &unknown(3), (60, 80));
    let mut peer = holding(2);
    peer.send(&[frame(1, ack(1, false)), frame(1, ack(1, false))].concat());
    peer.expect_channel_close(1, 406, &unknown(1), (60, 80));
    let mut peer = holding(2);
    peer.say(1, ack(0, false));
    peer.expect_channel_close(1, 406, &unknown(0), (60, 80));
    let mut peer = holding(0);
    peer.say(1, ack(0, true));
    assert_eq!(peer.bytes(), b"");
    peer.say(1, ack(7, true));
    peer.expect_channel_close(1, 406, &unknown(7), (60, 80));
    let reject = basic::Reject {
        delivery_tag: 4,
        requeue: true,
    };
    let mut peer = holding(2);
    peer.say(1, reject);
    peer.expect_channel_close(1, 406, &unknown(4), (60, 90));
    let nack = basic::Nack {
        delivery_tag: 4,
        multiple: true,
        requeue: true,
    };
    let mut peer = holding(2);
    peer.say(1, nack);
    peer.expect_channel_close(1, 406, &unknown(4), (60, 120));
}

#[test]
fn pitfall_38_tag_0_with_multiple_is_all() {
    let mut peer = holding(3);
    peer.say(1, ack(0, true));
    assert_eq!(numbers(&peer.settled().1), [1, 2, 3]);
}

#[test]
fn tags_belong_to_their_channel() {
    let mut peer = holding(2);
    peer.open_channel(2);
    peer.say(2, ack(1, false));
    let text = "PRECONDITION_FAILED - unknown delivery tag 1";
    peer.expect_channel_close(2, 406, text, (60, 80));
    peer.say(1, ack(1, false));
    assert_eq!(numbers(&peer.settled().1), [1]);
}

#[test]
fn pitfall_42_nack_and_reject_say_whether_to_requeue() {
    let mut peer = holding(4);
    let reject = basic::Reject {
        delivery_tag: 2,
        requeue: false,
    };
    let nack = basic::Nack {
        delivery_tag: 3,
        multiple: true,
        requeue: true,
    };
    peer.send(&[frame(1, reject), frame(1, nack)].concat());
    let (_, batch) = peer.settled();
    assert_eq!(numbers(&batch), [2, 1, 3]);
    let settlements: Vec<Settlement> = batch.items.iter().map(|it| it.settlement).collect();
    let (dropped, again) = (
        Settlement::Nack { requeue: false },
        Settlement::Nack { requeue: true },
    );
    assert_eq!(settlements, [dropped, again, again]);
}

#[test]
fn pitfall_43_recover_gives_back_all_or_is_540() {
    let mut peer = holding(2);
    peer.say(1, basic::Recover { requeue: true });
    assert_eq!(peer.lines(), [line(1, basic::RecoverOk {})]);
    assert_eq!(numbers(&peer.settled().1), [1, 2]);
    peer.say(1, basic::RecoverAsync { requeue: true });
    assert_eq!(peer.bytes(), b"");
    assert!(peer.requests().is_empty());
    peer.say(1, basic::Recover { requeue: false });
    let text = "NOT_IMPLEMENTED - requeue=false";
    peer.expect_connection_close(540, text, (60, 110));
}

#[test]
fn pitfall_43_recover_gives_back_what_a_get_took() {
    let mut peer = holding(1);
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    peer.say(1, get);
    let request = peer.request();
    let Request::Get { reply, .. } = request else {
        panic!("{request:?}")
    };
    let got = Got {
        batch: Some(super::deliveries(2, 1)),
        remaining: 0,
    };
    let token = reply.token;
    peer.event(Event::Got {
        token,
        result: Ok(got),
    });
    peer.bytes();
    peer.say(1, basic::Recover { requeue: true });
    assert_eq!(peer.lines(), [line(1, basic::RecoverOk {})]);
    let (_, batch) = peer.settled();
    assert_eq!(numbers(&batch), [1, 2]);
    for item in &batch.items {
        assert_eq!(item.settlement, Settlement::Nack { requeue: true });
    }
}

#[test]
fn a_channels_limit_comes_back_too_once_it_is_set() {
    let mut peer = holding(3);
    let qos = basic::Qos {
        prefetch_count: 10,
        global: true,
        ..basic::Qos::default()
    };
    peer.say(1, qos);
    assert_eq!(peer.lines(), [line(1, basic::QosOk {})]);
    let request = peer.request();
    let Request::Pool {
        pool: 1, change, ..
    } = request
    else {
        panic!("{request:?}")
    };
    // Three are held already.
    assert_eq!(change, PoolChange::Set(7));
    peer.say(1, ack(2, true));
    let requests = peer.requests();
    let [
        _,
        Request::Grant { credit: 2, .. },
        Request::Pool { change, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(*change, PoolChange::Add(2));
    let none = basic::Qos {
        global: true,
        ..basic::Qos::default()
    };
    peer.say(1, none);
    let request = peer.request();
    let Request::Pool { change, .. } = request else {
        panic!("{request:?}")
    };
    assert_eq!(change, PoolChange::Unlimited);
}

#[test]
fn messages_that_are_passed_on_are_sent_before_their_originals_go() {
    let mut peer = holding(1);
    peer.send(
        &[
            frame(1, ack(1, false)),
            super::plain(1, short("next").to_str().unwrap(), b"x"),
        ]
        .concat(),
    );
    let requests = peer.requests();
    assert!(matches!(
        requests[..],
        [
            Request::Publish { .. },
            Request::Settle { .. },
            Request::Grant { .. }
        ]
    ));
}
