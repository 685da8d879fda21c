//! Frames on their way to the peer.

use std::ops::{Deref, DerefMut};

use tanda_wire::fila::delivery::{DeliveryItem, DeliveryWriter};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{
    FrameHeader, begin_frame, end_frame_split, write_body, write_frame_split,
};
use tanda_wire::fila::{Body, EncodeError, ErrorCode, Opcode};

use super::unsent::Lot;
use crate::outflow::Outflow;

/// The outbound side of one connection.
#[derive(Debug)]
pub(super) struct Outbound {
    flow: Outflow<Lot>,
    max_frame_size: u32,
}

impl Deref for Outbound {
    type Target = Outflow<Lot>;

    fn deref(&self) -> &Self::Target {
        &self.flow
    }
}

impl DerefMut for Outbound {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.flow
    }
}

impl Outbound {
    pub(super) fn new(max_frame_size: usize) -> Self {
        Self {
            flow: Outflow::default(),
            max_frame_size: u32::try_from(max_frame_size).unwrap_or(u32::MAX),
        }
    }

    /// The largest frame, in the protocol's count.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        self.max_frame_size as usize
    }

    /// Appends the frame, or frames, of a body.
    pub(super) fn body<'a, B: Body<'a>>(&mut self, request_id: u32, body: &B) {
        let before = self.flow.filling().len();
        let done = write_body(self.flow.filling(), request_id, self.max_frame_size, body);
        self.finish(before, request_id, done);
    }

    /// Appends the frame, or frames, of a body that `write` appends.
    pub(super) fn frame(
        &mut self,
        opcode: Opcode,
        request_id: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) {
        let before = self.flow.filling().len();
        let header = FrameHeader::new(opcode, request_id);
        let done = write_frame_split(self.flow.filling(), header, self.max_frame_size, write);
        self.finish(before, request_id, done);
    }

    /// Appends an error frame.
    pub(super) fn error(
        &mut self,
        request_id: u32,
        error_code: ErrorCode,
        message: &str,
        metadata: &[(&str, &str)],
    ) {
        let metadata = metadata.to_vec();
        self.body(
            request_id,
            &ErrorFrame {
                error_code,
                message,
                metadata,
            },
        );
    }

    /// Begins a delivery frame, in which the first of `items` stand that fit `body_bytes_max`; a
    /// single larger one goes alone and is split. Returns how many it took: 0 at the end.
    pub(super) fn deliveries<'a>(
        &mut self,
        request_id: u32,
        items: impl Iterator<Item = (DeliveryItem<'a>, u64)>,
        body_bytes_max: usize,
    ) -> usize {
        let before = self.flow.filling().len();
        let start = begin_frame(self.flow.filling(), Opcode::Delivery, request_id);
        let mut writer = DeliveryWriter::new(self.flow.filling());
        let (mut taken, mut budget_bytes) = (0, 0);
        for (item, item_budget) in items {
            let size = writer.body_bytes() + item.encoded_size();
            if writer.count() > 0 && size > body_bytes_max {
                break;
            }
            // Names and keys came in as strings of the protocol, so each fits its prefix.
            let pushed = writer.push(&item);
            debug_assert!(pushed.is_ok(), "{pushed:?}");
            taken += 1;
            budget_bytes += item_budget;
        }
        if writer.finish() == 0 || self.flow.is_shut() {
            start.cancel(self.flow.filling());
            self.flow.count_drained(budget_bytes);
            return taken;
        }
        let done = end_frame_split(self.flow.filling(), start, self.max_frame_size);
        debug_assert!(done.is_ok(), "{done:?}");
        self.flow.count_deliveries(before, budget_bytes);
        taken
    }

    /// Counts what was appended. A body that cannot be said in the protocol (a list or text longer
    /// than its prefix) becomes an error, because a request must not stay without an answer.
    fn finish(&mut self, before: usize, request_id: u32, done: Result<(), EncodeError>) {
        if self.flow.is_shut() {
            self.flow.filling().truncate(before);
            return;
        }
        if let Err(error) = done {
            self.flow.filling().truncate(before);
            let text = format!("the answer cannot be encoded: {error}");
            let frame = ErrorFrame {
                error_code: ErrorCode::InternalError,
                message: &text,
                metadata: Vec::new(),
            };
            let fits = write_body(self.flow.filling(), request_id, self.max_frame_size, &frame);
            debug_assert!(fits.is_ok(), "{fits:?}");
        }
        self.flow.count(before);
    }
}
