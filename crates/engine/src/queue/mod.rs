//! One queue: its messages and the structures that decide which goes next.
//!
//! Two kinds of state live here. *Replicated*: entries, positions, attempts, deduplication keys,
//! configuration; records of the log build it. *Leader* state: lanes, groups, timers, consumers;
//! it is built from the replicated part when a start ends recovery.
//!
//! Every message is in exactly one place ([`Place`]). A message that becomes pending is *admitted*:
//! its group, its not-before time and its lane decide which place that is.

mod bodies;
pub(crate) mod capture;
pub(crate) mod dedup;
mod departing;
pub(crate) mod entries;
pub(crate) mod expiry;
mod figures;
pub(crate) mod groups;
mod lane_checks;
pub(crate) mod lanes;
pub(crate) mod leases;
mod limits;
pub(crate) mod lines;
mod long_lane;
pub(crate) mod looks;
mod oldest;
pub(crate) mod page_ref;
pub(crate) mod page_walks;
mod paging;
pub(crate) mod parking;
pub(crate) mod picks;
mod rings;
mod take;
pub(crate) mod throttled;
pub(crate) mod turns;
mod widths;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ahash::RandomState;
use bytes::Bytes;

use crate::dead_letter::{DeadLetterRules, Departures};
use crate::script::Hooks;
use crate::steady::SteadyMap;
use crate::{
    ConnId, EngineConfig, FrameLimit, Lsn, MessageId, Millis, Ordering, Overflow, QueueConfig,
    QueueId, VhostId,
};
use bodies::TransientBodies;
use capture::{Generation, Images};
use dedup::Dedup;
use entries::{Entries, Entry, Flags, NIL, Place, Slot};
use expiry::{Expiry, Whereabouts};
use groups::Groups;
use lanes::Lanes;
use leases::{Lease, Leases};
use limits::Bodies;
use parking::Parking;
use throttled::Throttled;
use turns::Turns;

/// What a queue is to its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sends its dead letters to this queue.
    Source { dead_letters: QueueId },
    /// Takes the dead letters of this queue.
    DeadLetter { source: QueueId },
    /// Has none: AMQP or FireMQ declared it.
    Plain,
}

/// What identifies a queue and never changes.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) id: QueueId,
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
}

/// A message about to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewMessage<'a> {
    pub(crate) id: MessageId,
    pub(crate) at: Lsn,
    pub(crate) len: u32,
    pub(crate) key: &'a str,
    pub(crate) priority: u8,
    pub(crate) weight: u32,
    /// Whether the message says what its key weighs from now on.
    pub(crate) weighs: Weighs,
    pub(crate) redrives: u16,
    pub(crate) flags: Flags,
}

/// Whether a message says what its fairness key weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighs {
    /// It is newly enqueued: its weight is the key's from now on.
    Key,
    /// It came from another queue: its weight counts only when the key has no other message.
    NewKey,
}

/// What is kept of an unclassified message besides its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unclassified {
    /// Tries that failed.
    pub(crate) tries: u32,
    /// The last so many of them did not end in time.
    pub(crate) timeouts: u32,
    /// The version of the queue's script that failed last.
    pub(crate) version: u64,
    /// The deduplication key's hash by the producer's values, while the key is not known.
    pub(crate) dedup: Option<u128>,
    /// The producer's idempotency key, if the deduplication key needs it later.
    pub(crate) idempotency_key: Box<[u8]>,
}

