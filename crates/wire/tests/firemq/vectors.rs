//! `test-vectors/firemq/frames.json`: bytes of another MessagePack implementation.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use tanda_wire::firemq::frame::{
    Frame, FrameError, MAX_FRAME_BEFORE_WELCOME, Split, split_frame, split_message,
};
use tanda_wire::firemq::message::{ToClient, ToServer};
use tanda_wire::firemq::{Direction, Op, RawMap, SyntaxError};

use crate::json::{hex, map, unhex};

/// One frame of the file.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) op: Op,
    pub(crate) frame: Vec<u8>,
    pub(crate) header: Json,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn file() -> Json {
    serde_json::from_str(include_str!("../../../../test-vectors/firemq/frames.json")).unwrap()
}

fn op_named(name: &str) -> Op {
    *Op::ALL.iter().find(|op| op.name() == name).unwrap()
}

pub(crate) fn vectors() -> Vec<Vector> {
    let vector = |entry: &Json| Vector {
        name: entry["name"].as_str().unwrap().into(),
        op: op_named(entry["op"].as_str().unwrap()),
        frame: unhex(entry["frame"].as_str().unwrap()),
        header: entry["header"].clone(),
        payload: unhex(entry["payload"].as_str().unwrap()),
    };
    file()["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(vector)
        .collect()
}

pub(crate) fn whole(bytes: &[u8]) -> Frame<'_> {
    match split_frame(bytes, MAX_FRAME_BEFORE_WELCOME).unwrap() {
        Split::Frame(frame) => frame,
        Split::Incomplete { need_bytes } => panic!("{need_bytes} bytes are needed"),
    }
}

/// Decodes a header by its op, in whichever direction there is, and encodes it again.
pub(crate) fn transcode(op: Op, header: &[u8]) -> Result<Vec<u8>, SyntaxError> {
    let mut out = Vec::new();
    let to_server = ToServer::decode(op, header)?;
    let to_client = ToClient::decode(op, header)?;
    assert_eq!(
        (to_server.is_some(), to_client.is_some()),
        match op.direction() {
            Direction::ToServer => (true, false),
            Direction::ToClient => (false, true),
            Direction::Either => (true, true),
            Direction::Unknown => (false, false),
        },
        "{op}"
    );
    if let Some(decoded) = &to_client {
        assert_eq!(decoded.op(), op);
        decoded.encode(&mut out);
        assert_eq!(ToClient::decode(op, &out).unwrap().as_ref(), Some(decoded));
    }
    if let Some(decoded) = &to_server {
        out.clear();
        assert_eq!(decoded.op(), op);
        decoded.encode(&mut out);
        assert_eq!(ToServer::decode(op, &out).unwrap().as_ref(), Some(decoded));
    }
    Ok(out)
}

#[test]
fn every_op_has_a_vector() {
    let seen: BTreeSet<Op> = vectors().iter().map(|vector| vector.op).collect();
    let missing: Vec<_> = Op::ALL.iter().filter(|op| !seen.contains(op)).collect();
    assert!(missing.is_empty(), "no frame for {missing:?}");
    assert_eq!(Op::ALL.len(), 27);
}

#[test]
fn op_numbers_match_the_file() {
    for entry in file()["frames"].as_array().unwrap() {
        let op = op_named(entry["op"].as_str().unwrap());
        assert_eq!(entry["number"], format!("{:#04x}", op.to_wire()));
    }
}

#[test]
fn frames_split_alike_in_streams_and_messages() {
    for vector in vectors() {
        let frame = whole(&vector.frame);
        assert_eq!(frame.consumed, vector.frame.len(), "{}", vector.name);
        assert_eq!(frame.op, vector.op, "{}", vector.name);
        assert_eq!(hex(frame.payload), hex(&vector.payload), "{}", vector.name);
        assert_eq!(&vector.frame[frame.payload_at..], frame.payload);
        let message = &vector.frame[4..];
        let alike = split_message(message, MAX_FRAME_BEFORE_WELCOME).unwrap();
        assert_eq!(alike.header, frame.header, "{}", vector.name);
        assert_eq!(alike.payload, frame.payload, "{}", vector.name);
        assert_eq!(alike.consumed, message.len(), "{}", vector.name);
        assert_eq!(&message[alike.payload_at..], frame.payload);
    }
}

#[test]
fn bytes_decode_to_the_header() {
    for vector in vectors() {
        let frame = whole(&vector.frame);
        if !vector.name.contains("nobody knows") && !vector.name.contains("nil for false") {
            let decoded = map(RawMap::decode(frame.header).unwrap());
            assert_eq!(decoded, vector.header, "{}", vector.name);
        }
        let again = transcode(vector.op, frame.header).unwrap();
        let again = map(RawMap::decode(&again).unwrap());
        assert_eq!(again, known_and_set(&vector), "{}", vector.name);
    }
}

/// The header without what a struct does not keep: unknown fields, and those that are zero.
fn known_and_set(vector: &Vector) -> Json {
    let mut header = vector.header.clone();
    let fields = header.as_object_mut().unwrap();
    fields.remove("later");
    fields.remove("");
    fields.retain(|_, value| match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(value) => value.as_u64() != Some(0),
        Json::String(value) => !value.is_empty(),
        Json::Array(value) => !value.is_empty(),
        Json::Object(value) => !value.is_empty(),
    });
    header
}

#[test]
fn malformed_frames_are_refused() {
    for entry in file()["malformed"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let bytes = unhex(entry["frame"].as_str().unwrap());
        let code = match split_frame(&bytes, MAX_FRAME_BEFORE_WELCOME) {
            Err(_) => FrameError::CODE,
            Ok(Split::Incomplete { .. }) => panic!("{name}: incomplete"),
            Ok(Split::Frame(frame)) => {
                let error = if frame.op.direction() == Direction::ToClient {
                    ToClient::decode(frame.op, frame.header).map(|_| ())
                } else {
                    ToServer::decode(frame.op, frame.header).map(|_| ())
                }
                .expect_err(name);
                if let Some(offset) = entry["offset"].as_u64() {
                    assert_eq!(error.offset as u64, offset, "{name}: {error}");
                }
                let field = [error.within, error.field];
                let field: Vec<_> = field.into_iter().flatten().collect();
                let expected = entry["field"].as_str().unwrap_or_default();
                assert_eq!(field.join("."), expected, "{name}: {error}");
                SyntaxError::CODE
            }
        };
        assert_eq!(entry["code"], code.to_wire(), "{name}");
    }
}
