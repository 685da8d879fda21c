//! `test-vectors/fila/frames.json`, in both directions.

use std::collections::BTreeSet;

use serde_json::Value;
use tanda_wire::fila::Opcode;
use tanda_wire::fila::frame::{MAX_FRAME_DEFAULT, split_frame, write_frame};

use crate::json::{hex, unhex};
use crate::registry::{decode, encode};

/// One frame of the file.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) opcode: Opcode,
    pub(crate) request_id: u32,
    pub(crate) frame: Vec<u8>,
    pub(crate) fields: Value,
}

impl Vector {
    /// What follows the 10 bytes of length and header.
    pub(crate) fn body(&self) -> &[u8] {
        &self.frame[10..]
    }
}

pub(crate) fn file() -> Value {
    serde_json::from_str(include_str!("../../../../test-vectors/fila/frames.json")).unwrap()
}

pub(crate) fn opcode_named(name: &str) -> Opcode {
    *Opcode::ALL
        .iter()
        .find(|opcode| opcode.name() == name)
        .unwrap()
}

pub(crate) fn vectors() -> Vec<Vector> {
    let vector = |entry: &Value| Vector {
        name: entry["name"].as_str().unwrap().into(),
        opcode: opcode_named(entry["opcode"].as_str().unwrap()),
        request_id: u32::try_from(entry["request_id"].as_u64().unwrap()).unwrap(),
        frame: unhex(entry["frame"].as_str().unwrap()),
        fields: entry["fields"].clone(),
    };
    file()["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(vector)
        .collect()
}

#[test]
fn every_opcode_has_a_vector() {
    let seen: BTreeSet<Opcode> = vectors().iter().map(|vector| vector.opcode).collect();
    let missing: Vec<_> = Opcode::ALL
        .iter()
        .filter(|opcode| !seen.contains(opcode))
        .collect();
    assert!(missing.is_empty(), "no frame for {missing:?}");
    assert_eq!(Opcode::ALL.len(), 61);
}

#[test]
fn bytes_decode_to_the_fields() {
    for vector in vectors() {
        let frame = split_frame(&vector.frame, MAX_FRAME_DEFAULT)
            .unwrap()
            .unwrap();
        assert_eq!(frame.consumed, vector.frame.len(), "{}", vector.name);
        assert_eq!(frame.header.opcode, vector.opcode, "{}", vector.name);
        assert_eq!(
            frame.header.request_id, vector.request_id,
            "{}",
            vector.name
        );
        assert_eq!(frame.header.flags, 0, "{}", vector.name);
        let decoded = decode(vector.opcode, frame.body).unwrap();
        assert_eq!(decoded.fields, vector.fields, "{}", vector.name);
        assert_eq!(hex(&decoded.encoded), hex(frame.body), "{}", vector.name);
    }
}

#[test]
fn fields_encode_to_the_bytes() {
    for vector in vectors() {
        let mut out = Vec::new();
        write_frame(&mut out, vector.opcode, vector.request_id, |out| {
            out.extend_from_slice(&encode(vector.opcode, &vector.fields));
            Ok(())
        })
        .unwrap();
        assert_eq!(hex(&out), hex(&vector.frame), "{}", vector.name);
    }
}

#[test]
fn opcode_numbers_match_the_file() {
    for entry in file()["frames"].as_array().unwrap() {
        let opcode = opcode_named(entry["opcode"].as_str().unwrap());
        assert_eq!(entry["number"], format!("0x{:02X}", opcode.to_wire()));
    }
}
