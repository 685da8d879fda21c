//! `subscribe`, `unsubscribe`, `credit`, `cancelled`.

use tanda_engine::{
    AdminRequest, Event, FrameLimit, Held, LeaseMode, PoolChange, Request, SubscribeError,
    SubscribeSpec, SubscriptionEnd,
};
use tanda_wire::firemq::consume::{Ack, Credit, Subscribe, Unsubscribe};
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{RawMap, Value};

use super::{FireConfig, Peer, VHOST, declared, deliveries, frame, map, to_q};

const UNSUBSCRIBE: Unsubscribe = Unsubscribe { rid: 5, sub: 1 };

/// What the engine is asked for a subscription.
fn spec_of(subscribe: &Subscribe<'_>) -> SubscribeSpec {
    let mut peer = Peer::open();
    peer.say(subscribe);
    let mut requests = peer.requests();
    let Some(Request::Subscribe { spec, .. }) = requests.pop() else {
        panic!("{requests:?} {:?}", peer.lines())
    };
    spec
}

#[test]
fn a_subscription_is_asked_for_as_it_says_and_answered_with_ok() {
    let args = map(&[("x-priority", Value::Int(-5))]);
    let subscribe = Subscribe {
        rid: 3,
        sub: 9,
        queue: "orders",
        credit: 10,
        no_ack: false,
        exclusive: true,
        tag: "worker",
        args: RawMap::decode(&args).unwrap(),
        offset: None,
    };
    let expected = SubscribeSpec {
        vhost: VHOST,
        queue: "orders".to_owned(),
        credit: Some(10),
        pool: Some(0),
        lease: LeaseMode::Connection,
        ack_timeout_ms: Some(30 * 60 * 1_000),
        priority: -5,
        exclusive: true,
        frame_limit: FrameLimit::Fire(16 << 20),
        tag: "worker".to_owned(),
        throttles: Vec::new(),
    };
    assert_eq!(spec_of(&subscribe), expected);
    let mut peer = Peer::open();
    peer.subscribe(&subscribe);
}

#[test]
fn the_tag_defaults_to_fire_and_the_subscription() {
    assert_eq!(spec_of(&to_q(42)).tag, "fire-42");
}

#[test]
fn messages_without_ack_are_gone_once_sent_and_need_credit_too() {
    let spec = spec_of(&Subscribe {
        no_ack: true,
        credit: 3,
        ..to_q(1)
    });
    assert_eq!((spec.lease, spec.credit), (LeaseMode::NoAck, Some(3)));
    assert_eq!((spec.pool, spec.ack_timeout_ms), (None, None));
}

#[test]
fn credit_0_is_none_and_much_is_as_much_as_can_be_counted() {
    let zero = Subscribe {
        credit: 0,
        ..to_q(1)
    };
    assert_eq!(spec_of(&zero).credit, Some(0));
    let much = Subscribe {
        credit: u64::MAX,
        ..to_q(1)
    };
    assert_eq!(spec_of(&much).credit, Some(u32::MAX));
}

#[test]
fn credit_is_added() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    for (credit, granted) in [(5, 5), (u64::MAX, u32::MAX)] {
        peer.say(&Credit { sub: 1, credit });
        let request = peer.request();
        let Request::Grant { sub, credit } = request else {
            panic!("{request:?}")
        };
        assert_eq!((sub.token, credit), (token, granted));
    }
    // Acknowledgements give none.
    peer.deliver(token, 1);
    peer.say(&Ack {
        tag: 1,
        multiple: false,
    });
    let requests = peer.requests();
    let grants = requests
        .iter()
        .filter(|request| matches!(request, Request::Grant { .. }));
    assert_eq!(grants.count(), 0);
}

