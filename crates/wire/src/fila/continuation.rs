//! Bodies larger than a frame (`Continuation Frames`).
//!
//! Owns: cutting a body into frames, and joining the parts per request ID under limits.
//! Refuses to know: what is in a body; cuts fall anywhere.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::frame::{
    FLAG_CONTINUATION, FRAME_OVERHEAD_BYTES, FrameHeader, FrameStart, HEADER_BYTES, LENGTH_BYTES,
    effective_max_frame, write_at,
};
use super::opcode::Opcode;

/// Body bytes one frame can carry. A limit without room for a body byte counts as one byte of
/// room, because a sender must make progress; the peer refuses such frames itself.
const fn chunk_bytes(max_frame_size: u32) -> usize {
    let room = (effective_max_frame(max_frame_size) as usize).saturating_sub(HEADER_BYTES);
    if room == 0 { 1 } else { room }
}

/// Turns the one oversized frame that `out` ends with into continuation frames.
///
/// The parts move back to front, so that each byte is copied once and no second buffer is needed.
pub(super) fn split_in_place(out: &mut Vec<u8>, start: &FrameStart, max_frame_size: u32) {
    let chunk = chunk_bytes(max_frame_size);
    let body_at = start.body_at();
    let body_len = out.len().saturating_sub(body_at);
    let parts = body_len.div_ceil(chunk).max(1);
    out.resize(out.len() + (parts - 1) * FRAME_OVERHEAD_BYTES, 0);
    for part in (0..parts).rev() {
        let from = body_at + part * chunk;
        let len = chunk.min(body_at + body_len - from);
        let to = from + part * FRAME_OVERHEAD_BYTES;
        out.copy_within(from..from + len, to);
        let flags = if part + 1 == parts {
            0
        } else {
            FLAG_CONTINUATION
        };
        let header = FrameHeader {
            flags,
            ..start.header
        };
        // A part is at most one frame, whose size is a `u32`.
        let length = u32::try_from(HEADER_BYTES + len).unwrap_or(u32::MAX);
        let frame_at = to - FRAME_OVERHEAD_BYTES;
        write_at(out, frame_at, &length.to_be_bytes());
        write_at(out, frame_at + LENGTH_BYTES, &header.to_bytes());
    }
}

/// Appends `body` as one frame, or as several when it is larger than `max_frame_size`
/// (0 = default).
pub fn write_split(out: &mut Vec<u8>, header: FrameHeader, max_frame_size: u32, body: &[u8]) {
    let chunk = chunk_bytes(max_frame_size);
    let mut rest = body;
    loop {
        let (part, after) = rest.split_at_checked(chunk).unwrap_or((rest, &[]));
        let flags = if after.is_empty() {
            0
        } else {
            FLAG_CONTINUATION
        };
        let length = u32::try_from(HEADER_BYTES + part.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&FrameHeader { flags, ..header }.to_bytes());
        out.extend_from_slice(part);
        if after.is_empty() {
            return;
        }
        rest = after;
    }
}

/// How much one connection may leave unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Bytes of one body, and of all unfinished bodies together.
    pub total_bytes_max: usize,
    /// Bodies begun and not ended.
    pub unfinished_max: usize,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self {
            total_bytes_max: 256 * 1024 * 1024,
            unfinished_max: 16,
        }
    }
}

/// Why a part does not fit the parts before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReassemblyError {
    /// The opcode is not the one the body began with. What had arrived is dropped.
    OpcodeChanged {
        /// The request.
        request_id: u32,
        /// The opcode of the first part.
        began_as: Opcode,
        /// The opcode of this part.
        found: Opcode,
    },
    /// The unfinished bodies would hold too many bytes.
    TooLarge {
        /// The request of the part that is too much.
        request_id: u32,
        /// Bytes with that part.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too many bodies are unfinished.
    TooManyUnfinished {
        /// The request that began one more.
        request_id: u32,
        /// The limit.
        unfinished_max: usize,
    },
}

impl ReassemblyError {
    /// The request whose part was refused.
    #[must_use]
    pub const fn request_id(&self) -> u32 {
        match self {
            Self::OpcodeChanged { request_id, .. }
            | Self::TooLarge { request_id, .. }
            | Self::TooManyUnfinished { request_id, .. } => *request_id,
        }
    }

    /// Whether the connection must close, because a limit was passed.
    #[must_use]
    pub const fn is_over_limit(&self) -> bool {
        match self {
            Self::OpcodeChanged { .. } => false,
            Self::TooLarge { .. } | Self::TooManyUnfinished { .. } => true,
        }
    }
}

