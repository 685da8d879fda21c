//! Whole frames, appended to a buffer.
//!
//! Owns: the bytes around payloads, and cutting bodies into frames. Refuses to know: the order in
//! which a channel may send them. Every size is known before the first byte is written, so nothing
//! is patched and one reservation is enough.

use super::frame::{FRAME_END, FRAME_HEADER_BYTES, FRAME_OVERHEAD_BYTES, FrameType};
use super::frame::{HEARTBEAT_FRAME, effective_frame_max};
use super::header::{CONTENT_HEADER_BYTES, content_header_prefix};
use super::method::{Arguments, Method};
use super::properties::Properties;

/// The bytes before a payload of this size, which [`FRAME_END`] follows.
///
/// For bodies that are sent from where they lie: prefix, body, [`FRAME_END`].
#[inline]
#[must_use]
pub const fn frame_prefix(
    frame_type: FrameType,
    channel: u16,
    payload_bytes: u32,
) -> [u8; FRAME_HEADER_BYTES] {
    let [c0, c1] = channel.to_be_bytes();
    let [s0, s1, s2, s3] = payload_bytes.to_be_bytes();
    [frame_type.to_wire(), c0, c1, s0, s1, s2, s3]
}

/// Appends the frame of a method whose type is known.
#[inline]
pub fn write_method<'a>(out: &mut Vec<u8>, channel: u16, method: &impl Arguments<'a>) {
    let size = method.arguments_size();
    out.reserve(FRAME_OVERHEAD_BYTES + 4 + size);
    write_method_reserved(out, channel, method, size);
}

#[inline]
fn write_method_reserved<'a, M: Arguments<'a>>(
    out: &mut Vec<u8>,
    channel: u16,
    method: &M,
    size: usize,
) {
    let [p0, p1, p2, p3, p4, p5, p6] =
        frame_prefix(FrameType::Method, channel, payload_prefix(4 + size));
    let [c0, c1, m0, m1] = const { M::ID.to_bytes() };
    out.extend_from_slice(&[p0, p1, p2, p3, p4, p5, p6, c0, c1, m0, m1]);
    let arguments_at = out.len();
    method.write_arguments(out);
    debug_assert_eq!(out.len(), arguments_at + size, "size of {}", M::ID);
    out.push(FRAME_END);
}

/// Appends the frame of any method.
pub fn write_any_method(out: &mut Vec<u8>, channel: u16, method: &Method<'_>) {
    let size = method.encoded_size();
    out.reserve(FRAME_OVERHEAD_BYTES + size);
    let prefix = frame_prefix(FrameType::Method, channel, payload_prefix(size));
    out.extend_from_slice(&prefix);
    let payload_at = out.len();
    method.encode(out);
    debug_assert_eq!(out.len(), payload_at + size, "size of {}", method.id());
    out.push(FRAME_END);
}

/// Appends the frame of a content header of class `basic`.
///
/// A content header cannot be split, so the frame may be larger than the peer's limit; compare
/// [`content_header_frame_bytes`].
#[inline]
pub fn write_content_header(
    out: &mut Vec<u8>,
    channel: u16,
    body_size: u64,
    properties: Properties<'_>,
) {
    out.reserve(content_header_frame_bytes(properties));
    write_content_header_reserved(out, channel, body_size, properties);
}

#[inline]
fn write_content_header_reserved(
    out: &mut Vec<u8>,
    channel: u16,
    body_size: u64,
    properties: Properties<'_>,
) {
    let raw = properties.raw();
    let payload_bytes = payload_prefix(CONTENT_HEADER_BYTES + raw.len());
    let prefix = frame_prefix(FrameType::Header, channel, payload_bytes);
    out.extend_from_slice(&prefix);
    out.extend_from_slice(&content_header_prefix(body_size));
    out.extend_from_slice(raw);
    out.push(FRAME_END);
}

/// The bytes of the frame of a content header with these properties.
#[inline]
#[must_use]
pub const fn content_header_frame_bytes(properties: Properties<'_>) -> usize {
    FRAME_OVERHEAD_BYTES + CONTENT_HEADER_BYTES + properties.raw().len()
}

