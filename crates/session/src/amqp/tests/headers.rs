//! What properties and headers of a message say to the broker.

use std::sync::Arc;

use tanda_engine::{PublishBatch, PublishItem, Span};
use tanda_wire::amqp::{Properties, PropertyValues, ShortStr, Table, TableWriter, Value, basic};

use super::{AmqpConfig, Peer, client_properties, message, short, table};
use crate::envelope::Envelope;
use crate::login::{Identity, Permission};

fn send(peer: &mut Peer, properties: &PropertyValues<'_>) {
    peer.send(&message(1, basic::Publish::default(), properties, b"x"));
}

/// The message of these properties.
fn taken(properties: &PropertyValues<'_>) -> (PublishItem, PublishBatch) {
    let mut peer = Peer::open();
    send(&mut peer, properties);
    let (_, batch) = peer.published();
    (batch.items[0], batch)
}

fn with_headers(entries: &[u8]) -> PropertyValues<'_> {
    PropertyValues {
        headers: Some(Table::new(entries).unwrap()),
        ..PropertyValues::default()
    }
}

fn refused(properties: &PropertyValues<'_>, text: &str) {
    let mut peer = Peer::open();
    send(&mut peer, properties);
    peer.expect_channel_close(1, 406, &format!("PRECONDITION_FAILED - {text}"), (60, 40));
    assert!(peer.requests().is_empty());
}

#[test]
fn pitfall_37_an_expiration_is_a_number_of_milliseconds() {
    let with = |text: &'static str| PropertyValues {
        expiration: Some(short(text)),
        ..PropertyValues::default()
    };
    for (text, ms) in [
        ("0", 0),
        ("60000", 60_000),
        ("+5", 5),
        ("007", 7),
        ("4294967295", 4_294_967_295),
    ] {
        assert_eq!(taken(&with(text)).0.ttl_ms, Some(ms), "{text}");
    }
    assert_eq!(taken(&PropertyValues::default()).0.ttl_ms, None);
    refused(&with("abc"), "invalid expiration 'abc': no_integer");
    refused(&with(""), "invalid expiration '': no_integer");
    refused(
        &with("1.5"),
        "invalid expiration '1.5': {leftover_string,\".5\"}",
    );
    refused(&with("-1"), "invalid expiration '-1': {value_negative,-1}");
    refused(
        &with("4294967296"),
        "invalid expiration '4294967296': {value_too_big,4294967296}",
    );
    let huge = "99999999999999999999999";
    refused(
        &with(huge),
        &format!("invalid expiration '{huge}': {{value_too_big,{huge}}}"),
    );
}

#[derive(Debug)]
struct Impersonator;

impl Identity for Impersonator {
    fn name(&self) -> &'static str {
        "bridge"
    }

    fn may_impersonate(&self) -> bool {
        true
    }

    fn may_open(&self, _vhost: &str) -> bool {
        true
    }

    fn may(&self, _permission: Permission, _vhost: &str, _name: &str) -> bool {
        true
    }
}

#[test]
fn pitfall_37_a_user_id_is_the_own_name() {
    let with = |user: &'static str| PropertyValues {
        user_id: Some(short(user)),
        ..PropertyValues::default()
    };
    taken(&with("guest"));
    let text = "user_id property set to 'eve' but authenticated user was 'guest'";
    refused(&with("eve"), text);
    let properties = client_properties();
    let mut peer = Peer::open_as(AmqpConfig::default(), &properties, Arc::new(Impersonator));
    peer.open_channel(1);
    send(&mut peer, &with("eve"));
    assert_eq!(peer.published().1.items.len(), 1);
}

