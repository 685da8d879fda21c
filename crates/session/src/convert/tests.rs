//! One message by every door, as every door delivers it.

use bytes::Bytes;
use tanda_engine::{DeliveryBatch, DeliveryItem, Form, MessageId};
use tanda_wire::amaquet::{Payload, json::Writer};
use tanda_wire::amqp::{Properties, PropertyValues, ShortStr, Table, TableWriter, Value as Amqp};
use tanda_wire::fila::headers::Headers;
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{self, Props, RawMap, Value};
use tanda_wire::mapping::FireMessage;

use super::{FireScratch, Message, Scratch, Unfit, to_amaquet, to_amqp, to_fila, to_fire};
use crate::envelope::Envelope;

const FRAME_MAX: usize = 4_096;

fn delivered(form: Form, content: &[u8]) -> (DeliveryBatch, DeliveryItem) {
    let item = DeliveryItem {
        id: MessageId(1_500 << 80 | 1),
        form,
        at: DeliveryItem::RESOLVED,
        len: u32::try_from(content.len()).unwrap(),
        deliveries: 1,
        attempts: 1,
        ..DeliveryItem::default()
    };
    let batch = DeliveryBatch {
        queue: "orders".into(),
        items: vec![item],
        chunks: vec![Bytes::copy_from_slice(content)],
        ..DeliveryBatch::default()
    };
    (batch, item)
}

fn envelope(properties: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Envelope::write_names(&mut out, b"ex", b"key");
    for part in [properties, b"body"] {
        out.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// Of Fila: two headers of one name, of which the first counts elsewhere.
fn by_fila() -> Vec<u8> {
    let mut out = Vec::new();
    let pairs = [("tenant", "a"), ("tenant", "b"), ("n", "7")];
    Headers::encode_pairs(&mut out, pairs.iter().map(|(name, value)| (name, value))).unwrap();
    out.extend_from_slice(b"\0\0\0\x04body");
    out
}

/// Of AMQP: every property, and headers of every kind.
fn by_amqp() -> Vec<u8> {
    let text = ShortStr::clip;
    let mut table = Vec::new();
    let mut writer = TableWriter::new(&mut table);
    for (key, value) in [
        ("void", Amqp::Void),
        ("bool", Amqp::Bool(true)),
        ("i8", Amqp::I8(-8)),
        ("u16", Amqp::U16(16)),
        ("i32", Amqp::I32(-32)),
        ("i64", Amqp::I64(64)),
        ("f32", Amqp::F32(1.5)),
        ("f64", Amqp::F64(2.25)),
        (
            "decimal",
            Amqp::Decimal {
                scale: 2,
                value: 1_234,
            },
        ),
        ("text", Amqp::text("t\u{e9}xt")),
        ("time", Amqp::Timestamp(1_700_000_000)),
    ] {
        writer.value(text(key), &value);
    }
    writer.array(text("array"), |array| {
        array.value(&Amqp::I32(1));
        array.value(&Amqp::text("two"));
    });
    writer.table(text("table"), |table| {
        table.value(text("k"), &Amqp::Void);
    });
    let mut properties = Vec::new();
    PropertyValues {
        content_type: Some(text("text/plain")),
        content_encoding: Some(text("utf-8")),
        headers: Some(Table::new(&table).unwrap()),
        delivery_mode: Some(2),
        priority: Some(4),
        correlation_id: Some(text("c-1")),
        reply_to: Some(text("answers")),
        expiration: Some(text("60000")),
        message_id: Some(text("m-1")),
        timestamp: Some(1_600_000_000),
        message_type: Some(text("order")),
        user_id: Some(text("guest")),
        app_id: Some(text("shop")),
        cluster_id: Some(text("lost")),
    }
    .encode(&mut properties);
    envelope(&properties)
}

/// Of FireMQ: the same, and what only MessagePack has.
fn by_fire(persistent: bool) -> Vec<u8> {
    let mut props = Vec::new();
    firemq::Properties {
        content_type: "text/plain",
        content_encoding: "utf-8",
        correlation_id: "c-1",
        reply_to: "answers",
        expiration_ms: 60_000,
        message_id: "m-1",
        timestamp_s: 1_600_000_000,
        kind: "order",
        user_id: "guest",
        app_id: "shop",
        priority: 4,
    }
    .encode(&mut props);
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    for (key, value) in [
        ("nil", Value::Nil),
        ("bool", Value::Bool(false)),
        ("uint", Value::Uint(7)),
        ("huge", Value::Uint(u64::MAX)),
        ("int", Value::Int(-7)),
        ("f32", Value::F32(1.5)),
        ("f64", Value::F64(2.25)),
        ("str", Value::Str("t\u{e9}xt")),
        ("bin", Value::Bin(b"\x00\xff")),
        (
            "ext",
            Value::Ext {
                kind: 5,
                data: b"x",
            },
        ),
        (
            "time",
            Value::Ext {
                kind: -1,
                data: &1_700_000_000_u32.to_be_bytes(),
            },
        ),
    ] {
        map.entry(key, &value);
    }
    let mut array = ArrayWriter::begin(map.key("array"));
    array.item(&Value::Uint(1));
    array.item(&Value::Str("two"));
    array.finish();
    let mut nested = MapWriter::begin(map.key("map"));
    nested.entry("k", &Value::Nil);
    nested.finish();
    map.finish();
    let mut properties = Vec::new();
    FireMessage {
        persistent,
        props: Props::decode(&props).unwrap(),
        headers: RawMap::decode(&headers).unwrap(),
    }
    .encode(&mut properties);
    envelope(&properties)
}

/// What AMQP delivers: address, properties, headers, body.
fn at_amqp(form: Form, content: &[u8]) -> Vec<String> {
    let (batch, item) = delivered(form, content);
    let mut scratch = Scratch::default();
    let message = if form == Form::Amqp {
        // Its session passes them on as they are.
        let envelope = Envelope::read(batch.content(&item)).unwrap();
        Message {
            names: envelope.names,
            properties: envelope.properties,
            body: envelope.body,
        }
    } else {
        to_amqp(&batch, &item, FRAME_MAX, &mut scratch).unwrap()
    };
    let properties = Properties::decode(message.properties).unwrap();
    let values = properties.values();
    let mut lines = vec![format!("{}", message.names.escape_ascii())];
    let text = |value: Option<ShortStr<'_>>| value.map(|value| value.to_string());
    let all = [
        ("content_type", text(values.content_type)),
        ("content_encoding", text(values.content_encoding)),
        (
            "delivery_mode",
            values.delivery_mode.map(|it| it.to_string()),
        ),
        ("priority", values.priority.map(|it| it.to_string())),
        ("correlation_id", text(values.correlation_id)),
        ("reply_to", text(values.reply_to)),
        ("expiration", text(values.expiration)),
        ("message_id", text(values.message_id)),
        ("timestamp", values.timestamp.map(|it| it.to_string())),
        ("type", text(values.message_type)),
        ("user_id", text(values.user_id)),
        ("app_id", text(values.app_id)),
        ("cluster_id", text(values.cluster_id)),
    ];
    let all = all.into_iter();
    lines.extend(all.filter_map(|(name, value)| Some(format!("{name}={}", value?))));
    for entry in values.headers.unwrap_or_default() {
        let entry = entry.unwrap();
        let raw = entry.raw_value.escape_ascii();
        lines.push(format!("{}: {raw}", entry.key));
    }
    lines.push(format!("body={}", message.body.escape_ascii()));
    lines
}

fn name<'a>(key: &Value<'a>) -> &'a str {
    let Value::Str(text) = key else {
        panic!("{key:?}")
    };
    text
}

