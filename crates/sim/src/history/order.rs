//! The order of what clients did and saw: finer than the clock, which often stands still.

use super::{Held, History};

/// When things happened to a message, in numbers of the history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    /// Its storing was answered.
    pub(crate) confirmed: Option<u64>,
    /// The first ack was sent.
    pub(crate) ack_sent: Option<u64>,
    /// The answer to a successful ack came.
    pub(crate) ack_ok: Option<u64>,
}

impl History {
    /// The number of what happens next.
    pub(crate) const fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    pub(super) fn note_confirmed(&mut self, id: u128) {
        let tick = self.tick();
        if let Some(message) = self.messages.get_mut(&id) {
            message.order.confirmed.get_or_insert(tick);
        }
    }

    pub(super) fn note_ack_sent(&mut self, held: &Held) {
        let tick = self.tick();
        if let Some(message) = self.messages.get_mut(&held.id) {
            message.order.ack_sent.get_or_insert(tick);
        }
    }

    pub(super) fn note_acked(&mut self, held: &Held) {
        let tick = self.tick();
        if let Some(message) = self.messages.get_mut(&held.id) {
            message.order.ack_ok.get_or_insert(tick);
        }
    }
}
