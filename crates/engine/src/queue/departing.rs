//! A message leaves its place in the queue for an exchange.

use super::Queue;
use super::entries::{Place, Slot};

impl Queue {
    /// A message that was delivered so often may not come back once more. Every delivery but those
    /// that never left is one return.
    pub(crate) fn is_spent(&self, slot: Slot) -> bool {
        let policy = self.config.amqp.as_ref();
        let limit = policy.and_then(|policy| policy.delivery_limit);
        limit.is_some_and(|limit| self.entries.at(slot).deliveries > limit)
    }

    /// Leader: a message that is leased, or out of its lane or list, departs.
    pub(crate) fn set_departing(&mut self, slot: Slot) {
        self.preserve(slot);
        self.unlist_expiry(slot);
        self.leave_parking(slot);
        let entry = self.entries.at(slot);
        let (place, id) = (entry.place, entry.id);
        match place {
            Place::Leased => _ = self.leases.remove(id),
            Place::Deciding => _ = self.deciding.remove(&slot),
            Place::Free | Place::New | Place::Departing => {}
            Place::Ready
            | Place::Delayed
            | Place::Behind
            | Place::Throttled
            | Place::Parked
            | Place::Stopped
            | Place::Aside => {
                self.remove_pending(slot);
                self.behind_due.remove(&slot);
            }
        }
        self.entries.at_mut(slot).place = Place::Departing;
    }
}
