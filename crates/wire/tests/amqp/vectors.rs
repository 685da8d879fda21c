//! `test-vectors/amqp/frames.json`, in both directions.

use std::collections::BTreeSet;

use serde_json::Value as J;
use tanda_wire::amqp::encode::{write_any_method, write_content_header};
use tanda_wire::amqp::frame::FRAME_MIN_SIZE;
use tanda_wire::amqp::{
    ContentHeader, Frame, FrameType, Method, MethodId, Properties, PropertyValues, Split, Table,
    split_frame,
};

use crate::json::{Json, hex, unhex};
use crate::methods::{arguments_json, method_from_json};

pub(crate) fn file() -> J {
    serde_json::from_str(include_str!("../../../../test-vectors/amqp/frames.json")).unwrap()
}

pub(crate) fn section(name: &str) -> Vec<J> {
    file()[name].as_array().unwrap().clone()
}

pub(crate) fn bytes(entry: &J, name: &str) -> Vec<u8> {
    unhex(entry[name].as_str().unwrap())
}

/// The one frame that fills `buffer`.
pub(crate) fn whole_frame(buffer: &[u8]) -> Frame<'_> {
    let Ok(Split::Frame(frame)) = split_frame(buffer, FRAME_MIN_SIZE) else {
        panic!("{} is no frame", hex(buffer));
    };
    assert_eq!(frame.consumed(), buffer.len(), "{}", hex(buffer));
    frame
}

fn method_id(entry: &J) -> MethodId {
    let number = |at: usize| u16::from_json(&entry["id"][at]);
    MethodId::new(number(0), number(1))
}

#[test]
fn every_method_has_a_vector_and_its_name() {
    let mut seen = BTreeSet::new();
    for entry in section("methods") {
        let id = method_id(&entry);
        assert_eq!(id.name(), entry["method"].as_str(), "{id}");
        seen.insert(id);
    }
    let all: BTreeSet<MethodId> = MethodId::all().collect();
    assert_eq!(seen, all);
    assert_eq!(all.len(), MethodId::all().count());
    assert_eq!(all.len(), 66);
}

#[test]
fn bytes_of_methods_decode_to_their_arguments() {
    for entry in section("methods") {
        let name = &entry["name"];
        let buffer = bytes(&entry, "frame");
        let frame = whole_frame(&buffer);
        assert_eq!(frame.frame_type, FrameType::Method, "{name}");
        assert_eq!(entry["channel"], frame.channel, "{name}");
        let method = Method::decode(frame.payload).unwrap();
        assert_eq!(method.id(), method_id(&entry), "{name}");
        assert_eq!(entry["content"], method.has_content(), "{name}");
        assert_eq!(arguments_json(&method), entry["arguments"], "{name}");
        let mut payload = Vec::new();
        method.encode(&mut payload);
        assert_eq!(hex(&payload), hex(frame.payload), "{name}");
        assert_eq!(payload.len(), method.encoded_size(), "{name}");
    }
}

#[test]
fn arguments_of_methods_encode_to_their_bytes() {
    for entry in section("methods") {
        let name = &entry["name"];
        let channel = u16::from_json(&entry["channel"]);
        let (method, has_content, frame) =
            method_from_json(method_id(&entry), channel, &entry["arguments"]).unwrap();
        assert_eq!(hex(&frame), entry["frame"].as_str().unwrap(), "{name}");
        assert_eq!(has_content, method.has_content(), "{name}");
        let mut any = b"before".to_vec();
        write_any_method(&mut any, channel, &method);
        assert_eq!(any, [b"before", frame.as_slice()].concat(), "{name}");
    }
}

#[test]
fn bytes_of_content_headers_decode_to_their_properties() {
    for entry in section("content_headers") {
        let name = &entry["name"];
        let buffer = bytes(&entry, "frame");
        let frame = whole_frame(&buffer);
        assert_eq!(frame.frame_type, FrameType::Header, "{name}");
        let header = ContentHeader::decode(frame.payload).unwrap();
        assert_eq!((header.class_id, header.weight), (60, 0), "{name}");
        assert_eq!(entry["body_size"], header.body_size, "{name}");
        let values = header.properties.values();
        assert_eq!(values.to_json(), entry["properties"], "{name}");
        assert_eq!(header.properties.raw(), &frame.payload[12..], "{name}");
    }
}

#[test]
fn properties_encode_to_the_bytes_of_content_headers() {
    for entry in section("content_headers") {
        let name = &entry["name"];
        let values = PropertyValues::from_json(&entry["properties"]);
        let mut raw = Vec::new();
        values.encode(&mut raw);
        assert_eq!(raw.len(), values.encoded_size(), "{name}");
        let properties = Properties::decode(&raw).unwrap();
        let mut frame = Vec::new();
        let size = u64::from_json(&entry["body_size"]);
        write_content_header(&mut frame, 1, size, properties);
        assert_eq!(hex(&frame), entry["frame"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn tables_decode_to_their_entries_and_back() {
    for entry in section("tables") {
        let name = &entry["name"];
        let bytes = bytes(&entry, "table");
        let table = Table::new(&bytes[4..]).unwrap();
        assert_eq!(table.validate(), Ok(()), "{name}");
        assert_eq!(table.to_json(), entry["entries"], "{name}");
        let written = Table::from_json(&entry["entries"]);
        assert_eq!(hex(written.as_bytes()), hex(&bytes[4..]), "{name}");
    }
}
