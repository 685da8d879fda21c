//! Messages as frames: method, header, body.

use tanda_wire::amqp::basic::{Deliver, Publish};
use tanda_wire::amqp::encode::{
    BodyFrames, body_frames_bytes, content_header_frame_bytes, write_body, write_content,
    write_content_header, write_heartbeat, write_method,
};
use tanda_wire::amqp::frame::{FRAME_END, HEARTBEAT_FRAME};
use tanda_wire::amqp::{
    ContentHeader, Frame, FrameType, Method, Properties, ShortStr, Split, split_frame,
};

use crate::json::unhex;

fn frames(mut stream: &[u8], frame_max: u32) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    while !stream.is_empty() {
        let Ok(Split::Frame(frame)) = split_frame(stream, frame_max) else {
            panic!("no frame at the front of {stream:02x?}");
        };
        stream = &stream[frame.consumed()..];
        frames.push(frame);
    }
    frames
}

#[test]
fn a_delivery_is_method_header_and_body() {
    let deliver = Deliver {
        consumer_tag: ShortStr::clip("c"),
        delivery_tag: 7,
        redelivered: true,
        exchange: ShortStr::EMPTY,
        routing_key: ShortStr::clip("q"),
    };
    let properties = Properties::decode(&[0x10, 0, 2]).unwrap();
    let mut out = Vec::new();
    write_content(&mut out, 3, &deliver, properties, b"hello", 4096);
    let want = unhex(concat!(
        "01000300000012003c003c01630000000000000007010001",
        "71ce",
        "0200030000000f003c00000000000000000005100002ce",
        "0300030000000568656c6c6fce",
    ));
    assert_eq!(out, want);
    let frames = frames(&out, 4096);
    assert_eq!(Method::decode(frames[0].payload), Ok(deliver.into()));
    let header = ContentHeader::decode(frames[1].payload).unwrap();
    assert_eq!((header.body_size, header.properties), (5, properties));
    assert_eq!(frames[2].payload, b"hello");
}

#[test]
fn an_empty_body_has_no_frame() {
    let mut out = Vec::new();
    write_content(
        &mut out,
        1,
        &Publish::default(),
        Properties::EMPTY,
        &[],
        4096,
    );
    let types: Vec<FrameType> = frames(&out, 4096)
        .iter()
        .map(|frame| frame.frame_type)
        .collect();
    assert_eq!(types, [FrameType::Method, FrameType::Header]);
    write_body(&mut out, 1, &[], 4096);
    assert_eq!(frames(&out, 4096).len(), 2);
    assert_eq!(BodyFrames::new(1, 0, 4096).count(), 0);
    assert_eq!(body_frames_bytes(0, 4096), 0);
}

#[test]
fn a_body_is_cut_at_eight_bytes_less_than_the_limit() {
    for (body_len, frame_max, want) in [
        (1, 4096, vec![1]),
        (4088, 4096, vec![4088]),
        (4089, 4096, vec![4088, 1]),
        (3 * 4088, 4096, vec![4088; 3]),
        (70_000, 0, vec![70_000]),
        (3, 9, vec![1; 3]),
        (2, 8, vec![1; 2]),
        (2, 1, vec![1; 2]),
    ] {
        let body: Vec<u8> = (0..=250).cycle().take(body_len).collect();
        let mut out = Vec::new();
        write_body(&mut out, 9, &body, frame_max);
        assert_eq!(out.len(), body_frames_bytes(body_len, frame_max));
        let found = frames(&out, u32::MAX);
        let lens: Vec<usize> = found.iter().map(|frame| frame.payload.len()).collect();
        assert_eq!(lens, want, "{body_len} bytes by {frame_max}");
        assert!(found.iter().all(|frame| frame.channel == 9));
        let joined: Vec<u8> = found
            .iter()
            .flat_map(|frame| frame.payload.to_vec())
            .collect();
        assert_eq!(joined, body);

        let mut by_parts = Vec::new();
        for frame in BodyFrames::new(9, body_len, frame_max) {
            by_parts.extend_from_slice(&frame.prefix);
            by_parts.extend_from_slice(&body[frame.at..frame.at + frame.len]);
            by_parts.push(FRAME_END);
        }
        assert_eq!(by_parts, out, "{body_len} bytes by {frame_max}");
    }
}

#[test]
fn parts_make_the_same_bytes_as_the_whole() {
    let publish = Publish {
        exchange: ShortStr::clip("x"),
        routing_key: ShortStr::clip("k"),
        mandatory: true,
        immediate: false,
    };
    let properties = Properties::decode(&[0, 0]).unwrap();
    let body = [7; 10_000];
    let mut whole = b"before".to_vec();
    write_content(&mut whole, 2, &publish, properties, &body, 4096);
    let mut parts = b"before".to_vec();
    write_method(&mut parts, 2, &publish);
    let header_at = parts.len();
    write_content_header(&mut parts, 2, 10_000, properties);
    assert_eq!(
        parts.len(),
        header_at + content_header_frame_bytes(properties)
    );
    write_body(&mut parts, 2, &body, 4096);
    assert_eq!(whole, parts);
    write_heartbeat(&mut parts);
    assert!(parts.ends_with(&HEARTBEAT_FRAME));
}

#[test]
fn strings_are_bytes_until_text_is_asked_for() {
    let payload = [
        b"\x00\x3c\x00\x28\x00\x00\x02\xFF\xFE\x01".as_slice(),
        b"k\x00",
    ]
    .concat();
    let Ok(Method::Basic(tanda_wire::amqp::basic::Method::Publish(publish))) =
        Method::decode(&payload)
    else {
        panic!("not understood");
    };
    assert_eq!(publish.exchange.as_bytes(), b"\xFF\xFE");
    assert!(publish.exchange.to_str().is_err());
    assert_eq!(publish.exchange.to_string(), "\\xff\\xfe");
    assert_eq!(publish.routing_key.to_str(), Ok("k"));
}

#[test]
fn short_strings_hold_255_bytes() {
    let text = "é".repeat(128);
    let error = ShortStr::new(text.as_bytes()).unwrap_err();
    assert_eq!((error.len, error.len_max), (256, 255));
    assert_eq!(
        error.to_string(),
        "a short string of 256 bytes is too long: 255 at most"
    );
    let clipped = ShortStr::clip(&text);
    assert_eq!(clipped.to_str(), Ok("é".repeat(127).as_str()));
    let exact = "x".repeat(255);
    assert_eq!(
        ShortStr::clip(&exact),
        ShortStr::new(exact.as_bytes()).unwrap()
    );
    assert_eq!(ShortStr::try_from(exact.as_str()).unwrap().len(), 255);
}

#[test]
fn passwords_are_not_shown() {
    let response = tanda_wire::amqp::LongStr::clip("\0guest\0secret");
    let method = tanda_wire::amqp::connection::SecureOk { response };
    assert_eq!(
        format!("{method:?}"),
        "SecureOk { response: LongStr(13 bytes) }"
    );
}
