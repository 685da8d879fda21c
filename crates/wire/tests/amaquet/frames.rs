//! Frames cut, changed and made at random.

use proptest::prelude::*;
use tanda_wire::amaquet::envelope::{Answer, Failure, read, write_failure, write_result};
use tanda_wire::amaquet::frame::{HEADER_BYTES, PAYLOAD_BYTES_DEFAULT, write_frame};
use tanda_wire::amaquet::{
    ErrorCode, FrameFault, Header, Kind, Opcode, Sender, Split, split_frame,
};

const MAX: u32 = PAYLOAD_BYTES_DEFAULT;

fn written(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, header, MAX, |out| out.extend_from_slice(payload)).unwrap();
    out
}

#[test]
fn a_frame_cut_at_every_byte_asks_for_what_it_lacks() {
    let whole = written(
        Header::request(Opcode::Command, 7),
        b"{\"command\":\"server.ping\"}",
    );
    for end in 0..whole.len() {
        let split = split_frame(&whole[..end], Sender::Client, MAX).unwrap();
        let Split::Incomplete { header, need_bytes } = split else {
            panic!("{split:?} of {end} bytes");
        };
        assert_eq!(header.is_some(), end >= HEADER_BYTES, "{end}");
        let need = if end < HEADER_BYTES {
            HEADER_BYTES
        } else {
            whole.len()
        };
        assert_eq!(need_bytes, need, "{end}");
        if let Some(header) = header {
            assert_eq!((header.request_id, header.payload_bytes), (7, 25));
            let error = header.cut_off(end - HEADER_BYTES);
            assert_eq!(error.code(), Some(ErrorCode::BadFrame));
            let text = format!(
                "the frame was cut off: {} of 25 bytes of its payload came",
                end - HEADER_BYTES
            );
            assert_eq!(error.to_string(), text);
        }
    }
}

#[test]
fn frames_follow_each_other() {
    let mut stream = written(Header::request(Opcode::Hello, 1), b"");
    stream.extend(written(Header::request(Opcode::Cancel, 2), b"{}"));
    let mut rest = &stream[..];
    for (id, payload) in [(1, &b""[..]), (2, b"{}")] {
        let Split::Frame(frame) = split_frame(rest, Sender::Client, MAX).unwrap() else {
            panic!("{rest:?}");
        };
        assert_eq!((frame.header.request_id, frame.payload), (id, payload));
        rest = &rest[frame.consumed()..];
    }
    assert!(rest.is_empty());
}

#[test]
fn a_declared_length_is_known_before_the_payload() {
    let mut head = Header::request(Opcode::Command, 9);
    head.payload_bytes = MAX;
    let bytes = head.encode();
    let split = split_frame(&bytes, Sender::Client, MAX).unwrap();
    let expected = Split::Incomplete {
        header: Some(head),
        need_bytes: HEADER_BYTES + MAX as usize,
    };
    assert_eq!(split, expected);
    let error = split_frame(&head.encode(), Sender::Client, MAX - 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a payload of 16777216 bytes is over the limit of 16777215"
    );
}

#[test]
fn messages_of_refused_frames() {
    let good = Header::request(Opcode::Command, 1).encode();
    for (at, byte, text) in [
        (4, 2, "version 2; this server speaks 1"),
        (5, 2, "kind 2, not request (1)"),
        (10, 1, "the reserved field is 0x0100, not zero"),
    ] {
        let mut bad = good;
        bad[at] = byte;
        let error = split_frame(&bad, Sender::Client, MAX).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let error = split_frame(b"GET / HTTP", Sender::Client, MAX).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a frame starts with \"GET \" in place of \"AMQT\": this is no Amaquet"
    );
    assert!(matches!(
        error.fault,
        FrameFault::Magic { found_bytes: 4, .. }
    ));
    assert_eq!(error.code(), None);
}

#[test]
fn an_answer_over_the_limit_leaves_nothing() {
    let mut out = b"x".to_vec();
    let header = Header::response(Opcode::Command, 1);
    let error = write_result(&mut out, header, 24, |out| out.str("0123456789")).unwrap_err();
    assert_eq!((error.payload_bytes, error.payload_bytes_max), (33, 24));
    assert_eq!(out, b"x");
    write_result(&mut out, header, 33, |out| out.str("0123456789")).unwrap();
    assert_eq!(
        &out[1 + HEADER_BYTES..],
        b"{\"ok\":true,\"result\":\"0123456789\"}"
    );
}

#[test]
fn envelopes_are_these_texts() {
    let mut out = Vec::new();
    let header = Header::response(Opcode::Command, 1);
    write_result(&mut out, header, MAX, |out| out.object(|_| {})).unwrap();
    assert_eq!(&out[HEADER_BYTES..], b"{\"ok\":true,\"result\":{}}");
    out.clear();
    let failure = Failure::new(ErrorCode::NotFound, "key not found".to_owned());
    write_failure(&mut out, header, &failure);
    let text = r#"{"ok":false,"error":{"code":"NOT_FOUND","message":"key not found"}}"#;
    assert_eq!(&out[HEADER_BYTES..], text.as_bytes());
    out.clear();
    let failure = Failure {
        retry_after_ms: Some(5),
        ..Failure::new(ErrorCode::Overloaded, "\u{e9}".repeat(600))
    };
    write_failure(&mut out, header, &failure);
    let answer = read(&out[HEADER_BYTES..]).unwrap();
    let expected = Answer::Failure {
        code: "OVERLOADED".to_owned(),
        message: "\u{e9}".repeat(512),
        retry_after_ms: Some(5),
    };
    assert_eq!(answer, expected);
    for none in [
        "",
        "[]",
        "{}",
        r#"{"ok":true}"#,
        r#"{"ok":false,"error":{}}"#,
    ] {
        assert_eq!(read(none.as_bytes()), None, "{none}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kind in 1_u8..=3,
        opcode: u16,
        request_id: u64,
        payload in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let kind = Kind::from_wire(kind).unwrap();
        let header = Header {
            kind,
            opcode: Opcode::from_wire(opcode),
            request_id,
            payload_bytes: 0,
        };
        let bytes = written(header, &payload);
        let sender = if kind == Kind::Request { Sender::Client } else { Sender::Server };
        let split = split_frame(&bytes, sender, MAX).unwrap();
        let Split::Frame(frame) = split else { panic!("{split:?}") };
        prop_assert_eq!(frame.payload, &payload[..]);
        let payload_bytes = u32::try_from(payload.len()).unwrap();
        prop_assert_eq!(frame.header, Header { payload_bytes, ..header });
    }

    #[test]
    fn no_bytes_panic(mut bytes: Vec<u8>, magic: bool, max in 0_u32..100) {
        if magic {
            bytes.splice(0..0, *b"AMQT\x01\x01");
        }
        if let Ok(Split::Incomplete { need_bytes, .. }) = split_frame(&bytes, Sender::Client, max) {
            prop_assert!(need_bytes > bytes.len());
            prop_assert!(need_bytes <= HEADER_BYTES + max as usize);
        }
    }
}
