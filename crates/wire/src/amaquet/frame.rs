//! Frames in a byte stream (`Binary framing`).
//!
//! ```text
//! "AMQT" | u8 version | u8 kind | u16 flags | u16 opcode | u16 0 | u64 id | u32 len | payload
//! '-------------------------------- 24 bytes --------------------------------'
//! ```
//!
//! Owns: finding frames, refusing those that cannot be trusted, and writing them.
//! Refuses to know: payloads, connections and their state.
//!
//! A header is checked as soon as it is whole, before anyone waits for the payload or makes room
//! for it; only the magic is checked at its first wrong byte.

use core::fmt;

use super::opcode::Opcode;
use super::{ErrorCode, PROTOCOL_VERSION};

/// What every frame starts with.
pub const MAGIC: [u8; 4] = *b"AMQT";
/// Bytes of a header.
pub const HEADER_BYTES: usize = 24;
/// The largest payload that can be configured, in bytes.
pub const PAYLOAD_BYTES_HARD_MAX: u32 = 64 << 20;
/// The largest payload when nothing else is said, in bytes.
pub const PAYLOAD_BYTES_DEFAULT: u32 = 16 << 20;

const _: () = assert!(PAYLOAD_BYTES_DEFAULT <= PAYLOAD_BYTES_HARD_MAX);

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A client asks.
    Request,
    /// The server answers.
    Response,
    /// The server tells of something.
    Event,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Request, Self::Response, Self::Event];

    /// The kind of a number.
    #[must_use]
    pub const fn from_wire(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Request,
            2 => Self::Response,
            3 => Self::Event,
            _ => return None,
        })
    }

    /// Its number.
    #[must_use]
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Response => 2,
            Self::Event => 3,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Event => "event",
        }
    }
}

/// Who sends the frames that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Requests only.
    Client,
    /// Responses and events.
    Server,
}

impl Sender {
    const fn may_send(self, kind: Kind) -> bool {
        matches!(self, Self::Client) == matches!(kind, Kind::Request)
    }

    const fn kinds(self) -> &'static str {
        match self {
            Self::Client => "request (1)",
            Self::Server => "response (2) or event (3)",
        }
    }
}

/// What is known of a frame before its payload is there. Flags are ignored, as the specification
/// says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// What it asks for.
    pub opcode: Opcode,
    /// What its answer is told apart by.
    pub request_id: u64,
    /// Bytes of the payload that follows.
    pub payload_bytes: u32,
}

impl Header {
    /// A request.
    #[must_use]
    pub const fn request(opcode: Opcode, request_id: u64) -> Self {
        Self::new(Kind::Request, opcode, request_id)
    }

    /// The answer to a request of this opcode and id.
    #[must_use]
    pub const fn response(opcode: Opcode, request_id: u64) -> Self {
        Self::new(Kind::Response, opcode, request_id)
    }

    /// An event of the subscription made by this request.
    #[must_use]
    pub const fn event(request_id: u64) -> Self {
        Self::new(Kind::Event, Opcode::Subscribe, request_id)
    }

    const fn new(kind: Kind, opcode: Opcode, request_id: u64) -> Self {
        Self {
            kind,
            opcode,
            request_id,
            payload_bytes: 0,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let opcode = self.opcode.to_wire().to_be_bytes();
        let parts: [(usize, &[u8]); 5] = [
            (0, &MAGIC),
            (4, &[PROTOCOL_VERSION, self.kind.to_wire()]),
            (8, &opcode),
            (12, &self.request_id.to_be_bytes()),
            (20, &self.payload_bytes.to_be_bytes()),
        ];
        for (at, part) in parts {
            if let Some(place) = bytes.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
            }
        }
        bytes
    }

