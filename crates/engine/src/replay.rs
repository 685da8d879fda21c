//! Recovery: the replicated state from the log's records, then the leader state from that.
//!
//! The log may have lost its beginning: what was there is not needed any more. So records may speak
//! of messages that are unknown (they left later, or their leaving is the record) and of queues
//! whose own record comes later, written again. What is still unnamed at the end is damage.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::atomic::{absolute, is_relative, records_in};
use crate::engine::Engine;
use crate::moves::Move;
use crate::noted::Noted;
use crate::queue::entries::{Flags, Slot};
use crate::queue::leases::NEVER;
use crate::queue::page_ref::PageRef;
use crate::queue::{KeepKey, NewMessage, Unclassified, Weighs};
use crate::queues::QueueIndex;
use crate::record::{Header, Kind, MoveReason, Reader};
use crate::throttle::Pending;
use crate::topology::{read_exchanges, vhost_gone};
use crate::{Lsn, MessageId, Millis, PageSlot, QueueId, Rebalancing, ReplayError};

/// What replay remembers until the end of recovery.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) queues: BTreeMap<QueueIndex, QueueRecovery>,
    /// Messages with a deduplication key that left, in log order.
    pub(crate) left: Vec<(Millis, QueueId, MessageId)>,
    /// Charges of throttles that are not known to have left.
    pub(crate) charges: Vec<Pending>,
    /// Records before this position are in the state of a bucket already, by its number.
    pub(crate) throttled_until: Vec<Lsn>,
    /// Slots of pages that the snapshot names and whose messages are in memory or gone.
    pub(crate) freed: Vec<PageSlot>,
    pub(crate) noted: Noted,
    /// Where the `Atomic` record begins that is applied.
    atomic_at: Option<Lsn>,
    hasher: RandomState,
}

/// Reads the page in a slot; false when it cannot be read.
pub type ReadPage<'a> = dyn FnMut(PageSlot, &mut Vec<u8>) -> bool + 'a;

/// What a record says of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseChange {
    Leased,
    Returned,
    Requeued,
    Failed,
    Extended,
}

/// Of one queue.
#[derive(Debug)]
pub(crate) struct QueueRecovery {
    pub(crate) by_position: HashMap<u64, Slot, RandomState>,
    pub(crate) due: HashMap<Slot, Millis, RandomState>,
    pub(crate) leases: HashMap<Slot, Millis, RandomState>,
    /// Pages by their numbers, each with its lane.
    pub(crate) pages: BTreeMap<u64, (u32, PageRef)>,
    /// Its own record was read.
    pub(crate) named: bool,
}

impl Recovery {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            queues: BTreeMap::new(),
            left: Vec::new(),
            charges: Vec::new(),
            throttled_until: Vec::new(),
            freed: Vec::new(),
            noted: Noted::new(),
            atomic_at: None,
            hasher: hasher.clone(),
        }
    }

    pub(crate) fn queue(&mut self, index: QueueIndex) -> &mut QueueRecovery {
        let hasher = &self.hasher;
        self.queues.entry(index).or_insert_with(|| QueueRecovery {
            by_position: HashMap::with_hasher(hasher.clone()),
            due: HashMap::with_hasher(hasher.clone()),
            leases: HashMap::with_hasher(hasher.clone()),
            pages: BTreeMap::new(),
            named: false,
        })
    }
}

impl Engine {
    /// Applies one record of the log, in log order. `at` is the position of its first byte.
    ///
    /// # Errors
    /// `ReplayError` when the record makes no sense, or speaks of a page: do not serve from this
    /// state.
    pub fn replay(&mut self, at: Lsn, record: &[u8]) -> Result<(), ReplayError> {
        self.replay_with_pages(at, record, &mut |_, _| false)
    }

