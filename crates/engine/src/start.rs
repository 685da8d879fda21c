//! The end of recovery: the leader state from the replicated state.

use hashbrown::HashMap;

use crate::engine::{Cx, Engine};
use crate::queue::Queue;
use crate::queue::entries::Flags;
use crate::queue::leases::{Lease, NEVER};
use crate::queues::QueueIndex;
use crate::replay::QueueRecovery;
use crate::script::next_try;
use crate::{DeliveryDurability, Journal, Millis, Output, ReplayError};

impl Engine {
    /// Ends recovery: arms timers and makes the engine ready for requests.
    ///
    /// # Errors
    /// `ReplayError` when the log holds messages of a queue it does not describe.
    pub fn start(&mut self, now: Millis, journal: &mut dyn Journal) -> Result<(), ReplayError> {
        let Some(mut recovery) = self.recovery.take() else {
            return Err(ReplayError {
                problem: "recovery has ended".to_owned(),
            });
        };
        let unnamed = recovery.queues.iter().find(|(_, kept)| !kept.named);
        if let Some((index, _)) = unnamed {
            let queue = self.queues.at(*index);
            let (id, messages) = (queue.identity.id, queue.entries.len());
            let problem =
                format!("the log has {messages} messages of queue {id} but not the queue");
            return Err(ReplayError { problem });
        }
        for (_, queue) in self.queues.iter() {
            self.topology.name_lost_vhost(queue.identity.vhost);
        }
        for vhost in self.keyspaces.vhosts() {
            self.topology.name_lost_vhost(vhost);
        }
        self.topology.forget_lost(|id, vhost| {
            let index = self.queues.index_of(id);
            let queue = index.map(|index| self.queues.at(index));
            queue.is_some_and(|it| it.identity.vhost == vhost && !it.is_dead_letter())
        });
        self.ids.start_after(self.newest_time);
        // The keys of a snapshot come in no order.
        recovery.left.sort_by_key(|(time, _, _)| *time);
        for (time, queue, message) in recovery.left.drain(..) {
            if let Some(index) = self.queues.index_of(queue) {
                let owner = self.dedup_owner(index);
                self.queues.at_mut(owner).dedup.on_left(message, time);
            }
        }
        let noted = core::mem::take(&mut recovery.noted);
        self.start_throttles(&mut recovery, now, journal.end());
        for (index, kept) in recovery.queues {
            self.start_queue(now, index, kept)?;
        }
        for slot in recovery.freed {
            journal.free_page(slot);
        }
        let end = journal.end();
        self.queues.last_lsn = end;
        self.keyspaces.start(end)?;
        // Above all ids of earlier runs that the log speaks of: it grew by more than one byte each.
        self.paging.last_id = self.paging.last_id.max(end.0);
        let cx = &mut Cx {
            now,
            journal,
            out: &mut Vec::<Output>::new(),
        };
        self.write_noted(cx, noted);
        self.delete_transient(cx);
        self.run_timers(cx);
        self.run_keys(cx);
        self.drop_overflows(cx);
        self.make_pages(cx, u32::MAX);
        Ok(())
    }

    /// What consumers held before is ready again, and counts: queues that declare a maximum keep to
    /// it.
    fn drop_overflows(&mut self, cx: &mut Cx<'_>) {
        let limited = self.queues.iter().filter(|(_, queue)| {
            let policy = queue.config.amqp.as_ref();
            policy.is_some_and(|policy| policy.is_limited())
        });
        let limited: Vec<QueueIndex> = limited.map(|(index, _)| index).collect();
        for index in limited {
            self.drop_overflow(cx, index);
        }
    }

    /// Leader state of one queue, from its messages in position order.
    fn start_queue(
        &mut self,
        now: Millis,
        index: QueueIndex,
        mut kept: QueueRecovery,
    ) -> Result<(), ReplayError> {
        let queue = self.queues.at_mut(index);
        if queue.is_dead_letter() {
            // What is known of tries counts for parked messages only, and slots of dead letters
            // change hands when these leave for pages.
            queue.unclassified.clear();
        }
        let mut pages = attach_pages(queue, &mut kept)?.into_iter().peekable();
        kept.by_position = HashMap::with_hasher(self.hasher.clone());
        queue.used_at = now;
        // What AMQP and FireMQ deliver is not held for who had it before a restart.
        let declared = queue.config.amqp.is_some();
        let fast = queue.config.durability == DeliveryDurability::Fast && !declared;
        for slot in queue.slots_in_order() {
            let position = queue.entries.at(slot).position;
            while let Some((_, lane, count)) = pages.next_if(|(first, ..)| *first < position) {
                queue.lanes.page_is_ready(&queue.entries, lane, count);
            }
            let dead_letter = queue.is_dead_letter();
            let group = if dead_letter {
                None
            } else {
                queue.group_of.remove(&slot)
            };
            let due = kept.due.get(&slot).copied().filter(|due| *due > now);
            if queue.entries.at(slot).flags.has(Flags::UNCLASSIFIED) && !dead_letter {
                let known = queue.unclassified(slot);
                let next = next_try(queue, known.version, known.timeouts, now);
                queue.park(slot, (group, due), next, "");
                continue;
            }
            let recorded = kept.leases.get(&slot).copied();
            let recorded = recorded.filter(|end| *end != NEVER && !declared);
            let leased = recorded.map(|end| (end.max(now.after_ms(queue.config.lease_ms)), false));
            let grace = (fast && due.is_none())
                .then(|| (now.after_ms(queue.config.reclaim_grace_ms), true));
            // What is behind an unclassified message was never delivered.
            let can_be_leased = !queue.is_stopped(position);
            match leased.or(grace).filter(|_| can_be_leased) {
                Some((expires_at, reclaim)) => {
                    let lease = Lease {
                        slot,
                        consumer: 0,
                        since: now,
                        expires_at,
                        reclaim,
                    };
                    queue.admit_leased(slot, group, lease);
                }
                None => queue.admit(slot, group, due),
            }
        }
        for (_, lane, count) in pages {
            queue.lanes.page_is_ready(&queue.entries, lane, count);
        }
        self.set_scripts(index);
        self.touch(index);
        Ok(())
    }
}

/// Hangs the pages of a queue into their lanes, where they are not ready yet: lanes get their turns
/// in the order of their first messages. Returns first position, lane and messages of each page.
fn attach_pages(
    queue: &mut Queue,
    kept: &mut QueueRecovery,
) -> Result<Vec<(u64, u32, u32)>, ReplayError> {
    let mut pages: Vec<_> = core::mem::take(&mut kept.pages).into_values().collect();
    pages.sort_unstable_by_key(|(_, page)| page.first);
    let mut ready = Vec::with_capacity(pages.len());
    for (lane, page) in pages {
        let before = queue.lanes.last_page(lane);
        if before.is_some_and(|before| before.last >= page.first) {
            let problem = format!("page {} overlaps another one of its lane", page.id);
            return Err(ReplayError { problem });
        }
        ready.push((page.first, lane, page.count));
        queue.lanes.attach(lane, page);
    }
    Ok(ready)
}