/// What FireMQ delivers.
fn at_fire(form: Form, content: &[u8]) -> Vec<String> {
    let (batch, item) = delivered(form, content);
    let mut scratch = FireScratch::default();
    let message = to_fire(&batch, &item, FRAME_MAX, &mut scratch).unwrap();
    let mut lines = vec![format!("{} {}", message.exchange, message.key)];
    // What is written is well-formed.
    let props = Props::decode(message.props.as_bytes()).unwrap();
    let headers = RawMap::decode(message.headers.as_bytes()).unwrap();
    for (key, value) in RawMap::decode(props.as_bytes()).unwrap() {
        lines.push(format!("{}={value:?}", name(&key)));
    }
    for (key, value) in headers {
        let value = if let Value::Array(items) = value {
            format!("{:?}", items.iter().collect::<Vec<_>>())
        } else if let Value::Map(entries) = value {
            format!("{:?}", entries.iter().collect::<Vec<_>>())
        } else {
            format!("{value:?}")
        };
        lines.push(format!("{}: {value}", name(&key)));
    }
    lines.push(format!("body={}", message.body.escape_ascii()));
    lines
}

/// What Fila delivers.
fn at_fila(form: Form, content: &[u8]) -> Vec<String> {
    let (batch, item) = delivered(form, content);
    let content = to_fila(&batch, &item);
    let headers = Headers::decode(&content).unwrap();
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let body = content.get(headers.as_bytes().len() + 4..).unwrap();
    lines.push(format!("body={}", body.escape_ascii()));
    lines
}

/// What Amaquet delivers.
fn at_amaquet(form: Form, content: &[u8]) -> Vec<String> {
    let payload = to_amaquet::payload(form, content);
    let headers = to_amaquet::headers(form, content, &payload);
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut shown = Vec::new();
    payload.write(&mut Writer::new(&mut shown));
    lines.push(format!("payload={}", shown.escape_ascii()));
    lines
}

/// What a door delivers of a message.
type Door = fn(Form, &[u8]) -> Vec<String>;

