use tanda_wire::amqp::{PropertyValues, ShortStr, Table, TableWriter, Value};

use super::*;

#[test]
fn attributes_follow_the_payload_and_are_not_part_of_it() {
    let plain = b"\0\x01\0\x01h\0\x02vv\0\0\0\x03abc";
    let view = |bytes| Content::new(Form::Fila, bytes);
    let content = view(plain);
    assert_eq!(content.payload(), Ok(&b"abc"[..]));
    assert_eq!(content.without_attributes(), plain);
    assert_eq!(content.attributes().count(), 0);
    assert_eq!(content.exchange(), "");
    assert_eq!(content.properties(), b"");
    let with = [&plain[..], b"\0\x02\0\x01a\0\x011\0\x01b\0\0"].concat();
    let content = Content::new(Form::Fila, &with);
    assert_eq!(content.without_attributes(), plain);
    assert_eq!(content.payload(), Ok(&b"abc"[..]));
    assert_eq!(content.header(b"h").as_deref(), Some(&b"vv"[..]));
    assert_eq!(content.attribute(b"a"), Some(&b"1"[..]));
    assert_eq!(content.attribute(b"b"), Some(&b""[..]));
    assert_eq!(content.attribute(b"h"), None);
    for len in 0..plain.len() {
        let cut = Content::new(Form::Fila, &plain[..len]);
        assert_eq!(cut.without_attributes(), &plain[..len]);
        assert_eq!(cut.attributes().count(), 0);
    }
}

#[test]
fn an_envelope_is_read_and_one_that_is_cut_short_is_not() {
    let plain = b"\x02ex\x03a.b\0\0\0\x02\0\0\0\0\0\x03abc";
    for form in [Form::Amqp, Form::Fire] {
        let content = Content::new(form, plain);
        assert_eq!(content.exchange(), "ex");
        assert_eq!(content.routing_key(), "a.b");
        assert_eq!(content.properties(), b"\0\0");
        assert_eq!(content.payload(), Ok(&b"abc"[..]));
        assert_eq!(content.without_attributes(), plain);
        assert_eq!(content.attributes_at(), Some(plain.len()));
        let with = [&plain[..], b"\0\x01\0\x01a\0\x011"].concat();
        let with = Content::new(form, &with);
        assert_eq!(with.payload(), Ok(&b"abc"[..]));
        assert_eq!(with.without_attributes(), plain);
        assert_eq!(with.attribute(b"a"), Some(&b"1"[..]));
        for len in 0..plain.len() {
            let cut = Content::new(form, &plain[..len]);
            assert_eq!(cut.payload(), Err(ContentError));
            assert_eq!(cut.exchange(), "");
            assert_eq!(cut.without_attributes(), &plain[..len]);
            let known = len >= plain.len() - b"abc".len();
            assert_eq!(cut.attributes_at(), known.then_some(plain.len()));
        }
    }
}

/// The bytes of a message with these properties, published to `ex` with `key`.
fn envelope(properties: &[u8]) -> Vec<u8> {
    let len = u32::try_from(properties.len()).unwrap();
    let head = [b"\x02ex\x03key", &len.to_be_bytes()[..]].concat();
    [&head[..], properties, b"\0\0\0\x03abc"].concat()
}

fn listed(content: Content<'_>) -> Vec<(String, String)> {
    let text = |bytes: Cow<'_, [u8]>| String::from_utf8(bytes.into_owned()).unwrap();
    let all = content.headers();
    all.map(|(name, value)| (text(name), text(value))).collect()
}

#[test]
fn headers_of_amqp_are_texts_behind_the_properties() {
    let mut table = Vec::new();
    let mut writer = TableWriter::new(&mut table);
    writer.value(ShortStr::clip("tenant"), &Value::I32(7));
    writer.value(ShortStr::clip("amqp.type"), &Value::text("pretended"));
    let mut properties = Vec::new();
    PropertyValues {
        headers: Some(Table::new(&table).unwrap()),
        message_type: Some(ShortStr::clip("real")),
        ..PropertyValues::default()
    }
    .encode(&mut properties);
    let bytes = envelope(&properties);
    let content = Content::new(Form::Amqp, &bytes);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = [
        pair("amqp.type", "real"),
        pair("tenant", "7"),
        pair("amqp.type", "pretended"),
    ];
    assert_eq!(listed(content), expected);
    assert_eq!(content.header(b"tenant").as_deref(), Some(&b"7"[..]));
    assert_eq!(content.header(b"amqp.type").as_deref(), Some(&b"real"[..]));
    assert_eq!(content.header(b"other"), None);
    let fila = content.in_fila_layout();
    let fila = Content::new(Form::Fila, &fila);
    assert_eq!(listed(fila), expected);
    assert_eq!(fila.payload(), Ok(&b"abc"[..]));
}

#[test]
fn headers_of_firemq_are_texts() {
    // {"type": "t"} and {"n": 7, "deep": [1]}
    let props = b"\x81\xa4type\xa1t";
    let headers = b"\x82\xa1n\x07\xa4deep\x91\x01";
    let head = FireMessage::head(true, props.len());
    let properties = [&head[..], props, headers].concat();
    let bytes = envelope(&properties);
    let content = Content::new(Form::Fire, &bytes);
    assert_eq!(content.header(b"n").as_deref(), Some(&b"7"[..]));
    assert_eq!(content.header(b"deep").as_deref(), Some(&b"[1]"[..]));
    assert_eq!(content.header(b"amqp.type").as_deref(), Some(&b"t"[..]));
    let delivery_mode = content.header(b"amqp.delivery_mode");
    assert_eq!(delivery_mode.as_deref(), Some(&b"2"[..]));
    assert_eq!(content.fire_message().headers.as_bytes(), headers);
    let plain = envelope(b"");
    let content = Content::new(Form::Fire, &plain);
    assert_eq!(content.headers().count(), 0);
    assert_eq!(&*content.in_fila_layout(), b"\0\0\0\0\0\x03abc");
}
