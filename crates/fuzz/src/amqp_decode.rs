//! Bytes as a stream of AMQP frames: each is split off and decoded; what a decoder accepts encodes
//! to bytes that decode to the same again, and edits of it leave the rest as it came.
//!
//! First byte: the limit on frames, and what the rest is: a stream, or one payload without the
//! frame around it, whose size and end would refuse most changes before a decoder sees them.

use tanda_wire::amqp::encode::{
    BodyFrames, body_frames_bytes, write_any_method, write_body, write_content_header,
};
use tanda_wire::amqp::frame::{FRAME_END, ProtocolHeader, effective_frame_max, protocol_header};
use tanda_wire::amqp::{
    Array, ContentHeader, Edit, Frame, FrameType, Method, MethodError, Properties, Property,
    PropertyKind, Split, Table, TableWriter, Value, basic, connection, queue, split_frame,
};

/// Largest frames, as the peers agree on them; 0 is no limit.
const FRAME_BYTES_MAX: [u32; 4] = [64, 4096, 131_072, 0];
/// Entries and items that are read of one input: nested ones multiply.
const VALUES_MAX: usize = 10_000;

/// Runs one input.
///
/// # Panics
/// When a decoder and its encoder disagree, or a limit is passed.
pub fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else {
        return;
    };
    let at = usize::from(first % 4);
    let frame_max = FRAME_BYTES_MAX.get(at).copied().unwrap_or(4096);
    match first >> 2 & 3 {
        0 => check_stream(rest, frame_max),
        1 => check_method(0, rest),
        2 => check_header(0, rest),
        _ => check_table(rest),
    }
}

fn check_stream(mut rest: &[u8], frame_max: u32) {
    let limit = effective_frame_max(frame_max) as usize;
    if protocol_header(rest) == ProtocolHeader::Accepted {
        rest = rest.get(8..).unwrap_or_default();
    }
    loop {
        match split_frame(rest, effective_frame_max(frame_max)) {
            Ok(Split::Frame(frame)) => {
                assert!(frame.consumed() <= limit, "a frame over {limit} bytes");
                check_frame(&frame, frame_max);
                rest = rest.get(frame.consumed()..).unwrap_or_default();
            }
            Ok(Split::Incomplete { need_bytes }) => {
                assert!(need_bytes > rest.len(), "it waits for what is there");
                assert!(need_bytes <= limit, "it waits for more than {limit} bytes");
                return;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    }
}

fn check_frame(frame: &Frame<'_>, frame_max: u32) {
    match frame.frame_type {
        FrameType::Method => check_method(frame.channel, frame.payload),
        FrameType::Header => check_header(frame.channel, frame.payload),
        FrameType::Body => check_body(frame, frame_max),
        FrameType::Heartbeat => {}
    }
}

/// The frame that fills `bytes`, which were written.
fn written(bytes: &[u8]) -> Frame<'_> {
    match split_frame(bytes, u32::MAX) {
        Ok(Split::Frame(frame)) if frame.consumed() == bytes.len() => frame,
        other => unreachable!("{bytes:02x?} were written: {other:?}"),
    }
}

fn check_method(channel: u16, payload: &[u8]) {
    let method = match Method::decode(payload) {
        Ok(method) => method,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let MethodError::Unknown { id } = error {
                assert_eq!(id.name(), None);
            }
            return;
        }
    };
    let mut out = Vec::new();
    write_any_method(&mut out, channel, &method);
    let again = written(&out);
    assert_eq!(again.channel, channel);
    assert_eq!(Method::decode(again.payload), Ok(method));
    assert_eq!(Some(method.id()), id_of(payload));
    if let Some(arguments) = arguments(&method) {
        check_table(arguments.as_bytes());
    }
}

/// The table of some methods.
fn arguments<'a>(method: &Method<'a>) -> Option<Table<'a>> {
    if let Method::Connection(connection::Method::StartOk(start_ok)) = method {
        Some(start_ok.client_properties)
    } else if let Method::Queue(queue::Method::Declare(declare)) = method {
        Some(declare.arguments)
    } else if let Method::Basic(basic::Method::Consume(consume)) = method {
        Some(consume.arguments)
    } else {
        None
    }
}

fn id_of(payload: &[u8]) -> Option<tanda_wire::amqp::MethodId> {
    tanda_wire::amqp::MethodId::read(&mut tanda_wire::cursor::Reader::new(payload)).ok()
}

