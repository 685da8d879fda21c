//! Headers of Fila from and to the others.

use serde_json::json;
use tanda_wire::amqp::{
    self, LongStr, PropertyValues, ShortStr, Table, TableWriter, Value as Amqp,
};
use tanda_wire::fila::Headers;
use tanda_wire::firemq::value::TIMESTAMP_EXT;
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{Properties, Props, RawMap, Value as Fire};
use tanda_wire::mapping::{
    FilaMessage, FireMessage, MapError, fire_text, write_fila_headers_of_amqp,
    write_fila_headers_of_fire,
};

use crate::PLENTY;

fn pairs(bytes: &[u8]) -> Vec<(&str, &str)> {
    let headers = Headers::decode(bytes).unwrap();
    assert_eq!(headers.as_bytes(), bytes);
    headers.iter().collect()
}

fn of_fire(message: &FireMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_fila_headers_of_fire(&mut out, message, PLENTY).unwrap();
    out
}

fn of_amqp(values: &PropertyValues<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    values.encode(&mut raw);
    let mut out = Vec::new();
    let properties = amqp::Properties::decode(&raw).unwrap();
    write_fila_headers_of_amqp(&mut out, &properties, PLENTY).unwrap();
    out
}

#[test]
fn properties_come_first_under_their_names() {
    let mut props = Vec::new();
    Properties {
        content_type: "text/plain",
        content_encoding: "gzip",
        correlation_id: "c-1",
        reply_to: "answers",
        expiration_ms: 60_000,
        message_id: "m-1",
        timestamp_s: 1_700_000_000,
        kind: "order",
        user_id: "guest",
        app_id: "shop",
        priority: 9,
    }
    .encode(&mut props);
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    map.entry("amqp.user_id", &Fire::Str("root"));
    map.finish();
    let fire = of_fire(&FireMessage {
        persistent: true,
        props: Props::decode(&props).unwrap(),
        headers: RawMap::decode(&headers).unwrap(),
    });
    let mut expected = vec![
        ("amqp.content_type", "text/plain"),
        ("amqp.content_encoding", "gzip"),
        ("amqp.delivery_mode", "2"),
        ("amqp.priority", "9"),
        ("amqp.correlation_id", "c-1"),
        ("amqp.reply_to", "answers"),
        ("amqp.expiration", "60000"),
        ("amqp.message_id", "m-1"),
        ("amqp.timestamp", "1700000000"),
        ("amqp.type", "order"),
        ("amqp.user_id", "guest"),
        ("amqp.app_id", "shop"),
        ("amqp.user_id", "root"),
    ];
    let mut found = pairs(&fire);
    expected.sort_by_key(|(name, _)| *name);
    found.sort_by_key(|(name, _)| *name);
    assert_eq!(found, expected);
    assert_eq!(
        Headers::decode(&fire).unwrap().find("amqp.user_id"),
        Some("guest")
    );

    // The same message of AMQP has the same headers.
    let short = ShortStr::clip;
    let mut entries = Vec::new();
    TableWriter::new(&mut entries).value(short("amqp.user_id"), &Amqp::text("root"));
    let amqp = of_amqp(&PropertyValues {
        content_type: Some(short("text/plain")),
        content_encoding: Some(short("gzip")),
        headers: Some(Table::new(&entries).unwrap()),
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: Some(short("c-1")),
        reply_to: Some(short("answers")),
        expiration: Some(short("60000")),
        message_id: Some(short("m-1")),
        timestamp: Some(1_700_000_000),
        message_type: Some(short("order")),
        user_id: Some(short("guest")),
        app_id: Some(short("shop")),
        cluster_id: None,
    });
    let mut found = pairs(&amqp);
    found.sort_by_key(|(name, _)| *name);
    assert_eq!(found, expected);
}

#[test]
fn nothing_becomes_no_headers() {
    assert_eq!(pairs(&of_fire(&FireMessage::default())), []);
    assert_eq!(pairs(&of_amqp(&PropertyValues::default())), []);
}

