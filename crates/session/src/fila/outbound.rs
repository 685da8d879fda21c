//! Bytes on their way to the peer, and how much of them are deliveries.
//!
//! Frames are appended to `filling`; what the server writes comes from `writing`. Answers are
//! bounded by the requests under way; deliveries by a budget that the engine keeps, for which it
//! must hear what has left ([`Outbound::take_drained`]).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use tanda_wire::fila::delivery::{DeliveryItem, DeliveryWriter};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{
    FrameHeader, begin_frame, end_frame_split, write_body, write_frame_split,
};
use tanda_wire::fila::{Body, EncodeError, ErrorCode, Opcode};

use super::unsent::Lot;

/// Below this, frames are copied to what is being written; above it the buffers change places.
const COPY_BYTES_MAX: usize = 8 << 10;

/// Capacity an idle connection may keep.
const IDLE_CAPACITY_MAX: usize = 16 << 10;

/// A frame of deliveries that has not left yet.
#[derive(Debug)]
struct Mark {
    /// The stream position after it.
    end: u64,
    /// Its size, in bytes of the stream.
    wire_bytes: u64,
    /// What it weighs in the engine's budget.
    budget_bytes: u64,
    /// What is in it, where it may have to be taken back.
    lot: Option<Lot>,
}

/// The outbound side of one connection. `written <= queued`, both counted from the first byte.
#[derive(Debug)]
pub(super) struct Outbound {
    filling: Vec<u8>,
    writing: BytesMut,
    max_frame_size: u32,
    queued: u64,
    written: u64,
    /// Delivery frames between `written` and `queued`, in order.
    marks: VecDeque<Mark>,
    /// Sum of the marks' `wire_bytes`.
    delivery_bytes: u64,
    /// Budget bytes that left since the last report.
    drained: u64,
    /// The stream was cut, maybe inside a frame: nothing may follow.
    is_shut: bool,
}

impl Outbound {
    pub(super) fn new(max_frame_size: usize) -> Self {
        Self {
            filling: Vec::new(),
            writing: BytesMut::new(),
            max_frame_size: u32::try_from(max_frame_size).unwrap_or(u32::MAX),
            queued: 0,
            written: 0,
            marks: VecDeque::new(),
            delivery_bytes: 0,
            drained: 0,
            is_shut: false,
        }
    }

