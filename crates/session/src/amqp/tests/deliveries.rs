//! Messages on their way out.

use tanda_engine::{
    Event, Form, FrameLimit, GetError, Got, MessageId, Request, SettleBatch, SettleItem,
    Settlement, Take,
};
use tanda_wire::amqp::{
    Properties, Property, PropertyValues, Table, TableWriter, Value, basic, channel,
};
use tanda_wire::firemq::{self, Props, RawMap, writer::MapWriter};
use tanda_wire::mapping::FireMessage;

use super::{
    AmqpConfig, Peer, TUNE_OK, deliveries, deliveries_of, envelope, frame, id, line, short,
    topology_error,
};
use tanda_engine::TopologyCode;

fn deliver(
    delivery_tag: u64,
    redelivered: bool,
    exchange: &'static str,
    key: &'static str,
) -> String {
    let deliver = basic::Deliver {
        consumer_tag: short("c"),
        delivery_tag,
        redelivered,
        exchange: short(exchange),
        routing_key: short(key),
    };
    line(1, deliver)
}

#[test]
fn deliveries_are_method_header_and_bodies() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let contents = [
        envelope("ex", "key", &[0x10, 0, 2], b"first"),
        envelope("", "q", &[0, 0], b""),
    ];
    let mut batch = deliveries_of(1, Form::Amqp, &contents);
    batch.items[1].deliveries = 2;
    peer.event(Event::Delivery { token, batch });
    let expected = [
        deliver(1, false, "ex", "key"),
        "1 header 5 \\x10\\x00\\x02".to_owned(),
        "1 body first".to_owned(),
        deliver(2, true, "", "q"),
        // Pitfall 10: an empty body has no frame.
        "1 header 0 \\x00\\x00".to_owned(),
    ];
    assert_eq!(peer.lines(), expected);
}

#[test]
fn a_body_is_cut_to_the_agreed_frames() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let body = vec![b'y'; 300_000];
    let batch = deliveries_of(1, Form::Amqp, &[envelope("", "q", &[0, 0], &body)]);
    peer.event(Event::Delivery { token, batch });
    let bytes = peer.bytes();
    let mut sizes = Vec::new();
    let mut rest = &bytes[..];
    let mut joined = Vec::new();
    while let Ok(tanda_wire::amqp::Split::Frame(frame)) =
        tanda_wire::amqp::split_frame(rest, 131_072)
    {
        if frame.frame_type == tanda_wire::amqp::FrameType::Body {
            sizes.push(frame.consumed());
            joined.extend_from_slice(frame.payload);
        }
        rest = &rest[frame.consumed()..];
    }
    assert!(rest.is_empty());
    assert_eq!(sizes, [131_072, 131_072, 300_000 - 2 * 131_064 + 8]);
    assert_eq!(joined, body);
}

#[test]
fn what_leaves_is_reported_and_what_cannot_be_delivered_goes_back() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let batch = deliveries(1, 2);
    let weight = batch.budget_bytes();
    peer.event(Event::Delivery { token, batch });
    assert!(peer.all_requests().is_empty());
    peer.bytes();
    assert_eq!(peer.session.next_deadline(), Some(peer.now.after_ms(20)));
    peer.pass_ms(20);
    let requests = peer.all_requests();
    assert!(
        matches!(requests[..], [Request::Drained { bytes, .. }] if bytes == weight),
        "{requests:?}"
    );
    peer.event(Event::Delivery {
        token: token + 1,
        batch: deliveries(8, 1),
    });
    assert_eq!(peer.bytes(), b"");
    let (_, batch) = peer.settled();
    assert_eq!(batch.items[0].id, id(8));
}

fn get(no_ack: bool) -> basic::Get<'static> {
    basic::Get {
        queue: short("q"),
        no_ack,
    }
}

fn got(peer: &mut Peer, result: Result<Got, GetError>) {
    let request = peer.request();
    let Request::Get { reply, spec } = request else {
        panic!("{request:?}")
    };
    assert_eq!(spec.queue, "q");
    peer.event(Event::Got {
        token: reply.token,
        result,
    });
}

