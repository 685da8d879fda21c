//! Dead letters as whole bytes: what is written, and that all else stays as it came.

use tanda_wire::amqp::{LongStr, Properties, Property, ShortStr, Table, TableWriter, Value};
use tanda_wire::firemq::writer::{ArrayWriter, MapWriter};
use tanda_wire::firemq::{RawMap, Value as FireValue};
use tanda_wire::mapping::FireMessage;

use super::*;

fn death<'a>(queue: &'a str, reason: Reason, routing_key: Option<&'a str>) -> Death<'a> {
    Death {
        reason,
        at: Millis(1_700_000_123_456),
        queue,
        exchange: "dlx",
        routing_key,
    }
}

fn envelope(exchange: &str, key: &str, properties: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_name(&mut bytes, exchange);
    put_name(&mut bytes, key);
    crate::record::put_long(&mut bytes, properties);
    crate::record::put_long(&mut bytes, payload);
    bytes
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "others are shown as they are"
)]
/// A value as text: tables `{k: v}`, arrays `[v]`, times `@s`.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
        Value::I64(number) => format!("{number}"),
        Value::I16(number) => format!("{number}s"),
        Value::Timestamp(seconds) => format!("@{seconds}"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|it| shown(&it.unwrap().value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => format!("{{{}}}", entries(*table).join(", ")),
        other => format!("{other:?}"),
    }
}

fn entries(table: Table<'_>) -> Vec<String> {
    let entries = table.iter().map(|it| {
        let it = it.unwrap();
        format!("{}: {}", it.key, shown(&it.value))
    });
    entries.collect()
}

fn amqp_content() -> Vec<u8> {
    let mut headers = Vec::new();
    let mut writer = TableWriter::new(&mut headers);
    writer.value(ShortStr::clip("a"), &Value::I16(7));
    writer.array(ShortStr::clip("CC"), |keys| {
        keys.value(&Value::text("copy"));
    });
    // What a client says of deaths counts for nothing.
    writer.value(ShortStr::clip("x-death"), &Value::text("nonsense"));
    writer.value(ShortStr::clip("x-first-death-queue"), &Value::text("lie"));
    writer.value(ShortStr::clip("b"), &Value::text("é"));
    let set = [
        Property::ContentType(ShortStr::clip("text/plain")),
        Property::Headers(Table::new(&headers).unwrap()),
        Property::DeliveryMode(2),
        Property::Expiration(ShortStr::clip("60000")),
        Property::CorrelationId(ShortStr::clip("c1")),
    ];
    let mut properties = Vec::new();
    Properties::EMPTY.edited(&mut properties, &set, &[]);
    envelope("orders", "eu.new", &properties, b"payload")
}

fn stored(letter: &DeadLetter) -> Vec<u8> {
    [&letter.content, DeadLetter::ATTRIBUTES].concat()
}

#[test]
fn a_message_of_amqp_keeps_all_else_and_gets_its_history() {
    let content = amqp_content();
    let content = Content::new(Form::Amqp, &content);
    let letter = DeadLetter::new(content, MessageId(1), &death("q", Reason::Expired, None));
    assert_eq!(letter.keys, ["eu.new", "copy"]);
    let new = Content::new(letter.form, &letter.content);
    assert_eq!((new.exchange(), new.routing_key()), ("dlx", "eu.new"));
    assert_eq!(new.payload(), Ok(&b"payload"[..]));
    let properties = Properties::decode(new.properties()).unwrap();
    assert_eq!(properties.expiration(), None);
    assert_eq!(properties.correlation_id(), Some(ShortStr::clip("c1")));
    assert_eq!(
        properties.content_type(),
        Some(ShortStr::clip("text/plain"))
    );
    assert_eq!(properties.delivery_mode(), Some(2));
    let expected = [
        "a: 7s",
        "CC: [copy]",
        "b: é",
        "x-death: [{original-expiration: 60000, count: 1, reason: expired, queue: q, \
         time: @1700000123, exchange: orders, routing-keys: [eu.new, copy]}]",
        "x-first-death-exchange: orders",
        "x-first-death-queue: q",
        "x-first-death-reason: expired",
        "x-last-death-exchange: orders",
        "x-last-death-queue: q",
        "x-last-death-reason: expired",
    ];
    let shown = entries(properties.headers().unwrap());
    assert_eq!(shown, expected);
}

