//! Consumers: their terms, their answers, their ends.

use tanda_engine::{
    AdminReply, AdminRequest, Event, FrameLimit, Held, LeaseMode, MissingThrottleKey, Request,
    Settlement, SubscribeError, SubscribeSpec, SubscriptionEnd, TopologyCode,
};
use tanda_wire::amqp::{Table, TableWriter, Value, basic, channel};

use super::{
    AmqpConfig, Peer, VHOST, channel_close, deliveries, frame, id, line, short, table,
    topology_error,
};
use crate::login::Unrestricted;

fn consume(tag: &str) -> basic::Consume<'_> {
    basic::Consume {
        queue: short("q"),
        consumer_tag: short(tag),
        ..basic::Consume::default()
    }
}

/// The terms that a method asks for.
fn spec(peer: &mut Peer, consume: basic::Consume<'_>) -> SubscribeSpec {
    peer.say(1, consume);
    let request = peer.request();
    let Request::Subscribe { spec, .. } = request else {
        panic!("{request:?}")
    };
    spec
}

#[test]
fn a_consumers_terms_are_what_it_asked_for() {
    let mut peer = Peer::open();
    let expected = SubscribeSpec {
        vhost: VHOST,
        queue: "q".to_owned(),
        credit: Some(1_000_000),
        pool: Some(1),
        lease: LeaseMode::Connection,
        ack_timeout_ms: Some(1_800_000),
        frame_limit: FrameLimit::Amqp(131_072),
        tag: "c".to_owned(),
        ..SubscribeSpec::default()
    };
    assert_eq!(spec(&mut peer, consume("c")), expected);
    let mut peer = Peer::open();
    let arguments = table(&[
        ("x-priority", Value::I32(-7)),
        ("x-cancel-on-ha-failover", Value::Bool(true)),
    ]);
    let wanted = basic::Consume {
        no_ack: true,
        exclusive: true,
        no_local: true,
        arguments: Table::new(&arguments).unwrap(),
        ..consume("d")
    };
    let expected = SubscribeSpec {
        vhost: VHOST,
        queue: "q".to_owned(),
        lease: LeaseMode::NoAck,
        priority: -7,
        exclusive: true,
        frame_limit: FrameLimit::Amqp(131_072),
        tag: "d".to_owned(),
        ..SubscribeSpec::default()
    };
    assert_eq!(spec(&mut peer, wanted), expected);
}

#[test]
fn pitfall_44_a_prefetch_is_of_consumers_that_start_after_it() {
    let mut peer = Peer::open();
    peer.say(
        1,
        basic::Qos {
            prefetch_count: 5,
            ..basic::Qos::default()
        },
    );
    assert_eq!(peer.lines(), [line(1, basic::QosOk {})]);
    assert!(peer.requests().is_empty());
    assert_eq!(spec(&mut peer, consume("c")).credit, Some(5));
    let sized = basic::Qos {
        prefetch_size: 1,
        ..basic::Qos::default()
    };
    let mut peer = Peer::open();
    peer.say(1, sized);
    let text = "NOT_IMPLEMENTED - prefetch_size!=0 (1)";
    peer.expect_connection_close(540, text, (60, 10));
    // A consumer that acknowledges nothing has no limit.
    let mut peer = Peer::open();
    peer.say(
        1,
        basic::Qos {
            prefetch_count: 5,
            ..basic::Qos::default()
        },
    );
    let no_ack = basic::Consume {
        no_ack: true,
        ..consume("c")
    };
    let spec = spec(&mut peer, no_ack);
    assert_eq!((spec.credit, spec.pool), (None, None));
}