/// One frame of a body that is sent from where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyFrame {
    /// Comes before the bytes; [`FRAME_END`] comes after them.
    pub prefix: [u8; FRAME_HEADER_BYTES],
    /// Offset in the body of the first of the bytes.
    pub at: usize,
    /// How many bytes.
    pub len: usize,
}

/// The frames of a body of `body_len` bytes: none when it is empty.
#[derive(Debug, Clone)]
pub struct BodyFrames {
    channel: u16,
    chunk_max: usize,
    at: usize,
    body_len: usize,
}

impl BodyFrames {
    /// Cuts a body into frames of at most `frame_max` bytes (0: no limit).
    #[must_use]
    pub const fn new(channel: u16, body_len: usize, frame_max: u32) -> Self {
        Self {
            channel,
            chunk_max: chunk_max(frame_max),
            at: 0,
            body_len,
        }
    }
}

impl Iterator for BodyFrames {
    type Item = BodyFrame;

    #[inline]
    fn next(&mut self) -> Option<BodyFrame> {
        let len = self.body_len.saturating_sub(self.at).min(self.chunk_max);
        if len == 0 {
            return None;
        }
        let at = self.at;
        self.at += len;
        let prefix = frame_prefix(FrameType::Body, self.channel, payload_prefix(len));
        Some(BodyFrame { prefix, at, len })
    }
}

/// Appends the frames of a body, of at most `frame_max` bytes each (0: no limit).
pub fn write_body(out: &mut Vec<u8>, channel: u16, body: &[u8], frame_max: u32) {
    out.reserve(body_frames_bytes(body.len(), frame_max));
    write_body_reserved(out, channel, body, frame_max);
}

#[inline]
fn write_body_reserved(out: &mut Vec<u8>, channel: u16, body: &[u8], frame_max: u32) {
    for chunk in body.chunks(chunk_max(frame_max)) {
        let prefix = frame_prefix(FrameType::Body, channel, payload_prefix(chunk.len()));
        out.extend_from_slice(&prefix);
        out.extend_from_slice(chunk);
        out.push(FRAME_END);
    }
}

/// The bytes that the frames of a body of `body_len` bytes take.
#[inline]
#[must_use]
pub const fn body_frames_bytes(body_len: usize, frame_max: u32) -> usize {
    let frames = body_len.div_ceil(chunk_max(frame_max));
    body_len.saturating_add(frames.saturating_mul(FRAME_OVERHEAD_BYTES))
}

/// Appends a method, the content header and the body that belong to it.
#[inline]
pub fn write_content<'a, M: Arguments<'a>>(
    out: &mut Vec<u8>,
    channel: u16,
    method: &M,
    properties: Properties<'_>,
    body: &[u8],
    frame_max: u32,
) {
    const { assert!(M::HAS_CONTENT, "a method without content") };
    let size = method.arguments_size();
    let head = FRAME_OVERHEAD_BYTES + 4 + size + content_header_frame_bytes(properties);
    out.reserve(head.saturating_add(body_frames_bytes(body.len(), frame_max)));
    write_method_reserved(out, channel, method, size);
    write_content_header_reserved(out, channel, body.len() as u64, properties);
    write_body_reserved(out, channel, body, frame_max);
}

/// Appends a heartbeat.
pub fn write_heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(&HEARTBEAT_FRAME);
}

/// The most bytes of body in one frame; at least one, whatever `frame_max` says.
const fn chunk_max(frame_max: u32) -> usize {
    let frame_max = effective_frame_max(frame_max) as usize;
    if frame_max > FRAME_OVERHEAD_BYTES {
        frame_max - FRAME_OVERHEAD_BYTES
    } else {
        1
    }
}

/// The size of a payload as a frame says it.
#[inline]
fn payload_prefix(payload_bytes: usize) -> u32 {
    let prefix = u32::try_from(payload_bytes);
    debug_assert!(
        prefix.is_ok(),
        "fields are bounded so that {payload_bytes} bytes fit a frame"
    );
    prefix.unwrap_or(u32::MAX)
}
