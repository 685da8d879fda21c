//! A producer in a closed loop: so many requests outstanding, a new one for each answer.

use std::time::Instant;

use tanda_wire::fila::Opcode;
use tanda_wire::fila::frame::Frame;

use super::{take_enqueue_result, take_refusal};
use crate::error::BenchError;
use crate::frames::Template;
use crate::pump::{Peer, Turn};

/// Sends one template over and over.
#[derive(Debug)]
pub(crate) struct Producer {
    template: Template,
    /// When the request of each slot was sent; its request ID is the index + 1.
    sent_at: Vec<Option<Instant>>,
    free: Vec<u32>,
}

impl Producer {
    /// Keeps `outstanding` requests on the way.
    pub(crate) fn new(template: Template, outstanding: u32) -> Self {
        Self {
            template,
            sent_at: vec![None; outstanding as usize],
            free: (1..=outstanding).rev().collect(),
        }
    }

    fn refill(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let messages = u64::from(self.template.batch());
        while !turn.is_stopping
            && turn.tally.retry_at.is_none()
            && turn.tally.may_send(messages)
            && let Some(id) = self.free.pop()
        {
            turn.outbox.send(self.template.frame(id))?;
            turn.tally.sent += messages;
            turn.tally.requests_open += 1;
            if let Some(sent_at) = self.slot(id) {
                *sent_at = Some(turn.now);
            }
        }
        Ok(())
    }

    fn slot(&mut self, id: u32) -> Option<&mut Option<Instant>> {
        self.sent_at.get_mut((id as usize).checked_sub(1)?)
    }
}

impl Peer for Producer {
    fn start(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        self.refill(turn)
    }

    fn on_frame(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let id = frame.header.request_id;
        let Some(sent_at) = self.slot(id).and_then(Option::take) else {
            return Err(BenchError::Protocol(format!(
                "the server answered request {id}, which is not open"
            )));
        };
        self.free.push(id);
        if frame.header.opcode == Opcode::EnqueueResult {
            take_enqueue_result(frame.body, turn);
            turn.tally.confirms.record(turn.now - sent_at);
            Ok(())
        } else {
            take_refusal(frame, u64::from(self.template.batch()), turn)
        }
    }

    fn on_turn_end(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        self.refill(turn)
    }
}
