//! Frames in a stream, whole and in parts, and the protocol header.

use tanda_wire::amqp::frame::{
    FRAME_END, HEARTBEAT_FRAME, PROTOCOL_HEADER, ProtocolHeader, effective_frame_max,
    protocol_header,
};
use tanda_wire::amqp::{Frame, FrameError, FrameType, Split, split_frame};

use crate::vectors::{bytes, section};

fn need(buffer: &[u8], frame_max: u32) -> usize {
    match split_frame(buffer, frame_max) {
        Ok(Split::Incomplete { need_bytes }) => need_bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_cut_anywhere_waits_for_the_right_number_of_bytes() {
    for entry in section("methods") {
        let buffer = bytes(&entry, "frame");
        for cut in 0..buffer.len() {
            let want = if cut < 7 { 8 } else { buffer.len() };
            assert_eq!(need(&buffer[..cut], 4096), want, "cut at {cut}");
        }
    }
}

#[test]
fn a_stream_is_cut_into_its_frames() {
    let vectors = section("methods");
    let frames: Vec<Vec<u8>> = vectors.iter().map(|entry| bytes(entry, "frame")).collect();
    let stream = frames.concat();
    let mut rest = stream.as_slice();
    for frame in &frames {
        let Ok(Split::Frame(found)) = split_frame(rest, 4096) else {
            panic!("no frame");
        };
        assert_eq!(found.consumed(), frame.len());
        assert_eq!(found.payload, &frame[7..frame.len() - 1]);
        rest = &rest[found.consumed()..];
    }
    assert_eq!(rest, b"");
}

#[test]
fn a_payload_over_the_limit_is_refused_before_it_arrives() {
    let header = |size: u32| [&[3, 0, 5][..], &size.to_be_bytes()].concat();
    assert_eq!(need(&header(4088), 4096), 4096);
    let too_large = FrameError::TooLarge {
        frame_type: FrameType::Body,
        channel: 5,
        payload_bytes: 4089,
        payload_bytes_max: 4088,
    };
    assert_eq!(split_frame(&header(4089), 4096), Err(too_large));
    assert_eq!(
        too_large.to_string(),
        "a frame with a payload of 4089 bytes is too large: 4088 at most"
    );
    assert!(split_frame(&header(u32::MAX), 131_072).is_err());
    assert_eq!(
        need(&header(u32::MAX - 8), effective_frame_max(0)),
        u32::MAX as usize
    );
    assert!(split_frame(&header(u32::MAX), effective_frame_max(0)).is_err());
    assert!(split_frame(&header(1), 3).is_err());
}

#[test]
fn the_whole_frame_may_be_as_large_as_the_limit() {
    let mut buffer = vec![3, 0, 1, 0, 0, 0x0F, 0xF8];
    buffer.resize(4095, b'x');
    buffer.push(FRAME_END);
    let Ok(Split::Frame(frame)) = split_frame(&buffer, 4096) else {
        panic!("no frame");
    };
    assert_eq!((frame.payload.len(), frame.consumed()), (4088, 4096));
}

#[test]
fn another_end_is_refused() {
    let mut buffer = HEARTBEAT_FRAME;
    for found in (0..=u8::MAX).filter(|byte| *byte != FRAME_END) {
        buffer[7] = found;
        let error = FrameError::BadEnd {
            frame_type: FrameType::Heartbeat,
            channel: 0,
            found,
        };
        assert_eq!(split_frame(&buffer, 4096), Err(error));
    }
}

#[test]
fn an_unknown_type_is_refused_at_its_first_byte() {
    for number in 0..=u8::MAX {
        let known = FrameType::from_wire(number);
        assert_eq!(known.is_some(), [1, 2, 3, 8].contains(&number));
        for rest in 0..8 {
            let mut buffer = vec![0; rest + 1];
            buffer[0] = number;
            if rest == 7 {
                buffer[7] = FRAME_END;
            }
            let split = split_frame(&buffer, 4096);
            match known {
                None => assert_eq!(split, Err(FrameError::UnknownType { number })),
                Some(frame_type) => {
                    assert_eq!(frame_type.to_wire(), number);
                    assert!(split.is_ok());
                }
            }
        }
    }
    assert_eq!(FrameType::ALL.len(), 4);
}

#[test]
fn a_heartbeat_is_eight_bytes() {
    let frame = Frame {
        frame_type: FrameType::Heartbeat,
        channel: 0,
        payload: &[],
    };
    assert_eq!(split_frame(&HEARTBEAT_FRAME, 4096), Ok(Split::Frame(frame)));
    assert_eq!(HEARTBEAT_FRAME, [8, 0, 0, 0, 0, 0, 0, 0xCE]);
}

#[test]
fn only_one_protocol_header_is_accepted() {
    assert_eq!(PROTOCOL_HEADER, *b"AMQP\x00\x00\x09\x01");
    for cut in 0..8 {
        let part = &PROTOCOL_HEADER[..cut];
        assert_eq!(protocol_header(part), ProtocolHeader::Incomplete);
        let wrong = [part, &[PROTOCOL_HEADER[cut] ^ 1]].concat();
        assert_eq!(protocol_header(&wrong), ProtocolHeader::Refused);
    }
    assert_eq!(protocol_header(&PROTOCOL_HEADER), ProtocolHeader::Accepted);
    let more = [&PROTOCOL_HEADER[..], &[1]].concat();
    assert_eq!(protocol_header(&more), ProtocolHeader::Accepted);
    assert_eq!(
        protocol_header(b"GET / HTTP/1.1\r\n"),
        ProtocolHeader::Refused
    );
    assert_eq!(
        protocol_header(b"AMQP\x00\x01\x00\x00"),
        ProtocolHeader::Refused
    );
}