/// A message that left, with what outlives it.
#[derive(Debug)]
pub(crate) struct Removed {
    pub(crate) entry: Entry,
    /// Its fairness key; only when asked for.
    pub(crate) key: Option<Box<str>>,
    pub(crate) priority: u8,
    /// Its ordering group's key.
    pub(crate) group_key: Option<u128>,
    /// The body of a transient one; only when asked for.
    pub(crate) body: Option<Bytes>,
    /// The not-before time of a message that was parked.
    pub(crate) due: Option<Millis>,
    pub(crate) unclassified: Option<Unclassified>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) identity: Identity,
    pub(crate) config: QueueConfig,
    pub(crate) next_position: u64,
    /// Position after the newest record that concerns the queue: answers about it wait for it.
    pub(crate) last_lsn: Lsn,
    /// Position after the newest record that stores a message here.
    pub(crate) stored_lsn: Lsn,
    pub(crate) entries: Entries,
    pub(crate) lanes: Lanes,
    pub(crate) groups: Groups,
    pub(crate) leases: Leases,
    pub(crate) dedup: Dedup,
    /// When messages leave undelivered.
    pub(crate) expiry: Expiry,
    /// Messages that did since the start.
    pub(crate) expired: u64,
    /// Where messages that die here go; `None` = nowhere, or to a dead-letter queue.
    pub(crate) dead_letters: Option<Arc<DeadLetterRules>>,
    /// Those on their way there.
    pub(crate) departures: Departures,
    /// Messages that went there since the start.
    pub(crate) dead_lettered: u64,
    /// Messages waiting for a time.
    pub(crate) delayed: BTreeSet<(Millis, Slot)>,
    /// Unclassified messages, and those behind them.
    pub(crate) parking: Parking,
    /// What is known of unclassified messages. Of a dead letter only while it is redriven.
    pub(crate) unclassified: SteadyMap<Slot, Unclassified>,
    /// Messages whose failed delivery a script decides on, with the end of their recorded lease.
    pub(crate) deciding: SteadyMap<Slot, Option<Millis>>,
    /// Messages that a redrive took out of their place.
    pub(super) aside: u32,
    /// Its scripts and what waits for them.
    pub(crate) hooks: Option<Box<Hooks>>,
    /// Classified messages dropped since the start, as their key was remembered from another one.
    pub(crate) late_duplicates: u64,
    /// Not-before times of messages that are behind their group's head, parked, stopped or aside.
    behind_due: SteadyMap<Slot, Millis>,
    /// Ordering group keys of messages that are in no group now: all during replay, those of dead
    /// letters always (a redriven message joins its group again).
    pub(crate) group_of: SteadyMap<Slot, u128>,
    /// Bodies of transient messages.
    pub(crate) transient: TransientBodies,
    /// Consumers of this queue, in the order they came.
    pub(crate) consumers: Vec<u32>,
    /// Those that can take a message now, in the order of their turns.
    pub(crate) turns: Turns,
    /// Consumers that are none any more, and still hold messages.
    pub(crate) kept: Vec<u32>,
    /// The consumer that wants to be the only one.
    pub(crate) exclusive: Option<u32>,
    /// Where one consumer is served at a time: that one, until it has settled what it held.
    pub(crate) active: Option<u32>,
    /// The connection that it belongs to, and goes with.
    pub(crate) owner: Option<ConnId>,
    /// When it was declared, asked or left by its last consumer.
    pub(crate) used_at: Millis,
    /// It is in the engine's list of queues to serve.
    pub(crate) runnable: bool,
    /// It is in the engine's list of queues to make pages for.
    pub(crate) fills_pages: bool,
    /// What waits for throttles.
    pub(crate) throttled: Throttled,
    /// Lanes whose first page could not be read, with the time to try again.
    pub(crate) stalled: VecDeque<(Millis, u32)>,
    /// What [`Queue::memory_bytes`] was when the engine last counted it.
    pub(crate) memory_counted: usize,
    lane_hot: u32,
    /// The time the engine's timer is set to.
    pub(crate) armed: Option<Millis>,
    /// The engine's.
    generation: Generation,
    /// What a capture has taken so far.
    images: Images,
    /// Content bytes of all messages.
    bytes: u64,
    /// Bodies of pending messages, where their bytes are limited.
    bodies: Bodies,
    /// Consumers that are gone and whose messages are on their way back: nothing is delivered until
    /// all are there, so that they come in their order.
    pub(crate) returning: u32,
}

impl Queue {
    pub(crate) fn new(
        identity: Identity,
        config: QueueConfig,
        hasher: &RandomState,
        engine: &EngineConfig,
        generation: Generation,
    ) -> Self {
        let mut queue = Self {
            identity,
            config,
            next_position: 1,
            last_lsn: Lsn::ZERO,
            stored_lsn: Lsn::ZERO,
            entries: Entries::default(),
            lanes: Lanes::new(hasher.clone(), engine),
            groups: Groups::new(hasher.clone()),
            leases: Leases::new(hasher.clone()),
            dedup: Dedup::new(hasher),
            expiry: Expiry::new(hasher.clone()),
            expired: 0,
            dead_letters: None,
            departures: Departures::default(),
            dead_lettered: 0,
            delayed: BTreeSet::new(),
            parking: Parking::default(),
            unclassified: SteadyMap::new(hasher.clone()),
            deciding: SteadyMap::new(hasher.clone()),
            aside: 0,
            hooks: None,
            late_duplicates: 0,
            behind_due: SteadyMap::new(hasher.clone()),
            group_of: SteadyMap::new(hasher.clone()),
            transient: TransientBodies::default(),
            consumers: Vec::new(),
            turns: Turns::default(),
            kept: Vec::new(),
            exclusive: None,
            active: None,
            owner: None,
            used_at: Millis(0),
            runnable: false,
            fills_pages: false,
            throttled: Throttled::default(),
            stalled: VecDeque::new(),
            memory_counted: 0,
            lane_hot: engine.lane_hot.max(1),
            armed: None,
            generation,
            images: Images::default(),
            bytes: 0,
            bodies: Bodies::default(),
            returning: 0,
        };
        queue.set_lane_rules();
        queue
    }

