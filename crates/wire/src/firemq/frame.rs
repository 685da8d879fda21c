//! Frames in a byte stream and in WebSocket messages (`Transports`, `Frame format`).
//!
//! ```text
//! TCP, TLS    "FMQ1" once, by the client
//!             u32 len | u8 op | u32 hlen | header | payload
//!                     '--------- len counts these ---------'
//! WebSocket           u8 op | u32 hlen | header | payload      one binary message each
//! ```
//!
//! Owns: finding frames, and putting lengths around a header and its payload.
//! Refuses to know: headers, sockets and WebSocket's own framing.
//!
//! Limits count what `len` counts, on both transports: the specification gives one number for both,
//! and only one of them has a `len`.

use core::fmt;

use super::op::Op;
use super::{Header, ReplyCode};

/// What a client sends first over TCP and TLS.
pub const PREAMBLE: [u8; 4] = *b"FMQ1";
/// Bytes of the length of a frame in a stream.
pub const LENGTH_BYTES: usize = 4;
/// Bytes of the op and the length of the header.
pub const HEAD_BYTES: usize = 5;
/// The largest frame before `welcome`, in bytes.
pub const MAX_FRAME_BEFORE_WELCOME: u32 = 65_536;
/// The largest frame after `welcome` when nothing else is said, in bytes.
pub const MAX_FRAME_DEFAULT: u32 = 16 * 1024 * 1024;

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
    pub op: Op,
    /// Its header: a MessagePack map, or no bytes.
    pub header: &'a [u8],
    /// What follows the header.
    pub payload: &'a [u8],
    /// Bytes from the start of the buffer to the payload.
    pub payload_at: usize,
    /// Bytes of the buffer it takes.
    pub consumed: usize,
}

/// The front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// A part of one.
    Incomplete {
        /// How many bytes the buffer must hold in all before it is worth another look: more than
        /// it has, and never more than the frame takes.
        need_bytes: usize,
    },
}

/// Bytes that are no frame. Where the next one starts cannot be trusted after it, so it is
/// answered by a fatal error of [`FrameError::CODE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The stream does not start with [`PREAMBLE`].
    NotFireMq {
        /// What it starts with; fewer than 4 bytes when they already differ.
        found: [u8; 4],
        /// How many bytes of `found` there were.
        found_bytes: usize,
    },
    /// Larger than the limit.
    TooLarge {
        /// The length found.
        len: u64,
        /// The limit.
        len_max: u32,
    },
    /// Too small for the op and the length of the header.
    TooSmall {
        /// The length found.
        len: usize,
    },
    /// The header would end after the frame.
    HeaderTooLong {
        /// The length of the header.
        hlen: u32,
        /// The bytes the frame has for it.
        hlen_max: usize,
    },
}

impl FrameError {
    /// The reply code that answers it.
    pub const CODE: ReplyCode = ReplyCode::FrameError;
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFireMq { found, found_bytes } => {
                let found = found.get(..*found_bytes).unwrap_or_default();
                write!(f, "the stream starts with \"{}\": ", found.escape_ascii())?;
                f.write_str("a FireMQ client sends \"FMQ1\" first")
            }
            Self::TooLarge { len, len_max } => {
                write!(
                    f,
                    "a frame of {len} bytes is larger than the limit of {len_max}"
                )
            }
            Self::TooSmall { len } => write!(
                f,
                "a frame of {len} bytes has no room for op and header length, {HEAD_BYTES} bytes"
            ),
            Self::HeaderTooLong { hlen, hlen_max } => write!(
                f,
                "a header of {hlen} bytes ends after its frame, which has {hlen_max} bytes for it"
            ),
        }
    }
}

impl core::error::Error for FrameError {}