    /// What to answer when the peer ends, or pauses for too long, within this frame's payload.
    #[must_use]
    pub const fn cut_off(&self, have_bytes: usize) -> FrameError {
        FrameError {
            opcode: self.opcode,
            request_id: self.request_id,
            fault: FrameFault::CutOff {
                payload_bytes: self.payload_bytes,
                have_bytes,
            },
        }
    }
}

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it says of itself.
    pub header: Header,
    /// Its payload.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the buffer it takes.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// The front of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// A part of one.
    Incomplete {
        /// What the frame says of itself, once that is there: its payload is then a declared one.
        header: Option<Header>,
        /// How many bytes the buffer must hold in all before it is worth another look: more than
        /// it has, and never more than the frame takes.
        need_bytes: usize,
    },
}

/// A frame that is refused. The connection closes after it, as where the next frame starts, or
/// whether the peer speaks this protocol, cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameError {
    /// The opcode that the answer echoes.
    pub opcode: Opcode,
    /// The request id that the answer carries.
    pub request_id: u64,
    /// What is wrong.
    pub fault: FrameFault,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// It does not start with [`MAGIC`]: nothing in it can be believed, and nothing is answered.
    Magic {
        /// What it starts with; fewer than 4 bytes when they already differ.
        found: [u8; 4],
        /// How many bytes of `found` there were.
        found_bytes: usize,
    },
    /// Another version of the protocol.
    Version {
        /// The version.
        found: u8,
    },
    /// Not a kind that its sender may send.
    Kind {
        /// The number of the kind.
        found: u8,
        /// Who sent it.
        sender: Sender,
    },
    /// The reserved field is not zero.
    Reserved {
        /// What it holds.
        found: u16,
    },
    /// A longer payload than is taken.
    TooLarge {
        /// Its declared length.
        payload_bytes: u32,
        /// The limit.
        payload_bytes_max: u32,
    },
    /// The peer ended, or paused for too long, within the payload.
    CutOff {
        /// Its declared length.
        payload_bytes: u32,
        /// What there is of it.
        have_bytes: usize,
    },
}

impl FrameError {
    /// The code to answer with before closing; `None` when nothing is answered.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self.fault {
            FrameFault::Magic { .. } => None,
            FrameFault::Version { .. } => Some(ErrorCode::UnsupportedVersion),
            FrameFault::Kind { .. } | FrameFault::Reserved { .. } | FrameFault::CutOff { .. } => {
                Some(ErrorCode::BadFrame)
            }
            FrameFault::TooLarge { .. } => Some(ErrorCode::PayloadTooLarge),
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            FrameFault::Magic { found, found_bytes } => {
                let found = found.get(..found_bytes).unwrap_or_default();
                let found = found.escape_ascii();
                write!(
                    f,
                    "a frame starts with \"{found}\" in place of \"AMQT\": this is no Amaquet"
                )
            }
            FrameFault::Version { found } => {
                write!(f, "version {found}; this server speaks {PROTOCOL_VERSION}")
            }
            FrameFault::Kind { found, sender } => {
                write!(f, "kind {found}, not {}", sender.kinds())
            }
            FrameFault::Reserved { found } => {
                write!(f, "the reserved field is {found:#06x}, not zero")
            }
            FrameFault::TooLarge {
                payload_bytes,
                payload_bytes_max,
            } => write!(
                f,
                "a payload of {payload_bytes} bytes is over the limit of {payload_bytes_max}"
            ),
            FrameFault::CutOff {
                payload_bytes,
                have_bytes,
            } => write!(
                f,
                "the frame was cut off: {have_bytes} of {payload_bytes} bytes of its payload came"
            ),
        }
    }
}

impl core::error::Error for FrameError {}