#[test]
fn deaths_over_several_hops_are_counted_and_the_first_stays() {
    let first = amqp_content();
    let content = Content::new(Form::Amqp, &first);
    let one = DeadLetter::new(
        content,
        MessageId(1),
        &death("q", Reason::Expired, Some("k2")),
    );
    assert_eq!(one.keys, ["k2"]);
    assert!(one.is_cycle(Reason::Expired, "q"));
    assert!(!one.is_cycle(Reason::Rejected, "q"));
    let bytes = stored(&one);
    let content = Content::new(Form::Amqp, &bytes);
    assert_eq!(content.without_attributes(), one.content);
    let two = DeadLetter::new(content, MessageId(2), &death("r", Reason::Rejected, None));
    assert_eq!(two.keys, ["k2"]);
    assert!(!two.is_cycle(Reason::Expired, "q"), "somebody rejected it");
    let bytes = stored(&two);
    let content = Content::new(Form::Amqp, &bytes);
    let three = DeadLetter::new(content, MessageId(3), &death("q", Reason::Expired, None));
    let properties = Content::new(Form::Amqp, &three.content).properties();
    let headers = Properties::decode(properties).unwrap().headers().unwrap();
    let expected = [
        "a: 7s",
        "b: é",
        "x-first-death-exchange: orders",
        "x-first-death-queue: q",
        "x-first-death-reason: expired",
        "x-death: [{original-expiration: 60000, count: 2, reason: expired, queue: q, \
         time: @1700000123, exchange: orders, routing-keys: [eu.new, copy]}, {count: 1, \
         reason: rejected, queue: r, time: @1700000123, exchange: dlx, routing-keys: [k2]}]",
        "x-last-death-exchange: dlx",
        "x-last-death-queue: q",
        "x-last-death-reason: expired",
    ];
    assert_eq!(entries(headers), expected);
}

#[test]
fn a_message_without_properties_gets_headers() {
    let content = envelope("", "q", &[0, 0], b"");
    let content = Content::new(Form::Amqp, &content);
    let letter = DeadLetter::new(content, MessageId(1), &death("q", Reason::MaxLength, None));
    let new = Content::new(letter.form, &letter.content);
    let properties = Properties::decode(new.properties()).unwrap();
    let shown = entries(properties.headers().unwrap());
    assert_eq!(
        shown.first().map(String::as_str),
        Some(
            "x-death: [{count: 1, reason: maxlen, queue: q, time: @1700000123, exchange: , \
             routing-keys: [q]}]"
        )
    );
    assert_eq!(shown.len(), 7);
}

#[test]
fn bytes_that_nobody_can_read_do_no_harm() {
    // Headers whose second entry is cut.
    let mut headers = Vec::new();
    TableWriter::new(&mut headers).value(ShortStr::clip("a"), &Value::text("1"));
    headers.extend_from_slice(&[5, b'b']);
    let mut properties = vec![0x20, 0];
    crate::record::put_long(&mut properties, &headers);
    for properties in [properties, vec![0xff, 0xff, 1], vec![]] {
        let content = envelope("e", "k", &properties, b"p");
        for form in [Form::Amqp, Form::Fire] {
            let content = Content::new(form, &content);
            let letter = DeadLetter::new(content, MessageId(1), &death("q", Reason::Expired, None));
            let new = Content::new(form, &letter.content);
            assert_eq!(new.payload(), Ok(&b"p"[..]));
            assert!(letter.is_cycle(Reason::Expired, "q"));
        }
    }
    let content = Content::new(Form::Fila, b"\0");
    let letter = DeadLetter::new(content, MessageId(1), &death("q", Reason::Expired, None));
    assert_eq!(
        Content::new(letter.form, &letter.content).payload(),
        Ok(&b""[..])
    );
}

