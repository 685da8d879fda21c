//! `Consume`, deliveries, and how subscriptions end.

use tanda_engine::{
    Event, KeyKind, MissingThrottleKey, QueueId, Request, SettleQueue, Settlement, SubscribeError,
    SubscriptionEnd, ThrottleSpec,
};
use tanda_wire::fila::consume::{
    CancelConsume, Consume, ConsumeOk, Credit, ThrottleDeclaration, ThrottleLimit,
};
use tanda_wire::fila::delivery::{DeliveryBatch, DeliveryMeta};
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::property_key::{KeyPart, PropertyKey};
use tanda_wire::fila::{Capabilities, ErrorCode, Opcode};

use super::{Peer, config, deliveries, id, token};
use crate::fila::SessionConfig;

const CONSUME: u32 = 3;

fn consume<'a>() -> Consume<'a> {
    Consume {
        queue: "q",
        ..Consume::default()
    }
}

#[test]
fn credit_0_is_unlimited_and_the_consumer_is_named() {
    let mut peer = Peer::open();
    peer.call(CONSUME, &consume());
    let request = peer.request();
    let Request::Subscribe { sub, spec } = &request else {
        panic!("no Subscribe")
    };
    assert_eq!(spec.credit, None);
    peer.event(Event::Subscribed {
        token: sub.token,
        consumer: 12,
    });
    let frame = peer.frame();
    assert_eq!(frame.header.request_id, CONSUME);
    assert_eq!(frame.decode::<ConsumeOk<'_>>().consumer_id, "c12");
    peer.call(
        CONSUME,
        &Credit {
            additional_credit: 0,
        },
    );
    assert!(peer.requests().is_empty());
}

#[test]
fn each_refusal_has_its_code() {
    for (error, code) in [
        (SubscribeError::QueueNotFound, ErrorCode::QueueNotFound),
        (
            SubscribeError::TooMany { max: 4 },
            ErrorCode::InvalidConfigValue,
        ),
        (SubscribeError::TokenInUse, ErrorCode::InternalError),
    ] {
        let mut peer = Peer::open();
        peer.call(CONSUME, &consume());
        let token = token(&peer.request());
        peer.event(Event::SubscribeFailed { token, error });
        peer.refusal(CONSUME, code);
        // The ID is free again.
        peer.call(CONSUME, &consume());
        assert!(matches!(peer.request(), Request::Subscribe { .. }));
    }
}

fn declaration() -> ThrottleDeclaration<'static> {
    let limits = vec![ThrottleLimit {
        max_deliveries: 5,
        window_ms: 1000,
    }];
    let part = |kind: u8, name| KeyPart { kind, name };
    ThrottleDeclaration {
        name: "api",
        limits,
        key: PropertyKey {
            parts: vec![part(0, "tenant"), part(1, ""), part(2, "tier")],
        },
        when_key_missing: 1,
    }
}