/// Headers with an array of texts under each key.
fn arrays(entries: &[(&str, &[&str])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    for (key, texts) in entries {
        writer.array(short(key), |array| {
            for text in *texts {
                array.value(&Value::text(text));
            }
        });
    }
    out
}

fn keys(batch: &PublishBatch, item: &PublishItem) -> Vec<String> {
    let Span { start, len } = item.extra_keys;
    let range = start as usize..(start + len) as usize;
    let spans = batch.extra_keys[range].iter();
    spans.map(|key| key.text(&batch.data).to_owned()).collect()
}

fn header_names(batch: &PublishBatch, item: &PublishItem) -> Vec<String> {
    let envelope = Envelope::read(item.content.of(&batch.data)).unwrap();
    let properties = Properties::decode(envelope.properties).unwrap();
    let entries = properties.headers().unwrap_or_default().iter();
    entries
        .map(|entry| entry.unwrap().key.to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn pitfall_37_cc_and_bcc_are_more_keys_and_bcc_is_not_passed_on() {
    let headers = arrays(&[("CC", &["a", "b"]), ("BCC", &["c"]), ("other", &[])]);
    let (item, batch) = taken(&with_headers(&headers));
    assert_eq!(keys(&batch, &item), ["a", "b", "c"]);
    assert_eq!(header_names(&batch, &item), ["CC", "other"]);
    let headers = arrays(&[("CC", &["a"])]);
    let (item, batch) = taken(&with_headers(&headers));
    assert_eq!(keys(&batch, &item), ["a"]);
    assert_eq!(header_names(&batch, &item), ["CC"]);
    // What is appended behind a message does not confuse what follows.
    let mut peer = Peer::open();
    peer.confirm_select(1);
    let bcc = arrays(&[("BCC", &["c"])]);
    let publish = basic::Publish {
        mandatory: true,
        ..basic::Publish::default()
    };
    let one = message(1, publish, &with_headers(&bcc), b"one");
    peer.send(&one.repeat(2));
    let (token, batch) = peer.published();
    assert_eq!(keys(&batch, &batch.items[1]), ["c"]);
    let results = vec![tanda_engine::PublishResult::Unroutable; 2];
    peer.event(tanda_engine::Event::Published { token, results });
    let lines = peer.lines();
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.ends_with("body one"))
            .count(),
        2,
        "{lines:?}"
    );
}

#[test]
fn pitfall_37_cc_and_bcc_of_another_type_are_406() {
    for name in ["CC", "BCC"] {
        let text = table(&[(name, Value::text("a"))]);
        let why = format!("invalid message: {{unacceptable_type_in_header,\"{name}\",longstr}}");
        refused(&with_headers(&text), &why);
        let mut numbers = Vec::new();
        TableWriter::new(&mut numbers).array(short(name), |array| {
            array.value(&Value::I32(5));
        });
        let why = format!("invalid message: {{unacceptable_type_in_header,\"{name}\",signedint}}");
        refused(&with_headers(&numbers), &why);
    }
}

#[test]
fn headers_ask_for_what_fila_has() {
    let headers = table(&[
        ("x-fairness-key", Value::text("tenant")),
        ("x-weight", Value::I32(3)),
        ("x-delay", Value::I64(2_500)),
        ("x-idempotency-key", Value::text("once")),
        ("x-other", Value::Void),
    ]);
    let (item, batch) = taken(&with_headers(&headers));
    assert_eq!(item.fairness_key.text(&batch.data), "tenant");
    assert_eq!((item.weight, item.delay_ms), (3, 2_500));
    assert_eq!(item.idempotency_key.unwrap().text(&batch.data), "once");
    let headers = table(&[("x-fairness-key", Value::I32(42))]);
    let (item, batch) = taken(&with_headers(&headers));
    assert_eq!(item.fairness_key.text(&batch.data), "42");
    // Together with what makes new properties, they are found again.
    let mut headers = arrays(&[("BCC", &["c"])]);
    headers.extend(table(&[("x-fairness-key", Value::text("tenant"))]));
    let (item, batch) = taken(&with_headers(&headers));
    assert_eq!(item.fairness_key.text(&batch.data), "tenant");
}

#[test]
fn headers_that_mean_nothing_to_the_broker_are_nobodys_error() {
    let headers = table(&[
        ("x-fairness-key", Value::Bool(true)),
        ("x-weight", Value::I32(-3)),
        ("x-delay", Value::text("soon")),
        ("x-idempotency-key", Value::I32(1)),
    ]);
    let (item, _) = taken(&with_headers(&headers));
    assert_eq!(
        (item.weight, item.delay_ms, item.fairness_key.len),
        (0, 0, 0)
    );
    assert_eq!(item.idempotency_key, None);
}

#[test]
fn pitfall_20_headers_are_passed_on_as_they_came_or_refused() {
    let mut all = Vec::new();
    let values = [
        ("b", Value::I8(-1)),
        ("B", Value::U8(1)),
        ("s", Value::I16(-2)),
        ("u", Value::U16(2)),
        ("l", Value::I64(i64::MIN)),
        ("f", Value::F32(0.5)),
        (
            "D",
            Value::Decimal {
                scale: 2,
                value: -314,
            },
        ),
        (
            "x",
            Value::Bytes(tanda_wire::amqp::LongStr::new(b"\xFF").unwrap()),
        ),
        ("T", Value::Timestamp(u64::MAX)),
    ];
    all.extend(table(&values));
    all.extend_from_slice(b"\x01LL\0\0\0\0\0\0\0\x07");
    let (item, batch) = taken(&with_headers(&all));
    let envelope = Envelope::read(item.content.of(&batch.data)).unwrap();
    let properties = Properties::decode(envelope.properties).unwrap();
    assert_eq!(properties.headers().unwrap().as_bytes(), all);
    for (entries, code) in [
        (&b"\x01aU\0\0"[..], 541),
        (b"\x01aS\0\0\0\x09", 502),
        (b"\x05a", 502),
        (b"\x01aF\0\0\0\x02\x09x", 502),
    ] {
        let mut peer = Peer::open();
        send(&mut peer, &with_headers(entries));
        let lines = peer.lines();
        assert!(
            lines[0].contains(&format!("reply_code: {code}")),
            "{entries:?} {lines:?}"
        );
        assert!(lines[0].starts_with("0 "), "the connection ends");
    }
}

#[test]
fn a_pseudo_address_for_replies_needs_their_consumer() {
    let with = PropertyValues {
        reply_to: Some(ShortStr::clip("amq.rabbitmq.reply-to")),
        ..PropertyValues::default()
    };
    refused(&with, "fast reply consumer does not exist");
}