    /// Like [`Engine::replay`], after a snapshot: `read` reads the pages that it names, as
    /// [`Journal::read_page`](crate::Journal::read_page) does.
    ///
    /// # Errors
    /// `ReplayError` when the record makes no sense, or its page cannot be read: do not serve from
    /// this state.
    pub fn replay_with_pages(
        &mut self,
        at: Lsn,
        record: &[u8],
        read: &mut ReadPage<'_>,
    ) -> Result<(), ReplayError> {
        let Some(mut recovery) = self.recovery.take() else {
            return Err(ReplayError {
                problem: "recovery has ended".to_owned(),
            });
        };
        let result = self.apply(&mut recovery, at, record, read);
        self.recovery = Some(recovery);
        result
    }

    fn apply(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        record: &[u8],
        read: &mut ReadPage<'_>,
    ) -> Result<(), ReplayError> {
        let mut reader = Reader::new(record);
        let header = reader.header()?;
        self.newest_time = self.newest_time.max(header.time);
        match header.kind {
            Kind::Queue => self.apply_queue(rec, header.queue, &mut reader),
            Kind::QueueDeleted => {
                let partner = QueueId(reader.u32()?);
                if reader.has_more() {
                    let gone = read_exchanges(&mut reader)?;
                    self.topology.remove_exchanges(&gone);
                }
                self.drop_queue(rec, header.queue);
                self.drop_queue(rec, partner);
                Ok(())
            }
            Kind::Stored => self.apply_stored(rec, at, header.queue, &mut reader),
            Kind::Moved => self.apply_moved(rec, header, &mut reader),
            Kind::Removed => self.apply_removed(rec, header, &mut reader),
            Kind::Leased => self.apply_lease(rec, header, LeaseChange::Leased, &mut reader),
            Kind::Returned => self.apply_lease(rec, header, LeaseChange::Returned, &mut reader),
            Kind::Requeued => self.apply_lease(rec, header, LeaseChange::Requeued, &mut reader),
            Kind::Failed => self.apply_lease(rec, header, LeaseChange::Failed, &mut reader),
            Kind::Extended => self.apply_lease(rec, header, LeaseChange::Extended, &mut reader),
            Kind::Config => {
                let key = reader.short()?.to_owned();
                let value = reader.long()?.to_owned();
                Arc::make_mut(&mut self.runtime).insert(key, value);
                Ok(())
            }
            Kind::Shard => self.apply_shard(&mut reader),
            Kind::Throttle => self.apply_throttle(rec, at, header, &mut reader),
            Kind::ApiKey => self.keys.apply_key(&mut reader),
            Kind::Acl => self.keys.apply_acl(&mut reader),
            Kind::Keys => self.keyspaces.apply(&mut reader),
            Kind::Vhost => {
                if let Some(gone) = vhost_gone(reader) {
                    self.keyspaces.apply_vhost_gone(gone);
                }
                if let Some(gone) = self.topology.apply_vhost(&mut reader)? {
                    self.users.forget_vhost(&gone);
                }
                Ok(())
            }
            Kind::User => self.users.apply_user(&mut reader),
            Kind::Permission => self.users.apply_permission(&mut reader),
            Kind::Exchange => self.topology.apply_exchange(&mut reader),
            Kind::Binding => self.topology.apply_binding(&mut reader),
            // Whoever reads the log knows which snapshot it has.
            Kind::Snapshot => reader.u64().map(|_| ()),
            Kind::Image => self.apply_images(rec, at, header.queue, &mut reader),
            Kind::Classified => self.apply_classified(rec, at, header.queue, &mut reader),
            Kind::Remembered => self.apply_remembered(rec, header.queue, &mut reader),
            Kind::Pages => self.apply_pages(rec, header.queue, &mut reader),
            // Without a snapshot's pages there is none to load: its messages are in memory.
            Kind::PageLoaded => {
                let page = reader.u64()?;
                self.apply_page_loaded(rec, (header.queue, page), read)
            }
            Kind::Atomic => self.apply_atomic(rec, at, record, read),
        }
    }

