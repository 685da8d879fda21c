//! Messages leave: for good, or to another queue.

use crate::engine::{Cx, Engine};
use crate::queue::entries::{Flags, Place, Slot};
use crate::queue::{KeepKey, NewMessage, Queue, Removed, Role, Weighs};
use crate::queues::QueueIndex;
use crate::record::{Kind, MoveReason, POSITIONS_MAX, begin, put_positions};
use crate::script::next_try;
use crate::{Lsn, Millis};

/// A move from one queue to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) from: QueueIndex,
    pub(crate) to: QueueIndex,
    pub(crate) reason: MoveReason,
}

impl Engine {
    /// Removes messages that are leased, or already taken out of their lane or waiting list, and
    /// writes one record about it.
    pub(crate) fn remove_all(&mut self, cx: &mut Cx<'_>, index: QueueIndex, slots: &[Slot]) {
        for slots in slots.chunks(POSITIONS_MAX) {
            let mut positions = core::mem::take(&mut self.pass.positions);
            positions.clear();
            for slot in slots {
                let removed = self.queues.at_mut(index).remove(*slot, KeepKey::No);
                if !removed.entry.flags.has(Flags::TRANSIENT) {
                    positions.push(removed.entry.position);
                }
                self.forget(index, &removed, cx.now);
            }
            if !positions.is_empty() {
                positions.sort_unstable();
                let queue = self.queues.at(index).identity.id;
                begin(&mut self.record, Kind::Removed, queue, cx.now);
                put_positions(&mut self.record, &positions);
                self.queues.at_mut(index).last_lsn = self.append(cx);
            }
            // The next turn writes as leased whatever it finds here.
            positions.clear();
            self.pass.positions = positions;
        }
    }

    /// What a message that is gone for good leaves behind: its key's window starts, its segment is
    /// needed by one less.
    pub(crate) fn forget(&mut self, index: QueueIndex, removed: &Removed, now: Millis) {
        let entry = &removed.entry;
        if entry.flags.has(Flags::DEDUP) {
            let owner = self.dedup_owner(index);
            self.queues.at_mut(owner).dedup.on_left(entry.id, now);
            if owner != index {
                self.touch(owner);
            }
        }
        if !entry.flags.has(Flags::TRANSIENT) {
            self.segments.remove(entry.at, entry.len);
        }
    }

    /// The queue that remembers the keys of a queue's messages: a dead-letter queue's are its
    /// source's.
    pub(crate) fn dedup_owner(&self, index: QueueIndex) -> QueueIndex {
        match self.queues.at(index).identity.role {
            Role::Source { .. } | Role::Plain => index,
            Role::DeadLetter { source } => self.queues.index_of(source).unwrap_or(index),
        }
    }

    /// Moves messages that are leased, or already taken out of their lane, to the back of another
    /// queue, and writes one record about it.
    pub(crate) fn move_all(&mut self, cx: &mut Cx<'_>, how: Move, slots: &[Slot]) {
        for slots in slots.chunks(POSITIONS_MAX) {
            let mut old = Vec::with_capacity(slots.len());
            let mut new = Vec::with_capacity(slots.len());
            for slot in slots {
                let removed = self.queues.at_mut(how.from).remove(*slot, KeepKey::Yes);
                let durable = !removed.entry.flags.has(Flags::TRANSIENT);
                let from = removed.entry.position;
                let to = self.put_moved(cx.now, how, removed);
                if durable {
                    old.push(from);
                    new.push(to);
                }
            }
            if old.is_empty() {
                continue;
            }
            let from = self.queues.at(how.from).identity.id;
            let to = self.queues.at(how.to).identity.id;
            begin(&mut self.record, Kind::Moved, from, cx.now);
            self.record.extend_from_slice(&to.0.to_be_bytes());
            self.record.push(how.reason as u8);
            put_positions(&mut self.record, &old);
            put_positions(&mut self.record, &new);
            let end = self.append(cx);
            self.note_moved(how, end);
        }
        self.touch(how.from);
        self.touch(how.to);
    }

    fn note_moved(&mut self, how: Move, end: Lsn) {
        self.queues.at_mut(how.from).last_lsn = end;
        let to = self.queues.at_mut(how.to);
        to.last_lsn = end;
        to.stored_lsn = end;
    }

