//! Frames in a byte stream (§2.3, §4.2.3) and the header before the first of them (§4.2.2).
//!
//! ```text
//! u8 type | u16 channel | u32 size | payload of `size` bytes | u8 end = 0xCE
//! ```
//!
//! Owns: finding frames at the front of a buffer. Refuses to know: payloads, and whether a channel
//! expects this frame. What writes frames is [`super::encode`].

use core::fmt;

/// What a client sends first, and what a server answers to anything else before it closes.
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\x00\x00\x09\x01";
/// The last byte of every frame.
pub const FRAME_END: u8 = 0xCE;
/// Bytes before the payload.
pub const FRAME_HEADER_BYTES: usize = 7;
/// Bytes a frame adds to its payload.
pub const FRAME_OVERHEAD_BYTES: usize = FRAME_HEADER_BYTES + 1;
/// The same as `frame_max` counts.
const FRAME_OVERHEAD: u32 = 8;
const _: () = assert!(FRAME_OVERHEAD as usize == FRAME_OVERHEAD_BYTES);
/// The least `frame_max` a peer may agree on; no frame before that agreement is larger (§4.2.3).
pub const FRAME_MIN_SIZE: u32 = 4096;
/// A heartbeat, whole.
pub const HEARTBEAT_FRAME: [u8; FRAME_OVERHEAD_BYTES] =
    [FrameType::Heartbeat.to_wire(), 0, 0, 0, 0, 0, 0, FRAME_END];

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolHeader {
    /// [`PROTOCOL_HEADER`]; frames follow.
    Accepted,
    /// Its beginning so far.
    Incomplete,
    /// Something else: another version, or another protocol.
    Refused,
}

/// Compares the first bytes of a connection with [`PROTOCOL_HEADER`].
#[must_use]
pub fn protocol_header(buffer: &[u8]) -> ProtocolHeader {
    if buffer.starts_with(&PROTOCOL_HEADER) {
        ProtocolHeader::Accepted
    } else if PROTOCOL_HEADER.starts_with(buffer) {
        ProtocolHeader::Incomplete
    } else {
        ProtocolHeader::Refused
    }
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameType {
    /// A method and its arguments.
    Method = 1,
    /// A content header.
    Header = 2,
    /// A part of a content body.
    Body = 3,
    /// Nothing: the peer lives.
    Heartbeat = 8,
}

impl FrameType {
    /// Every type.
    pub const ALL: &'static [Self] = &[Self::Method, Self::Header, Self::Body, Self::Heartbeat];

    /// The type of a number on the wire.
    #[inline]
    #[must_use]
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Method),
            2 => Some(Self::Header),
            3 => Some(Self::Body),
            8 => Some(Self::Heartbeat),
            _ => None,
        }
    }

    /// Its number on the wire.
    #[inline]
    #[must_use]
    pub const fn to_wire(self) -> u8 {
        self as u8
    }
}

/// One frame at the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it carries.
    pub frame_type: FrameType,
    /// The channel it belongs to; 0 is the connection.
    pub channel: u16,
    /// What stands between its header and its end.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the buffer it takes.
    #[inline]
    #[must_use]
    pub const fn consumed(&self) -> usize {
        FRAME_OVERHEAD_BYTES + self.payload.len()
    }
}

/// The front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'a> {
    /// A whole frame; the next begins [`Frame::consumed`] bytes on.
    Frame(Frame<'a>),
    /// A frame's beginning. Nothing can be said before the buffer holds `need_bytes` in all, which
    /// is the whole frame as soon as its size is there, and never over the limit.
    Incomplete {
        /// Bytes from the start of the buffer.
        need_bytes: usize,
    },
}

/// Bytes that are no frame. Where the next begins cannot be known: the answer is connection.close
/// with [`super::ReplyCode::FrameError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// A type that does not exist.
    UnknownType {
        /// The number found.
        number: u8,
    },
    /// A payload over the limit.
    TooLarge {
        /// What it would carry.
        frame_type: FrameType,
        /// The channel it names.
        channel: u16,
        /// The size found, in bytes of payload.
        payload_bytes: u32,
        /// The limit on payloads: 8 less than that on frames.
        payload_bytes_max: u32,
    },
    /// Another byte where [`FRAME_END`] must be.
    BadEnd {
        /// What it would carry.
        frame_type: FrameType,
        /// The channel it names.
        channel: u16,
        /// The byte found.
        found: u8,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType { number } => write!(f, "there is no frame of type {number}"),
            Self::TooLarge {
                payload_bytes,
                payload_bytes_max,
                ..
            } => write!(
                f,
                "a frame with a payload of {payload_bytes} bytes is too large: \
                 {payload_bytes_max} at most"
            ),
            Self::BadEnd { found, .. } => {
                write!(
                    f,
                    "a frame ends with 0x{found:02X} instead of 0x{FRAME_END:02X}"
                )
            }
        }
    }
}

impl core::error::Error for FrameError {}

/// The limit that a `frame_max` of the tuning stands for: 0 is no limit (§1.4.2.5).
#[must_use]
pub const fn effective_frame_max(frame_max: u32) -> u32 {
    if frame_max == 0 { u32::MAX } else { frame_max }
}

/// Takes the frame at the front of `buffer`.
///
/// Its type is checked as soon as it is there, and its size before anyone waits for, or makes room
/// for, the payload. `frame_max` is the agreed limit on whole frames, in bytes
/// (see [`effective_frame_max`]).
///
/// # Errors
/// When these are not the bytes of a frame within the limit.
#[inline]
pub fn split_frame(buffer: &[u8], frame_max: u32) -> Result<Split<'_>, FrameError> {
    let Some((header, rest)) = buffer.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return split_short(buffer);
    };
    let [number, c0, c1, s0, s1, s2, s3] = *header;
    let Some(frame_type) = FrameType::from_wire(number) else {
        return Err(FrameError::UnknownType { number });
    };
    let channel = u16::from_be_bytes([c0, c1]);
    let payload_bytes = u32::from_be_bytes([s0, s1, s2, s3]);
    let payload_bytes_max = frame_max.saturating_sub(FRAME_OVERHEAD);
    if payload_bytes > payload_bytes_max {
        return Err(FrameError::TooLarge {
            frame_type,
            channel,
            payload_bytes,
            payload_bytes_max,
        });
    }
    let payload_len = payload_bytes as usize;
    match rest.split_at_checked(payload_len) {
        Some((payload, [FRAME_END, ..])) => Ok(Split::Frame(Frame {
            frame_type,
            channel,
            payload,
        })),
        Some((_, [found, ..])) => Err(FrameError::BadEnd {
            frame_type,
            channel,
            found: *found,
        }),
        Some((_, [])) | None => Ok(Split::Incomplete {
            need_bytes: FRAME_OVERHEAD_BYTES.saturating_add(payload_len),
        }),
    }
}

/// The front of a buffer without the seven bytes that say how large the frame is.
#[cold]
fn split_short(buffer: &[u8]) -> Result<Split<'_>, FrameError> {
    match buffer.first() {
        Some(number) if FrameType::from_wire(*number).is_none() => {
            Err(FrameError::UnknownType { number: *number })
        }
        _ => Ok(Split::Incomplete {
            need_bytes: FRAME_OVERHEAD_BYTES,
        }),
    }
}
