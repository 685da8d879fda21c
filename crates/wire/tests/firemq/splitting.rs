//! Frames cut at every byte, at the limits, and written.

use tanda_wire::firemq::consume::{Ack, Deliver};
use tanda_wire::firemq::frame::{
    FrameError, FrameTooLarge, Framing, HEAD_BYTES, LENGTH_BYTES, MAX_FRAME_BEFORE_WELCOME, Split,
    begin_frame, check_preamble, end_frame, split_frame, split_message, write_frame, write_head,
};
use tanda_wire::firemq::session::Ping;
use tanda_wire::firemq::{Op, Props, RawMap};

use crate::vectors::{vectors, whole};

#[test]
fn a_cut_frame_says_how_much_it_needs() {
    for vector in vectors() {
        for cut in 0..vector.frame.len() {
            let part = &vector.frame[..cut];
            let split = split_frame(part, MAX_FRAME_BEFORE_WELCOME).unwrap();
            let need_bytes = match cut {
                0..4 => LENGTH_BYTES,
                4..9 => LENGTH_BYTES + HEAD_BYTES,
                _ => vector.frame.len(),
            };
            assert_eq!(split, Split::Incomplete { need_bytes }, "{cut}");
        }
    }
}

#[test]
fn frames_follow_each_other() {
    let all: Vec<u8> = vectors().into_iter().flat_map(|v| v.frame).collect();
    let mut rest = &all[..];
    for vector in vectors() {
        let frame = whole(rest);
        assert_eq!(frame.op, vector.op);
        rest = &rest[frame.consumed..];
    }
    assert!(rest.is_empty());
}

#[test]
fn limits_are_checked_before_waiting() {
    let over = FrameError::TooLarge {
        len: 101,
        len_max: 100,
    };
    assert_eq!(split_frame(&[0, 0, 0, 101], 100), Err(over));
    assert_eq!(split_message(&[0; 101], 100), Err(over));
    let need = Split::Incomplete { need_bytes: 9 };
    assert_eq!(split_frame(&[0, 0, 0, 100], 100), Ok(need));
    let mut message = [0; 100];
    message[0] = 0x20;
    assert_eq!(split_message(&message, 100).unwrap().payload.len(), 95);

    let header_too_long = FrameError::HeaderTooLong {
        hlen: 96,
        hlen_max: 95,
    };
    let bytes = [0, 0, 0, 100, 0x20, 0, 0, 0, 96];
    assert_eq!(split_frame(&bytes, 100), Err(header_too_long));
    message[4] = 96;
    assert_eq!(split_message(&message, 100), Err(header_too_long));

    for len in 0..5 {
        let small = Err(FrameError::TooSmall { len });
        let len = u8::try_from(len).unwrap();
        assert_eq!(split_frame(&[0, 0, 0, len], 100), small);
        assert_eq!(
            split_message(&[3, 0, 0, 0][..len.min(4).into()], 100).map(Split::Frame),
            small
        );
    }
    let longest = [0xff; 9];
    assert!(split_frame(&longest, u32::MAX - 1).is_err());
    let Ok(Split::Incomplete { .. }) = split_frame(&longest[..4], u32::MAX) else {
        panic!("the length is allowed");
    };
}

#[test]
fn the_preamble_is_four_letters() {
    assert_eq!(check_preamble(b""), Ok(false));
    assert_eq!(check_preamble(b"FM"), Ok(false));
    assert_eq!(check_preamble(b"FMQ1"), Ok(true));
    assert_eq!(check_preamble(b"FMQ1\0\0"), Ok(true));
    let error = check_preamble(b"G").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the stream starts with \"G\": a FireMQ client sends \"FMQ1\" first"
    );
    let amqp = check_preamble(b"AMQP\0\0\x09\x01").unwrap_err();
    assert!(amqp.to_string().contains("\"AMQP\""), "{amqp}");
    assert!(check_preamble(b"FMQ2").is_err());
}

#[test]
fn written_frames_read_back() {
    let header = Deliver {
        sub: 3,
        tag: 700,
        redelivered: true,
        exchange: "logs",
        key: "a.b",
        props: Props::decode(&[0x81, 0xa4, b't', b'y', b'p', b'e', 0xa1, b'x']).unwrap(),
        headers: RawMap::decode(&[0x81, 0x01, 0xc0]).unwrap(),
    };
    for framing in [Framing::Stream, Framing::Message] {
        let mut out = b"before".to_vec();
        write_head(&mut out, framing, &header, 4, 1000).unwrap();
        out.extend_from_slice(b"body");
        let bytes = &out[6..];
        let frame = match framing {
            Framing::Stream => whole(bytes),
            Framing::Message => split_message(bytes, 1000).unwrap(),
        };
        assert_eq!((frame.op, frame.payload), (Op::Deliver, &b"body"[..]));
        assert_eq!(frame.consumed, bytes.len());
        assert_eq!(Deliver::decode(frame.header).unwrap(), header);
    }
}

#[test]
fn too_large_frames_leave_nothing() {
    let mut out = b"before".to_vec();
    let ack = Ack {
        tag: 1,
        multiple: false,
    };
    // op, hlen, and {"tag": 1}
    let error = write_frame(&mut out, Framing::Stream, &ack, 10).unwrap_err();
    assert_eq!(
        error,
        FrameTooLarge {
            len: 11,
            len_max: 10
        }
    );
    assert_eq!(out, b"before");
    write_frame(&mut out, Framing::Stream, &ack, 11).unwrap();
    assert_eq!(out.len(), 6 + 4 + 11);
    let start = begin_frame(&mut out, Framing::Stream, Op::Publish);
    assert!(end_frame(&mut out, start, usize::MAX, u32::MAX).is_err());
    assert_eq!(out.len(), 6 + 4 + 11);
}

#[test]
fn a_frame_without_fields_is_an_empty_map() {
    let mut out = Vec::new();
    write_frame(&mut out, Framing::Message, &Ping {}, 100).unwrap();
    assert_eq!(out, [0x03, 0, 0, 0, 1, 0x80]);
    assert_eq!(Ping::decode(&[]), Ok(Ping {}));
}
