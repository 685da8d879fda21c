//! A consumer: a window of credit, acks in batches.

use std::time::Duration;

use tanda_wire::fila::consume::ThrottleDeclaration;
use tanda_wire::fila::delivery::DeliveryBatch;
use tanda_wire::fila::frame::{Frame, write_frame};
use tanda_wire::fila::settle::{AckItem, AckWriter};
use tanda_wire::fila::{MessageId, Opcode};

use super::{failed_items, take_refusal};
use crate::error::BenchError;
use crate::frames::{push_consume, push_credit, stamp_of};
use crate::pump::{Peer, Turn};

/// What a consumer does with deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acks {
    /// Nothing: they stay leased.
    Never,
    /// Acks them once it holds this many, or the last has come. 1: after each read.
    Batches(usize),
}

/// How a consumer reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Messages it may hold unacked; 0 = no limit.
    pub(crate) window: u32,
    /// See [`Acks`].
    pub(crate) acks: Acks,
    /// What it takes from payloads.
    pub(crate) payloads: Payloads,
}

/// What the first eight bytes of a payload are to a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payloads {
    /// Nothing.
    Opaque,
    /// When the message should have been sent: gives an end-to-end latency.
    Timed,
    /// The message's number: one after the other is expected, from 0 on.
    Numbered,
}

/// Reads one queue.
#[derive(Debug)]
pub(crate) struct Consumer {
    queue: String,
    throttles: Vec<ThrottleDeclaration<'static>>,
    reading: Reading,
    /// Delivered, ack not sent.
    held: Vec<MessageId>,
    next_id: u32,
    /// Number of the message that should come next.
    next_number: u64,
}

/// Request ID of the subscription. Acks use those above.
const SUBSCRIPTION_ID: u32 = 1;

impl Consumer {
    /// Subscribes when started.
    pub(crate) fn new(queue: &str, reading: Reading) -> Self {
        Self {
            queue: queue.to_owned(),
            throttles: Vec::new(),
            reading,
            held: Vec::new(),
            next_id: SUBSCRIPTION_ID + 1,
            next_number: 0,
        }
    }

    /// Declares these when it subscribes.
    pub(crate) fn throttled(mut self, throttles: Vec<ThrottleDeclaration<'static>>) -> Self {
        self.throttles = throttles;
        self
    }

    fn take_delivery(&mut self, body: &[u8], turn: &mut Turn<'_>) -> Result<(), BenchError> {
        for message in DeliveryBatch::decode_header(body)? {
            let message = message?;
            turn.tally.delivered += 1;
            self.held.push(message.meta.message_id);
            self.look_at(message.payload, turn);
        }
        // Whoever got the last one wakes the others, which may hold less than a batch.
        turn.tally.wake_all |= turn.tally.delivered >= turn.tally.limits.delivered_expected;
        Ok(())
    }

    fn look_at(&mut self, payload: &[u8], turn: &mut Turn<'_>) {
        let Some(word) = stamp_of(payload) else {
            return;
        };
        match self.reading.payloads {
            Payloads::Opaque => {}
            Payloads::Timed => {
                let intended = turn.tally.epoch + Duration::from_nanos(word);
                let latency = turn.now.saturating_duration_since(intended);
                turn.tally.end_to_end.record(latency);
            }
            Payloads::Numbered => {
                let expected = self.next_number;
                self.next_number = word.wrapping_add(1);
                if word != expected {
                    turn.tally
                        .fail(1, || format!("message {word} came for {expected}"));
                }
            }
        }
    }

    fn take_ack_result(body: &[u8], turn: &mut Turn<'_>) {
        let (total, failed, first) = failed_items(body, 1);
        turn.tally.requests_open = turn.tally.requests_open.saturating_sub(1);
        turn.tally.acked += total - failed;
        turn.tally.fail(failed, || format!("an ack got {first:?}"));
        if turn.tally.limits.lag_max < u64::MAX {
            turn.tally.wake_all = true;
        }
    }

    fn ack_held(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let (id, queue) = (self.next_id, self.queue.as_str());
        self.next_id = self.next_id.checked_add(1).unwrap_or(SUBSCRIPTION_ID + 1);
        write_frame(turn.outbox.buffer(), Opcode::Ack, id, |out| {
            let mut writer = AckWriter::new(out);
            for message_id in &self.held {
                writer.push(&AckItem {
                    queue,
                    message_id: *message_id,
                    queue_start: 0,
                })?;
            }
            writer.finish();
            Ok(())
        })?;
        turn.tally.requests_open += 1;
        self.grant(turn)
    }

    /// Gives back the credit of what is held, and holds it no more.
    fn grant(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let count = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        self.held.clear();
        if self.reading.window > 0 {
            push_credit(turn.outbox.buffer(), SUBSCRIPTION_ID, count)?;
        }
        Ok(())
    }
}

impl Peer for Consumer {
    fn start(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        let out = turn.outbox.buffer();
        let window = self.reading.window;
        push_consume(out, SUBSCRIPTION_ID, &self.queue, window, &self.throttles)?;
        Ok(())
    }

    fn on_frame(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        // Compared one by one: a match would have to name every opcode there is.
        let opcode = frame.header.opcode;
        if opcode == Opcode::Delivery {
            self.take_delivery(frame.body, turn)
        } else if opcode == Opcode::AckResult {
            Self::take_ack_result(frame.body, turn);
            Ok(())
        } else if opcode == Opcode::ConsumeOk {
            Ok(())
        } else {
            take_refusal(frame, 0, turn)?;
            Err(BenchError::Protocol(
                "the server refused a subscription or an ack".to_owned(),
            ))
        }
    }

    fn on_turn_end(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError> {
        if self.held.is_empty() {
            return Ok(());
        }
        match self.reading.acks {
            Acks::Never => self.grant(turn),
            Acks::Batches(size) => {
                let is_last = turn.tally.delivered >= turn.tally.limits.delivered_expected;
                if self.held.len() >= size || is_last {
                    self.ack_held(turn)
                } else {
                    Ok(())
                }
            }
        }
    }
}