#[test]
fn pitfall_44_a_new_prefetch_leaves_consumers_and_gets_alone() {
    let prefetch = |prefetch_count| basic::Qos {
        prefetch_count,
        ..basic::Qos::default()
    };
    let mut peer = Peer::open();
    peer.say(1, prefetch(1));
    peer.bytes();
    let token = peer.consume_q();
    peer.deliver(token, 1);
    // The one that is there keeps its own: nothing is asked of the engine.
    peer.say(1, prefetch(7));
    assert_eq!(peer.lines(), [line(1, basic::QosOk {})]);
    assert!(peer.requests().is_empty());
    for (tag, count, credit) in [("d", 7, 7), ("e", 0, 1_000_000)] {
        peer.say(1, prefetch(count));
        peer.say(1, consume(tag));
        let request = peer.request();
        let Request::Subscribe { sub, spec } = request else {
            panic!("{request:?}")
        };
        assert_eq!(spec.credit, Some(credit));
        let token = sub.token;
        peer.event(Event::Subscribed { token, consumer: 1 });
    }
    // One message is all the first may hold, and a get takes another.
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    peer.say(1, get);
    assert!(matches!(peer.request(), Request::Get { .. }));
}

#[test]
fn pitfall_30_a_consumer_without_a_tag_gets_one() {
    let mut peer = Peer::open();
    peer.say(1, consume(""));
    let request = peer.request();
    let Request::Subscribe { sub, spec } = request else {
        panic!("{request:?}")
    };
    assert!(
        spec.tag.starts_with("amq.ctag-") && spec.tag.len() == 31,
        "{}",
        spec.tag
    );
    peer.event(Event::Subscribed {
        token: sub.token,
        consumer: 1,
    });
    let consume_ok = basic::ConsumeOk {
        consumer_tag: short(&spec.tag),
    };
    assert_eq!(peer.lines(), [line(1, consume_ok)]);
    peer.say(1, consume(""));
    let request = peer.request();
    let Request::Subscribe { spec: other, .. } = request else {
        panic!("{request:?}")
    };
    assert_ne!(spec.tag, other.tag);
}

#[test]
fn pitfall_40_a_tag_is_used_once_on_a_channel() {
    let mut peer = Peer::open();
    peer.consume_q();
    peer.say(1, consume("c"));
    let text = "NOT_ALLOWED - attempt to reuse consumer tag 'c'";
    peer.expect_connection_close(530, text, (60, 20));
    let mut peer = Peer::open();
    peer.consume_q();
    peer.open_channel(2);
    peer.consume(2, consume("c"));
}

#[test]
fn pitfall_40_why_a_consumer_cannot_start() {
    let vhost = "in vhost '/'";
    let cases = [
        (
            SubscribeError::QueueNotFound,
            404,
            format!("NOT_FOUND - no queue 'q' {vhost}"),
        ),
        (
            SubscribeError::AccessRefused(format!("queue 'q' {vhost} in exclusive use")),
            403,
            format!("ACCESS_REFUSED - queue 'q' {vhost} in exclusive use"),
        ),
        (
            SubscribeError::ResourceLocked("locked".to_owned()),
            405,
            "RESOURCE_LOCKED - locked".to_owned(),
        ),
        (
            SubscribeError::InvalidThrottle {
                name: "t".to_owned(),
                problem: "no".to_owned(),
            },
            406,
            "PRECONDITION_FAILED - invalid arg 'x-throttles': 't': no".to_owned(),
        ),
    ];
    for (error, code, text) in cases {
        let mut peer = Peer::open();
        peer.say(1, consume("c"));
        let request = peer.request();
        let Request::Subscribe { sub, .. } = request else {
            panic!("{request:?}")
        };
        peer.event(Event::SubscribeFailed {
            token: sub.token,
            error,
        });
        peer.expect_channel_close(1, code, &text, (60, 20));
        // The tag is free again.
        peer.consume_q();
    }
}

