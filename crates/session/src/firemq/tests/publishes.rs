//! `publish`, `confirm`, `return`.

use tanda_engine::{Event, Form, PublishError, PublishItem, PublishResult, PublishTarget, Span};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::topology::PurgeQueue;
use tanda_wire::firemq::{Properties, Props, RawMap, Value};

use super::{
    FireConfig, Peer, envelope, frame, frame_with, id, kept, map, message, publish, raw_frame,
    stored,
};

/// Publishes one message and gives back what is asked of the engine.
fn published(publish: &Publish<'_>, body: &[u8]) -> (PublishItem, Vec<u8>) {
    let mut peer = Peer::open();
    peer.send(&frame_with(publish, body));
    let (_, batch) = peer.published();
    assert_eq!(peer.bytes(), b"");
    let data = batch.data.to_vec();
    (batch.items[0], data)
}

fn part(data: &[u8], span: Span) -> &str {
    let start = span.start as usize;
    std::str::from_utf8(&data[start..start + span.len as usize]).unwrap()
}

fn props(properties: &Properties<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    properties.encode(&mut out);
    out
}

fn refused(token: u32, error: PublishError) -> Event {
    Event::Published {
        token,
        results: vec![PublishResult::Refused(error)],
    }
}

#[test]
fn a_message_keeps_its_bytes_in_an_envelope() {
    let props = props(&Properties {
        content_type: "text/plain",
        ..Properties::default()
    });
    // Headers in longer encodings than needed stay as they came.
    let headers = b"\xdf\0\0\0\x01\xa1h\xd3\0\0\0\0\0\0\0\x07";
    let publish = Publish {
        exchange: "ex",
        key: "k.e.y",
        persistent: true,
        props: Props::decode(&props).unwrap(),
        headers: RawMap::decode(headers).unwrap(),
        ..Publish::default()
    };
    let (item, data) = published(&publish, b"body");
    let expected = envelope("ex", "k.e.y", &kept(true, &props, headers), b"body");
    assert_eq!(data, expected);
    assert_eq!(item.content.len as usize, data.len());
    assert_eq!((item.form, item.target), (Form::Fire, PublishTarget::Route));
    assert!(!item.transient);
}

#[test]
fn fields_that_are_left_out_have_their_zero_values() {
    let (item, data) = published(&publish(0, "q"), b"");
    assert_eq!(data, envelope("", "q", &kept(false, b"", b""), b""));
    assert!(item.transient);
    assert_eq!((item.priority, item.ttl_ms, item.delay_ms), (0, None, 0));
    assert_eq!((item.fairness_key.len, item.idempotency_key), (0, None));
}

#[test]
fn expiration_and_priority_are_read() {
    let props = props(&Properties {
        expiration_ms: 60_000,
        priority: 7,
        ..Properties::default()
    });
    let publish = Publish {
        key: "q",
        props: Props::decode(&props).unwrap(),
        ..Publish::default()
    };
    let (item, _) = published(&publish, b"x");
    assert_eq!((item.priority, item.ttl_ms), (7, Some(60_000)));
}

#[test]
fn what_tanda_gives_is_asked_for_by_headers() {
    let headers = map(&[
        ("x-fairness-key", Value::Str("lost")),
        ("x-fairness-key", Value::Str("tenant")),
        ("x-idempotency-key", Value::Str("once")),
        ("x-weight", Value::Uint(5)),
        ("x-delay", Value::Uint(1_500)),
        ("x-other", Value::Nil),
        ("plain", Value::Str("x")),
    ]);
    let publish = Publish {
        key: "q",
        headers: RawMap::decode(&headers).unwrap(),
        ..Publish::default()
    };
    let (item, data) = published(&publish, b"x");
    assert_eq!(part(&data, item.fairness_key), "tenant");
    assert_eq!(part(&data, item.idempotency_key.unwrap()), "once");
    assert_eq!((item.weight, item.delay_ms), (5, 1_500));
}

#[test]
fn a_fairness_key_that_is_a_number_is_its_digits() {
    for (value, text) in [(Value::Uint(42), "42"), (Value::Int(-1), "-1")] {
        let headers = map(&[("x-fairness-key", value)]);
        let publish = Publish {
            key: "q",
            headers: RawMap::decode(&headers).unwrap(),
            ..Publish::default()
        };
        let mut peer = Peer::open();
        let one = frame_with(&publish, b"x");
        peer.send(&[&one[..], &one, &message(0, "q", b"y")].concat());
        let (_, batch) = peer.published();
        let keys: Vec<&str> = batch
            .items
            .iter()
            .map(|item| part(&batch.data, item.fairness_key))
            .collect();
        assert_eq!(keys, [text, text, ""]);
    }
}