fn with(throttle: &ThrottleDeclaration<'static>) -> Consume<'static> {
    Consume {
        throttles: vec![throttle.clone()],
        ..consume()
    }
}

#[test]
fn throttles_are_declared_with_a_consume() {
    let mut peer = Peer::open();
    peer.call(CONSUME, &with(&declaration()));
    let Request::Subscribe { spec, .. } = peer.request() else {
        panic!("not a subscription");
    };
    let part = |kind, name: &str| tanda_engine::KeyPart {
        kind,
        name: name.to_owned(),
    };
    let expected = ThrottleSpec {
        name: "api".to_owned(),
        limits: vec![tanda_engine::ThrottleLimit {
            max_deliveries: 5,
            window_ms: 1000,
        }],
        key: vec![
            part(KeyKind::Header, "tenant"),
            part(KeyKind::FairnessKey, ""),
            part(KeyKind::Attribute, "tier"),
        ],
        missing: MissingThrottleKey::Unthrottled,
    };
    assert_eq!(spec.throttles, [expected]);
}

#[test]
fn a_refused_throttle_fails_the_consume() {
    for (error, code) in [
        (
            SubscribeError::InvalidThrottle {
                name: "api".to_owned(),
                problem: "of no use".to_owned(),
            },
            ErrorCode::InvalidThrottle,
        ),
        (
            SubscribeError::ThrottleConflict {
                name: "api".to_owned(),
            },
            ErrorCode::ThrottleConflict,
        ),
    ] {
        let mut peer = Peer::open();
        peer.call(CONSUME, &with(&declaration()));
        let token = token(&peer.request());
        peer.event(Event::SubscribeFailed { token, error });
        let text = peer.refusal(CONSUME, code);
        assert!(text.contains("api"), "{text}");
    }
}

#[test]
fn a_throttle_of_numbers_that_mean_nothing_is_invalid() {
    let throttle = declaration();
    let mut peer = Peer::open();
    // Numbers that mean nothing do not get as far as the engine.
    for kind in [3, 4, 5, 6] {
        let mut odd = throttle.clone();
        odd.key.parts[1].kind = kind;
        peer.call(CONSUME, &with(&odd));
        peer.refusal(CONSUME, ErrorCode::InvalidThrottle);
    }
    let mut odd = throttle.clone();
    odd.when_key_missing = 2;
    peer.call(CONSUME, &with(&odd));
    peer.refusal(CONSUME, ErrorCode::InvalidThrottle);
    assert!(peer.requests().is_empty());
    let mut cut = super::frame_of(
        4,
        &Consume {
            throttles: vec![throttle],
            ..consume()
        },
    );
    cut.pop();
    cut[3] -= 1;
    peer.expect_invalid(&cut, 4);
}

#[test]
fn a_delivery_says_all_it_knows() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    peer.event(Event::Delivery {
        token,
        batch: deliveries(&[b"one", b"two"]),
    });
    let frame = peer.frame();
    assert_eq!(frame.header, FrameHeader::new(Opcode::Delivery, CONSUME));
    let items: Vec<_> = DeliveryBatch::decode_header(&frame.body)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(items.len(), 2);
    let meta = DeliveryMeta {
        message_id: id(1_500, 1).to_bytes(),
        weight: 3,
        attempt_count: 2,
        redrive_count: 1,
        enqueued_at_ms: 1_500,
        leased_at_ms: 1_000_000,
        lease_expires_at_ms: 1_030_000,
    };
    assert_eq!(items[0].meta, meta);
    assert_eq!(
        items[1].meta,
        DeliveryMeta {
            message_id: id(1_500, 2).to_bytes(),
            ..meta
        }
    );
    assert_eq!((items[0].queue, items[0].fairness_key), ("q", "tenant"));
    assert_eq!(
        (items[0].payload, items[1].payload),
        (&b"one"[..], &b"two"[..])
    );
    assert!(items[0].headers.is_empty());
}

#[test]
fn messages_of_other_doors_come_with_their_properties_as_headers() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    let mut batch = deliveries(&[b"own", b""]);
    // Delivery mode 2, and a header "h" that is true.
    let of_amqp = b"\x02ex\x01k\0\0\0\x0b\x30\0\0\0\0\x04\x01ht\x01\x02\0\0\0\x04body";
    let item = batch.items.last_mut().unwrap();
    item.form = tanda_engine::Form::Amqp;
    item.chunk = 1;
    item.start = 0;
    item.len = u32::try_from(of_amqp.len()).unwrap();
    batch.chunks.push(bytes::Bytes::from_static(of_amqp));
    peer.event(Event::Delivery { token, batch });
    let frame = peer.frame();
    let items = DeliveryBatch::decode_header(&frame.body).unwrap();
    let items: Vec<_> = items.map(Result::unwrap).collect();
    assert_eq!(
        (items[0].payload, items[1].payload),
        (&b"own"[..], &b"body"[..])
    );
    let headers: Vec<_> = items[1].headers.iter().collect();
    assert_eq!(headers, [("amqp.delivery_mode", "2"), ("h", "true")]);
}

