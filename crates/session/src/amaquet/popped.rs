//! `queue.pop` and `queue.peek`: messages on their way to the peer.
//!
//! Messages that do not fit a frame beside the others go back, and those that fit none at all.

use tanda_engine::{DeliveryBatch, DeliveryItem, GetError, Got};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::envelope::{Failure, write_result};
use tanda_wire::amaquet::frame::{PAYLOAD_BYTES_HARD_MAX, PayloadTooLarge};
use tanda_wire::amaquet::json::Writer;

use super::active::Entry;
use super::link::Link;
use super::outbound::{Asked, too_large};
use super::queue_replies::no_queue;
use super::undelivered::{Lot, is_look};
use crate::convert::to_amaquet::{headers, payload};

/// Bytes around the messages of an answer, at most.
const AROUND_BYTES: usize = 64;

impl Link {
    /// Answers `queue.pop`.
    pub(super) fn say_popped(&mut self, entry: &Entry, queue: &str, got: Result<Got, GetError>) {
        let asked = Asked::command(entry.request_id);
        let batch = match got {
            Ok(got) => got.batch,
            Err(error) => return self.say_no_queue(asked, queue, error),
        };
        let Some(batch) = batch else {
            if entry.stopped.is_some() {
                return self.say_stopped(entry);
            }
            return self.outbound.result(asked, |out| write_messages(out, &[]));
        };
        let mut taken = Vec::new();
        let mut written = Ok(());
        self.outbound.deliveries(batch.budget_bytes(), |out| {
            let all: Vec<_> = batch.items.iter().map(|item| (&batch, item)).collect();
            written = write_result(out, asked.header(), PAYLOAD_BYTES_HARD_MAX, |out| {
                write_messages(out, &all);
            });
            taken = all;
            if written.is_err() {
                taken = fitting(&taken);
                if !taken.is_empty() {
                    written = write_result(out, asked.header(), PAYLOAD_BYTES_HARD_MAX, |out| {
                        write_messages(out, &taken);
                    });
                }
            }
        });
        self.keep_lots(&batch, &taken, written, asked);
        self.report_drained();
    }

    /// Remembers what is on its way, and gives back what is not.
    fn keep_lots(
        &mut self,
        batch: &DeliveryBatch,
        taken: &[(&DeliveryBatch, &DeliveryItem)],
        written: Result<(), PayloadTooLarge>,
        asked: Asked,
    ) {
        let is_taken = |item: &DeliveryItem| taken.iter().any(|(_, taken)| taken.id == item.id);
        if written.is_ok() {
            let items = taken.iter().map(|(_, item)| *item);
            self.outbound.note_lot(Lot::popped_of(batch, items));
        }
        if taken.len() < batch.items.len() || written.is_err() {
            let left = batch.items.iter();
            let left = left.filter(|item| written.is_err() || !is_taken(item));
            self.give_back(Lot::popped_of(batch, left));
        }
        if let Err(error) = written {
            self.outbound.failure(asked, &too_large(error));
        }
    }

    /// Answers `queue.peek`.
    pub(super) fn say_peeked(&mut self, entry: &Entry, queue: &str, got: Result<Got, GetError>) {
        let asked = Asked::command(entry.request_id);
        let batch = match got {
            Ok(got) => got.batch.unwrap_or_default(),
            Err(error) => return self.say_no_queue(asked, queue, error),
        };
        let all: Vec<_> = batch.items.iter().map(|item| (&batch, item)).collect();
        let mut written = Ok(());
        self.outbound.raw(|out| {
            written = write_result(out, asked.header(), PAYLOAD_BYTES_HARD_MAX, |out| {
                write_messages(out, &all);
            });
        });
        if let Err(error) = written {
            let fitting = fitting(&all);
            if fitting.is_empty() {
                return self.outbound.failure(asked, &too_large(error));
            }
            self.outbound
                .result(asked, |out| write_messages(out, &fitting));
        }
    }

    fn say_no_queue(&mut self, asked: Asked, queue: &str, error: GetError) {
        let failure = match error {
            GetError::NotFound => no_queue(queue),
            GetError::Topology(error) => Failure::new(ErrorCode::Conflict, error.text),
        };
        self.outbound.failure(asked, &failure);
    }
}

/// As many messages as fit an answer together; one that fits none is passed over.
fn fitting<'a>(
    all: &[(&'a DeliveryBatch, &'a DeliveryItem)],
) -> Vec<(&'a DeliveryBatch, &'a DeliveryItem)> {
    let mut room = (PAYLOAD_BYTES_HARD_MAX as usize).saturating_sub(AROUND_BYTES);
    let mut scratch = Vec::new();
    let mut fitting = Vec::new();
    for message in all {
        scratch.clear();
        write_message(&mut Writer::new(&mut scratch), *message);
        let bytes = scratch.len().saturating_add(1);
        if bytes <= room {
            room -= bytes;
            fitting.push(*message);
        }
    }
    fitting
}

fn write_messages(out: &mut Writer<'_>, messages: &[(&DeliveryBatch, &DeliveryItem)]) {
    out.object(|out| {
        out.key("messages").array(|out| {
            for message in messages {
                write_message(out, *message);
            }
        });
    });
}

fn write_message(out: &mut Writer<'_>, (batch, item): (&DeliveryBatch, &DeliveryItem)) {
    let content = batch.content(item);
    let payload = payload(item.form, content);
    out.object(|out| {
        out.key("id").str(&item.id.to_string());
        payload.write(out.key("payload"));
        out.key("headers").object(|out| {
            for (name, value) in headers(item.form, content, &payload) {
                out.key(&name).str(&value);
            }
        });
        out.key("attempts").u64(item.attempts.into());
        let out_key = out.key("fairness_key");
        match batch.fairness_key(item) {
            "" => out_key.null(),
            key => out_key.str(key),
        }
        out.key("enqueued_at").u64(item.id.enqueued_at().0);
        let expires_at = (!is_look(batch)).then_some(batch.lease_expires_at.0);
        out.key("lease_expires_at").u64_or_null(expires_at);
    });
}
