//! The byte counts that the specification works out in `Overhead Analysis`, and the frame layout.

use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueItem, EnqueueWriter};
use tanda_wire::fila::frame::{
    MAX_FRAME_DEFAULT, begin_frame, end_frame, split_frame, write_body, write_frame,
};
use tanda_wire::fila::headers::NO_HEADERS;
use tanda_wire::fila::settle::{AckItem, AckWriter};
use tanda_wire::fila::{Opcode, config::SetConfig};

fn enqueue_frame(messages: usize) -> Vec<u8> {
    let payload = [7; 1024];
    let item = EnqueueItem {
        queue: "orders",
        payload: &payload,
        ..EnqueueItem::default()
    };
    let mut out = Vec::new();
    let frame = begin_frame(&mut out, Opcode::Enqueue, 1);
    let mut writer = EnqueueWriter::new(&mut out);
    for _ in 0..messages {
        writer.push(&item, NO_HEADERS).unwrap();
    }
    assert_eq!(writer.finish() as usize, messages);
    end_frame(&mut out, frame).unwrap();
    out
}

#[test]
fn single_enqueue_of_one_kib_takes_1056_bytes() {
    assert_eq!(enqueue_frame(1).len(), 1056);
}

#[test]
fn batch_of_hundred_takes_104214_bytes() {
    assert_eq!(enqueue_frame(100).len(), 104_214);
}

#[test]
fn ack_item_takes_24_bytes() {
    let mut out = Vec::new();
    let mut writer = AckWriter::new(&mut out);
    for n in 0..1000_u16 {
        let [high, low] = n.to_be_bytes();
        let mut message_id = [0; 16];
        message_id[14..].copy_from_slice(&[high, low]);
        writer
            .push(&AckItem {
                queue: "orders",
                message_id,
                queue_start: 0,
            })
            .unwrap();
    }
    writer.finish();
    assert_eq!(out.len(), 4 + 24_000);
}

#[test]
fn enqueue_offsets_point_into_the_body() {
    let mut body = Vec::new();
    let mut writer = EnqueueWriter::new(&mut body);
    let item = EnqueueItem {
        queue: "orders",
        payload: b"hello",
        fairness_key: Some("tenant-1"),
        weight: Some(3),
        delay_ms: Some(500),
        idempotency_key: Some("once"),
    };
    writer.push(&item, NO_HEADERS).unwrap();
    writer.push(&item, [("a", "1"), ("b", "2")]).unwrap();
    writer.finish();
    let slice = |start: u32, len: usize| &body[start as usize..start as usize + len];
    let mut seen = 0;
    for message in EnqueueBatch::decode_header(&body).unwrap() {
        let message = message.unwrap();
        assert_eq!(slice(message.queue_start, 6), b"orders");
        assert_eq!(
            slice(message.content_start, message.content.len()),
            message.content
        );
        assert_eq!(slice(message.payload_start(), 5), b"hello");
        assert_eq!(slice(message.fairness_key_start, 8), b"tenant-1");
        assert_eq!(slice(message.idempotency_key_start, 4), b"once");
        assert_eq!(
            &message.content[..message.headers_len as usize],
            message.headers.as_bytes()
        );
        assert_eq!((message.weight, message.delay_ms), (Some(3), Some(500)));
        if seen == 1 {
            assert_eq!(message.headers.find("b"), Some("2"));
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn frame_is_found_only_when_complete() {
    let mut out = Vec::new();
    let body = SetConfig {
        key: "k",
        value: "v",
    };
    write_body(&mut out, 9, 0, &body).unwrap();
    write_frame(&mut out, Opcode::Ping, 10, |_| Ok(())).unwrap();
    assert_eq!(out[..10], [0, 0, 0, 12, 0xF5, 0, 0, 0, 0, 9]);
    for cut in 0..16 {
        assert_eq!(
            split_frame(&out[..cut], MAX_FRAME_DEFAULT),
            Ok(None),
            "cut at {cut}"
        );
    }
    let frame = split_frame(&out, MAX_FRAME_DEFAULT).unwrap().unwrap();
    assert_eq!(
        (frame.header.opcode, frame.header.request_id),
        (Opcode::SetConfig, 9)
    );
    assert_eq!(SetConfig::decode(frame.body).unwrap(), body);
    let next = split_frame(&out[frame.consumed..], MAX_FRAME_DEFAULT)
        .unwrap()
        .unwrap();
    assert_eq!((next.header.opcode, next.body), (Opcode::Ping, &[][..]));
    assert_eq!(frame.consumed + next.consumed, out.len());
}