#[test]
fn pitfall_41_get_says_what_it_got_or_that_there_is_nothing() {
    let mut peer = Peer::open();
    peer.say(1, get(false));
    let one = Got {
        batch: Some(deliveries(1, 1)),
        remaining: 4,
    };
    got(&mut peer, Ok(one));
    let get_ok = basic::GetOk {
        delivery_tag: 1,
        redelivered: false,
        exchange: short("ex"),
        routing_key: short("key"),
        message_count: 4,
    };
    let expected = [
        line(1, get_ok),
        "1 header 4 \\x00\\x00".to_owned(),
        "1 body body".to_owned(),
    ];
    assert_eq!(peer.lines(), expected);
    peer.say(1, get(false));
    got(&mut peer, Ok(Got::default()));
    // The reserved short string is there, though it is empty.
    assert_eq!(peer.bytes(), b"\x01\0\x01\0\0\0\x05\0\x3C\0\x48\0\xCE");
    // The message of a get is acknowledged like others, and has no credit.
    peer.say(
        1,
        basic::Ack {
            delivery_tag: 1,
            multiple: false,
        },
    );
    let requests = peer.requests();
    assert!(
        matches!(requests[..], [Request::Settle { .. }]),
        "{requests:?}"
    );
    peer.say(1, get(true));
    let one = Got {
        batch: Some(deliveries(2, 1)),
        remaining: 0,
    };
    got(&mut peer, Ok(one));
    assert_eq!(peer.lines().len(), 3);
    peer.say(
        1,
        basic::Ack {
            delivery_tag: 2,
            multiple: false,
        },
    );
    let text = "PRECONDITION_FAILED - unknown delivery tag 2";
    peer.expect_channel_close(1, 406, text, (60, 80));
    assert_eq!(
        frame(1, channel::OpenOk {}),
        b"\x01\0\x01\0\0\0\x08\0\x14\0\x0B\0\0\0\0\xCE"
    );
}

#[test]
fn a_get_from_nowhere_or_somebody_elses_queue_is_refused() {
    let mut peer = Peer::open();
    peer.say(1, get(false));
    got(&mut peer, Err(GetError::NotFound));
    peer.expect_channel_close(1, 404, "NOT_FOUND - no queue 'q' in vhost '/'", (60, 70));
    peer.say(1, get(false));
    let locked: Result<Got, _> = topology_error(TopologyCode::ResourceLocked, "locked");
    got(&mut peer, locked.map_err(GetError::Topology));
    peer.expect_channel_close(1, 405, "RESOURCE_LOCKED - locked", (60, 70));
}

