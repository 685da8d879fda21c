//! Messages: what was sent under a tag, and what is known of each id.

use std::collections::BTreeSet;

use tanda_engine::Millis;

use super::{Order, Right};

/// A content that was sent, once or again and again. Its tag is its index in the history.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) queue: String,
    /// Headers and payload as they stand on the wire.
    pub(crate) content: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Vec<u8>,
    pub(crate) fairness_key: Option<String>,
    pub(crate) weight: Option<u32>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) group: Option<String>,
    /// The queue takes it once only.
    pub(crate) is_deduplicated: bool,
    /// Number of its first send.
    pub(crate) first_sent: u64,
    /// Sends without an answer so far.
    pub(crate) open: u32,
    /// Sends that will never be answered.
    pub(crate) unknown: u32,
    /// The ids under which it is known.
    pub(crate) ids: BTreeSet<u128>,
    /// Of each send.
    pub(crate) rights: Vec<Right>,
}

/// One lease, from the consumer's view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    pub(crate) leased_at: Millis,
    /// As the delivery said.
    pub(crate) expires_at: Millis,
    /// A crash took the memory of a fast queue.
    pub(crate) forgotten_at: Option<Millis>,
    pub(crate) redrives: u32,
    /// From the queue itself, not from its dead-letter queue.
    pub(crate) is_main: bool,
}

/// An ack or nack that may have ended a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettleSend {
    pub(crate) sent_at: Millis,
    /// To the queue itself, not to its dead-letter queue.
    pub(crate) is_main: bool,
    /// Redrives of the message that had been seen.
    pub(crate) redrives: u32,
    pub(crate) answered_at: Option<Millis>,
}

/// When a settlement was sent, and whether to the queue itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) at: Millis,
    pub(crate) is_main: bool,
}

impl SettleSend {
    fn is_open(&self, sent: Sending) -> bool {
        (self.sent_at, self.is_main) == (sent.at, sent.is_main) && self.answered_at.is_none()
    }
}

/// An extension that may have moved the end of a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExtendSend {
    pub(crate) sent_at: Millis,
    /// To the queue itself, not to its dead-letter queue.
    pub(crate) is_main: bool,
    pub(crate) by_ms: u64,
    /// The new end of the lease, as the answer said.
    pub(crate) answer: Option<Millis>,
}

impl ExtendSend {
    /// When the broker did it, once that is known: a lease then ends `by_ms` later.
    fn applied_at(&self) -> Option<Millis> {
        self.answer
            .map(|end| Millis(end.0.saturating_sub(self.by_ms)))
    }
}

/// What is known of a message id.
#[derive(Clone, Debug)]
pub(crate) struct MessageFacts {
    pub(crate) tag: usize,
    /// Its storing was answered, as new or as the original of a duplicate.
    pub(crate) is_confirmed: bool,
    /// It was answered as new.
    pub(crate) is_known_new: bool,
    /// When the first ack was sent.
    pub(crate) ack_sent: Option<Millis>,
    /// Acks that were sent and not forbidden.
    pub(crate) acks: u32,
    /// Who holds it has lost its key.
    pub(crate) is_orphan: bool,
    /// When the answer to a successful ack came.
    pub(crate) ack_ok: Option<Millis>,
    /// Redrives and attempts of its deliveries.
    pub(crate) attempts: BTreeSet<(u32, u32)>,
    pub(crate) holdings: Vec<Holding>,
    /// Those that were refused are left out.
    pub(crate) settles: Vec<SettleSend>,
    /// Those that were refused are left out.
    pub(crate) extensions: Vec<ExtendSend>,
    /// Not again before `.1` when leased after `.0` with `.2` redrives: a nack's `retry_after`.
    pub(crate) retry_floor: Option<(Millis, Millis, u32)>,
    pub(crate) order: Order,
    /// It was seen while the queues were drained.
    pub(crate) was_drained: bool,
}