#[test]
fn a_large_batch_goes_in_several_frames() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    let payload = vec![b'x'; 300 << 10];
    let batch = deliveries(&[&payload[..]; 8]);
    peer.event(Event::Delivery { token, batch });
    let frames = peer.frames();
    assert_eq!(frames.len(), 3);
    let mut ids = Vec::new();
    for frame in &frames {
        assert!(frame.body.len() <= 1 << 20);
        let items = DeliveryBatch::decode_header(&frame.body).unwrap();
        ids.extend(items.map(|item| item.unwrap().meta.message_id));
    }
    let expected: Vec<_> = (1..=8).map(|tail| id(1_500, tail).to_bytes()).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_message_larger_than_a_frame_goes_in_parts() {
    let limits = SessionConfig {
        max_frame_size: 2048,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let token = peer.subscribe(CONSUME);
    let large = vec![b'x'; 10_000];
    let batch = deliveries(&[b"small", &large, b"small", b"small"]);
    peer.event(Event::Delivery { token, batch });
    let counts: Vec<_> = peer
        .frames()
        .iter()
        .map(|frame| {
            DeliveryBatch::decode_header(&frame.body)
                .unwrap()
                .item_count()
        })
        .collect();
    assert_eq!(counts, [1, 1, 2]);
}

#[test]
fn messages_on_their_way_when_it_was_cancelled_go_back() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    peer.call(CONSUME, &CancelConsume {});
    let Request::Unsubscribe { sub, .. } = peer.request() else {
        panic!("no Unsubscribe")
    };
    assert_eq!(sub.token, token);
    // The same ID subscribes again before the engine heard of the end.
    let again = peer.subscribe(CONSUME);
    assert_ne!(token, again);
    let mut batch = deliveries(&[b"late"]);
    batch.consumer = 7;
    batch.items[0].deliveries = 2;
    batch.items[0].redrives = 1;
    let budget = batch.budget_bytes();
    peer.event(Event::Delivery { token, batch });
    assert!(peer.frames().is_empty());
    let requests = peer.requests();
    let [
        Request::Settle { reply, batch },
        Request::Drained { bytes, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(*bytes, budget);
    let unsent = Settlement::Unsent {
        consumer: 7,
        deliveries: 2,
        redrives: 1,
    };
    assert_eq!(batch.items[0].settlement, unsent);
    assert_eq!(batch.items[0].queue, SettleQueue::Id(QueueId(9)));
    assert_eq!(batch.items[0].id, id(1_500, 1));
    peer.event(Event::Settled {
        token: reply.token,
        results: vec![Ok(tanda_engine::Millis(0))],
    });
    assert!(peer.frames().is_empty());
    peer.event(Event::Delivery {
        token: again,
        batch: deliveries(&[b"new"]),
    });
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::Delivery, CONSUME)
    );
}

#[test]
fn messages_whose_lease_is_about_to_end_are_left_to_it() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    peer.call(CONSUME, &CancelConsume {});
    assert_eq!(peer.requests().len(), 1);
    peer.pass_ms(29_000);
    peer.frames();
    let batch = deliveries(&[b"late"]);
    peer.event(Event::Delivery { token, batch });
    assert!(peer.frames().is_empty());
    peer.pass_ms(20);
    let requests = peer.requests();
    assert!(
        matches!(requests[..], [Request::Drained { .. }]),
        "{requests:?}"
    );
}

#[test]
fn a_consume_cancelled_before_its_answer_still_gets_it() {
    let mut peer = Peer::open();
    peer.call(CONSUME, &consume());
    peer.call(CONSUME, &CancelConsume {});
    peer.call(
        CONSUME,
        &Credit {
            additional_credit: 9,
        },
    );
    let requests = peer.requests();
    let [
        Request::Subscribe { sub, .. },
        Request::Unsubscribe {
            sub: ended,
            held: tanda_engine::Held::Requeue,
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(sub, ended);
    peer.event(Event::Subscribed {
        token: sub.token,
        consumer: 1,
    });
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::ConsumeOk, CONSUME)
    );
    peer.event(Event::Delivery {
        token: sub.token,
        batch: deliveries(&[b"late"]),
    });
    assert!(peer.frames().is_empty());
}

#[test]
fn a_deleted_queue_ends_its_subscriptions() {
    let mut peer = Peer::open();
    let token = peer.subscribe(CONSUME);
    let reason = SubscriptionEnd::QueueDeleted;
    peer.event(Event::SubscriptionEnded { token, reason });
    peer.refusal(CONSUME, ErrorCode::QueueNotFound);
    peer.call(CONSUME, &CancelConsume {});
    assert!(peer.requests().is_empty());
    peer.event(Event::SubscriptionEnded { token, reason });
    assert!(peer.frames().is_empty());
}

#[test]
fn subscriptions_have_credit_of_their_own() {
    let mut peer = Peer::open();
    let first = peer.subscribe(1);
    let second = peer.subscribe(2);
    peer.call(
        2,
        &Credit {
            additional_credit: u32::MAX,
        },
    );
    peer.call(
        1,
        &Credit {
            additional_credit: 1,
        },
    );
    let grants: Vec<_> = peer
        .requests()
        .iter()
        .map(|request| {
            let Request::Grant { sub, credit } = request else {
                panic!("{request:?}")
            };
            (sub.token, *credit)
        })
        .collect();
    assert_eq!(grants, [(second, u32::MAX), (first, 1)]);
}