/// Checks the start of a client's stream: `Ok(true)` when the preamble is there, to be taken off,
/// `Ok(false)` when so far only a part of it is.
///
/// # Errors
/// At the first byte that differs.
pub fn check_preamble(buffer: &[u8]) -> Result<bool, FrameError> {
    let start = buffer.get(..PREAMBLE.len()).unwrap_or(buffer);
    if PREAMBLE.starts_with(start) {
        return Ok(start.len() == PREAMBLE.len());
    }
    let mut found = [0; 4];
    for (to, from) in found.iter_mut().zip(start) {
        *to = *from;
    }
    Err(FrameError::NotFireMq {
        found,
        found_bytes: start.len(),
    })
}

/// Takes the frame at the front of a stream.
///
/// Lengths are checked as soon as they are there, before anyone waits for, or makes room for, the
/// rest. `len_max` is [`MAX_FRAME_BEFORE_WELCOME`], then what `welcome` says.
///
/// # Errors
/// When the frame is too large, too small, or its header does not fit in it.
#[inline]
pub fn split_frame(buffer: &[u8], len_max: u32) -> Result<Split<'_>, FrameError> {
    let Some((len, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(Split::Incomplete {
            need_bytes: LENGTH_BYTES,
        });
    };
    let len = u32::from_be_bytes(*len);
    check_len(len.into(), len_max)?;
    let len = len as usize;
    let Some(head) = Head::parse(rest) else {
        return Ok(Split::Incomplete {
            need_bytes: LENGTH_BYTES + HEAD_BYTES,
        });
    };
    let hlen = head.checked_hlen(len)?;
    let Some(frame) = rest.get(..len) else {
        return Ok(Split::Incomplete {
            need_bytes: LENGTH_BYTES + len,
        });
    };
    Ok(Split::Frame(head.frame(frame, hlen, LENGTH_BYTES)))
}

/// Takes the frame that is a WebSocket message.
///
/// # Errors
/// When the frame is too large, too small, or its header does not fit in it.
#[inline]
pub fn split_message(message: &[u8], len_max: u32) -> Result<Frame<'_>, FrameError> {
    check_len(message.len() as u64, len_max)?;
    let too_small = FrameError::TooSmall { len: message.len() };
    let head = Head::parse(message).ok_or(too_small)?;
    let hlen = head.checked_hlen(message.len())?;
    Ok(head.frame(message, hlen, 0))
}

const fn check_len(len: u64, len_max: u32) -> Result<(), FrameError> {
    if len > len_max as u64 {
        return Err(FrameError::TooLarge { len, len_max });
    }
    if len < HEAD_BYTES as u64 {
        #[expect(clippy::cast_possible_truncation, reason = "it is less than 5")]
        let len = len as usize;
        return Err(FrameError::TooSmall { len });
    }
    Ok(())
}

/// The op and the length of the header.
struct Head {
    op: Op,
    hlen: u32,
}

impl Head {
    const fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first_chunk::<HEAD_BYTES>() {
            Some(&[op, a, b, c, d]) => Some(Self {
                op: Op::from_wire(op),
                hlen: u32::from_be_bytes([a, b, c, d]),
            }),
            None => None,
        }
    }

    /// The length of the header, known to fit in a frame of `len` bytes.
    const fn checked_hlen(&self, len: usize) -> Result<usize, FrameError> {
        let hlen_max = len.saturating_sub(HEAD_BYTES);
        if self.hlen as usize > hlen_max {
            return Err(FrameError::HeaderTooLong {
                hlen: self.hlen,
                hlen_max,
            });
        }
        Ok(self.hlen as usize)
    }

    /// The frame in `bytes`, which start at its op, `at` bytes into the buffer. The header fits.
    fn frame(self, bytes: &[u8], hlen: usize, at: usize) -> Frame<'_> {
        let rest = bytes.get(HEAD_BYTES..).unwrap_or_default();
        let (header, payload) = rest.split_at_checked(hlen).unwrap_or_default();
        Frame {
            op: self.op,
            header,
            payload,
            payload_at: at + HEAD_BYTES + hlen,
            consumed: at + bytes.len(),
        }
    }
}