#[test]
fn what_a_channel_holds_is_bounded() {
    let config = AmqpConfig {
        unacked_max: 2,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    peer.open_channel(1);
    let token = peer.consume_q();
    peer.deliver(token, 2);
    peer.say(1, get(false));
    let text = "PRECONDITION_FAILED - the channel holds 2 unacknowledged messages";
    peer.expect_channel_close(1, 406, text, (60, 70));
}

/// The properties of the only delivery of this message.
fn delivered(form: Form, content: Vec<u8>) -> (String, Vec<String>) {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let batch = deliveries_of(1, form, &[content]);
    peer.event(Event::Delivery { token, batch });
    let bytes = peer.bytes();
    let lines = super::shown(&bytes);
    let mut rest = &bytes[..];
    let mut shown = String::new();
    while let Ok(tanda_wire::amqp::Split::Frame(frame)) =
        tanda_wire::amqp::split_frame(rest, 131_072)
    {
        if frame.frame_type == tanda_wire::amqp::FrameType::Header {
            let header = tanda_wire::amqp::ContentHeader::decode(frame.payload).unwrap();
            let PropertyValues {
                delivery_mode,
                message_id,
                timestamp,
                content_type,
                ..
            } = header.properties.values();
            shown = format!("{delivery_mode:?} {message_id:?} {timestamp:?} {content_type:?}");
            for entry in header.properties.headers().unwrap_or_default() {
                let entry = entry.unwrap();
                shown.push_str(&format!(
                    " {}={:?}",
                    entry.key,
                    entry.raw_value.escape_ascii().to_string()
                ));
            }
        }
        rest = &rest[frame.consumed()..];
    }
    (shown, lines)
}

#[test]
fn a_message_of_fila_comes_from_the_default_exchange_with_its_headers_as_texts() {
    let mut content = b"\0\x01\0\x01h\0\x02vv".to_vec();
    content.extend_from_slice(b"\0\0\0\x03abc");
    let (properties, lines) = delivered(Form::Fila, content);
    assert_eq!(lines[0], deliver(1, false, "", "q"));
    assert_eq!(lines[2], "1 body abc");
    let expected = "Some(2) Some(\"00000000-05dc-0000-0000-000000000001\") Some(1) None \
                    h=\"S\\\\x00\\\\x00\\\\x00\\\\x02vv\"";
    assert_eq!(properties, expected);
}

#[test]
fn a_message_of_firemq_keeps_exchange_key_and_what_has_a_place() {
    let mut props = Vec::new();
    let properties = firemq::Properties {
        content_type: "text/plain",
        ..firemq::Properties::default()
    };
    properties.encode(&mut props);
    let mut headers = Vec::new();
    let mut map = MapWriter::begin(&mut headers);
    map.entry("h", &firemq::Value::Str("vv"));
    map.finish();
    for (persistent, mode) in [(true, "Some(2)"), (false, "None")] {
        let message = FireMessage {
            persistent,
            props: Props::decode(&props).unwrap(),
            headers: RawMap::decode(&headers).unwrap(),
        };
        let mut all = Vec::new();
        message.encode(&mut all);
        let (properties, lines) = delivered(Form::Fire, envelope("ex", "key", &all, b"abc"));
        assert_eq!(lines[0], deliver(1, false, "ex", "key"));
        assert_eq!(lines[2], "1 body abc");
        let rest = "None None Some(\"text/plain\") h=\"S\\\\x00\\\\x00\\\\x00\\\\x02vv\"";
        assert_eq!(properties, format!("{mode} {rest}"));
    }
}

/// The numbers of the messages that a batch of settlements hands back as unfit for such frames.
fn unfit(batch: &SettleBatch, limit: FrameLimit) -> Vec<MessageId> {
    let is_unfit = |item: &&SettleItem| {
        let settlement = item.settlement;
        matches!(settlement, Settlement::Unfit { frame_limit, .. } if frame_limit == limit)
    };
    batch
        .items
        .iter()
        .filter(is_unfit)
        .map(|it| it.id)
        .collect()
}

#[test]
fn a_message_whose_headers_fit_no_frame_is_for_others() {
    let mut content = b"\0\x03".to_vec();
    for name in ["a", "b", "c"] {
        content.extend_from_slice(b"\0\x01");
        content.extend_from_slice(name.as_bytes());
        content.extend_from_slice(&60_000_u16.to_be_bytes());
        content.extend_from_slice(&vec![b'z'; 60_000]);
    }
    content.extend_from_slice(b"\0\0\0\x03abc");
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let batch = deliveries_of(1, Form::Fila, &[content]);
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines(), [""; 0]);
    let (_, batch) = peer.settled();
    assert_eq!(unfit(&batch, FrameLimit::Amqp(131_072)), [id(1)]);
}

