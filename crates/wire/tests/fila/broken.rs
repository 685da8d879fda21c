//! Frames that break the layout: refused, with the place at fault, and never a panic.

use tanda_wire::cursor::DecodeErrorKind;
use tanda_wire::fila::control::Handshake;
use tanda_wire::fila::enqueue::EnqueueBatch;
use tanda_wire::fila::frame::{FrameError, FrameHeader, split_frame};
use tanda_wire::fila::{Capabilities, Opcode};

use crate::json::unhex;
use crate::registry::decode;
use crate::vectors::{file, opcode_named, vectors};

#[test]
fn listed_malformed_bodies_are_refused_at_the_right_place() {
    for entry in file()["malformed"].as_array().unwrap() {
        let opcode = opcode_named(entry["opcode"].as_str().unwrap());
        let body = unhex(entry["body"].as_str().unwrap());
        let error = decode(opcode, &body).expect_err(&entry["name"].to_string());
        assert_eq!(entry["offset"], error.offset, "{}: {error}", entry["name"]);
    }
}

#[test]
fn a_body_cut_anywhere_is_refused() {
    for vector in vectors() {
        let body = vector.body();
        for cut in 0..body.len() {
            let decoded = decode(vector.opcode, &body[..cut]);
            assert!(decoded.is_err(), "{} cut at {cut}", vector.name);
            assert!(
                decoded.unwrap_err().offset <= cut,
                "{} cut at {cut}",
                vector.name
            );
        }
    }
}

#[test]
fn bytes_after_the_last_field_are_ignored() {
    for vector in vectors() {
        let mut longer = vector.body().to_vec();
        longer.extend_from_slice(&[0xFF; 9]);
        let decoded = decode(vector.opcode, &longer).unwrap();
        assert_eq!(decoded.fields, vector.fields, "{}", vector.name);
        assert_eq!(decoded.encoded, vector.body(), "{}", vector.name);
    }
}

/// Whatever one byte becomes, decoding ends, and what it accepts it can encode and read again.
#[test]
fn any_one_byte_may_change() {
    for vector in vectors() {
        for at in 0..vector.body().len() {
            for value in [0, 1, 2, 0x7F, 0x80, 0xFF] {
                let mut body = vector.body().to_vec();
                body[at] = value;
                if let Ok(first) = decode(vector.opcode, &body) {
                    let second = decode(vector.opcode, &first.encoded).unwrap();
                    assert_eq!(first.fields, second.fields, "{} at {at}", vector.name);
                }
            }
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let body = unhex("0001010046616263");
    let error = Handshake::decode(&body).unwrap_err();
    assert_eq!(
        error.to_string(),
        "string of 70 bytes at offset 5 runs past the end: 3 bytes left"
    );
    let error = Handshake::decode(&[0, 1, 2, 0, 0, 0, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "presence byte at offset 2 is 2: it must be 0 or 1"
    );
    let error = EnqueueBatch::decode_header(&[0xFF; 4]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a count of 4294967295 items at offset 4 needs at least 51539607540 bytes: 0 bytes left"
    );
    let error = Handshake::decode(&unhex("00010100036162ff00000000")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "string at offset 5 is not UTF-8: only its first 2 bytes are valid"
    );
    assert_eq!(
        error.kind,
        DecodeErrorKind::InvalidUtf8 {
            what: "string",
            valid_up_to: 2
        }
    );
}

#[test]
fn a_batch_ends_at_its_first_error() {
    // Three messages by the count; the second has a presence byte of 2.
    let good = "0001 71 0000 00000000 00 00 00 00";
    let bad = "0001 71 0000 00000000 02 00 00 00";
    let body = unhex(&format!("00000003{good}{bad}{good}").replace(' ', ""));
    let batch = EnqueueBatch::decode_header(&body).unwrap();
    assert_eq!(batch.item_count(), 3);
    let results: Vec<bool> = batch.map(|message| message.is_ok()).collect();
    assert_eq!(results, [true, false]);
}

#[test]
fn impossible_lengths_are_refused_before_their_bytes_arrive() {
    let header = FrameHeader::new(Opcode::Enqueue, 7);
    let mut oversized = 101_u32.to_be_bytes().to_vec();
    let error = split_frame(&oversized, 100).unwrap_err();
    assert_eq!(
        error,
        FrameError::TooLarge {
            length: 101,
            length_max: 100,
            header: None
        }
    );
    assert_eq!(error.request_id(), 0);
    oversized.extend_from_slice(&header.to_bytes());
    let error = split_frame(&oversized, 100).unwrap_err();
    assert_eq!(error.request_id(), 7);
    assert_eq!(split_frame(&100_u32.to_be_bytes(), 100), Ok(None));
    for length in 0..6_u32 {
        let error = split_frame(&length.to_be_bytes(), 100).unwrap_err();
        assert_eq!(error, FrameError::TooSmall { length });
    }
}

#[test]
fn unknown_numbers_survive() {
    let header = FrameHeader::parse(&[0x42, 0x83, 0, 0, 0, 1]).unwrap();
    assert_eq!(header.opcode, Opcode::Unknown(0x42));
    assert!(header.is_continued() && header.has_reserved_flags());
    assert_eq!(header.to_bytes(), [0x42, 0x83, 0, 0, 0, 1]);
    assert_eq!(FrameHeader::parse(&[0x42, 0, 0, 0, 0]), None);
    let body = unhex("000100fffffffe");
    let handshake = Handshake::decode(&body).unwrap();
    assert_eq!(handshake.client_capabilities.bits(), 0xFFFF_FFFE);
    assert!(
        !handshake
            .client_capabilities
            .contains(Capabilities::CREDIT_FLOW_CONTROL)
    );
}