#[test]
fn pitfall_39_cancelling_keeps_what_is_held_and_answers_after_what_is_under_way() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    peer.deliver(token, 1);
    let cancel = basic::Cancel {
        consumer_tag: short("c"),
        no_wait: false,
    };
    peer.say(1, cancel);
    let requests = peer.requests();
    let [
        Request::Unsubscribe {
            held: Held::Keep, ..
        },
        Request::Admin { reply, request },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert!(matches!(request, AdminRequest::DeclareQueue(it) if it.passive && it.name == "q"));
    let reply = reply.token;
    // One that was on its way is still delivered.
    peer.event(Event::Delivery {
        token,
        batch: deliveries(2, 1),
    });
    assert_eq!(peer.lines().len(), 3);
    let error = topology_error(TopologyCode::NotFound, "gone meanwhile");
    peer.admin(reply, AdminReply::QueueDeclared(error));
    let cancel_ok = basic::CancelOk {
        consumer_tag: short("c"),
    };
    assert_eq!(peer.lines(), [line(1, cancel_ok)]);
    // None after that: it goes back.
    peer.event(Event::Delivery {
        token,
        batch: deliveries(3, 1),
    });
    assert_eq!(peer.bytes(), b"");
    let (_, batch) = peer.settled();
    assert_eq!(batch.items[0].id, id(3));
    assert!(matches!(
        batch.items[0].settlement,
        Settlement::Unsent { .. }
    ));
    // Both that were delivered can be acknowledged.
    let ack = basic::Ack {
        delivery_tag: 2,
        multiple: true,
    };
    peer.say(1, ack);
    assert_eq!(peer.settled().1.items.len(), 2);
}

