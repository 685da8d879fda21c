//! Publisher confirms and returns.

use tanda_engine::{Event, PublishError, PublishResult};
use tanda_wire::amqp::{PropertyValues, basic, confirm};

use super::{Peer, channel_close, frame, id, line, message, plain, short, stored};

fn ack(delivery_tag: u64, multiple: bool) -> String {
    line(
        1,
        basic::Ack {
            delivery_tag,
            multiple,
        },
    )
}

fn nack(delivery_tag: u64) -> String {
    line(
        1,
        basic::Nack {
            delivery_tag,
            multiple: false,
            requeue: false,
        },
    )
}

fn confirming() -> Peer {
    let mut peer = Peer::open();
    peer.confirm_select(1);
    peer
}

#[test]
fn pitfall_52_tags_start_at_1_and_go_on_after_a_second_select() {
    let mut peer = Peer::open();
    // Not confirmed, and not counted.
    peer.send(
        &[
            plain(1, "q", b"0"),
            frame(1, confirm::Select { no_wait: true }),
            plain(1, "q", b"1"),
        ]
        .concat(),
    );
    assert_eq!(peer.bytes(), b"");
    let requests = peer.requests();
    let [
        tanda_engine::Request::Publish {
            reply: before,
            batch: plain_batch,
        },
        tanda_engine::Request::Publish { reply, batch },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert!(!plain_batch.confirm && batch.confirm);
    let (before, reply) = (before.token, reply.token);
    peer.event(stored(before, 1));
    assert_eq!(peer.bytes(), b"");
    peer.event(stored(reply, 1));
    assert_eq!(peer.lines(), [ack(1, false)]);
    peer.confirm_select(1);
    peer.send(&plain(1, "q", b"2").repeat(3));
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 3);
    peer.event(stored(token, 3));
    assert_eq!(peer.lines(), [ack(4, true)]);
}

#[test]
fn pitfall_53_a_full_queue_nacks_and_without_confirms_drops() {
    let mut peer = confirming();
    peer.send(&plain(1, "q", b"x").repeat(3));
    let (token, _) = peer.published();
    let results = vec![
        PublishResult::Stored(id(1)),
        PublishResult::Refused(PublishError::QueueFull),
        PublishResult::Stored(id(2)),
    ];
    peer.event(Event::Published { token, results });
    assert_eq!(peer.lines(), [ack(1, false), nack(2), ack(3, false)]);
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", b"x"));
    let (token, _) = peer.published();
    let results = vec![PublishResult::Refused(PublishError::QueueFull)];
    peer.event(Event::Published { token, results });
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn pitfall_51_a_return_comes_before_the_ack_of_its_message() {
    let mut peer = confirming();
    let publish = basic::Publish {
        exchange: short("ex"),
        routing_key: short("nowhere"),
        mandatory: true,
        immediate: false,
    };
    let properties = PropertyValues {
        delivery_mode: Some(2),
        ..PropertyValues::default()
    };
    let body = vec![b'x'; 131_065];
    peer.send(&[plain(1, "q", b"a"), message(1, publish, &properties, &body)].concat());
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 2);
    let results = vec![PublishResult::Unroutable; 2];
    peer.event(Event::Published { token, results });
    let returned = basic::Return {
        reply_code: 312,
        reply_text: short("NO_ROUTE"),
        exchange: short("ex"),
        routing_key: short("nowhere"),
    };
    let lines = peer.lines();
    let first_body = format!("1 body {}", "x".repeat(131_064));
    let expected = [
        ack(1, false),
        line(1, returned),
        "1 header 131065 \\x10\\x00\\x02".to_owned(),
        first_body,
        "1 body x".to_owned(),
        ack(2, false),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_return_needs_no_confirms() {
    let mut peer = Peer::open();
    let publish = basic::Publish {
        mandatory: true,
        ..basic::Publish::default()
    };
    peer.send(&message(1, publish, &PropertyValues::default(), b""));
    let (token, _) = peer.published();
    let results = vec![PublishResult::Unroutable];
    peer.event(Event::Published { token, results });
    let lines = peer.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], "1 header 0 \\x00\\x00");
}

#[test]
fn pitfall_36_a_missing_exchange_ends_the_channel_when_the_answer_comes() {
    let mut peer = confirming();
    let publish = basic::Publish {
        exchange: short("no\u{e9}"),
        ..basic::Publish::default()
    };
    let lost = message(1, publish, &PropertyValues::default(), b"x");
    peer.send(&[plain(1, "q", b"x"), lost].concat());
    let (token, _) = peer.published();
    let missing = PublishResult::Refused(PublishError::ExchangeNotFound);
    let results = vec![PublishResult::Stored(id(1)), missing];
    peer.event(Event::Published { token, results });
    let text = "NOT_FOUND - no exchange 'no\u{e9}' in vhost '/'";
    assert_eq!(peer.lines(), [channel_close(1, 404, text, (60, 40))]);

    let mut peer = Peer::open();
    let publish = basic::Publish {
        exchange: short("in"),
        ..basic::Publish::default()
    };
    peer.send(&message(1, publish, &PropertyValues::default(), b"x"));
    let (token, _) = peer.published();
    let results = vec![PublishResult::Refused(PublishError::ExchangeInternal)];
    peer.event(Event::Published { token, results });
    let text = "ACCESS_REFUSED - cannot publish to internal exchange 'in' in vhost '/'";
    assert_eq!(peer.lines(), [channel_close(1, 403, text, (60, 40))]);
}

#[test]
fn a_publisher_without_confirms_hears_of_messages_that_cannot_be_taken_now() {
    for (error, reason) in [
        (PublishError::Storage, "storage is full or failed"),
        (
            PublishError::Overloaded,
            "too much waits for the script of its queue",
        ),
        (
            PublishError::ReservedQueueName,
            "dead-letter queues take no messages from outside",
        ),
    ] {
        let refused = vec![PublishResult::Refused(error)];
        let mut peer = Peer::open();
        peer.send(&plain(1, "q", b"x"));
        let (token, _) = peer.published();
        let results = refused.clone();
        peer.event(Event::Published { token, results });
        let text = format!("PRECONDITION_FAILED - a message was not taken: {reason}");
        assert_eq!(peer.lines(), [channel_close(1, 406, &text, (60, 40))]);

        let mut peer = confirming();
        peer.send(&plain(1, "q", b"x"));
        let (token, _) = peer.published();
        let results = refused;
        peer.event(Event::Published { token, results });
        assert_eq!(peer.lines(), [nack(1)]);
    }
}

#[test]
fn confirms_of_a_channel_that_was_opened_again_are_not_its_own() {
    let mut peer = confirming();
    peer.send(&plain(1, "q", b"x"));
    let (token, _) = peer.published();
    peer.say(1, tanda_wire::amqp::channel::Close::default());
    peer.lines();
    peer.open_channel(1);
    peer.confirm_select(1);
    peer.event(stored(token, 1));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn each_channel_counts_its_own() {
    let mut peer = confirming();
    peer.open_channel(2);
    peer.confirm_select(2);
    peer.send(
        &[
            plain(1, "q", b"a"),
            plain(2, "q", b"b"),
            plain(1, "q", b"c"),
        ]
        .concat(),
    );
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 3);
    peer.event(stored(token, 3));
    let on_2 = basic::Ack {
        delivery_tag: 1,
        multiple: false,
    };
    assert_eq!(peer.lines(), [ack(1, false), line(2, on_2), ack(2, false)]);
}