#[test]
fn every_pair_of_doors_converts_as_written_down() {
    let doors: [(&str, Door); 4] = [
        ("Fila", at_fila),
        ("AMQP", at_amqp),
        ("FireMQ", at_fire),
        ("Amaquet", at_amaquet),
    ];
    let mut actual = String::new();
    for (from, form, content) in [
        ("Fila", Form::Fila, by_fila()),
        ("AMQP", Form::Amqp, by_amqp()),
        ("FireMQ, persistent", Form::Fire, by_fire(true)),
        ("FireMQ, transient", Form::Fire, by_fire(false)),
    ] {
        for (to, door) in doors {
            actual.push_str(&format!("== {from} to {to}\n"));
            for line in door(form, &content) {
                actual.push_str(&line);
                actual.push('\n');
            }
        }
    }
    let expected = include_str!("tests.txt");
    assert!(
        actual == expected,
        "not what tests.txt says, but:\n{actual}"
    );
}

#[test]
fn what_is_cut_short_is_a_message_without_anything() {
    for (form, whole) in [
        (Form::Fila, by_fila()),
        (Form::Amqp, by_amqp()),
        (Form::Fire, by_fire(true)),
    ] {
        for len in 0..whole.len() {
            let cut = whole.get(..len).unwrap();
            let (batch, item) = delivered(form, cut);
            let mut scratch = FireScratch::default();
            let message = to_fire(&batch, &item, FRAME_MAX, &mut scratch).unwrap();
            assert_eq!(message.body, b"");
            let fila = to_fila(&batch, &item);
            assert!(form == Form::Fila || fila.ends_with(&[0; 4]), "{len}");
            let payload = to_amaquet::payload(form, cut);
            assert_eq!(payload, Payload::Bytes(b"".into()), "{len}");
        }
    }
}

#[test]
fn headers_that_do_not_fit_the_frame_make_a_message_unfit() {
    for (form, content) in [(Form::Fila, by_fila()), (Form::Amqp, by_amqp())] {
        let (batch, item) = delivered(form, &content);
        let mut scratch = FireScratch::default();
        let refused = to_fire(&batch, &item, 10, &mut scratch);
        assert_eq!(refused.err(), Some(Unfit), "{form:?}");
    }
    let all = [
        (Form::Fila, by_fila()),
        (Form::Fire, by_fire(true)),
        (Form::Amqp, by_amqp()),
    ];
    for (form, content) in all {
        let (batch, item) = delivered(form, &content);
        let mut scratch = Scratch::default();
        let refused = to_amqp(&batch, &item, 10, &mut scratch);
        assert_eq!(refused.err(), Some(Unfit), "{form:?}");
    }
}

/// A message of AMQP or FireMQ that says this of its body.
fn said(form: Form, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut properties = Vec::new();
    if form == Form::Amqp {
        PropertyValues {
            content_type: (!content_type.is_empty()).then(|| ShortStr::clip(content_type)),
            ..PropertyValues::default()
        }
        .encode(&mut properties);
    } else {
        let mut props = Vec::new();
        firemq::Properties {
            content_type,
            ..firemq::Properties::default()
        }
        .encode(&mut props);
        FireMessage {
            persistent: true,
            props: Props::decode(&props).unwrap(),
            headers: RawMap::default(),
        }
        .encode(&mut properties);
    }
    let mut out = Vec::new();
    Envelope::write_names(&mut out, b"", b"q");
    for part in [&properties, body] {
        out.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

#[test]
fn amaquet_shows_a_body_as_its_content_type_says_if_it_is_that() {
    let json = |text: &'static str| Payload::Json(text.into());
    let text = |text: &'static str| Payload::Text(text.into());
    let bytes = |bytes: &'static [u8]| Payload::Bytes(bytes.into());
    for (content_type, body, expected) in [
        ("application/json", &b"{\"a\":1}"[..], json("{\"a\":1}")),
        ("Application/JSON; charset=utf-8", b" [1] ", json("[1]")),
        ("application/problem+json", b"null", json("null")),
        ("application/json", b"{", bytes(b"{")),
        ("application/json", b"", bytes(b"")),
        ("application/json", b"\"\xff\"", bytes(b"\"\xff\"")),
        ("application/jsonl", b"1", bytes(b"1")),
        ("text/plain", "\u{e9}".as_bytes(), text("\u{e9}")),
        ("TEXT/html;q=1", b"", text("")),
        ("text/plain", b"\xff", bytes(b"\xff")),
        ("text", b"a", bytes(b"a")),
        ("application/octet-stream", b"7", bytes(b"7")),
        ("\u{fc}\u{fc}\u{fc}\u{fc}", b"a", bytes(b"a")),
        ("", b"1", bytes(b"1")),
    ] {
        for form in [Form::Amqp, Form::Fire] {
            let content = said(form, content_type, body);
            let found = to_amaquet::payload(form, &content);
            assert_eq!(found, expected, "{form:?} {content_type}");
            // Only what the payload's type tells is not told again.
            let headers = to_amaquet::headers(form, &content, &found);
            let told = headers.iter().find(|it| it.0 == "amqp.content_type");
            let is_own = to_amaquet::content_type(&found) == content_type;
            let expected = (!is_own && !content_type.is_empty()).then_some(content_type);
            assert_eq!(told.map(|it| &*it.1), expected, "{form:?} {content_type}");
        }
    }
}
