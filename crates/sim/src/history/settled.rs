//! Settlements: sent, answered, forbidden.

use tanda_engine::Millis;

use super::message::{ExtendSend, Sending, SettleSend};
use super::queue::earlier;
use super::{Held, History, main_of};

/// A settlement that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Ack,
    /// It asked to be retried after so many milliseconds.
    Nack(Option<u64>),
    /// The new end of the lease.
    Extended(Millis),
    /// An ack or nack that did nothing.
    RefusedSettle,
    /// An extension that did nothing.
    RefusedExtension,
}

/// A settlement that a key did not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    Ack,
    Nack,
    Extension,
}

impl History {
    /// An ack or nack is on its way.
    pub(crate) fn on_settle_sent(&mut self, now: Millis, held: &Held, is_ack: bool) {
        if is_ack {
            self.note_ack_sent(held);
        }
        let Some(message) = self.messages.get_mut(&held.id) else {
            return;
        };
        if is_ack {
            message.ack_sent = earlier(message.ack_sent, now);
            message.acks += 1;
        }
        message.settles.push(SettleSend {
            sent_at: now,
            is_main: !main_of(&held.queue).1,
            redrives: message
                .holdings
                .iter()
                .map(|h| h.redrives)
                .max()
                .unwrap_or(0),
            answered_at: None,
        });
    }

    /// An extension is on its way.
    pub(crate) fn on_extend_sent(&mut self, now: Millis, held: &Held, by_ms: u64) {
        if let Some(message) = self.messages.get_mut(&held.id) {
            message.extensions.push(ExtendSend {
                sent_at: now,
                is_main: !main_of(&held.queue).1,
                by_ms,
                answer: None,
            });
        }
    }

    /// A settlement sent at `sent_at` was answered.
    pub(crate) fn on_settled(
        &mut self,
        now: Millis,
        sent_at: Millis,
        held: &Held,
        settled: Settled,
    ) {
        if settled == Settled::Ack {
            self.note_acked(held);
        }
        let Some(message) = self.messages.get_mut(&held.id) else {
            return;
        };
        let sent = Sending {
            at: sent_at,
            is_main: !main_of(&held.queue).1,
        };
        match settled {
            Settled::Ack => {
                self.counts.acked += 1;
                message.ack_ok = earlier(message.ack_ok, now);
                message.answer_settle(now, sent);
            }
            Settled::Nack(retry_after_ms) => {
                self.counts.nacked += 1;
                if let (Some(settle), Some(ms)) = (message.answer_settle(now, sent), retry_after_ms)
                    && sent.is_main
                {
                    message.retry_floor = Some((now, sent_at.after_ms(ms), settle.redrives));
                }
            }
            Settled::Extended(ends_at) => message.answer_extension(sent, Some(ends_at)),
            Settled::RefusedSettle => message.refuse_settle(sent),
            Settled::RefusedExtension => message.answer_extension(sent, None),
        }
    }

    /// A settlement sent at `sent_at` was forbidden: it did nothing.
    pub(crate) fn on_settle_forbidden(
        &mut self,
        now: Millis,
        sent_at: Millis,
        held: Held,
        what: Forbidden,
    ) {
        self.counts.forbidden += 1;
        let settled = match what {
            Forbidden::Extension => Settled::RefusedExtension,
            Forbidden::Ack | Forbidden::Nack => Settled::RefusedSettle,
        };
        self.on_settled(now, sent_at, &held, settled);
        if what == Forbidden::Ack
            && let Some(message) = self.messages.get_mut(&held.id)
        {
            message.forget_ack();
        }
        // Somebody else may settle it.
        self.pool.push(held);
    }

    /// Who holds this has lost its key, and cannot settle it any more.
    pub(crate) fn on_orphaned(&mut self, id: u128) {
        if let Some(message) = self.messages.get_mut(&id) {
            message.is_orphan = true;
        }
    }
}