    pub(crate) const fn is_dead_letter(&self) -> bool {
        matches!(self.identity.role, Role::DeadLetter { .. })
    }

    /// Replicated: takes a message in at the next position. It has no place yet.
    pub(crate) fn store(&mut self, new: NewMessage<'_>) -> Slot {
        let position = self.next_position;
        self.next_position = self.next_position.saturating_add(1);
        let lane = self
            .lanes
            .hold(new.key, new.priority, (new.weight.max(1), new.weighs));
        let slot = self.entries.insert(Entry {
            id: new.id,
            position,
            at: new.at,
            len: new.len,
            lane,
            next: NIL,
            weight: new.weight.max(1),
            group: NIL,
            deliveries: 0,
            failures: 0,
            redrives: new.redrives,
            place: Place::New,
            flags: self.generation.mark(new.flags),
        });
        self.bytes += u64::from(new.len);
        slot
    }

    /// Leader: gives a message without a place its place, at the back of its group if it has one.
    pub(crate) fn admit(&mut self, slot: Slot, group: Option<u128>, due: Option<Millis>) {
        self.add_pending(slot);
        self.enter(slot, group, due);
    }

    /// Leader: gives a pending message its place, unless it waits behind an unclassified one.
    fn enter(&mut self, slot: Slot, group: Option<u128>, due: Option<Millis>) {
        if self.is_stopped(self.entries.at(slot).position) {
            return self.stop(slot, group, due);
        }
        if let Some(key) = group
            && !self.groups.join(&mut self.entries, slot, key)
        {
            self.entries.at_mut(slot).place = Place::Behind;
            self.list_expiry(slot, Whereabouts::Known);
            if let Some(due) = due {
                self.behind_due.insert(slot, due);
            }
            return;
        }
        self.settle_place(slot, due);
    }

    /// Leader: gives a pending message that its group lets go its place.
    pub(super) fn settle_place(&mut self, slot: Slot, due: Option<Millis>) {
        let entry = self.entries.at_mut(slot);
        if let Some(due) = due {
            entry.place = Place::Delayed;
            self.delayed.insert((due, slot));
            self.list_expiry(slot, Whereabouts::Delayed(due));
        } else {
            entry.place = Place::Ready;
            if entry.flags.has(Flags::EXPIRES) {
                self.lanes.push_returned(&self.entries, slot);
            } else {
                self.lanes.push(&mut self.entries, slot);
            }
            self.list_ready(slot);
        }
    }

    /// Leader, after a restart: a message without a place is leased, as the head of its group. If
    /// its group has another head it waits behind that, and the lease is void.
    pub(crate) fn admit_leased(&mut self, slot: Slot, group: Option<u128>, lease: Lease) {
        if let Some(key) = group
            && !self.groups.join(&mut self.entries, slot, key)
        {
            self.add_pending(slot);
            self.entries.at_mut(slot).place = Place::Behind;
            self.list_expiry(slot, Whereabouts::Known);
            return;
        }
        let entry = self.entries.at_mut(slot);
        entry.place = Place::Leased;
        self.leases.insert(entry.id, lease);
    }