    /// The largest frame, in the protocol's count.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        self.max_frame_size as usize
    }

    /// The bytes to write next. The server takes what it writes off the front.
    pub(super) fn writing(&mut self) -> &mut BytesMut {
        if self.filling.is_empty() {
            return &mut self.writing;
        }
        if self.filling.len() <= COPY_BYTES_MAX {
            self.writing.extend_from_slice(&self.filling);
            self.filling.clear();
        } else if self.writing.is_empty() {
            // `writing` owns its memory alone after it was written, so both conversions move.
            let mut empty = Vec::from(core::mem::take(&mut self.writing));
            empty.clear();
            let full = core::mem::replace(&mut self.filling, empty);
            self.writing = BytesMut::from(Bytes::from(full));
        }
        &mut self.writing
    }

    /// Bytes that wait to be written.
    pub(super) fn held_bytes(&self) -> usize {
        self.filling.len() + self.writing.len()
    }

    /// Bytes not yet reported as written.
    pub(super) const fn unwritten(&self) -> u64 {
        self.queued - self.written
    }

    /// Of these, what is not deliveries.
    pub(super) const fn unwritten_replies(&self) -> u64 {
        self.unwritten().saturating_sub(self.delivery_bytes)
    }

    /// The server wrote this many bytes.
    pub(super) fn on_written(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64).min(self.queued);
        while self
            .marks
            .front()
            .is_some_and(|mark| mark.end <= self.written)
        {
            let Some(mark) = self.marks.pop_front() else {
                return;
            };
            self.delivery_bytes -= mark.wire_bytes;
            self.drained += mark.budget_bytes;
        }
    }

    /// Budget bytes that left and were not reported.
    pub(super) const fn drained(&self) -> u64 {
        self.drained
    }

    /// Reports them.
    pub(super) const fn take_drained(&mut self) -> u64 {
        core::mem::replace(&mut self.drained, 0)
    }

    /// Deliveries that will not be sent no longer weigh on the budget.
    pub(super) const fn count_drained(&mut self, budget_bytes: u64) {
        self.drained += budget_bytes;
    }

    /// Panics when the counters contradict each other.
    pub(super) fn assert_invariants(&self) {
        assert!(
            self.written <= self.queued,
            "{} written of {}",
            self.written,
            self.queued
        );
        let marked: u64 = self.marks.iter().map(|mark| mark.wire_bytes).sum();
        assert_eq!(marked, self.delivery_bytes, "bytes of unwritten deliveries");
        let held = self.filling.len() + self.writing.len();
        assert!(
            held as u64 <= self.unwritten(),
            "{held} held, {} unwritten",
            self.unwritten()
        );
    }

    /// Forgets what cannot be sent any more, now and later: a part of a frame may have left, and
    /// what follows it would be taken for its rest.
    pub(super) fn shut(&mut self) {
        self.is_shut = true;
        self.filling = Vec::new();
        self.writing = BytesMut::new();
        self.marks.clear();
        self.delivery_bytes = 0;
        self.written = self.queued;
    }

    /// Takes back the deliveries of which no byte was written and which may not leave any more.
    #[must_use]
    pub(super) fn take_back(&mut self, may_leave: impl Fn(&Lot) -> bool) -> Vec<Lot> {
        let is_gone = |mark: &Mark| mark.lot.as_ref().is_some_and(|lot| !may_leave(lot));
        if !self.marks.iter().any(is_gone) {
            return Vec::new();
        }
        let held = core::mem::take(&mut self.writing);
        let filling = core::mem::take(&mut self.filling);
        let all = [&*held, &*filling].concat();
        let first = self.queued.saturating_sub(all.len() as u64);
        let offset = |at: u64| usize::try_from(at.saturating_sub(first)).unwrap_or(usize::MAX);
        let (mut kept, mut lots) = (Vec::new(), Vec::new());
        let (mut from, mut gone_bytes) = (first, 0);
        for mut mark in core::mem::take(&mut self.marks) {
            let start = mark.end - mark.wire_bytes;
            // Of one that has begun, the rest has to follow.
            if start < first || !is_gone(&mark) {
                mark.end -= gone_bytes;
                self.marks.push_back(mark);
                continue;
            }
            let before = all.get(offset(from)..offset(start));
            kept.extend_from_slice(before.unwrap_or_default());
            from = mark.end;
            gone_bytes += mark.wire_bytes;
            self.drained += mark.budget_bytes;
            lots.extend(mark.lot);
        }
        self.delivery_bytes -= gone_bytes;
        self.queued -= gone_bytes;
        kept.extend_from_slice(all.get(offset(from)..).unwrap_or_default());
        self.writing = BytesMut::from(Bytes::from(kept));
        lots
    }

    /// Gives large buffers back when nothing is in them.
    pub(super) fn on_idle(&mut self) {
        if self.unwritten() == 0 && self.writing.is_empty() && self.filling.is_empty() {
            self.writing = BytesMut::new();
            if self.filling.capacity() > IDLE_CAPACITY_MAX {
                self.filling = Vec::new();
            }
        }
    }

    /// Appends the frame, or frames, of a body.
    pub(super) fn body<'a, B: Body<'a>>(&mut self, request_id: u32, body: &B) {
        let before = self.filling.len();
        let done = write_body(&mut self.filling, request_id, self.max_frame_size, body);
        self.finish(before, request_id, done);
    }

    /// Appends the frame, or frames, of a body that `write` appends.
    pub(super) fn frame(
        &mut self,
        opcode: Opcode,
        request_id: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) {
        let before = self.filling.len();
        let header = FrameHeader::new(opcode, request_id);
        let done = write_frame_split(&mut self.filling, header, self.max_frame_size, write);
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
        let before = self.filling.len();
        let start = begin_frame(&mut self.filling, Opcode::Delivery, request_id);
        let mut writer = DeliveryWriter::new(&mut self.filling);
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
        if writer.finish() == 0 || self.is_shut {
            start.cancel(&mut self.filling);
            self.drained += budget_bytes;
            return taken;
        }
        let done = end_frame_split(&mut self.filling, start, self.max_frame_size);
        debug_assert!(done.is_ok(), "{done:?}");
        let wire_bytes = self.filling.len().saturating_sub(before) as u64;
        self.queued += wire_bytes;
        self.delivery_bytes += wire_bytes;
        self.marks.push_back(Mark {
            end: self.queued,
            wire_bytes,
            budget_bytes,
            lot: None,
        });
        taken
    }

    /// What the delivery frame that was just appended holds.
    pub(super) fn note_lot(&mut self, lot: Lot) {
        if let Some(mark) = self.marks.back_mut() {
            mark.lot = Some(lot);
        }
    }

    /// Counts what was appended. A body that cannot be said in the protocol (a list or text longer
    /// than its prefix) becomes an error, because a request must not stay without an answer.
    fn finish(&mut self, before: usize, request_id: u32, done: Result<(), EncodeError>) {
        if self.is_shut {
            self.filling.truncate(before);
            return;
        }
        if let Err(error) = done {
            self.filling.truncate(before);
            let text = format!("the answer cannot be encoded: {error}");
            let frame = ErrorFrame {
                error_code: ErrorCode::InternalError,
                message: &text,
                metadata: Vec::new(),
            };
            let fits = write_body(&mut self.filling, request_id, self.max_frame_size, &frame);
            debug_assert!(fits.is_ok(), "{fits:?}");
        }
        self.queued += self.filling.len().saturating_sub(before) as u64;
    }
}