impl fmt::Display for ReassemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpcodeChanged {
                request_id,
                began_as,
                found,
            } => write!(
                f,
                "request {request_id} began as {began_as} and continues as {found}"
            ),
            Self::TooLarge {
                request_id,
                bytes,
                bytes_max,
            } => write!(
                f,
                "with request {request_id} the unfinished bodies hold {bytes} bytes: \
                 {bytes_max} at most"
            ),
            Self::TooManyUnfinished {
                request_id,
                unfinished_max,
            } => write!(
                f,
                "request {request_id} begins one more unfinished body: {unfinished_max} at most"
            ),
        }
    }
}

impl core::error::Error for ReassemblyError {}

#[derive(Debug)]
struct Partial {
    opcode: Opcode,
    bytes: Vec<u8>,
}

/// Joins the parts of bodies, per request ID.
#[derive(Debug, Default)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    partials: BTreeMap<u32, Partial>,
    held_bytes: usize,
}

impl Reassembler {
    /// Without any part yet.
    #[must_use]
    pub const fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            partials: BTreeMap::new(),
            held_bytes: 0,
        }
    }

    /// Bodies begun and not ended.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.partials.len()
    }

    /// Bytes of all unfinished bodies.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Whether a body with this request ID is unfinished.
    #[must_use]
    pub fn is_unfinished(&self, request_id: u32) -> bool {
        self.partials.contains_key(&request_id)
    }

    /// Forgets the unfinished body of a request.
    pub fn discard(&mut self, request_id: u32) {
        if let Some(partial) = self.partials.remove(&request_id) {
            self.held_bytes -= partial.bytes.len();
        }
    }

    /// Takes one frame and returns the body it completes, if any. A body that came in one frame
    /// is returned as it is, without a copy.
    ///
    /// # Errors
    /// A changed opcode or a passed limit. The request's parts are then dropped.
    #[inline]
    pub fn push<'a>(
        &mut self,
        header: FrameHeader,
        part: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, ReassemblyError> {
        if self.partials.is_empty() && !header.is_continued() {
            return Ok(Some(Cow::Borrowed(part)));
        }
        self.push_slow(header, part)
    }

    fn push_slow<'a>(
        &mut self,
        header: FrameHeader,
        part: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, ReassemblyError> {
        let request_id = header.request_id;
        let Some(partial) = self.partials.get(&request_id) else {
            return self.push_first(header, part);
        };
        let began_as = partial.opcode;
        if began_as != header.opcode {
            self.discard(request_id);
            let found = header.opcode;
            return Err(ReassemblyError::OpcodeChanged {
                request_id,
                began_as,
                found,
            });
        }
        self.check_bytes(request_id, part.len())?;
        let Some(partial) = self.partials.get_mut(&request_id) else {
            return Ok(None);
        };
        partial.bytes.extend_from_slice(part);
        self.held_bytes += part.len();
        if header.is_continued() {
            return Ok(None);
        }
        let whole = self
            .partials
            .remove(&request_id)
            .map(|partial| partial.bytes);
        self.held_bytes -= whole.as_ref().map_or(0, Vec::len);
        Ok(whole.map(Cow::Owned))
    }

    fn push_first<'a>(
        &mut self,
        header: FrameHeader,
        part: &'a [u8],
    ) -> Result<Option<Cow<'a, [u8]>>, ReassemblyError> {
        if !header.is_continued() {
            return Ok(Some(Cow::Borrowed(part)));
        }
        let request_id = header.request_id;
        let unfinished_max = self.limits.unfinished_max;
        if self.partials.len() >= unfinished_max {
            return Err(ReassemblyError::TooManyUnfinished {
                request_id,
                unfinished_max,
            });
        }
        self.check_bytes(request_id, part.len())?;
        self.held_bytes += part.len();
        let partial = Partial {
            opcode: header.opcode,
            bytes: part.to_vec(),
        };
        self.partials.insert(request_id, partial);
        Ok(None)
    }

    fn check_bytes(&mut self, request_id: u32, more: usize) -> Result<(), ReassemblyError> {
        let bytes = self.held_bytes.saturating_add(more);
        let bytes_max = self.limits.total_bytes_max;
        if bytes > bytes_max {
            self.discard(request_id);
            return Err(ReassemblyError::TooLarge {
                request_id,
                bytes,
                bytes_max,
            });
        }
        Ok(())
    }
}