fn check_header(channel: u16, payload: &[u8]) {
    let Ok(header) = ContentHeader::decode(payload) else {
        return;
    };
    let properties = header.properties;
    let mut out = Vec::new();
    write_content_header(&mut out, channel, header.body_size, properties);
    let again = ContentHeader::decode(written(&out).payload);
    assert_eq!(again.map(|again| again.properties), Ok(properties));

    let mut raw = Vec::new();
    properties.values().encode(&mut raw);
    assert_eq!(raw.len(), properties.values().encoded_size());
    let plain = decoded(&raw);
    assert_eq!(plain.values(), properties.values());
    for kind in PropertyKind::ALL {
        assert_eq!(plain.raw_value(*kind), properties.raw_value(*kind));
        let (mut without, mut with) = (Vec::new(), Vec::new());
        properties.without(&mut without, *kind);
        assert!(!decoded(&without).has(*kind));
        let mode = Property::DeliveryMode(2);
        decoded(&without).with(&mut with, mode);
        assert_eq!(decoded(&with).delivery_mode(), Some(2));
        assert_eq!(decoded(&with).headers(), decoded(&without).headers());
    }
    if let Some(headers) = properties.headers() {
        check_table(headers.as_bytes());
    }
}

fn decoded(raw: &[u8]) -> Properties<'_> {
    match Properties::decode(raw) {
        Ok(properties) => properties,
        Err(error) => unreachable!("{raw:02x?} were written: {error}"),
    }
}

fn check_table(entries: &[u8]) {
    let Ok(table) = Table::new(entries) else {
        return;
    };
    let mut copy = Vec::new();
    let copied = TableWriter::new(&mut copy).copy_edited(table, |entry| {
        let mut raw = Vec::new();
        TableWriter::new(&mut raw).raw_value(entry.key, entry.raw_value);
        assert_eq!(raw, entry.raw);
        Edit::Keep
    });
    assert!(entries.starts_with(&copy), "a copy is what it was made of");
    match table.validate() {
        Ok(()) => {
            assert_eq!(copied, Ok(()));
            assert_eq!(copy, entries);
            read_table(table, &mut { VALUES_MAX });
        }
        Err(error) => {
            assert!(error.offset <= entries.len(), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Reads a table that was validated: nothing in it is refused, and what is read is written alike.
fn read_table(table: Table<'_>, left: &mut usize) {
    for entry in table {
        match entry {
            Ok(entry) => read_value(&entry.value, entry.raw_value, left),
            Err(error) => unreachable!("it was validated: {error}"),
        }
    }
}

fn read_array(array: Array<'_>, left: &mut usize) {
    for item in array {
        match item {
            Ok(item) => read_value(&item.value, item.raw, left),
            Err(error) => unreachable!("it was validated: {error}"),
        }
    }
}

fn read_value(value: &Value<'_>, raw: &[u8], left: &mut usize) {
    let Some(fewer) = left.checked_sub(1) else {
        return;
    };
    *left = fewer;
    let mut again = Vec::new();
    value.write(&mut again);
    assert_eq!(again.len(), raw.len());
    let same_bytes = again == raw;
    let spelled_otherwise = matches!(raw.first(), Some(b'L' | b't'));
    assert!(same_bytes || spelled_otherwise, "{raw:02x?}");
    if let Value::Table(table) = value {
        read_table(*table, left);
    } else if let Value::Array(array) = value {
        read_array(*array, left);
    }
}

/// A body that is cut into frames is the same body when they are joined.
fn check_body(frame: &Frame<'_>, frame_max: u32) {
    let body = frame.payload;
    let mut out = Vec::new();
    write_body(&mut out, frame.channel, body, frame_max);
    assert_eq!(out.len(), body_frames_bytes(body.len(), frame_max));
    let mut by_parts = Vec::new();
    for part in BodyFrames::new(frame.channel, body.len(), frame_max) {
        by_parts.extend_from_slice(&part.prefix);
        let bytes = body.get(part.at..part.at + part.len);
        by_parts.extend_from_slice(bytes.unwrap_or_default());
        by_parts.push(FRAME_END);
    }
    assert_eq!(by_parts, out);
    let mut joined = Vec::new();
    let mut rest = out.as_slice();
    while let Ok(Split::Frame(part)) = split_frame(rest, effective_frame_max(frame_max)) {
        joined.extend_from_slice(part.payload);
        rest = rest.get(part.consumed()..).unwrap_or_default();
    }
    assert_eq!(joined, body);
}
