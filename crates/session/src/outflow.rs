//! Bytes on their way to a peer, and how much of them are deliveries.
//!
//! Frames are appended to `filling`; what the server writes comes from `writing`. Answers are
//! bounded by the requests under way; deliveries by a budget that the engine keeps, for which it
//! must hear what has left ([`Outflow::take_drained`]). Refuses to know what a frame is: the doors'
//! outbound sides put them together.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Below this, frames are copied to what is being written; above it the buffers change places.
const COPY_BYTES_MAX: usize = 8 << 10;

/// Capacity an idle connection may keep.
const IDLE_CAPACITY_MAX: usize = 16 << 10;

/// Deliveries that have not left yet.
#[derive(Debug)]
struct Mark<L> {
    /// The stream position after them.
    end: u64,
    /// Their size, in bytes of the stream.
    wire_bytes: u64,
    /// What they weigh in the engine's budget.
    budget_bytes: u64,
    /// What they are, where they may have to be taken back.
    lot: Option<L>,
}

/// The outbound side of one connection. `written <= queued`, both counted from the first byte.
#[derive(Debug)]
pub(crate) struct Outflow<L> {
    filling: Vec<u8>,
    writing: BytesMut,
    queued: u64,
    written: u64,
    /// Deliveries between `written` and `queued`, in order.
    marks: VecDeque<Mark<L>>,
    /// Sum of the marks' `wire_bytes`.
    delivery_bytes: u64,
    /// Budget bytes that left since the last report.
    drained: u64,
    /// The stream was cut, maybe inside a frame: nothing may follow.
    is_shut: bool,
}

impl<L> Default for Outflow<L> {
    fn default() -> Self {
        Self {
            filling: Vec::new(),
            writing: BytesMut::new(),
            queued: 0,
            written: 0,
            marks: VecDeque::new(),
            delivery_bytes: 0,
            drained: 0,
            is_shut: false,
        }
    }
}

impl<L> Outflow<L> {
    /// The bytes to write next. The server takes what it writes off the front.
    pub(crate) fn writing(&mut self) -> &mut BytesMut {
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
    pub(crate) fn held_bytes(&self) -> usize {
        self.filling.len() + self.writing.len()
    }

    /// Bytes not yet reported as written.
    pub(crate) const fn unwritten(&self) -> u64 {
        self.queued - self.written
    }

    /// Bytes queued from the first on: tells whether anything was said since.
    pub(crate) const fn queued(&self) -> u64 {
        self.queued
    }

    /// Of the unwritten bytes, what is not deliveries.
    pub(crate) const fn unwritten_replies(&self) -> u64 {
        self.unwritten().saturating_sub(self.delivery_bytes)
    }

    /// The server wrote this many bytes.
    pub(crate) fn on_written(&mut self, bytes: usize) {
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
    pub(crate) const fn drained(&self) -> u64 {
        self.drained
    }

    /// Reports them.
    pub(crate) const fn take_drained(&mut self) -> u64 {
        core::mem::replace(&mut self.drained, 0)
    }

    /// Deliveries that will not be sent no longer weigh on the budget.
    pub(crate) const fn count_drained(&mut self, budget_bytes: u64) {
        self.drained += budget_bytes;
    }

    /// Panics when the counters contradict each other.
    pub(crate) fn assert_invariants(&self) {
        let (written, queued) = (self.written, self.queued);
        assert!(written <= queued, "{written} written of {queued}");
        let marked: u64 = self.marks.iter().map(|mark| mark.wire_bytes).sum();
        assert_eq!(marked, self.delivery_bytes, "bytes of unwritten deliveries");
        let (held, unwritten) = (self.held_bytes() as u64, self.unwritten());
        assert!(held <= unwritten, "{held} held, {unwritten} unwritten");
    }

    /// Forgets what cannot be sent any more, now and later: a part of a frame may have left, and
    /// what follows it would be taken for its rest.
    pub(crate) fn shut(&mut self) {
        self.is_shut = true;
        self.filling = Vec::new();
        self.writing = BytesMut::new();
        self.marks.clear();
        self.delivery_bytes = 0;
        self.written = self.queued;
    }

    /// What the deliveries are that were not wholly written: the newest first.
    pub(crate) fn unwritten_lots(&mut self) -> Vec<L> {
        let marks = self.marks.iter_mut().rev();
        marks.filter_map(|mark| mark.lot.take()).collect()
    }

    /// Takes back the deliveries of which no byte was written and which may not leave any more.
    #[must_use]
    pub(crate) fn take_back(&mut self, may_leave: impl Fn(&L) -> bool) -> Vec<L> {
        let is_gone = |mark: &Mark<L>| mark.lot.as_ref().is_some_and(|lot| !may_leave(lot));
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
    pub(crate) fn on_idle(&mut self) {
        if self.unwritten() == 0 && self.writing.is_empty() && self.filling.is_empty() {
            self.writing = BytesMut::new();
            if self.filling.capacity() > IDLE_CAPACITY_MAX {
                self.filling = Vec::new();
            }
        }
    }

    /// Appends whole frames, unless nothing may follow any more.
    pub(crate) fn raw(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_shut {
            let before = self.filling.len();
            write(&mut self.filling);
            self.count(before);
        }
    }

    /// Appends deliveries that `write` encodes, which weigh `budget_bytes` for the engine.
    pub(crate) fn deliveries(&mut self, budget_bytes: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_shut {
            return self.count_drained(budget_bytes);
        }
        let before = self.filling.len();
        write(&mut self.filling);
        self.count_deliveries(before, budget_bytes);
    }

    /// Where frames are appended; who does, counts them with one of the next two.
    pub(crate) const fn filling(&mut self) -> &mut Vec<u8> {
        &mut self.filling
    }

    /// Nothing may be appended any more.
    pub(crate) const fn is_shut(&self) -> bool {
        self.is_shut
    }

    /// Counts what was appended since `filling` was `before` bytes long; returns how much.
    pub(crate) fn count(&mut self, before: usize) -> u64 {
        let wire_bytes = self.filling.len().saturating_sub(before) as u64;
        self.queued += wire_bytes;
        wire_bytes
    }

    /// The same of deliveries, which weigh `budget_bytes` for the engine.
    pub(crate) fn count_deliveries(&mut self, before: usize, budget_bytes: u64) {
        let wire_bytes = self.count(before);
        self.delivery_bytes += wire_bytes;
        self.marks.push_back(Mark {
            end: self.queued,
            wire_bytes,
            budget_bytes,
            lot: None,
        });
    }

    /// What the deliveries are that were just counted.
    pub(crate) fn note_lot(&mut self, lot: L) {
        if let Some(mark) = self.marks.back_mut() {
            mark.lot = Some(lot);
        }
    }
}
