//! Properties of FireMQ and AMQP as each other.

use proptest::prelude::*;
use tanda_wire::amqp::{self, PropertyValues, ShortStr};
use tanda_wire::firemq::{Properties, Props, RawMap};
use tanda_wire::mapping::{FireMessage, MapError, write_amqp_properties, write_fire_props};

use crate::PLENTY;

fn fire_bytes(properties: &Properties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

fn to_amqp(message: &FireMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_amqp_properties(&mut out, message, PLENTY).unwrap();
    amqp::Properties::decode(&out).unwrap();
    out
}

fn to_fire(values: &PropertyValues<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    values.encode(&mut raw);
    let mut out = Vec::new();
    write_fire_props(&mut out, &amqp::Properties::decode(&raw).unwrap());
    Props::decode(&out).unwrap();
    out
}

const ALL: Properties<'_> = Properties {
    content_type: "application/json",
    content_encoding: "gzip",
    correlation_id: "c-1",
    reply_to: "answers",
    expiration_ms: 60_000,
    message_id: "m-1",
    timestamp_s: 1_700_000_000,
    kind: "order",
    user_id: "guest",
    app_id: "shop",
    priority: 255,
};

#[test]
fn every_property_has_its_place() {
    let props = fire_bytes(&ALL);
    let raw = to_amqp(&FireMessage {
        persistent: true,
        props: Props::decode(&props).unwrap(),
        headers: RawMap::decode(&[0x81, 0xa1, b'a', 1]).unwrap(),
    });
    let properties = amqp::Properties::decode(&raw).unwrap();
    let values = properties.values();
    let short = ShortStr::clip;
    let expected = PropertyValues {
        content_type: Some(short("application/json")),
        content_encoding: Some(short("gzip")),
        headers: values.headers,
        delivery_mode: Some(2),
        priority: Some(255),
        correlation_id: Some(short("c-1")),
        reply_to: Some(short("answers")),
        expiration: Some(short("60000")),
        message_id: Some(short("m-1")),
        timestamp: Some(1_700_000_000),
        message_type: Some(short("order")),
        user_id: Some(short("guest")),
        app_id: Some(short("shop")),
        cluster_id: None,
    };
    assert_eq!(values, expected);
    let headers = values.headers.unwrap();
    assert_eq!(headers.as_bytes(), b"\x01al\0\0\0\0\0\0\0\x01");
    let back = to_fire(&expected);
    assert_eq!(Props::decode(&back).unwrap().fields(), ALL);
}

#[test]
fn nothing_becomes_nothing() {
    assert_eq!(to_amqp(&FireMessage::default()), [0, 0]);
    assert_eq!(to_fire(&PropertyValues::default()), [0x80]);
}

#[test]
fn what_has_no_place() {
    let short = ShortStr::clip;
    let values = PropertyValues {
        delivery_mode: Some(2),
        priority: Some(0),
        expiration: Some(short("0")),
        timestamp: Some(0),
        reply_to: Some(ShortStr::EMPTY),
        cluster_id: Some(short("x")),
        ..PropertyValues::default()
    };
    assert_eq!(to_fire(&values), [0x80]);
    for expiration in ["", "-1", "+1", "1.5", "1s", "99999999999999999999"] {
        let values = PropertyValues {
            expiration: Some(short(expiration)),
            ..PropertyValues::default()
        };
        assert_eq!(to_fire(&values), [0x80], "{expiration}");
    }
    // Two binary ids stay two ids.
    let id = |bytes| {
        let values = PropertyValues {
            correlation_id: Some(ShortStr::new(bytes).unwrap()),
            ..PropertyValues::default()
        };
        to_fire(&values)
    };
    let first = id(b"\xff\x00");
    let first = Props::decode(&first).unwrap().fields().correlation_id;
    assert_eq!(first, "/wA=");
    assert_ne!(id(b"\xff\x01"), id(b"\xff\x00"));

    // A name that does not fit is left out, not cut.
    let (long, longest) = ("r".repeat(256), "m".repeat(255));
    let props = fire_bytes(&Properties {
        reply_to: &long,
        message_id: &longest,
        ..Properties::default()
    });
    let raw = to_amqp(&FireMessage {
        props: Props::decode(&props).unwrap(),
        ..FireMessage::default()
    });
    let properties = amqp::Properties::decode(&raw).unwrap();
    assert_eq!(properties.reply_to(), None);
    assert_eq!(properties.message_id(), Some(short(&longest)));
}

#[test]
fn limits_hold() {
    let props = fire_bytes(&ALL);
    let message = FireMessage {
        props: Props::decode(&props).unwrap(),
        ..FireMessage::default()
    };
    let whole = to_amqp(&message).len();
    let mut out = b"before".to_vec();
    let refused = write_amqp_properties(&mut out, &message, whole - 1);
    let bytes_max = whole - 1;
    assert_eq!(refused, Err(MapError::TooLarge { bytes_max }));
    assert_eq!(out, b"before");
    write_amqp_properties(&mut out, &message, whole).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn fire_to_amqp_and_back(
        texts in proptest::collection::vec("[a-zü]{0,100}", 8),
        expiration_ms in any::<u64>(),
        timestamp_s in any::<u64>(),
        priority in any::<u8>(),
        persistent in any::<bool>(),
    ) {
        let properties = Properties {
            content_type: &texts[0],
            content_encoding: &texts[1],
            correlation_id: &texts[2],
            reply_to: &texts[3],
            expiration_ms,
            message_id: &texts[4],
            timestamp_s,
            kind: &texts[5],
            user_id: &texts[6],
            app_id: &texts[7],
            priority,
        };
        let props = fire_bytes(&properties);
        let props = Props::decode(&props).unwrap();
        let raw = to_amqp(&FireMessage { persistent, props, ..FireMessage::default() });
        let amqp = amqp::Properties::decode(&raw).unwrap();
        prop_assert_eq!(amqp.delivery_mode(), persistent.then_some(2));
        let mut back = Vec::new();
        write_fire_props(&mut back, &amqp);
        prop_assert_eq!(Props::decode(&back).unwrap().fields(), properties);
    }
}