    /// Leader, after a restart: all messages in position order.
    pub(crate) fn slots_in_order(&self) -> Vec<Slot> {
        let entries = &self.entries;
        let live = entries.live_slots(0, entries.slots());
        let mut order: Vec<_> = live.map(|slot| (entries.at(slot).position, slot)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Messages of groups are never in pages. Redrives and the maximum length take the oldest.
    fn set_lane_rules(&mut self) {
        let policy = self.config.amqp.as_ref();
        self.expiry.ttl_ms = policy.and_then(|policy| policy.message_ttl_ms);
        self.dead_letters = policy.and_then(|policy| DeadLetterRules::of(policy));
        let max = self.overflow();
        let expires = self.expiry.ttl_ms.is_some();
        let asks_for_oldest = self.is_dead_letter() || expires || max == Some(Overflow::DropHead);
        // What a page holds is counted whole, and its bodies would not be known.
        let is_paged = self.config.ordering == Ordering::None && !self.limits_bytes();
        let lane_hot = if is_paged { self.lane_hot } else { u32::MAX };
        self.lanes
            .set_rules(&self.entries, lane_hot, asks_for_oldest);
    }

    /// Replicated, in replay: what the queue is and its policies, once its record is read.
    pub(crate) fn describe(&mut self, identity: Identity, config: QueueConfig, next: u64) {
        self.identity = identity;
        self.config = config;
        self.next_position = self.next_position.max(next);
        self.set_lane_rules();
    }

    /// Leader: a leased message becomes pending again, at its old position.
    pub(crate) fn give_back(&mut self, slot: Slot, due: Option<Millis>) {
        self.preserve(slot);
        let entry = self.entries.at(slot);
        if entry.place == Place::Deciding {
            self.deciding.remove(&slot);
        } else {
            self.leases.remove(entry.id);
        }
        self.add_pending(slot);
        self.settle_place(slot, due);
    }

    /// Leader: a leased message was not delivered, as it does not fit such a frame: it is back at
    /// its position, for consumers with larger ones.
    pub(crate) fn set_unfit(&mut self, slot: Slot, limit: FrameLimit) {
        self.preserve(slot);
        let lane = self.lanes.widen(self.entries.at(slot).lane, limit);
        let entry = self.entries.at_mut(slot);
        entry.deliveries = entry.deliveries.saturating_sub(1);
        entry.lane = lane;
        self.give_back(slot, None);
    }

    /// A message leaves for good; it is already out of lane and waiting list. A waiting message of
    /// its group may move up.
    pub(crate) fn remove(&mut self, slot: Slot, keep_key: KeepKey) -> Removed {
        self.preserve(slot);
        self.forget_expiry(slot);
        let place = self.entries.at(slot).place;
        let (lane, group) = (self.entries.at(slot).lane, self.entries.at(slot).group);
        let mut due = self.leave_parking(slot);
        // Maps that are empty, as they mostly are, are not asked: that would cost a hash.
        let group_key = if group == NIL {
            if self.group_of.is_empty() {
                None
            } else {
                self.group_of.remove(&slot)
            }
        } else {
            Some(self.groups.key(group))
        };
        match place {
            Place::Leased => _ = self.leases.remove(self.entries.at(slot).id),
            Place::Deciding => _ = self.deciding.remove(&slot),
            Place::Free | Place::New | Place::Departing => {}
            Place::Ready
            | Place::Delayed
            | Place::Behind
            | Place::Throttled
            | Place::Parked
            | Place::Stopped
            | Place::Aside => self.remove_pending(slot),
        }
        if place == Place::Aside {
            self.aside -= 1;
            due = self.behind_due.remove(&slot);
        }
        if place == Place::Behind {
            self.behind_due.remove(&slot);
        } else if group != NIL && self.groups.head(group) == slot {
            self.promote(group);
        }
        let key = match keep_key {
            KeepKey::Yes => Some(self.lanes.at(lane).key.clone()),
            KeepKey::No => None,
        };
        let priority = self.lanes.priority(lane);
        self.forget_body(slot);
        let body = match keep_key {
            KeepKey::Yes => self.transient.of(self.entries.at(slot)),
            KeepKey::No => None,
        };
        let body = body.map(Bytes::copy_from_slice);
        self.lanes.release(lane);
        let entry = self.entries.remove(slot);
        self.bytes -= u64::from(entry.len);
        if entry.flags.has(Flags::TRANSIENT) {
            self.drop_body(&entry);
        }
        Removed {
            entry,
            key,
            priority,
            group_key,
            body,
            due,
            unclassified: if self.unclassified.is_empty() {
                None
            } else {
                self.unclassified.remove(&slot)
            },
        }
    }

    fn promote(&mut self, group: u32) {
        if let Some(next) = self.groups.leave(&mut self.entries, group) {
            let due = self.behind_due.remove(&next);
            self.settle_place(next, due);
        }
    }
}

/// Whether a removed message's fairness key and body are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepKey {
    /// It moves on to another queue.
    Yes,
    /// It is gone.
    No,
}