/// Whether frames carry their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// In a stream: with `len`.
    Stream,
    /// In a WebSocket message each: without.
    Message,
}

/// A frame that is larger than its peer takes; nothing of it is left in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLarge {
    /// Its length, counted as `len` counts.
    pub len: usize,
    /// The limit.
    pub len_max: u32,
}

impl fmt::Display for FrameTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, len_max } = self;
        write!(
            f,
            "a frame of {len} bytes is larger than the peer's limit of {len_max}"
        )
    }
}

impl core::error::Error for FrameTooLarge {}

/// Where a frame being written began. Hand it back to [`end_frame`].
#[derive(Debug)]
#[must_use = "a frame without its end has no length"]
pub struct FrameStart {
    at: usize,
    framing: Framing,
}

impl FrameStart {
    /// Takes the frame back: `out` is again as before it began.
    pub fn cancel(self, out: &mut Vec<u8>) {
        out.truncate(self.at);
    }
}

/// Begins a frame: room for the lengths, and the op. The header is appended next, and nothing else
/// before [`end_frame`].
#[inline]
pub fn begin_frame(out: &mut Vec<u8>, framing: Framing, op: Op) -> FrameStart {
    let at = out.len();
    if framing == Framing::Stream {
        out.extend_from_slice(&[0; LENGTH_BYTES]);
    }
    out.extend_from_slice(&[op.to_wire(), 0, 0, 0, 0]);
    FrameStart { at, framing }
}

/// Ends a frame whose header is now all of `out` since the start: writes its lengths. A payload of
/// `payload_bytes` follows it, appended to `out` or sent from where it is.
///
/// # Errors
/// When it is larger than `len_max`; the frame is then taken back.
#[inline]
pub fn end_frame(
    out: &mut Vec<u8>,
    start: FrameStart,
    payload_bytes: usize,
    len_max: u32,
) -> Result<(), FrameTooLarge> {
    let head_at = match start.framing {
        Framing::Stream => start.at + LENGTH_BYTES,
        Framing::Message => start.at,
    };
    let head_and_header = out.len().saturating_sub(head_at);
    let len = head_and_header.saturating_add(payload_bytes);
    let fits = u32::try_from(len).ok().filter(|len| *len <= len_max);
    let hlen = u32::try_from(head_and_header.saturating_sub(HEAD_BYTES));
    let (Some(len), Ok(hlen)) = (fits, hlen) else {
        start.cancel(out);
        return Err(FrameTooLarge { len, len_max });
    };
    if start.framing == Framing::Stream {
        write_at(out, start.at, len);
    }
    write_at(out, head_at + 1, hlen);
    Ok(())
}

/// Overwrites four bytes that are already in `out`.
#[inline]
fn write_at(out: &mut [u8], at: usize, value: u32) {
    let place = out.get_mut(at..at + 4);
    debug_assert!(place.is_some(), "4 bytes at {at} were reserved earlier");
    if let Some(place) = place {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Appends a frame up to its payload of `payload_bytes`, which the caller sends after it.
///
/// # Errors
/// When it is larger than `len_max`; nothing of it is then left in `out`.
#[inline]
pub fn write_head<'a, H: Header<'a>>(
    out: &mut Vec<u8>,
    framing: Framing,
    header: &H,
    payload_bytes: usize,
    len_max: u32,
) -> Result<(), FrameTooLarge> {
    let start = begin_frame(out, framing, H::OP);
    header.write_map(out);
    end_frame(out, start, payload_bytes, len_max)
}

/// Appends a frame without a payload.
///
/// # Errors
/// When it is larger than `len_max`; nothing of it is then left in `out`.
#[inline]
pub fn write_frame<'a, H: Header<'a>>(
    out: &mut Vec<u8>,
    framing: Framing,
    header: &H,
    len_max: u32,
) -> Result<(), FrameTooLarge> {
    write_head(out, framing, header, 0, len_max)
}
