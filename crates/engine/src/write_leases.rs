//! The leases of a queue that becomes a committed one are written down.

use crate::DeliveryDurability;
use crate::engine::{Cx, Engine};
use crate::on_settle::Timed;
use crate::queue::entries::{Flags, Place};
use crate::queues::QueueIndex;
use crate::record::{Kind, POSITIONS_MAX};

impl Engine {
    /// A fast queue's leases were never written; a committed queue's have to be on disk.
    pub(crate) fn write_leases_now_committed(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let queue = self.queues.at(index);
        if queue.config.durability != DeliveryDurability::Committed {
            return;
        }
        let slots = queue.entries.live_slots(0, queue.entries.slots());
        let leased = slots.filter_map(|slot| {
            let entry = queue.entries.at(slot);
            let end = if entry.place == Place::Deciding {
                queue.deciding.get(&slot).copied().flatten()?
            } else {
                let lease = queue.leases.find(entry.id)?;
                (entry.place == Place::Leased && !lease.reclaim).then_some(lease.expires_at)?
            };
            let durable = !entry.flags.has(Flags::TRANSIENT);
            durable.then_some((entry.position, end))
        });
        let leased: Vec<_> = leased.collect();
        for leased in leased.chunks(POSITIONS_MAX) {
            let mut timed = Timed::default();
            for (position, end) in leased {
                timed.push(Some(*position), *end);
            }
            self.write_timed(cx, index, Kind::Extended, &mut timed);
        }
    }
}
