//! What must hold of consumers, their queues and connections at any time. For tests and the
//! simulator.

use std::collections::BTreeMap;

use crate::LeaseMode;
use crate::consumers::Standing;
use crate::engine::Engine;
use crate::queue::Queue;
use crate::queue::entries::{Place, Slot};
use crate::queues::QueueIndex;

impl Engine {
    /// Panics when a queue and its consumers contradict each other.
    pub(crate) fn assert_consumers(&self, index: QueueIndex, queue: &Queue) {
        let name = &queue.identity.name;
        for consumer in queue.turns.iter() {
            let it = self.consumers.at(consumer);
            let waits = it.is_some_and(|it| it.is_ready && it.queue == index);
            assert!(
                waits,
                "{name}: consumer {consumer} is in line for no reason"
            );
            let known = queue.consumers.contains(&consumer) && queue.may_serve(consumer);
            assert!(
                known,
                "{name}: consumer {consumer} is in line and not to be served"
            );
        }
        let held = held_by_number(queue);
        for consumer in queue.consumers.iter().chain(&queue.kept) {
            let is_kept = queue.kept.contains(consumer);
            let it = self.consumers.at(*consumer);
            assert!(it.is_some(), "{name} has a consumer that is gone");
            let Some(it) = it else { continue };
            assert_eq!(it.standing != Standing::Live, is_kept, "{name}: standing");
            let is_there = queue.turns.iter().any(|other| other == *consumer);
            assert_eq!(it.is_ready, is_there, "{name}: consumer {consumer} in line");
            let slots = held.get(&it.number).map_or(&[][..], Vec::as_slice);
            if it.terms.lease == LeaseMode::Timed {
                assert_eq!(it.holds.len(), 0, "{name}: holds with a lease of its own");
                continue;
            }
            assert_eq!(
                it.holds.len() as usize,
                slots.len(),
                "{name}: messages held"
            );
            assert!(!is_kept || !slots.is_empty(), "{name}: kept for nothing");
            for slot in slots {
                let is_known = it
                    .holds
                    .iter()
                    .any(|(at, other)| other == *slot && queue.is_held(it.number, (at, other)));
                assert!(is_known, "{name}: nobody knows who holds slot {slot}");
            }
            let is_watched = it
                .alarm
                .is_some_and(|at| self.alarms.contains(&(at, *consumer)));
            let is_limited = it.terms.ack_timeout_ms.is_some() && it.holds.len() > 0;
            assert!(is_watched || !is_limited, "{name}: holds without an end");
        }
        let both = [queue.active, queue.exclusive];
        let known = both
            .into_iter()
            .flatten()
            .all(|consumer| queue.consumers.contains(&consumer) || queue.kept.contains(&consumer));
        assert!(known, "{name}: serves a consumer that is gone");
        let idle = queue.has_single_active() && queue.active.is_none();
        assert!(!idle || queue.consumers.is_empty(), "{name}: serves nobody");
        if let Some(owner) = queue.owner {
            let conn = self.consumers.conn(owner);
            let knows = conn.is_some_and(|it| it.owned.contains(&queue.identity.id));
            assert!(knows, "{name}: its owner does not know of it");
        }
    }
}

/// Slots leased by each consumer, by number.
fn held_by_number(queue: &Queue) -> BTreeMap<u64, Vec<Slot>> {
    let mut held: BTreeMap<u64, Vec<Slot>> = BTreeMap::new();
    for slot in queue.entries.live_slots(0, queue.entries.slots()) {
        let entry = queue.entries.at(slot);
        if entry.place == Place::Leased
            && let Some(lease) = queue.leases.find(entry.id)
        {
            held.entry(lease.consumer).or_default().push(slot);
        }
    }
    held
}