#[test]
fn headers_that_mean_nothing_are_no_error() {
    let headers = map(&[
        ("x-fairness-key", Value::Bool(true)),
        ("x-idempotency-key", Value::Uint(1)),
        ("x-weight", Value::Uint(1 << 40)),
        ("x-delay", Value::Str("soon")),
    ]);
    let publish = Publish {
        key: "q",
        headers: RawMap::decode(&headers).unwrap(),
        ..Publish::default()
    };
    let (item, _) = published(&publish, b"x");
    assert_eq!((item.weight, item.delay_ms), (0, 0));
    assert_eq!((item.fairness_key.len, item.idempotency_key), (0, None));
}

#[test]
fn every_publish_with_a_seq_is_confirmed_exactly_once_by_upto() {
    let mut peer = Peer::open();
    let two = [message(1, "q", b"a"), message(2, "q", b"b")].concat();
    peer.send(&two);
    let (first, batch) = peer.published();
    assert_eq!((batch.items.len(), batch.confirm), (2, true));
    peer.send(&message(3, "q", b"c"));
    let (second, _) = peer.published();
    assert_eq!(peer.bytes(), b"");
    peer.event(stored(first, 2));
    assert_eq!(peer.lines(), ["confirm upto=2"]);
    peer.event(stored(second, 1));
    assert_eq!(peer.lines(), ["confirm upto=3"]);
    peer.event(stored(second, 1));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn upto_waits_for_every_publish_below_it() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"a"));
    let (first, _) = peer.published();
    peer.send(&message(2, "q", b"b"));
    let (second, _) = peer.published();
    peer.event(stored(second, 1));
    assert_eq!(peer.bytes(), b"");
    peer.event(stored(first, 1));
    assert_eq!(peer.lines(), ["confirm upto=2"]);
}

