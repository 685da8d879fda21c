//! Frames in a byte stream (`Frame Format`, `Frame Header`, `Request ID Space`).
//!
//! ```text
//! u32 length | u8 opcode | u8 flags | u32 request ID | body part
//!            '------------ length counts these -------------'
//! ```
//!
//! Owns: finding frames, and putting length and header around a body.
//! Refuses to know: bodies, and joining continuation frames (that is [`super::continuation`]).

use core::fmt;

use super::field::{EncodeError, prefix_u32};
use super::opcode::Opcode;
use super::{Body, continuation};

/// Bytes of the length prefix.
pub const LENGTH_BYTES: usize = 4;
/// Bytes of the header after the length prefix.
pub const HEADER_BYTES: usize = 6;
/// Bytes a frame adds to its body.
pub const FRAME_OVERHEAD_BYTES: usize = LENGTH_BYTES + HEADER_BYTES;
/// The largest frame when nothing else is agreed, counted as the length prefix counts.
pub const MAX_FRAME_DEFAULT: u32 = 16 * 1024 * 1024;
/// Flag bit 0: more frames of this body follow.
pub const FLAG_CONTINUATION: u8 = 0x01;

/// The limit that a `max_frame_size` of the handshake stands for: 0 is the default.
#[must_use]
pub const fn effective_max_frame(max_frame_size: u32) -> u32 {
    if max_frame_size == 0 {
        MAX_FRAME_DEFAULT
    } else {
        max_frame_size
    }
}

/// Who made a request ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestIdClass {
    /// ID 0: the handshake's.
    Handshake,
    /// Bit 31 clear: a client's.
    Client,
    /// Bit 31 set, and not alone: a server's.
    Server,
    /// `0x80000000`: in neither range.
    Invalid,
}

/// Who made this request ID.
#[must_use]
pub const fn request_id_class(request_id: u32) -> RequestIdClass {
    match request_id {
        0 => RequestIdClass::Handshake,
        0x0000_0001..=0x7FFF_FFFF => RequestIdClass::Client,
        0x8000_0000 => RequestIdClass::Invalid,
        0x8000_0001..=0xFFFF_FFFF => RequestIdClass::Server,
    }
}

/// The six bytes after the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// What the frame is.
    pub opcode: Opcode,
    /// The flags as they came, reserved bits included.
    pub flags: u8,
    /// What the frame belongs to.
    pub request_id: u32,
}

impl FrameHeader {
    /// A header without flags.
    #[must_use]
    pub const fn new(opcode: Opcode, request_id: u32) -> Self {
        Self {
            opcode,
            flags: 0,
            request_id,
        }
    }

    /// Reads the header at the front of `bytes` (after the length prefix); `None` when there are
    /// fewer than [`HEADER_BYTES`].
    #[inline]
    #[must_use]
    pub const fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first_chunk::<HEADER_BYTES>() {
            Some(&[opcode, flags, a, b, c, d]) => Some(Self {
                opcode: Opcode::from_wire(opcode),
                flags,
                request_id: u32::from_be_bytes([a, b, c, d]),
            }),
            None => None,
        }
    }

    /// The header as bytes.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [a, b, c, d] = self.request_id.to_be_bytes();
        [self.opcode.to_wire(), self.flags, a, b, c, d]
    }

    /// Whether more frames of this body follow.
    #[inline]
    #[must_use]
    pub const fn is_continued(self) -> bool {
        self.flags & FLAG_CONTINUATION != 0
    }

    /// Whether a flag is set that must be 0.
    #[inline]
    #[must_use]
    pub const fn has_reserved_flags(self) -> bool {
        self.flags & !FLAG_CONTINUATION != 0
    }
}

/// One frame at the front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// What follows the header: a body, or a part of one.
    pub body: &'a [u8],
    /// Bytes of the buffer it takes, length prefix included.
    pub consumed: usize,
}

/// A length prefix that no frame can have. Where the next frame starts cannot be trusted after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Larger than the limit.
    TooLarge {
        /// The length found.
        length: u32,
        /// The limit.
        length_max: u32,
        /// The header, if it arrived: an error answer echoes its request ID.
        header: Option<FrameHeader>,
    },
    /// Too small for a header.
    TooSmall {
        /// The length found.
        length: u32,
    },
}

impl FrameError {
    /// The request ID an error answer should carry: 0 when the frame's is not known.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        match self {
            Self::TooLarge {
                header: Some(header),
                ..
            } => header.request_id,
            Self::TooLarge { header: None, .. } | Self::TooSmall { .. } => 0,
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge {
                length, length_max, ..
            } => {
                write!(
                    f,
                    "a frame of {length} bytes is larger than the limit of {length_max}"
                )
            }
            Self::TooSmall { length } => {
                write!(
                    f,
                    "a frame of {length} bytes has no room for its {HEADER_BYTES}-byte header"
                )
            }
        }
    }
}

impl core::error::Error for FrameError {}

