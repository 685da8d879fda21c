//! Frames of AMQP: those of the test vectors, and messages.

use tanda_wire::amqp::encode::{write_content, write_content_header};
use tanda_wire::amqp::frame::{HEARTBEAT_FRAME, PROTOCOL_HEADER};
use tanda_wire::amqp::{Properties, PropertyValues, ShortStr, Table, basic};

use super::{Seed, seed, unhex};

const TARGET: &str = "amqp_decode";
const FILE: &str = include_str!("../../../../test-vectors/amqp/frames.json");

/// All of them.
pub(super) fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (n, frame) in listed("\"frame\": \"").enumerate() {
        // Method payloads are kind 1 and content headers kind 2, as the types of their frames.
        let kind = frame.first().copied().unwrap_or_default() << 2;
        let payload = frame.get(7..frame.len().saturating_sub(1));
        let payload = payload.unwrap_or_default();
        seeds.push(input(&format!("frame-{n:03}"), 0, &frame));
        seeds.push(input(&format!("payload-{n:03}"), kind, payload));
    }
    for (n, table) in listed("\"table\": \"").enumerate() {
        let entries = table.get(4..).unwrap_or_default();
        seeds.push(input(&format!("table-{n:02}"), 3 << 2, entries));
        seeds.extend(headers(&format!("headers-{n:02}"), entries));
    }
    seeds.extend(messages());
    seeds
}

/// The hex strings of the file that follow this text.
fn listed(before: &'static str) -> impl Iterator<Item = Vec<u8>> {
    let found = FILE.split(before).skip(1);
    found.filter_map(|rest| rest.split('"').next()).map(unhex)
}

fn input(name: &str, kind: u8, bytes: &[u8]) -> Seed {
    seed(TARGET, name, [&[kind | 1], bytes].concat())
}

/// A content header with these headers.
fn headers(name: &str, entries: &[u8]) -> Option<Seed> {
    let values = PropertyValues {
        headers: Some(Table::new(entries).ok()?),
        ..PropertyValues::default()
    };
    let mut raw = Vec::new();
    values.encode(&mut raw);
    let mut frame = Vec::new();
    write_content_header(&mut frame, 1, 5, Properties::decode(&raw).ok()?);
    Some(input(name, 0, &frame))
}

/// A greeting, messages whose bodies take no frame, one and many, and a heartbeat.
fn messages() -> Vec<Seed> {
    let publish = basic::Publish {
        exchange: ShortStr::clip("orders"),
        routing_key: ShortStr::clip("a.b"),
        mandatory: true,
        immediate: false,
    };
    let mut stream = PROTOCOL_HEADER.to_vec();
    for len in [0, 1, 56, 57, 200] {
        let body = vec![b'x'; len];
        write_content(&mut stream, 1, &publish, Properties::EMPTY, &body, 64);
    }
    stream.extend_from_slice(&HEARTBEAT_FRAME);
    (0..4_u8)
        .map(|limit| {
            let input = [&[limit], &stream[..]].concat();
            seed(TARGET, &format!("messages-{limit}"), input)
        })
        .collect()
}
