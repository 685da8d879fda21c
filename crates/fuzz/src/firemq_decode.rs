//! Bytes as a stream of FireMQ frames: each is split off and decoded; what a decoder accepts
//! encodes to a header that decodes to the same, and its message has a form in the other protocols
//! or is refused within the limit.
//!
//! First byte: the limits of frames and of what a message becomes. The rest is the stream.

use core::fmt::Debug;

use tanda_wire::amqp::{self, Table};
use tanda_wire::fila::Headers;
use tanda_wire::firemq::frame::{Frame, Framing, Split, split_frame, split_message};
use tanda_wire::firemq::frame::{begin_frame, end_frame};
use tanda_wire::firemq::message::{ToClient, ToServer};
use tanda_wire::firemq::reply::OkReply;
use tanda_wire::firemq::{Props, RawMap, peek_uint};
use tanda_wire::mapping::{
    FireMessage, write_amqp_properties, write_amqp_table, write_fila_headers_of_amqp,
    write_fila_headers_of_fire, write_fire_map, write_fire_props,
};

/// Largest frames, as their length counts, and largest forms in other protocols.
const BYTES_MAX: [u32; 4] = [64, 1024, 64 << 10, 1 << 20];

/// Runs one input.
///
/// # Panics
/// When a decoder and its encoder disagree, or a limit is passed.
pub fn run(input: &[u8]) {
    let Some((first, mut stream)) = input.split_first() else {
        return;
    };
    let (frame_max, form_max) = (limit(*first), limit(first >> 2) as usize);
    while let Ok(split) = split_frame(stream, frame_max) {
        let frame = match split {
            Split::Frame(frame) => frame,
            Split::Incomplete { need_bytes } => {
                assert!(need_bytes > stream.len() && need_bytes <= frame_max as usize + 9);
                break;
            }
        };
        framed_again(&frame, stream, frame_max);
        decode_again(&frame);
        let message = FireMessage {
            persistent: first & 0x10 != 0,
            props: Props::decode(frame.header).unwrap_or_default(),
            headers: RawMap::decode(frame.header).unwrap_or_default(),
        };
        forms_of_fire(&message, form_max);
        forms_of_table(frame.payload, form_max);
        stream = stream.get(frame.consumed..).unwrap_or_default();
    }
}

fn limit(bits: u8) -> u32 {
    let at = usize::from(bits % 4);
    BYTES_MAX.get(at).copied().unwrap_or(1024)
}

/// The same frame is a WebSocket message, and is written as it came.
fn framed_again(frame: &Frame<'_>, stream: &[u8], frame_max: u32) {
    let whole = stream.get(..frame.consumed).unwrap_or_default();
    let message = whole.get(4..).unwrap_or_default();
    let alike = split_message(message, frame_max);
    let alike = alike.map(|alike| (alike.op, alike.header, alike.payload));
    assert_eq!(alike, Ok((frame.op, frame.header, frame.payload)));
    let mut out = Vec::new();
    let start = begin_frame(&mut out, Framing::Stream, frame.op);
    out.extend_from_slice(frame.header);
    let ended = end_frame(&mut out, start, frame.payload.len(), frame_max);
    assert_eq!(ended, Ok(()));
    out.extend_from_slice(frame.payload);
    assert_eq!(out, whole);
}

/// What is decoded encodes to the same, and no longer than it came.
fn decode_again(frame: &Frame<'_>) {
    let header = frame.header;
    if let Ok(Some(decoded)) = ToServer::decode(frame.op, header) {
        let mut out = Vec::new();
        decoded.encode(&mut out);
        assert!(out.len() <= header.len().max(1), "{decoded:?}");
        same(
            &decoded,
            ToServer::decode(frame.op, &out).ok().flatten().as_ref(),
        );
    }
    if let Ok(Some(decoded)) = ToClient::decode(frame.op, header) {
        let mut out = Vec::new();
        decoded.encode(&mut out);
        assert!(out.len() <= header.len().max(1), "{decoded:?}");
        same(
            &decoded,
            ToClient::decode(frame.op, &out).ok().flatten().as_ref(),
        );
    }
    if let Ok(reply) = OkReply::decode(header) {
        assert_eq!(peek_uint(header, "rid").unwrap_or_default(), reply.rid);
    }
}

/// Equal as shown: a float that is no number is not equal to itself.
fn same<T: Debug>(first: &T, second: Option<&T>) {
    assert_eq!(format!("{:?}", Some(first)), format!("{second:?}"));
}

fn forms_of_fire(message: &FireMessage<'_>, bytes_max: usize) {
    let mut out = Vec::new();
    if write_amqp_table(&mut out, message.headers, bytes_max).is_ok() {
        assert!(out.len() <= bytes_max);
        forms_of_table(&out, bytes_max);
        let table = Table::new(&out).map(|table| table.validate());
        assert_eq!(table, Ok(Ok(())));
    }
    out.clear();
    if write_amqp_properties(&mut out, message, bytes_max).is_ok() {
        assert!(out.len() <= bytes_max);
        assert!(amqp::Properties::decode(&out).is_ok());
    }
    out.clear();
    if write_fila_headers_of_fire(&mut out, message, bytes_max).is_ok() {
        fila_headers(&out, bytes_max);
    }
}

fn forms_of_table(bytes: &[u8], bytes_max: usize) {
    let mut out = Vec::new();
    if let Ok(table) = Table::new(bytes)
        && write_fire_map(&mut out, table, bytes_max).is_ok()
    {
        assert!(out.len() <= bytes_max);
        assert!(RawMap::decode(&out).is_ok());
    }
    if let Ok(properties) = amqp::Properties::decode(bytes) {
        out.clear();
        write_fire_props(&mut out, &properties);
        assert!(Props::decode(&out).is_ok());
        out.clear();
        if write_fila_headers_of_amqp(&mut out, &properties, bytes_max).is_ok() {
            fila_headers(&out, bytes_max);
        }
    }
}

fn fila_headers(bytes: &[u8], bytes_max: usize) {
    let headers = Headers::decode(bytes);
    // Two lengths of each header, and their count, come on top of the limit.
    let count = headers.map(|headers| headers.len());
    assert!(count.is_ok_and(|count| bytes.len() <= bytes_max + 2 + 4 * count));
}