impl MessageFacts {
    pub(crate) const fn new(tag: usize) -> Self {
        Self {
            tag,
            is_confirmed: false,
            is_known_new: false,
            ack_sent: None,
            acks: 0,
            is_orphan: false,
            ack_ok: None,
            attempts: BTreeSet::new(),
            holdings: Vec::new(),
            settles: Vec::new(),
            extensions: Vec::new(),
            retry_floor: None,
            order: Order {
                confirmed: None,
                ack_sent: None,
                ack_ok: None,
            },
            was_drained: false,
        }
    }

    /// The earliest moment at which a lease may have ended: the next message of its group may not
    /// be leased before.
    pub(crate) fn released_min(&self, holding: &Holding) -> Millis {
        let from = holding.leased_at;
        let settles = self.settles.iter();
        let settled = settles
            .filter(|settle| settle.is_main == holding.is_main)
            .filter(|settle| settle.answered_at.is_none_or(|at| at >= from))
            .map(|settle| settle.sent_at.max(from))
            .min();
        let end = self.ends_min(holding);
        let end = holding.forgotten_at.map_or(end, |at| at.min(end));
        settled.map_or(end, |at| at.min(end))
    }

    /// The settlement sent then has taken effect.
    pub(crate) fn answer_settle(&mut self, now: Millis, sent: Sending) -> Option<SettleSend> {
        let settle = self
            .settles
            .iter_mut()
            .find(|settle| settle.is_open(sent))?;
        settle.answered_at = Some(now);
        Some(*settle)
    }

    /// The settlement sent then did nothing.
    pub(crate) fn refuse_settle(&mut self, sent: Sending) {
        if let Some(index) = self.settles.iter().position(|settle| settle.is_open(sent)) {
            self.settles.remove(index);
        }
    }

    /// No ack has come, nor will one.
    pub(crate) fn forget_ack(&mut self) {
        self.acks = self.acks.saturating_sub(1);
        if self.acks == 0 {
            self.ack_sent = None;
            self.order.ack_sent = None;
        }
    }

    /// The extension sent then moved the end of the lease to this, or did nothing.
    pub(crate) fn answer_extension(&mut self, sent: Sending, end: Option<Millis>) {
        let open = |extend: &ExtendSend| {
            (extend.sent_at, extend.is_main) == (sent.at, sent.is_main) && extend.answer.is_none()
        };
        let Some(index) = self.extensions.iter().position(open) else {
            return;
        };
        match (end, self.extensions.get_mut(index)) {
            (Some(end), Some(extend)) => extend.answer = Some(end),
            (None, _) | (_, None) => {
                self.extensions.remove(index);
            }
        }
    }

    fn ends_min(&self, holding: &Holding) -> Millis {
        let from = holding.leased_at;
        let applies = |extend: &&ExtendSend| {
            // An answered extension was applied at a known moment.
            let is_later = extend.applied_at().is_none_or(|at| at >= from);
            extend.is_main == holding.is_main && is_later
        };
        let mut extensions = self.extensions.iter().filter(applies);
        // One applied in the very millisecond in which this lease began may have been of the lease
        // before, which was given back and never seen here.
        let is_of_this = |at: Millis| at > from && at < holding.expires_at;
        if let (Some(only), None) = (extensions.next(), extensions.next())
            && only.applied_at().is_some_and(is_of_this)
            && let Some(end) = only.answer
        {
            return end;
        }
        let ends = self.extensions.iter().filter(applies).map(|extend| {
            let earliest = extend.sent_at.max(from).after_ms(extend.by_ms);
            extend.answer.unwrap_or(earliest)
        });
        ends.min()
            .map_or(holding.expires_at, |end| end.min(holding.expires_at))
    }
}

/// When a message with this id was stored.
pub(crate) fn enqueued_at(id: u128) -> Millis {
    Millis(u64::try_from(id >> 80).unwrap_or(u64::MAX))
}
