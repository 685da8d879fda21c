//! From a byte stream to whole bodies.
//!
//! Owns: cutting frames out of the input without copying them, and joining continuation frames
//! under limits. Refuses to know: what an opcode means.

use bytes::{Buf, Bytes, BytesMut};
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::frame::{FRAME_OVERHEAD_BYTES, FrameHeader, frame_size, split_frame};

use super::ProtocolError;

/// A frame, or a body that came in several; a slice of the input in the first case.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) header: FrameHeader,
    pub(super) body: Bytes,
}

#[derive(Debug)]
pub(super) struct Splitter {
    frame_bytes_max: u32,
    reassembler: Reassembler,
}

impl Splitter {
    pub(super) const fn new(frame_bytes_max: u32, limits: ReassemblyLimits) -> Self {
        Self {
            frame_bytes_max,
            reassembler: Reassembler::new(limits),
        }
    }

    /// A server may advertise a larger frame size than the default, and use it itself.
    pub(super) fn allow_frame_bytes(&mut self, frame_bytes_max: u32) {
        self.frame_bytes_max = self.frame_bytes_max.max(frame_bytes_max);
    }

    /// Whether parts of a body with this request ID have come.
    pub(super) fn is_unfinished(&self, request_id: u32) -> bool {
        self.reassembler.is_unfinished(request_id)
    }

    /// Bytes still missing for the frame at the front of `input`, never more than a frame may have.
    pub(super) fn missing_bytes(&self, input: &[u8]) -> usize {
        let bytes_max = self.frame_bytes_max as usize;
        frame_size(input).map_or(0, |size| size.min(bytes_max).saturating_sub(input.len()))
    }

    /// The next whole body; `None` when more bytes are needed.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Inbound>, ProtocolError> {
        loop {
            let Some(frame) = split_frame(input, self.frame_bytes_max)? else {
                return Ok(None);
            };
            let header = frame.header;
            if header.has_reserved_flags() {
                return Err(ProtocolError::ReservedFlags {
                    flags: header.flags,
                });
            }
            let mut part = input.split_to(frame.consumed).freeze();
            part.advance(FRAME_OVERHEAD_BYTES);
            let whole = self
                .reassembler
                .push(header, &part)?
                .map(|body| match body {
                    std::borrow::Cow::Borrowed(_) => None,
                    std::borrow::Cow::Owned(joined) => Some(joined),
                });
            match whole {
                None => {}
                Some(None) => return Ok(Some(Inbound { header, body: part })),
                Some(Some(joined)) => {
                    return Ok(Some(Inbound {
                        header,
                        body: Bytes::from(joined),
                    }));
                }
            }
        }
    }
}