    fn apply_atomic(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        record: &[u8],
        read: &mut ReadPage<'_>,
    ) -> Result<(), ReplayError> {
        if rec.atomic_at.is_some() {
            let problem = "an atomic record within another".to_owned();
            return Err(ReplayError { problem });
        }
        rec.atomic_at = Some(at);
        let result = records_in(record).try_for_each(|next| {
            let (offset, next) = next?;
            self.apply(rec, Lsn(at.0.saturating_add(offset as u64)), next, read)
        });
        rec.atomic_at = None;
        result
    }

    fn apply_shard(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        self.queues.next_id = self.queues.next_id.max(reader.u32()?);
        let (mode, pause_ms) = (reader.u8()?, reader.u64()?);
        self.shard.rebalancing = match mode {
            0 => Rebalancing::Enabled,
            1 => Rebalancing::Paused { pause_ms },
            2 => Rebalancing::Disabled,
            n => return Err(reader.problem(&format!("rebalancing mode {n} is unknown"))),
        };
        self.shard.pause_ends_at = reader.millis()?;
        Ok(())
    }

    fn apply_stored(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let index = self.queue_or_placeholder(rec, id);
        let (first_position, first_id, count) = reader.stored_head()?;
        self.newest_time = self.newest_time.max(first_id.enqueued_at());
        let atomic_at = rec.atomic_at;
        let kept = rec.queue(index);
        for n in 0..count {
            let message = reader.stored_message()?;
            let content_at = match message.content {
                Ok(offset) => Lsn(at.0.saturating_add(offset as u64)),
                Err(elsewhere) => content_before(at, elsewhere, atomic_at).ok_or_else(|| {
                    let problem = format!("a content at {elsewhere:?}, not before its record");
                    reader.problem(&problem)
                })?,
            };
            let id = MessageId(first_id.0.wrapping_add(u128::from(n)));
            let queue = self.queues.at_mut(index);
            let position = first_position.saturating_add(u64::from(n));
            if position < queue.next_position && kept.by_position.contains_key(&position) {
                return Err(reader.problem(&format!("position {position} is stored twice")));
            }
            queue.next_position = position;
            let flags = [
                (message.dedup.is_some(), Flags::DEDUP),
                (message.attributes, Flags::ATTRIBUTES),
                (message.unclassified.is_some(), Flags::UNCLASSIFIED),
                (true, Flags::of_form(message.form)),
            ];
            let slot = queue.store(NewMessage {
                id,
                at: content_at,
                len: message.len,
                key: message.key,
                priority: message.priority,
                weight: message.weight,
                weighs: Weighs::Key,
                redrives: 0,
                flags: Flags::of(&flags),
            });
            if let Some(known) = message.unclassified {
                queue.unclassified.insert(slot, Unclassified::of(known));
            }
            if let Some(at) = message.expires {
                queue.keep_expiry(slot, at);
            }
            self.segments.add(content_at, message.len);
            kept.by_position.insert(position, slot);
            if let Some(due) = message.due {
                kept.due.insert(slot, due);
            }
            if let Some(group) = message.group {
                queue.group_of.insert(slot, group);
            }
            if let Some(key) = message.dedup {
                queue.dedup.insert(key, id);
            }
        }
        Ok(())
    }

    fn apply_removed(
        &mut self,
        rec: &mut Recovery,
        header: Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let positions = reader.positions()?;
        let Some(index) = self.queues.index_of(header.queue) else {
            return Ok(());
        };
        for position in positions {
            let Some(slot) = rec.queue(index).take(position) else {
                continue;
            };
            let removed = self.queues.at_mut(index).remove(slot, KeepKey::No);
            let entry = &removed.entry;
            self.segments.remove(entry.at, entry.len);
            if removed.entry.flags.has(Flags::DEDUP) {
                rec.left.push((header.time, header.queue, removed.entry.id));
            }
        }
        Ok(())
    }