/// Takes the frame at the front of a stream.
///
/// # Errors
/// When the frame is refused: answer with [`FrameError::code`], if it has one, and close.
#[inline]
pub fn split_frame(
    buffer: &[u8],
    sender: Sender,
    payload_bytes_max: u32,
) -> Result<Split<'_>, FrameError> {
    let Some((head, rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        check_magic(buffer)?;
        return Ok(Split::Incomplete {
            header: None,
            need_bytes: HEADER_BYTES,
        });
    };
    let header = decode_header(head, sender, payload_bytes_max)?;
    Ok(match rest.get(..header.payload_bytes as usize) {
        Some(payload) => Split::Frame(Frame { header, payload }),
        None => Split::Incomplete {
            header: Some(header),
            need_bytes: HEADER_BYTES + header.payload_bytes as usize,
        },
    })
}

fn check_magic(bytes: &[u8]) -> Result<(), FrameError> {
    let start = bytes.get(..MAGIC.len()).unwrap_or(bytes);
    if MAGIC.starts_with(start) {
        return Ok(());
    }
    let mut found = [0; 4];
    for (to, from) in found.iter_mut().zip(start) {
        *to = *from;
    }
    Err(FrameError {
        opcode: Opcode::Unknown(0),
        request_id: 0,
        fault: FrameFault::Magic {
            found,
            found_bytes: start.len(),
        },
    })
}

fn decode_header(
    head: &[u8; HEADER_BYTES],
    sender: Sender,
    payload_bytes_max: u32,
) -> Result<Header, FrameError> {
    check_magic(head)?;
    let [_, _, _, _, version, kind, _, _, o1, o2, r1, r2, rest @ ..] = *head;
    let (request_id, payload_bytes) = split_tail(rest);
    let opcode = Opcode::from_wire(u16::from_be_bytes([o1, o2]));
    let refuse = |fault| FrameError {
        opcode,
        request_id,
        fault,
    };
    if version != PROTOCOL_VERSION {
        return Err(refuse(FrameFault::Version { found: version }));
    }
    let found = Kind::from_wire(kind).filter(|kind| sender.may_send(*kind));
    let Some(kind) = found else {
        return Err(refuse(FrameFault::Kind {
            found: kind,
            sender,
        }));
    };
    let reserved = u16::from_be_bytes([r1, r2]);
    if reserved != 0 {
        return Err(refuse(FrameFault::Reserved { found: reserved }));
    }
    if payload_bytes > payload_bytes_max {
        return Err(refuse(FrameFault::TooLarge {
            payload_bytes,
            payload_bytes_max,
        }));
    }
    Ok(Header {
        kind,
        opcode,
        request_id,
        payload_bytes,
    })
}

/// Request id and length.
const fn split_tail(tail: [u8; 12]) -> (u64, u32) {
    let [a, b, c, d, e, f, g, h, len @ ..] = tail;
    let id = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    (id, u32::from_be_bytes(len))
}

/// A payload that is longer than its peer takes; nothing of its frame is left in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadTooLarge {
    /// Its length.
    pub payload_bytes: usize,
    /// The limit.
    pub payload_bytes_max: u32,
}

impl fmt::Display for PayloadTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            payload_bytes,
            payload_bytes_max,
        } = self;
        write!(
            f,
            "an answer of {payload_bytes} bytes is over the limit of {payload_bytes_max}"
        )
    }
}

impl core::error::Error for PayloadTooLarge {}

/// Appends a frame whose payload is what `write` appends.
///
/// # Errors
/// When the payload is over the limit: `out` is then as it was before.
pub fn write_frame(
    out: &mut Vec<u8>,
    header: Header,
    payload_bytes_max: u32,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<(), PayloadTooLarge> {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    write(out);
    let payload_bytes = out.len().saturating_sub(at + HEADER_BYTES);
    let fits = u32::try_from(payload_bytes).ok();
    let Some(fitting) = fits.filter(|len| *len <= payload_bytes_max) else {
        out.truncate(at);
        return Err(PayloadTooLarge {
            payload_bytes,
            payload_bytes_max,
        });
    };
    let header = Header {
        payload_bytes: fitting,
        ..header
    };
    if let Some(place) = out.get_mut(at..at + HEADER_BYTES) {
        place.copy_from_slice(&header.encode());
    }
    Ok(())
}