#[test]
fn seq_0_wants_no_confirm_and_is_not_counted() {
    let mut peer = Peer::open();
    let all = [
        message(0, "q", b"a"),
        message(1, "q", b"b"),
        message(0, "q", b"c"),
        message(2, "q", b"d"),
    ];
    peer.send(&all.concat());
    let (token, batch) = peer.published();
    assert_eq!((batch.items.len(), batch.confirm), (4, true));
    peer.event(stored(token, 4));
    assert_eq!(peer.lines(), ["confirm upto=2"]);
    peer.send(&message(0, "q", b"e"));
    let (token, batch) = peer.published();
    assert!(!batch.confirm);
    peer.event(stored(token, 1));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn seq_starts_at_1_and_increases_by_1() {
    for (before, seq, next) in [(0, 2, 1), (1, 1, 2), (2, 5, 3), (3, 2, 4)] {
        let mut peer = Peer::open();
        for seq in 1..=before {
            peer.send(&message(seq, "q", b"x"));
        }
        let taken = peer.requests().len();
        peer.send(&message(seq, "q", b"wrong"));
        let msg = format!("publish with seq {seq} where {next} must follow");
        let line = format!("error code=503 msg={msg} fatal=true");
        assert_eq!(peer.lines(), [line]);
        assert!(peer.session.is_closing());
        assert_eq!(taken as u64, before);
        assert_eq!(peer.requests().len(), 0);
    }
}

#[test]
fn a_nack_says_which_publish_was_rejected_and_why() {
    for (error, code, msg) in [
        (
            PublishError::ExchangeNotFound,
            404,
            "no exchange 'ex' in vhost '/'",
        ),
        (
            PublishError::ExchangeInternal,
            403,
            "cannot publish to internal exchange 'ex' in vhost '/'",
        ),
        (
            PublishError::QueueFull,
            506,
            "a queue that should receive the message is full",
        ),
        (PublishError::TooLarge, 406, "the message is too large"),
        (PublishError::Storage, 506, "storage is full or failed"),
        (
            PublishError::OrderingKeyMissing,
            406,
            "the queue asks for an ordering key that the message has not",
        ),
        (
            PublishError::ReservedQueueName,
            403,
            "dead-letter queues take no messages from outside",
        ),
        (
            PublishError::QueueNotFound,
            404,
            "no queue 'k' in vhost '/'",
        ),
    ] {
        let mut peer = Peer::open();
        let publish = Publish {
            exchange: "ex",
            ..publish(1, "k")
        };
        peer.say(&publish);
        let (token, _) = peer.published();
        peer.event(refused(token, error));
        let line = format!("confirm seq=1 nack=true code={code} msg={msg}");
        assert_eq!(peer.lines(), [line]);
        assert!(!peer.session.is_closing());
    }
}

#[test]
fn a_nack_is_sent_before_any_upto_that_covers_it() {
    let mut peer = Peer::open();
    let all: Vec<Vec<u8>> = (1..=4).map(|seq| message(seq, "q", b"x")).collect();
    peer.send(&all.concat());
    let (token, _) = peer.published();
    let full = PublishResult::Refused(PublishError::QueueFull);
    let taken = PublishResult::Stored(id(1));
    let results = vec![taken, full, PublishResult::Duplicate(id(1)), full];
    peer.event(Event::Published { token, results });
    let msg = "msg=a queue that should receive the message is full";
    let lines = [
        format!("confirm seq=2 nack=true code=506 {msg}"),
        format!("confirm seq=4 nack=true code=506 {msg}"),
        "confirm upto=3".to_owned(),
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn without_a_seq_what_is_wrong_is_an_error_and_a_full_queue_drops() {
    for (error, line) in [
        (
            PublishError::ExchangeNotFound,
            Some("error code=404 msg=no exchange 'ex' in vhost '/'"),
        ),
        (
            PublishError::Storage,
            Some("error code=506 msg=storage is full or failed"),
        ),
        (PublishError::QueueFull, None),
    ] {
        let mut peer = Peer::open();
        peer.say(&Publish {
            exchange: "ex",
            ..publish(0, "k")
        });
        let (token, _) = peer.published();
        peer.event(refused(token, error));
        let lines = peer.lines();
        assert_eq!(lines.iter().map(String::as_str).next(), line, "{lines:?}");
        assert!(!peer.session.is_closing());
    }
}

#[test]
fn user_id_must_be_the_connections_user() {
    let mine = props(&Properties {
        user_id: "guest",
        ..Properties::default()
    });
    let other = props(&Properties {
        user_id: "eve",
        ..Properties::default()
    });
    let with = |seq, props| {
        frame(&Publish {
            props: Props::decode(props).unwrap(),
            ..publish(seq, "q")
        })
    };
    let mut peer = Peer::open();
    peer.send(&[with(1, &mine), with(2, &other), with(3, &mine)].concat());
    let msg = "user_id is 'eve', but the connection's user is 'guest'";
    let line = format!("confirm seq=2 nack=true code=406 msg={msg}");
    assert_eq!(peer.lines(), [line]);
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 2);
    peer.event(stored(token, 2));
    assert_eq!(peer.lines(), ["confirm upto=3"]);
    peer.send(&with(0, &other));
    assert_eq!(peer.lines(), [format!("error code=406 msg={msg}")]);
}

#[test]
fn a_publish_that_cannot_be_read_is_nacked_when_its_seq_can() {
    let mut peer = Peer::open();
    let bad = |seq| {
        let props = map(&[("priority", Value::Bool(true))]);
        let props = RawMap::decode(&props).unwrap();
        let header = map(&[("seq", seq), ("props", Value::Map(props))]);
        raw_frame(0x20, &header, b"")
    };
    peer.send(&bad(Value::Uint(1)));
    let lines = peer.lines();
    let start = "confirm seq=1 nack=true code=502 msg=field props.priority: ";
    assert!(lines[0].starts_with(start), "{lines:?}");
    peer.send(&bad(Value::Str("2")));
    let lines = peer.lines();
    assert!(
        lines[0].starts_with("error code=502 msg=field seq: "),
        "{lines:?}"
    );
    assert!(!lines[0].contains("fatal"), "{lines:?}");
    peer.send(&message(2, "q", b"x"));
    let (token, _) = peer.published();
    peer.event(stored(token, 1));
    assert_eq!(peer.lines(), ["confirm upto=2"]);
}

#[test]
fn names_that_amqp_cannot_say_are_406() {
    let long = "x".repeat(256);
    let mut peer = Peer::open();
    peer.say(&publish(1, &long));
    peer.say(&Publish {
        exchange: &long,
        ..publish(0, "k")
    });
    let msg = "an exchange or key has more than 255 bytes";
    let lines = [
        format!("confirm seq=1 nack=true code=406 msg={msg}"),
        format!("error code=406 msg={msg}"),
    ];
    assert_eq!(peer.lines(), lines);
    let fits = &long[..255];
    peer.say(&publish(2, fits));
    peer.published();
}

#[test]
fn a_body_over_the_limit_is_nacked_with_406() {
    let mut peer = Peer::open_with(FireConfig {
        max_message_bytes: 10,
        ..FireConfig::default()
    });
    peer.send(&[message(1, "q", &[0; 10]), message(2, "q", &[0; 11])].concat());
    let msg = "message size 11 is larger than configured max size 10";
    let line = format!("confirm seq=2 nack=true code=406 msg={msg}");
    assert_eq!(peer.lines(), [line]);
    peer.published();
}

#[test]
fn a_mandatory_message_that_no_queue_receives_comes_back_before_its_confirm() {
    let mut peer = Peer::open();
    let props = props(&Properties {
        content_type: "text/plain",
        ..Properties::default()
    });
    let headers = map(&[("h", Value::Uint(1))]);
    let publish = Publish {
        seq: 2,
        exchange: "ex",
        key: "nowhere",
        mandatory: true,
        persistent: true,
        props: Props::decode(&props).unwrap(),
        headers: RawMap::decode(&headers).unwrap(),
    };
    let all = [
        message(1, "q", b"a"),
        frame_with(&publish, b"back"),
        message(3, "q", b"b"),
    ];
    peer.send(&all.concat());
    let (token, _) = peer.published();
    // One that is not mandatory is dropped, and confirmed.
    let results = vec![PublishResult::Unroutable; 3];
    peer.event(Event::Published { token, results });
    let returned = "return seq=2 code=312 msg=no route exchange=ex key=nowhere \
                    props={content_type=text/plain} headers={h=1} | back";
    assert_eq!(peer.lines(), [returned, "confirm upto=3"]);
}

#[test]
fn a_return_needs_no_confirm() {
    let mut peer = Peer::open();
    let publish = Publish {
        mandatory: true,
        ..publish(0, "nowhere")
    };
    peer.send(&frame_with(&publish, b"back"));
    let (token, _) = peer.published();
    let results = vec![PublishResult::Unroutable];
    peer.event(Event::Published { token, results });
    let line = "return code=312 msg=no route key=nowhere | back";
    assert_eq!(peer.lines(), [line]);
}

#[test]
fn returns_say_the_numbers_of_their_publishes() {
    let mut peer = Peer::open();
    let mandatory = |seq| {
        frame(&Publish {
            mandatory: true,
            ..publish(seq, "k")
        })
    };
    let all: Vec<Vec<u8>> = (1..=3).map(mandatory).collect();
    peer.send(&all.concat());
    let (token, _) = peer.published();
    let (lost, taken) = (PublishResult::Unroutable, PublishResult::Stored(id(1)));
    let results = vec![lost, taken, lost];
    peer.event(Event::Published { token, results });
    let lines = [
        "return seq=1 code=312 msg=no route key=k",
        "return seq=3 code=312 msg=no route key=k",
        "confirm upto=3",
    ];
    assert_eq!(peer.lines(), lines);
}

#[test]
fn many_messages_of_one_read_are_sent_in_parts() {
    let mut peer = Peer::open();
    let all: Vec<Vec<u8>> = (1..=20)
        .map(|seq| message(seq, "q", &[7; 32 << 10]))
        .collect();
    peer.send(&all.concat());
    let requests = peer.requests();
    assert!(
        requests.len() > 1 && requests.len() < 5,
        "{}",
        requests.len()
    );
    let purge = frame(&PurgeQueue::default());
    peer.send(&purge);
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn a_frame_cut_at_any_byte_is_taken_once_when_it_is_whole() {
    let one = message(1, "q", b"body");
    for cut in 0..one.len() {
        let mut peer = Peer::open();
        peer.send(&one[..cut]);
        assert_eq!(peer.requests().len(), 0, "{cut}");
        peer.send(&one[cut..]);
        let (_, batch) = peer.published();
        assert_eq!(batch.items.len(), 1, "{cut}");
    }
}