    /// Puts a message that left one queue at the back of another; returns its new position.
    fn put_moved(&mut self, now: Millis, how: Move, removed: Removed) -> u64 {
        let group = removed.group_key;
        // A message that was never delivered keeps the not-before time of its enqueue.
        let due = removed.due.filter(|_| removed.entry.failures == 0);
        let due = due.filter(|due| *due > now);
        let slot = self.store_moved(how, removed);
        let to = self.queues.at_mut(how.to);
        let unclassified = to.entries.at(slot).flags.has(Flags::UNCLASSIFIED);
        if unclassified && !to.is_dead_letter() {
            let known = to.unclassified(slot);
            let next = next_try(to, known.version, known.timeouts, now);
            to.park(slot, (group, due), next, "");
        } else if to.is_dead_letter() {
            to.admit(slot, None, due);
            if let Some(group) = group {
                to.group_of.insert(slot, group);
            }
        } else {
            to.admit(slot, group, due);
        }
        to.entries.at(slot).position
    }

    /// Replicated part of a move: the message keeps id, content, key and weight.
    pub(crate) fn store_moved(&mut self, how: Move, removed: Removed) -> Slot {
        let Removed {
            entry,
            key,
            priority,
            group_key: _,
            body,
            due: _,
            unclassified,
        } = removed;
        let redrive = how.reason == MoveReason::Redrive;
        let to = self.queues.at_mut(how.to);
        let slot = to.store(NewMessage {
            id: entry.id,
            at: entry.at,
            len: entry.len,
            key: key.as_deref().unwrap_or_default(),
            priority,
            weight: entry.weight,
            weighs: Weighs::NewKey,
            redrives: entry.redrives.saturating_add(u16::from(redrive)),
            // Where it goes it stays.
            flags: entry.flags.without(Flags::EXPIRES),
        });
        if redrive {
            // A dead letter that no script has seen since is tried by the present one.
            if entry.flags.has(Flags::UNCLASSIFIED) {
                to.unclassified
                    .insert(slot, unclassified.unwrap_or_default());
            }
        } else {
            let moved = to.entries.at_mut(slot);
            (moved.deliveries, moved.failures) = (entry.deliveries, entry.failures);
        }
        if let Some(body) = body {
            to.keep_body(slot, &body);
        }
        slot
    }

    /// Forgets deduplication keys whose window has passed.
    pub(crate) fn forget_keys(&mut self, index: QueueIndex, now: Millis, budget: usize) -> usize {
        let queue = self.queues.at_mut(index);
        let window_ms = queue.config.dedup_window_ms;
        let mut forgotten = 0;
        while forgotten < budget && queue.dedup.pop_ended(window_ms, now) {
            forgotten += 1;
        }
        forgotten
    }

    /// The dead-letter queue of a queue; a dead-letter queue has none.
    pub(crate) fn dead_letters_of(&self, index: QueueIndex) -> Option<QueueIndex> {
        match self.queues.at(index).identity.role {
            Role::Source { dead_letters } => self.queues.index_of(dead_letters),
            Role::DeadLetter { .. } | Role::Plain => None,
        }
    }

    /// Takes a message whose lease ended without success: counts the failure and says when it is
    /// due again; `None` when it is to be dead-lettered.
    pub(crate) fn fail(&mut self, index: QueueIndex, slot: Slot, retry: Retry) -> Option<Millis> {
        let dead_letters = self.dead_letters_of(index).is_some();
        let queue = self.queues.at_mut(index);
        let policy = queue.config.retry;
        queue.preserve(slot);
        let entry = queue.entries.at_mut(slot);
        debug_assert!(
            matches!(entry.place, Place::Leased | Place::Deciding),
            "{} fails without a lease",
            entry.id
        );
        entry.failures = entry.failures.saturating_add(1);
        if dead_letters && entry.failures >= policy.max_attempts {
            return None;
        }
        Some(queue.retry(slot, retry))
    }

    /// Takes a message whose lease ended without success back for another delivery, whatever the
    /// retry policy says of its number of attempts: counts the failure and says when it is due.
    pub(crate) fn retry(&mut self, index: QueueIndex, slot: Slot, retry: Retry) -> Millis {
        let queue = self.queues.at_mut(index);
        queue.preserve(slot);
        let entry = queue.entries.at_mut(slot);
        entry.failures = entry.failures.saturating_add(1);
        queue.retry(slot, retry)
    }
}

/// What decides when a failed message is due again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) now: Millis,
    /// Replaces the policy's delay.
    pub(crate) delay_ms: Option<u64>,
}

impl Queue {
    /// A failed message waits for its next delivery.
    fn retry(&mut self, slot: Slot, retry: Retry) -> Millis {
        let failures = self.entries.at(slot).failures;
        let delay_ms = retry
            .delay_ms
            .unwrap_or_else(|| self.config.retry.delay_ms(failures));
        let due = retry.now.after_ms(delay_ms);
        self.give_back(slot, (delay_ms > 0).then_some(due));
        due
    }
}