#[test]
fn scalars_as_text() {
    let timestamp = Fire::Ext {
        kind: TIMESTAMP_EXT,
        data: &[0, 0, 0, 5],
    };
    let cases = [
        (Fire::Nil, "null"),
        (Fire::Bool(true), "true"),
        (Fire::Uint(u64::MAX), "18446744073709551615"),
        (Fire::Int(-7), "-7"),
        (Fire::F32(0.1), "0.1"),
        (Fire::F64(2.0), "2.0"),
        (Fire::F64(1e300), "1e300"),
        (Fire::F64(f64::NAN), "NaN"),
        (Fire::Str("a \"b\""), "a \"b\""),
        (Fire::Bin(b"text"), "text"),
        (Fire::Bin(&[0xff, 0xfe]), "//4="),
        (timestamp, "5"),
    ];
    for (value, text) in cases {
        let mut headers = Vec::new();
        let mut map = MapWriter::begin(&mut headers);
        map.entry("h", &value);
        map.finish();
        let headers = of_fire(&FireMessage {
            headers: RawMap::decode(&headers).unwrap(),
            ..FireMessage::default()
        });
        assert_eq!(pairs(&headers), [("h", text)], "{value:?}");
        assert_eq!(fire_text(&value, 0).unwrap(), text);
    }
    let decimal = Amqp::Decimal {
        scale: 2,
        value: -1234,
    };
    let cases = [
        (Amqp::Void, "null"),
        (Amqp::I8(-1), "-1"),
        (Amqp::U32(7), "7"),
        (decimal, "-12.34"),
        (Amqp::Timestamp(9), "9"),
        (Amqp::text("x"), "x"),
        (Amqp::LongString(LongStr::new(b"\xff").unwrap()), "/w=="),
    ];
    for (value, text) in cases {
        let mut entries = Vec::new();
        TableWriter::new(&mut entries).value(ShortStr::clip("h"), &value);
        let headers = of_amqp(&PropertyValues {
            headers: Some(Table::new(&entries).unwrap()),
            ..PropertyValues::default()
        });
        assert_eq!(pairs(&headers), [("h", text)], "{value:?}");
    }
}