#[test]
fn credit_for_what_is_not_there_is_ignored() {
    let mut peer = Peer::open();
    peer.say(&Credit { sub: 7, credit: 5 });
    peer.subscribe_q();
    peer.say(&Credit { sub: 1, credit: 0 });
    assert_eq!(peer.requests().len(), 0);
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn what_the_peer_holds_is_bounded_whatever_credit_it_grants() {
    let mut peer = Peer::open_with(FireConfig {
        unacked_max: 50,
        ..FireConfig::default()
    });
    peer.say(&to_q(1));
    let requests = peer.requests();
    let [
        Request::Pool {
            pool: 0,
            change: PoolChange::Set(50),
            ..
        },
        Request::Subscribe { sub, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    let token = sub.token;
    peer.event(Event::Subscribed { token, consumer: 5 });
    peer.deliver(token, 3);
    peer.say(&Ack {
        tag: 3,
        multiple: true,
    });
    let requests = peer.requests();
    let [
        Request::Settle { .. },
        Request::Pool {
            change: PoolChange::Add(3),
            ..
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    // The second subscription shares it.
    peer.say(&to_q(2));
    assert!(matches!(peer.request(), Request::Subscribe { .. }));
}

#[test]
fn a_sub_is_unique_on_the_connection() {
    let mut peer = Peer::open();
    peer.say(&to_q(1));
    peer.say(&to_q(1));
    let line = "error rid=77 code=530 msg=subscription 1 is in use";
    assert_eq!(peer.lines(), [line]);
    let token = peer.subscribing();
    peer.event(Event::Subscribed { token, consumer: 5 });
    assert_eq!(peer.lines(), ["ok rid=77"]);
    peer.say(&to_q(1));
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn subscriptions_are_bounded() {
    let mut peer = Peer::open_with(FireConfig {
        subscriptions_max: 1,
        ..FireConfig::default()
    });
    peer.subscribe_q();
    peer.say(&to_q(2));
    let msg = "reached maximum (1) of subscriptions per connection";
    assert_eq!(peer.lines(), [format!("error rid=77 code=530 msg={msg}")]);
}

#[test]
fn a_refused_subscription_says_why_and_leaves_no_trace() {
    let text = || "text".to_owned();
    for (error, line) in [
        (
            SubscribeError::QueueNotFound,
            "code=404 msg=no queue 'q' in vhost '/'",
        ),
        (SubscribeError::AccessRefused(text()), "code=405 msg=text"),
        (SubscribeError::ResourceLocked(text()), "code=405 msg=text"),
        (
            SubscribeError::TooMany { max: 3 },
            "code=530 msg=reached maximum (3) of subscriptions per connection",
        ),
        (
            SubscribeError::InvalidThrottle {
                name: text(),
                problem: "no".to_owned(),
            },
            "code=406 msg=invalid arg 'x-throttles': 'text': no",
        ),
        (
            SubscribeError::ThrottleConflict { name: text() },
            "code=406 msg=inequivalent throttle 'text': others declare it with another key",
        ),
        (SubscribeError::TokenInUse, "code=541 msg=token in use"),
    ] {
        let mut peer = Peer::open();
        peer.say(&to_q(1));
        let token = peer.subscribing();
        peer.event(Event::SubscribeFailed { token, error });
        assert_eq!(peer.lines(), [format!("error rid=77 {line}")]);
        peer.subscribe_q();
    }
}

#[test]
fn arguments_are_those_of_amqp() {
    let mut args = Vec::new();
    let mut writer = MapWriter::begin(&mut args);
    writer.entry("x-priority", &Value::Uint(7));
    let mut list = ArrayWriter::begin(writer.key("x-throttles"));
    let mut throttle = MapWriter::begin(list.slot());
    throttle.entry("name", &Value::Str("api"));
    throttle.entry("max_deliveries", &Value::Uint(10));
    throttle.entry("window_ms", &Value::Uint(1_000));
    throttle.finish();
    list.finish();
    writer.finish();
    let spec = spec_of(&Subscribe {
        args: RawMap::decode(&args).unwrap(),
        ..to_q(1)
    });
    assert_eq!((spec.priority, spec.throttles.len()), (7, 1));
    assert_eq!(spec.throttles[0].name, "api");
    assert_eq!(spec.throttles[0].limits[0].max_deliveries, 10);
    for (key, msg) in [
        (
            "x-priority",
            "invalid arg 'x-priority' for queue 'q' in vhost '/': {unacceptable_type,longstr}",
        ),
        (
            "x-throttles",
            "invalid arg 'x-throttles': it is an array of tables",
        ),
    ] {
        let mut peer = Peer::open();
        let args = map(&[(key, Value::Str("high"))]);
        peer.say(&Subscribe {
            args: RawMap::decode(&args).unwrap(),
            ..to_q(1)
        });
        assert_eq!(peer.lines(), [format!("error rid=77 code=406 msg={msg}")]);
    }
}

#[test]
fn a_tag_that_amqp_cannot_say_is_406() {
    let long = "x".repeat(256);
    let mut peer = Peer::open();
    peer.say(&Subscribe {
        tag: &long,
        ..to_q(1)
    });
    let line = "error rid=77 code=406 msg=a tag has at most 255 bytes";
    assert_eq!(peer.lines(), [line]);
}

/// Unsubscribes; the token of what is asked to learn that all deliveries have come.
fn unsubscribing(peer: &mut Peer, expected: u32) -> u32 {
    peer.say(&UNSUBSCRIBE);
    let requests = peer.requests();
    let [
        Request::Unsubscribe {
            sub,
            held: Held::Keep,
        },
        Request::Admin {
            reply,
            request: AdminRequest::DeclareQueue(declare),
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!((sub.token, declare.passive), (expected, true));
    reply.token
}

#[test]
fn unsubscribe_is_answered_after_the_last_delivery_and_what_is_held_stays() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let wait = unsubscribing(&mut peer, token);
    let batch = deliveries(1, 1);
    peer.event(Event::Delivery { token, batch });
    let line = "deliver sub=1 tag=1 exchange=ex key=key | body";
    assert_eq!(peer.lines(), [line]);
    peer.admin(wait, declared("q", 0, 0));
    assert_eq!(peer.lines(), ["ok rid=5"]);
    peer.say(&Ack {
        tag: 1,
        multiple: false,
    });
    let (_, batch) = peer.settled();
    assert_eq!(batch.items.len(), 1);
}

#[test]
fn a_delivery_after_that_goes_back() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let wait = unsubscribing(&mut peer, token);
    peer.admin(wait, declared("q", 0, 0));
    peer.lines();
    let batch = deliveries(1, 2);
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.bytes(), b"");
    let (_, batch) = peer.settled();
    assert_eq!(batch.items.len(), 2);
    let unsent = tanda_engine::Settlement::Unsent {
        consumer: 5,
        deliveries: 1,
        redrives: 0,
    };
    assert_eq!(batch.items[0].settlement, unsent);
}

#[test]
fn an_id_can_be_used_again_when_its_subscription_has_ended() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let wait = unsubscribing(&mut peer, token);
    // Both come before the answer: they wait for it.
    peer.send(&[frame(&UNSUBSCRIBE), frame(&to_q(1))].concat());
    assert_eq!(peer.bytes(), b"");
    assert_eq!(peer.requests().len(), 0);
    peer.admin(wait, declared("q", 0, 0));
    assert_eq!(peer.lines(), ["ok rid=5", "ok rid=5"]);
    let again = peer.subscribing();
    assert_ne!(again, token);
}

#[test]
fn unsubscribing_what_is_not_there_is_ok() {
    let mut peer = Peer::open();
    peer.say(&UNSUBSCRIBE);
    assert_eq!(peer.lines(), ["ok rid=5"]);
}

#[test]
fn unsubscribing_before_the_answer_gets_both_answers() {
    let mut peer = Peer::open();
    peer.say(&to_q(1));
    let token = peer.subscribing();
    let wait = unsubscribing(&mut peer, token);
    peer.event(Event::Subscribed { token, consumer: 5 });
    peer.admin(wait, declared("q", 0, 0));
    assert_eq!(peer.lines(), ["ok rid=77", "ok rid=5"]);
    peer.say(&to_q(1));
    let token = peer.subscribing();
    let wait = unsubscribing(&mut peer, token);
    let error = SubscribeError::QueueNotFound;
    peer.event(Event::SubscribeFailed { token, error });
    peer.admin(wait, declared("q", 0, 0));
    let lines = [
        "error rid=77 code=404 msg=no queue 'q' in vhost '/'",
        "ok rid=5",
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn a_subscription_that_the_server_ends_is_cancelled() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.deliver(token, 1);
    let reason = SubscriptionEnd::QueueDeleted;
    peer.event(Event::SubscriptionEnded { token, reason });
    let line = "cancelled sub=1 code=404 msg=the queue was deleted";
    assert_eq!(peer.lines(), [line]);
    // Acknowledgements may cross it.
    peer.say(&Ack {
        tag: 1,
        multiple: false,
    });
    peer.say(&Credit { sub: 1, credit: 5 });
    assert_eq!(peer.bytes(), b"");
    peer.requests();
    peer.subscribe_q();
}

#[test]
fn a_subscription_that_holds_a_message_too_long_is_cancelled_and_holds_nothing() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.deliver(token, 2);
    let reason = SubscriptionEnd::AckTimedOut { timeout_ms: 900 };
    peer.event(Event::SubscriptionEnded { token, reason });
    let msg = "a delivery was not acknowledged for 900 ms; all that the subscription held were \
               requeued";
    assert_eq!(
        peer.lines(),
        [format!("cancelled sub=1 code=406 msg={msg}")]
    );
    // They may be somebody else's by now.
    peer.say(&Ack {
        tag: 2,
        multiple: true,
    });
    assert_eq!(peer.lines(), ["error code=406 msg=unknown delivery tag 2"]);
}

#[test]
fn who_unsubscribes_hears_of_no_other_end() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    let wait = unsubscribing(&mut peer, token);
    let reason = SubscriptionEnd::QueueDeleted;
    peer.event(Event::SubscriptionEnded { token, reason });
    assert_eq!(peer.bytes(), b"");
    peer.admin(wait, declared("q", 0, 0));
    assert_eq!(peer.lines(), ["ok rid=5"]);
}