/// Takes the frame at the front of `buffer`; `None` when it is not complete yet.
///
/// The length is checked as soon as its four bytes are there, before anyone waits for, or makes
/// room for, the rest. `length_max` is the limit from the handshake, never 0
/// (see [`effective_max_frame`]).
///
/// # Errors
/// When the length is over the limit or too small for a header.
#[inline]
pub fn split_frame(buffer: &[u8], length_max: u32) -> Result<Option<Frame<'_>>, FrameError> {
    let Some((prefix, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*prefix);
    if length > length_max {
        return Err(FrameError::TooLarge {
            length,
            length_max,
            header: FrameHeader::parse(rest),
        });
    }
    let length_bytes = length as usize;
    if length_bytes < HEADER_BYTES {
        return Err(FrameError::TooSmall { length });
    }
    let Some(frame) = rest.get(..length_bytes) else {
        return Ok(None);
    };
    let (Some(header), Some(body)) = (FrameHeader::parse(frame), frame.get(HEADER_BYTES..)) else {
        return Err(FrameError::TooSmall { length });
    };
    Ok(Some(Frame {
        header,
        body,
        consumed: LENGTH_BYTES + length_bytes,
    }))
}

/// How many bytes the frame at the front of `buffer` takes in all, length prefix included; `None`
/// until its length is there. The length is the sender's claim: bound it before allocating.
#[must_use]
pub fn frame_size(buffer: &[u8]) -> Option<usize> {
    let prefix = buffer.first_chunk::<LENGTH_BYTES>()?;
    Some(LENGTH_BYTES.saturating_add(u32::from_be_bytes(*prefix) as usize))
}

/// Where a frame being written began. Hand it back to [`end_frame`] or [`end_frame_split`].
#[derive(Debug)]
#[must_use = "a frame without its end has a length of 0"]
pub struct FrameStart {
    /// Offset in the output of the length prefix.
    pub(super) at: usize,
    /// The header of every frame of this body.
    pub(super) header: FrameHeader,
}

impl FrameStart {
    /// Offset in the output of the first byte of the body.
    #[must_use]
    pub const fn body_at(&self) -> usize {
        self.at + FRAME_OVERHEAD_BYTES
    }

    /// Takes the frame back: `out` is again as before it began.
    pub fn cancel(self, out: &mut Vec<u8>) {
        out.truncate(self.at);
    }
}

/// Begins a frame: room for the length, then the header. The body is appended next.
#[inline]
pub fn begin_frame(out: &mut Vec<u8>, opcode: Opcode, request_id: u32) -> FrameStart {
    let start = FrameStart {
        at: out.len(),
        header: FrameHeader::new(opcode, request_id),
    };
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.extend_from_slice(&start.header.to_bytes());
    start
}

/// Ends a frame: writes its length. All of `out` since the start is its body, in one frame.
///
/// # Errors
/// When it is longer than a `u32` can say; the frame is then taken back.
#[inline]
pub fn end_frame(out: &mut Vec<u8>, start: FrameStart) -> Result<(), EncodeError> {
    let length = out.len().saturating_sub(start.at + LENGTH_BYTES);
    match prefix_u32(length, "frame") {
        Ok(length) => {
            write_at(out, start.at, &length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            start.cancel(out);
            Err(error)
        }
    }
}

/// Ends a frame like [`end_frame`], but cuts the body into continuation frames when it is larger
/// than the peer's limit.
///
/// # Errors
/// None today; the result leaves room for a limit on bodies.
#[inline]
pub fn end_frame_split(
    out: &mut Vec<u8>,
    start: FrameStart,
    max_frame_size: u32,
) -> Result<(), EncodeError> {
    let length = out.len().saturating_sub(start.at + LENGTH_BYTES);
    if length <= effective_max_frame(max_frame_size) as usize {
        return end_frame(out, start);
    }
    continuation::split_in_place(out, &start, max_frame_size);
    Ok(())
}

/// Appends a whole frame; `body` appends what follows the header. When it fails, nothing of the
/// frame is left in `out`.
///
/// # Errors
/// The error of `body`, or a frame too long for its length prefix.
#[inline]
pub fn write_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    request_id: u32,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = begin_frame(out, opcode, request_id);
    match body(out) {
        Ok(()) => end_frame(out, start),
        Err(error) => {
            start.cancel(out);
            Err(error)
        }
    }
}

/// Appends a body as one frame, or as several when it is larger than `max_frame_size`
/// (0 = default). When `body` fails, nothing of it is left in `out`.
///
/// # Errors
/// The error of `body`.
#[inline]
pub fn write_frame_split(
    out: &mut Vec<u8>,
    header: FrameHeader,
    max_frame_size: u32,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = begin_frame(out, header.opcode, header.request_id);
    match body(out) {
        Ok(()) => end_frame_split(out, start, max_frame_size),
        Err(error) => {
            start.cancel(out);
            Err(error)
        }
    }
}

/// Appends the frame or frames of a body struct, whose opcode its type knows.
///
/// # Errors
/// When a field does not fit its prefix; nothing of the frame is then left in `out`.
pub fn write_body<'a, B: Body<'a>>(
    out: &mut Vec<u8>,
    request_id: u32,
    max_frame_size: u32,
    body: &B,
) -> Result<(), EncodeError> {
    let header = FrameHeader::new(B::OPCODE, request_id);
    out.reserve(FRAME_OVERHEAD_BYTES + body.size());
    write_frame_split(out, header, max_frame_size, |out| body.write(out))
}

/// Overwrites bytes that are already in `out`.
#[inline]
pub(super) fn write_at(out: &mut [u8], at: usize, bytes: &[u8]) {
    let place = at
        .checked_add(bytes.len())
        .and_then(|end| out.get_mut(at..end));
    debug_assert!(
        place.is_some(),
        "{} bytes at {at} were reserved earlier",
        bytes.len()
    );
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}
