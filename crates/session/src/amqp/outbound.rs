//! Bytes on their way to the peer, and how much of them are deliveries.
//!
//! Frames are appended to `filling`; what the server writes comes from `writing`. Answers are
//! bounded by the requests under way; deliveries by a budget that the engine keeps, for which it
//! must hear what has left ([`Outbound::take_drained`]).

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use tanda_wire::amqp::{Method, encode};

/// Below this, frames are copied to what is being written; above it the buffers change places.
const COPY_BYTES_MAX: usize = 8 << 10;

/// Capacity an idle connection may keep.
const IDLE_CAPACITY_MAX: usize = 16 << 10;

/// Deliveries that have not left yet.
#[derive(Debug)]
struct Mark {
    /// The stream position after them.
    end: u64,
    /// Their size, in bytes of the stream.
    wire_bytes: u64,
    /// What they weigh in the engine's budget.
    budget_bytes: u64,
}

/// The outbound side of one connection. `written <= queued`, both counted from the first byte.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    filling: Vec<u8>,
    writing: BytesMut,
    queued: u64,
    written: u64,
    /// Deliveries between `written` and `queued`, in order.
    marks: VecDeque<Mark>,
    /// Sum of the marks' `wire_bytes`.
    delivery_bytes: u64,
    /// Budget bytes that left since the last report.
    drained: u64,
    /// The stream was cut, maybe inside a frame: nothing may follow.
    is_shut: bool,
}

impl Outbound {
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
    const fn unwritten(&self) -> u64 {
        self.queued - self.written
    }

    /// Bytes queued from the first on: tells whether anything was said since.
    pub(super) const fn queued(&self) -> u64 {
        self.queued
    }

    /// Of the unwritten bytes, what is not deliveries.
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
        let (written, queued) = (self.written, self.queued);
        assert!(written <= queued, "{written} written of {queued}");
        let marked: u64 = self.marks.iter().map(|mark| mark.wire_bytes).sum();
        assert_eq!(marked, self.delivery_bytes, "bytes of unwritten deliveries");
        let (held, unwritten) = (self.held_bytes() as u64, self.unwritten());
        assert!(held <= unwritten, "{held} held, {unwritten} unwritten");
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

    /// Gives large buffers back when nothing is in them.
    pub(super) fn on_idle(&mut self) {
        if self.unwritten() == 0 && self.writing.is_empty() && self.filling.is_empty() {
            self.writing = BytesMut::new();
            if self.filling.capacity() > IDLE_CAPACITY_MAX {
                self.filling = Vec::new();
            }
        }
    }

    /// Appends a method frame.
    pub(super) fn method<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let method = method.into();
        self.raw(|out| encode::write_any_method(out, channel, &method));
    }

    /// Appends a heartbeat.
    pub(super) fn heartbeat(&mut self) {
        self.raw(encode::write_heartbeat);
    }

    /// Appends whole frames, or what a server says to who speaks another protocol.
    pub(super) fn raw(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_shut {
            let before = self.filling.len();
            write(&mut self.filling);
            self.queued += self.filling.len().saturating_sub(before) as u64;
        }
    }

    /// Appends deliveries that `write` encodes, which weigh `budget_bytes` for the engine.
    pub(super) fn deliveries(&mut self, budget_bytes: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_shut {
            return self.count_drained(budget_bytes);
        }
        let before = self.filling.len();
        write(&mut self.filling);
        let wire_bytes = self.filling.len().saturating_sub(before) as u64;
        self.queued += wire_bytes;
        self.delivery_bytes += wire_bytes;
        self.marks.push_back(Mark {
            end: self.queued,
            wire_bytes,
            budget_bytes,
        });
    }
}