/// Properties of a content type and these headers.
fn with_headers(write: impl FnOnce(&mut TableWriter<'_>)) -> Vec<u8> {
    let mut headers = Vec::new();
    write(&mut TableWriter::new(&mut headers));
    let set = [
        Property::ContentType(short("t")),
        Property::Headers(Table::new(&headers).unwrap()),
    ];
    let mut properties = Vec::new();
    Properties::EMPTY.edited(&mut properties, &set, &[]);
    properties
}

const SMALLEST: FrameLimit = FrameLimit::Amqp(4096);

/// A peer with the smallest frames.
fn with_small_frames() -> Peer {
    let mut peer = Peer::tuned(tanda_wire::amqp::connection::TuneOk {
        frame_max: 4096,
        ..TUNE_OK
    });
    peer.open_channel(1);
    peer
}

/// A content whose properties have this many bytes.
fn of_properties(bytes: usize) -> Vec<u8> {
    let of_text = |text: &str| {
        with_headers(|out| {
            out.value(short("x-death"), &Value::text(text));
        })
    };
    let properties = of_text(&"d".repeat(bytes - of_text("").len()));
    assert_eq!(properties.len(), bytes);
    envelope("", "q", &properties, b"x")
}

#[test]
fn pitfall_9_headers_that_outgrew_the_frames_of_a_client_keep_the_message_from_it() {
    let mut peer = with_small_frames();
    let token = peer.consume_q();
    // 8 bytes of the frame and 12 of the header.
    let contents = [4076, 4077, 200].map(of_properties);
    let batch = deliveries_of(1, Form::Amqp, &contents);
    peer.event(Event::Delivery { token, batch });
    let lines = peer.lines();
    let methods: Vec<_> = lines.iter().step_by(3).map(String::as_str).collect();
    let expected = [deliver(1, false, "", "q"), deliver(2, false, "", "q")];
    assert_eq!(methods, expected);
    let requests = peer.requests();
    let [
        Request::Settle { batch, .. },
        Request::Grant { credit: 1, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(unfit(batch, SMALLEST), [id(2)]);
    assert_eq!(batch.items.len(), 1);
}

#[test]
fn pitfall_9_what_a_delivery_adds_counts_too() {
    let mut peer = with_small_frames();
    let token = peer.consume_q();
    let mut batch = deliveries_of(1, Form::Amqp, &[of_properties(4076)]);
    batch.counts_returns = true;
    batch.items[0].deliveries = 2;
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines(), [""; 0]);
    let (_, batch) = peer.settled();
    assert_eq!(unfit(&batch, SMALLEST), [id(1)]);
}

#[test]
fn pitfall_9_a_get_is_answered_with_the_next_message_that_fits() {
    for no_ack in [false, true] {
        let mut peer = with_small_frames();
        let get = basic::Get {
            queue: short("q"),
            no_ack,
        };
        peer.say(1, get);
        let Request::Get { reply, .. } = peer.request() else {
            panic!("no get");
        };
        let mut batch = deliveries_of(1, Form::Amqp, &[of_properties(4077)]);
        batch.items[0].is_leased = true;
        let result = Ok(Got {
            batch: Some(batch),
            remaining: 1,
        });
        let token = reply.token;
        peer.event(Event::Got { token, result });
        assert_eq!(peer.lines(), [""; 0]);
        let requests = peer.requests();
        let [Request::Settle { batch, .. }, Request::Get { reply, spec }] = &requests[..] else {
            panic!("{requests:?}")
        };
        assert_eq!(unfit(batch, SMALLEST), [id(1)]);
        assert_eq!(spec.frame_limit, SMALLEST);
        assert_eq!(spec.take == Take::NoAck, no_ack);
        let token = reply.token;
        let result = Ok(Got::default());
        peer.event(Event::Got { token, result });
        assert_eq!(peer.lines().len(), 1);
    }
}

#[test]
fn pitfall_9_without_acks_what_may_not_fit_is_settled_when_it_was_sent_or_not() {
    let mut peer = with_small_frames();
    let consume = basic::Consume {
        queue: short("q"),
        consumer_tag: short("c"),
        no_ack: true,
        ..basic::Consume::default()
    };
    let token = peer.consume(1, consume);
    let mut batch = deliveries_of(1, Form::Amqp, &[4076, 4077, 100].map(of_properties));
    for item in batch.items.iter_mut().take(2) {
        item.is_leased = true;
    }
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.lines().len(), 6);
    let requests = peer.requests();
    let [Request::Settle { batch, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(unfit(batch, SMALLEST), [id(2)]);
    let [sent, _] = &batch.items[..] else {
        panic!("{batch:?}")
    };
    assert_eq!((sent.id, sent.settlement), (id(1), Settlement::Ack));
}

#[test]
fn pitfall_64_a_message_that_came_back_says_how_often() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    let count = |out: &mut TableWriter<'_>, number| {
        out.value(short("x-delivery-count"), &Value::I64(number));
    };
    let own = |out: &mut TableWriter<'_>| {
        out.value(short("own"), &Value::I32(7));
    };
    let properties = with_headers(own);
    let told = with_headers(|out| {
        count(out, 1);
        own(out);
    });
    let contents = [properties, told, vec![0, 0]].map(|it| envelope("", "q", &it, b""));
    for counts_returns in [true, false] {
        let mut batch = deliveries_of(1, Form::Amqp, &contents);
        batch.counts_returns = counts_returns;
        for (item, deliveries) in batch.items.iter_mut().zip([1, 3, 2]) {
            item.deliveries = deliveries;
        }
        peer.event(Event::Delivery { token, batch });
        let lines = peer.lines();
        let headers: Vec<&str> = lines
            .iter()
            .skip(1)
            .step_by(2)
            .map(String::as_str)
            .collect();
        let header = |properties: &[u8]| format!("1 header 0 {}", properties.escape_ascii());
        let mut expected = contents.clone().map(|it| {
            let envelope = crate::envelope::Envelope::read(&it).unwrap();
            header(envelope.properties)
        });
        if counts_returns {
            expected[1] = header(&with_headers(|out| {
                own(out);
                count(out, 2);
            }));
            let mut alone = vec![0x20, 0];
            let mut entries = Vec::new();
            count(&mut TableWriter::new(&mut entries), 1);
            alone.extend_from_slice(&u32::try_from(entries.len()).unwrap().to_be_bytes());
            alone.extend_from_slice(&entries);
            expected[2] = header(&alone);
        }
        assert_eq!(headers, expected, "{counts_returns}");
    }
}