#[test]
fn arrays_and_maps_as_json() {
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    let mut items = ArrayWriter::begin(map.key("list"));
    for value in [
        Fire::Nil,
        Fire::Bool(false),
        Fire::Uint(u64::MAX),
        Fire::F64(1.5),
        Fire::F64(f64::NEG_INFINITY),
        Fire::Str("\"\\\n\u{1}\u{7f}ü"),
        Fire::Bin(&[0xff]),
    ] {
        items.item(&value);
    }
    items.finish();
    let mut inner = MapWriter::begin(map.key("map"));
    inner.entry("b", &Fire::Uint(1));
    inner.entry("a", &Fire::Uint(2));
    inner.entry("b", &Fire::Uint(3));
    inner.finish();
    map.finish();
    let fire = of_fire(&FireMessage {
        headers: RawMap::decode(&headers).unwrap(),
        ..FireMessage::default()
    });
    let list = json!([
        null,
        false,
        u64::MAX,
        1.5,
        null,
        "\"\\\n\u{1}\u{7f}ü",
        "/w=="
    ]);
    let found = pairs(&fire);
    assert_eq!(found[0].0, "list");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(found[0].1).unwrap(),
        list
    );
    assert_eq!(found[1], ("map", r#"{"a":2,"b":3}"#));

    let mut entries = Vec::new();
    TableWriter::new(&mut entries).array(ShortStr::clip("x-death"), |items| {
        items.table(|entry| {
            entry.value(ShortStr::clip("count"), &Amqp::I64(1));
            entry.value(ShortStr::clip("reason"), &Amqp::text("expired"));
            entry.value(ShortStr::clip("count"), &Amqp::I64(2));
        });
        items.value(&Amqp::Decimal { scale: 1, value: 5 });
    });
    let amqp = of_amqp(&PropertyValues {
        headers: Some(Table::new(&entries).unwrap()),
        ..PropertyValues::default()
    });
    let json = r#"[{"count":1,"reason":"expired"},0.5]"#;
    assert_eq!(pairs(&amqp), [("x-death", json)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let long = "x".repeat(65_536);
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    map.entry("h", &Fire::Str(&long));
    map.finish();
    let message = FireMessage {
        headers: RawMap::decode(&headers).unwrap(),
        ..FireMessage::default()
    };
    let mut out = b"before".to_vec();
    let refused = write_fila_headers_of_fire(&mut out, &message, PLENTY);
    assert!(matches!(refused, Err(MapError::Fila(_))), "{refused:?}");
    let refused = write_fila_headers_of_fire(&mut out, &message, 1000);
    assert_eq!(refused, Err(MapError::TooLarge { bytes_max: 1000 }));
    assert_eq!(out, b"before");

    // 40 numbers of one byte here are more than 100 letters of JSON.
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    let mut items = ArrayWriter::begin(map.key("h"));
    for _ in 0..40 {
        items.item(&Fire::Nil);
    }
    items.finish();
    map.finish();
    let message = FireMessage {
        headers: RawMap::decode(&headers).unwrap(),
        ..FireMessage::default()
    };
    let refused = write_fila_headers_of_fire(&mut out, &message, 100);
    assert_eq!(refused, Err(MapError::TooLarge { bytes_max: 100 }));
    let list = message.headers.find("h").unwrap();
    assert!(fire_text(&list, 100).is_err());
    assert_eq!(fire_text(&list, 201).unwrap().len(), 201);
}

#[test]
fn from_fila_headers_stay_texts() {
    let mut headers = Vec::new();
    let long = "n".repeat(256);
    let all = [
        ("trace", "abc"),
        ("n", "1"),
        ("trace", "later"),
        (&long, ""),
    ];
    Headers::encode_pairs(&mut headers, all).unwrap();
    let message = FilaMessage {
        message_id: *b"\x01\x8f\x00\x00\xab\xcd\x70\x00\x80\x00\x00\x00\x00\x00\x00\x01",
        enqueued_at_ms: 1_700_000_000_999,
        headers: Headers::decode(&headers).unwrap(),
    };
    let uuid = "018f0000-abcd-7000-8000-000000000001";

    let mut raw = Vec::new();
    message.write_amqp_properties(&mut raw, PLENTY).unwrap();
    let values = amqp::Properties::decode(&raw).unwrap().values();
    let mut entries = Vec::new();
    TableWriter::new(&mut entries)
        .value(ShortStr::clip("trace"), &Amqp::text("abc"))
        .value(ShortStr::clip("n"), &Amqp::text("1"));
    let expected = PropertyValues {
        headers: Some(Table::new(&entries).unwrap()),
        delivery_mode: Some(2),
        message_id: Some(ShortStr::clip(uuid)),
        timestamp: Some(1_700_000_000),
        ..PropertyValues::default()
    };
    assert_eq!(values, expected);

    let mut props = Vec::new();
    message.write_fire_props(&mut props);
    let fields = Props::decode(&props).unwrap().fields();
    assert_eq!(
        (fields.message_id, fields.timestamp_s),
        (uuid, 1_700_000_000)
    );
    let mut map = Vec::new();
    message.write_fire_headers(&mut map, PLENTY).unwrap();
    let map = RawMap::decode(&map).unwrap();
    assert_eq!(map.len(), 3);
    assert_eq!(map.find("trace"), Some(Fire::Str("abc")));
    assert_eq!(map.find(&long), Some(Fire::Str("")));

    let mut out = b"before".to_vec();
    let refused = [
        message.write_fire_headers(&mut out, 100),
        message.write_amqp_properties(&mut out, 100),
    ];
    assert_eq!(
        refused,
        [const { Err(MapError::TooLarge { bytes_max: 100 }) }; 2]
    );
    assert_eq!(out, b"before");
}
