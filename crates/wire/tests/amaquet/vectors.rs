//! The frames of `test-vectors/amaquet/frames.json`.

use std::collections::BTreeSet;

use serde_json::Value;
use tanda_wire::amaquet::command::{ArgumentLimits, Command};
use tanda_wire::amaquet::frame::{HEADER_BYTES, PAYLOAD_BYTES_DEFAULT, write_frame};
use tanda_wire::amaquet::{Frame, FrameError, Kind, Opcode, Sender, Split, split_frame};

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn file() -> Value {
    let text = include_str!("../../../../test-vectors/amaquet/frames.json");
    serde_json::from_str(text).unwrap()
}

fn entries(list: &str) -> Vec<Value> {
    file()[list].as_array().unwrap().clone()
}

fn bytes(entry: &Value) -> Vec<u8> {
    unhex(entry["frame"].as_str().unwrap())
}

fn sender(kind: &str) -> Sender {
    if kind == "request" {
        Sender::Client
    } else {
        Sender::Server
    }
}

fn split(bytes: &[u8], sender: Sender) -> Frame<'_> {
    let split = split_frame(bytes, sender, PAYLOAD_BYTES_DEFAULT).unwrap();
    let Split::Frame(frame) = split else {
        panic!("{split:?}");
    };
    frame
}

#[test]
fn every_opcode_and_kind_has_a_frame() {
    let seen: BTreeSet<(u64, String)> = entries("frames")
        .iter()
        .map(|it| (it["opcode"].as_u64().unwrap(), it["kind"].to_string()))
        .collect();
    for opcode in Opcode::ALL {
        for kind in ["\"request\"", "\"response\""] {
            let wanted = (u64::from(opcode.to_wire()), kind.to_owned());
            assert!(seen.contains(&wanted), "{opcode} {kind}");
        }
    }
    assert!(seen.contains(&(4, "\"event\"".to_owned())));
}

#[test]
fn frames_mean_what_the_file_says() {
    for entry in entries("frames") {
        let (name, bytes) = (&entry["name"], bytes(&entry));
        let frame = split(&bytes, sender(entry["kind"].as_str().unwrap()));
        let header = frame.header;
        assert_eq!(entry["kind"], header.kind.name(), "{name}");
        assert_eq!(entry["op"], header.opcode.name(), "{name}");
        assert_eq!(entry["opcode"], header.opcode.to_wire(), "{name}");
        assert_eq!(entry["request_id"], header.request_id.to_string(), "{name}");
        assert_eq!(frame.consumed(), bytes.len(), "{name}");
        let payload = match frame.payload {
            [] => Value::Null,
            payload => serde_json::from_slice(payload).unwrap(),
        };
        if name != "a command with space around it and escapes" {
            assert_eq!(entry["payload"], payload, "{name}");
        }
        let is_command = header.kind == Kind::Request && header.opcode == Opcode::Command;
        if is_command {
            let command = Command::parse(frame.payload, &ArgumentLimits::default()).unwrap();
            assert_eq!(entry["payload"]["command"], command.spec().name, "{name}");
        }
    }
}

#[test]
fn frames_are_written_as_they_are() {
    for entry in entries("frames") {
        let bytes = bytes(&entry);
        let frame = split(&bytes, sender(entry["kind"].as_str().unwrap()));
        let mut out = b"before".to_vec();
        write_frame(&mut out, frame.header, PAYLOAD_BYTES_DEFAULT, |out| {
            out.extend_from_slice(frame.payload);
        })
        .unwrap();
        let mut written = out.split_off(6);
        assert_eq!(out, b"before");
        if entry["name"] == "flags are ignored" {
            written[6..8].copy_from_slice(&[0xff; 2]);
        }
        assert_eq!(written, bytes, "{}", entry["name"]);
    }
}

/// What a server does about bytes after which nothing comes.
fn refusal(bytes: &[u8], sender: Sender) -> Option<FrameError> {
    match split_frame(bytes, sender, PAYLOAD_BYTES_DEFAULT) {
        Err(error) => Some(error),
        Ok(Split::Incomplete { header, .. }) => {
            let have = bytes.len().saturating_sub(HEADER_BYTES);
            header.map(|header| header.cut_off(have))
        }
        Ok(Split::Frame(frame)) => panic!("{frame:?}"),
    }
}

#[test]
fn malformed_frames_are_refused() {
    for entry in entries("malformed") {
        let name = &entry["name"];
        let error = refusal(&bytes(&entry), sender(entry["sender"].as_str().unwrap()));
        let code = error.and_then(|error| error.code());
        let Some(code) = code else {
            assert_eq!(entry["code"], Value::Null, "{name}");
            continue;
        };
        let error = error.unwrap();
        assert_eq!(entry["code"], code.name(), "{name}");
        assert_eq!(entry["request_id"], error.request_id.to_string(), "{name}");
        assert_eq!(entry["opcode"], error.opcode.to_wire(), "{name}");
    }
}

#[test]
fn bad_payloads_are_refused() {
    for entry in entries("bad_payloads") {
        let (name, bytes) = (&entry["name"], bytes(&entry));
        let frame = split(&bytes, Sender::Client);
        let error = Command::parse(frame.payload, &ArgumentLimits::default()).unwrap_err();
        assert_eq!(entry["code"], error.code().name(), "{name}: {error}");
    }
}