#[test]
fn a_message_of_fila_becomes_one_of_amqp() {
    let id = MessageId::from_bytes([
        0x01, 0x8b, 0xcf, 0xe5, 0x6c, 0x40, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1,
    ]);
    let content = b"\0\x01\0\x01h\0\x01v\0\0\0\x04body";
    let content = Content::new(Form::Fila, content);
    let letter = DeadLetter::new(content, id, &death("q", Reason::Rejected, None));
    assert_eq!(
        (letter.form, letter.keys.as_slice()),
        (Form::Amqp, &["q".to_owned()][..])
    );
    let new = Content::new(letter.form, &letter.content);
    assert_eq!(new.payload(), Ok(&b"body"[..]));
    let properties = Properties::decode(new.properties()).unwrap();
    let text = id.to_string();
    assert_eq!(properties.message_id(), Some(ShortStr::clip(&text)));
    assert_eq!(properties.timestamp(), Some(id.enqueued_at().0 / 1000));
    assert_eq!(properties.delivery_mode(), Some(2));
    let headers = properties.headers().unwrap();
    let value = Value::LongString(LongStr::new(b"v").unwrap());
    assert_eq!(headers.find(b"h").unwrap(), Some(value));
    assert!(headers.find(b"x-death").unwrap().is_some());
}

#[test]
fn a_message_of_firemq_gets_its_history_as_maps() {
    let mut properties = vec![0; 4];
    let mut props = MapWriter::begin(&mut properties);
    props.entry("expiration", &FireValue::Uint(60_000));
    props.entry("message_id", &FireValue::Str("m1"));
    props.finish();
    let head = FireMessage::head(true, properties.len() - 4);
    properties[..4].copy_from_slice(&head);
    let mut headers = MapWriter::begin(&mut properties);
    headers.entry("a", &FireValue::Uint(7));
    FireValue::Bool(true).encode(headers.any_key(&FireValue::Uint(5)));
    let mut keys = ArrayWriter::begin(headers.key("CC"));
    keys.item(&FireValue::Str("copy"));
    keys.finish();
    headers.finish();
    let bytes = envelope("orders", "eu", &properties, b"payload");
    let content = Content::new(Form::Fire, &bytes);
    let one = DeadLetter::new(content, MessageId(1), &death("q", Reason::Rejected, None));
    assert_eq!((one.form, one.keys.len()), (Form::Fire, 1));
    let bytes = stored(&one);
    let content = Content::new(Form::Fire, &bytes);
    let two = DeadLetter::new(
        content,
        MessageId(2),
        &death("q", Reason::Rejected, Some("k")),
    );
    let new = Content::new(Form::Fire, &two.content);
    assert_eq!((new.exchange(), new.routing_key()), ("dlx", "k"));
    let raw = new.properties();
    let message = FireMessage::decode(raw);
    assert!(message.persistent);
    let (props, headers) = (message.props.as_bytes(), message.headers);
    let props = RawMap::from_checked(props);
    assert_eq!(props.find("message_id"), Some(FireValue::Str("m1")));
    assert_eq!(props.len(), 1);
    let mut names: Vec<_> = headers.iter().map(|(name, _)| name).collect();
    assert_eq!(names.remove(1), FireValue::Uint(5));
    let expected = [
        "a",
        "CC",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-death",
        "x-last-death-exchange",
        "x-last-death-queue",
        "x-last-death-reason",
    ];
    assert_eq!(names, expected.map(FireValue::Str));
    let Some(FireValue::Array(deaths)) = headers.find("x-death") else {
        panic!("no history");
    };
    let deaths: Vec<_> = deaths.iter().collect();
    let [FireValue::Map(death)] = deaths.as_slice() else {
        panic!("not {deaths:?}");
    };
    assert_eq!(death.find("count"), Some(FireValue::Uint(2)));
    assert_eq!(death.find("time"), Some(FireValue::Uint(1_700_000_123)));
    assert_eq!(
        death.find("original-expiration"),
        Some(FireValue::Str("60000"))
    );
    assert_eq!(death.find("exchange"), Some(FireValue::Str("orders")));
}
