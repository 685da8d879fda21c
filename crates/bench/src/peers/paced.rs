//! A producer at a fixed rate.
//!
//! Every message has a time at which it should be sent, which does not depend on how fast the
//! server is. Latencies count from that time, so a stall of the server, or of this program, shows
//! in all messages that fell into it (no coordinated omission).

use std::time::{Duration, Instant};

use tanda_wire::fila::Opcode;
use tanda_wire::fila::frame::Frame;

use super::{take_enqueue_result, take_refusal};
use crate::error::BenchError;
use crate::frames::Template;
use crate::pump::{Peer, Turn};

/// Requests that may be open, a power of two. Over it, sending stops until answers come; the
/// schedule goes on.
const OPEN_MAX: u32 = 1 << 9;

/// Sends one template on a schedule.
#[derive(Debug)]
pub(crate) struct PacedProducer {
    template: Template,
    interval: Duration,
    next_at: Instant,
    /// When the request of each slot should have been sent; the slot is the ID modulo the length.
    intended: Vec<Option<Instant>>,
    next_id: u32,
}

impl PacedProducer {
    /// The first message is due at `first_at`, and one every `interval` after it.
    pub(crate) fn new(template: Template, first_at: Instant, interval: Duration) -> Self {
        Self {
            template,
            interval,
            next_at: first_at,
            intended: vec![None; OPEN_MAX as usize],
            next_id: 1,
        }
    }

    fn slot(&mut self, id: u32) -> Option<&mut Option<Instant>> {
        self.intended.get_mut((id % OPEN_MAX) as usize)
    }

    fn send_due(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        while !turn.is_stopping && self.next_at <= turn.now {
            let (id, intended) = (self.next_id, self.next_at);
            match self.slot(id) {
                Some(slot) if slot.is_none() => *slot = Some(intended),
                _ => break,
            }
            self.template.stamp(turn.tally.stamp(intended));
            turn.outbox.send(self.template.frame(id))?;
            turn.tally.sent += u64::from(self.template.batch());
            turn.tally.requests_open += 1;
            self.next_at += self.interval;
            self.next_id = if id == REQUEST_ID_MAX { 1 } else { id + 1 };
        }
        Ok(())
    }
}

/// Bit 31 belongs to the server.
const REQUEST_ID_MAX: u32 = 0x7FFF_FFFF;

impl Peer for PacedProducer {
    fn start(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        self.send_due(turn)
    }

    fn on_frame(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let id = frame.header.request_id;
        let Some(intended) = self.slot(id).and_then(Option::take) else {
            return Err(BenchError::Protocol(format!(
                "the server answered request {id}, which is not open"
            )));
        };
        if frame.header.opcode == Opcode::EnqueueResult {
            take_enqueue_result(frame.body, turn);
            let latency = turn.now.saturating_duration_since(intended);
            turn.tally.confirms.record(latency);
            Ok(())
        } else {
            take_refusal(frame, u64::from(self.template.batch()), turn)
        }
    }

    fn on_turn_end(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        self.send_due(turn)
    }

    fn next_due(&self) -> Option<Instant> {
        let slot = self.intended.get((self.next_id % OPEN_MAX) as usize);
        let has_room = matches!(slot, Some(None));
        has_room.then_some(self.next_at)
    }
}