#[test]
fn pitfall_39_cancelling_nobody_is_answered() {
    let mut peer = Peer::open();
    let cancel = basic::Cancel {
        consumer_tag: short("nobody"),
        no_wait: false,
    };
    peer.say(1, cancel);
    let cancel_ok = basic::CancelOk {
        consumer_tag: short("nobody"),
    };
    assert_eq!(peer.lines(), [line(1, cancel_ok)]);
    peer.say(
        1,
        basic::Cancel {
            no_wait: true,
            ..cancel
        },
    );
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn pitfall_46_the_end_of_a_queue_is_told_to_clients_that_can_hear_it() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let gone = Event::SubscriptionEnded {
        token,
        reason: SubscriptionEnd::QueueDeleted,
    };
    peer.event(gone);
    let cancel = basic::Cancel {
        consumer_tag: short("c"),
        no_wait: true,
    };
    assert_eq!(peer.lines(), [line(1, cancel)]);
    // Some clients answer.
    peer.say(
        1,
        basic::CancelOk {
            consumer_tag: short("c"),
        },
    );
    peer.consume_q();
    let identity = std::sync::Arc::new(Unrestricted::new("guest"));
    let mut peer = Peer::open_as(AmqpConfig::default(), &[], identity);
    peer.open_channel(1);
    let token = peer.consume_q();
    peer.event(Event::SubscriptionEnded {
        token,
        reason: SubscriptionEnd::QueueDeleted,
    });
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn pitfall_48_an_ack_that_is_too_late_ends_the_consumer_or_the_channel() {
    let late = |token| Event::SubscriptionEnded {
        token,
        reason: SubscriptionEnd::AckTimedOut {
            timeout_ms: 1_800_000,
        },
    };
    let mut peer = Peer::open();
    let token = peer.consume_q();
    peer.deliver(token, 1);
    peer.event(late(token));
    let cancel = basic::Cancel {
        consumer_tag: short("c"),
        no_wait: true,
    };
    assert_eq!(peer.lines(), [line(1, cancel)]);
    // Its ack changes nothing, and is no error.
    peer.say(
        1,
        basic::Ack {
            delivery_tag: 1,
            multiple: false,
        },
    );
    assert_eq!(peer.bytes(), b"");
    // Somebody else may have the message: nothing is said of it to the engine.
    let requests = peer.requests();
    let settles = |it: &Request| matches!(it, Request::Settle { .. });
    assert!(!requests.iter().any(settles), "{requests:?}");
    let identity = std::sync::Arc::new(Unrestricted::new("guest"));
    let mut peer = Peer::open_as(AmqpConfig::default(), &[], identity);
    peer.open_channel(1);
    let token = peer.consume_q();
    peer.event(late(token));
    let text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. \
                Timeout value used: 1800000 ms. \
                This timeout value can be configured, see consumers doc guide to learn more";
    assert_eq!(peer.lines(), [channel_close(1, 406, text, (0, 0))]);
}

#[test]
fn a_priority_is_a_number() {
    let arguments = table(&[("x-priority", Value::text("high"))]);
    let wanted = basic::Consume {
        arguments: Table::new(&arguments).unwrap(),
        ..consume("c")
    };
    let mut peer = Peer::open();
    peer.say(1, wanted);
    let text = "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \
                {unacceptable_type,longstr}";
    peer.expect_channel_close(1, 406, text, (60, 20));
}

#[test]
fn throttles_are_declared_in_an_argument() {
    let mut arguments = Vec::new();
    TableWriter::new(&mut arguments).array(short("x-throttles"), |array| {
        array.table(|table| {
            table.value(short("name"), &Value::text("api"));
            table.value(short("max_deliveries"), &Value::I32(10));
            table.value(short("window_ms"), &Value::I64(1_000));
            table.array(short("key"), |key| {
                key.value(&Value::text("tenant"));
            });
            table.value(short("when_key_missing"), &Value::text("unthrottled"));
        });
    });
    let wanted = basic::Consume {
        arguments: Table::new(&arguments).unwrap(),
        ..consume("c")
    };
    let mut peer = Peer::open();
    let spec = spec(&mut peer, wanted);
    let [throttle] = &spec.throttles[..] else {
        panic!("{spec:?}")
    };
    assert_eq!(
        (throttle.name.as_str(), throttle.missing),
        ("api", MissingThrottleKey::Unthrottled)
    );
    assert_eq!(
        (
            throttle.limits[0].max_deliveries,
            throttle.limits[0].window_ms
        ),
        (10, 1_000)
    );
    assert_eq!(throttle.key[0].name, "tenant");
    let bad = table(&[("x-throttles", Value::Bool(true))]);
    let wanted = basic::Consume {
        arguments: Table::new(&bad).unwrap(),
        ..consume("c")
    };
    let mut peer = Peer::open();
    peer.say(1, wanted);
    let text = "PRECONDITION_FAILED - invalid arg 'x-throttles': it is an array of tables";
    peer.expect_channel_close(1, 406, text, (60, 20));
}

#[test]
fn consumers_of_a_connection_are_bounded() {
    let config = AmqpConfig {
        consumers_max: 1,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    peer.open_channel(1);
    peer.consume_q();
    peer.say(1, consume("d"));
    let text = "NOT_ALLOWED - reached maximum (1) of consumers per connection";
    peer.expect_connection_close(530, text, (60, 20));
}

#[test]
fn a_consumer_whose_channel_ends_before_it_started_is_no_more() {
    let mut peer = Peer::open();
    let lost = super::plain(1, "q", b"x");
    peer.send(&[lost, frame(1, consume("c"))].concat());
    let requests = peer.requests();
    let [
        Request::Publish { reply, .. },
        Request::Subscribe { sub, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    let missing =
        tanda_engine::PublishResult::Refused(tanda_engine::PublishError::ExchangeNotFound);
    let (reply, sub) = (reply.token, sub.token);
    peer.event(Event::Published {
        token: reply,
        results: vec![missing],
    });
    assert_eq!(peer.lines().len(), 1);
    let request = peer.request();
    assert!(matches!(
        request,
        Request::Unsubscribe {
            held: Held::Requeue,
            ..
        }
    ));
    // The peer's answer to the close waits for that of the engine.
    peer.say(1, channel::CloseOk {});
    peer.event(Event::Delivery {
        token: sub,
        batch: deliveries(1, 1),
    });
    peer.event(Event::Subscribed {
        token: sub,
        consumer: 1,
    });
    assert_eq!(peer.bytes(), b"");
    assert_eq!(peer.settled().1.items.len(), 1);
    peer.open_channel(1);
    peer.consume_q();
    assert!(peer.session.next_deadline().is_some());
}