    fn apply_moved(
        &mut self,
        rec: &mut Recovery,
        header: Header,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let to_id = QueueId(reader.u32()?);
        let reason = match reader.u8()? {
            1 => MoveReason::DeadLetter,
            2 => MoveReason::Redrive,
            3 => MoveReason::Unclassified,
            n => return Err(reader.problem(&format!("move reason {n} is unknown"))),
        };
        let (old, new) = (reader.positions()?, reader.positions()?);
        if old.len() != new.len() {
            return Err(reader.problem("a move has unequal lists of positions"));
        }
        let Some(from) = self.queues.index_of(header.queue) else {
            return Ok(());
        };
        for (old, new) in old.into_iter().zip(new) {
            let due = rec.queue(from).due_at(old);
            let Some(slot) = rec.queue(from).take(old) else {
                continue;
            };
            let to = self.queue_or_placeholder(rec, to_id);
            let mut removed = self.queues.at_mut(from).remove(slot, KeepKey::Yes);
            if reason == MoveReason::DeadLetter {
                // The failure that made it a dead letter has no record of its own.
                removed.entry.failures = removed.entry.failures.saturating_add(1);
            }
            let group = removed.group_key;
            // A message that was never delivered keeps the not-before time of its enqueue.
            let due = due.filter(|_| removed.entry.failures == 0);
            self.queues.at_mut(to).next_position = new;
            let slot = self.store_moved(Move { from, to, reason }, removed);
            if let Some(group) = group {
                self.queues.at_mut(to).group_of.insert(slot, group);
            }
            let kept = rec.queue(to);
            kept.by_position.insert(new, slot);
            if let Some(due) = due {
                kept.due.insert(slot, due);
            }
        }
        Ok(())
    }

    fn apply_lease(
        &mut self,
        rec: &mut Recovery,
        header: Header,
        change: LeaseChange,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let leased_until = if change == LeaseChange::Leased {
            reader.millis()?
        } else {
            NEVER
        };
        let positions = reader.positions()?;
        let Some(index) = self.queues.index_of(header.queue) else {
            return Ok(());
        };
        let kept = rec.queue(index);
        for position in positions {
            let time = match change {
                LeaseChange::Failed | LeaseChange::Extended => reader.millis()?,
                LeaseChange::Leased | LeaseChange::Returned | LeaseChange::Requeued => leased_until,
            };
            let Some(slot) = kept.by_position.get(&position).copied() else {
                continue;
            };
            let entry = self.queues.at_mut(index).entries.at_mut(slot);
            kept.due.remove(&slot);
            kept.leases.remove(&slot);
            match change {
                LeaseChange::Leased => {
                    entry.deliveries = entry.deliveries.saturating_add(1);
                    kept.leases.insert(slot, time);
                }
                LeaseChange::Extended => {
                    kept.leases.insert(slot, time);
                }
                LeaseChange::Failed => {
                    entry.failures = entry.failures.saturating_add(1);
                    kept.due.insert(slot, time);
                }
                LeaseChange::Returned => entry.deliveries = entry.deliveries.saturating_sub(1),
                LeaseChange::Requeued => {}
            }
        }
        Ok(())
    }
}

/// Where a content lies that the record at `at` refers to: before it, or in the `Atomic` record
/// that both are in.
fn content_before(at: Lsn, content: Lsn, atomic_at: Option<Lsn>) -> Option<Lsn> {
    let found = if is_relative(content) {
        absolute(content, atomic_at?)
    } else {
        content
    };
    (found < at).then_some(found)
}

impl QueueRecovery {
    /// The message at a position, if it is in memory.
    pub(crate) fn slot_at(&self, position: u64) -> Option<Slot> {
        self.by_position.get(&position).copied()
    }

    /// When a message may be delivered.
    fn due_at(&self, position: u64) -> Option<Millis> {
        let slot = self.by_position.get(&position)?;
        self.due.get(slot).copied()
    }

    /// A message leaves: forgets what was kept of it.
    fn take(&mut self, position: u64) -> Option<Slot> {
        let slot = self.by_position.remove(&position)?;
        self.due.remove(&slot);
        self.leases.remove(&slot);
        Some(slot)
    }
}
