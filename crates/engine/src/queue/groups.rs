//! Ordering groups: at most one message of a group is out of the waiting list at a time.

use ahash::RandomState;

use super::entries::{Entries, NIL, Slot};
use crate::steady::{Chunks, SteadyMap};

/// A group: its head is ready, delayed or leased; the others wait behind it in position order.
#[derive(Debug)]
struct Group {
    key: u128,
    head: Slot,
    first: Slot,
    last: Slot,
    waiting: u32,
}

/// How far a purge has come.
#[derive(Debug, Default)]
pub(crate) struct PurgeCursor {
    group: u32,
    /// How many more groups may be looked at.
    pub(crate) looks: u32,
}

/// All groups of a queue that have messages.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: Chunks<Group>,
    free: Vec<u32>,
    by_key: SteadyMap<u128, u32>,
    waiting: u64,
    /// Groups with messages behind their head.
    held: u64,
}

impl Groups {
    pub(crate) fn new(hasher: RandomState) -> Self {
        Self {
            groups: Chunks::new(),
            free: Vec::new(),
            by_key: SteadyMap::new(hasher),
            waiting: 0,
            held: 0,
        }
    }

    /// Messages behind a head.
    pub(crate) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Groups with messages behind their head.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "group numbers come from join and stay valid"
    )]
    fn at(&self, group: u32) -> &Group {
        &self.groups[group as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "group numbers come from join and stay valid"
    )]
    fn at_mut(&mut self, group: u32) -> &mut Group {
        &mut self.groups[group as usize]
    }

    /// The head of a group.
    pub(crate) fn head(&self, group: u32) -> Slot {
        self.at(group).head
    }

    /// The group's key.
    pub(crate) fn key(&self, group: u32) -> u128 {
        self.at(group).key
    }

    /// Adds a message at the back of its group. True when it is the head and may go on.
    pub(crate) fn join(&mut self, entries: &mut Entries, slot: Slot, key: u128) -> bool {
        let group = match self.by_key.get(&key) {
            Some(group) => *group,
            None => self.add(key),
        };
        let entry = entries.at_mut(slot);
        entry.group = group;
        entry.next = NIL;
        let it = self.at_mut(group);
        if it.head == NIL {
            it.head = slot;
            return true;
        }
        if it.first == NIL {
            it.first = slot;
        } else {
            entries.at_mut(it.last).next = slot;
        }
        it.last = slot;
        it.waiting += 1;
        let first = it.waiting == 1;
        self.waiting += 1;
        self.held += u64::from(first);
        false
    }

    fn add(&mut self, key: u128) -> u32 {
        let fresh = Group {
            key,
            head: NIL,
            first: NIL,
            last: NIL,
            waiting: 0,
        };
        let group = if let Some(group) = self.free.pop() {
            *self.at_mut(group) = fresh;
            group
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "one group per message at most"
            )]
            let group = self.groups.len() as u32;
            self.groups.push(fresh);
            group
        };
        self.by_key.insert(key, group);
        group
    }

    /// The head leaves its group for good; returns the message that becomes the head.
    pub(crate) fn leave(&mut self, entries: &mut Entries, group: u32) -> Option<Slot> {
        let next = self.pop_waiting(entries, group);
        let it = self.at_mut(group);
        it.head = next.unwrap_or(NIL);
        if next.is_none() {
            (it.first, it.last) = (NIL, NIL);
            let key = it.key;
            self.by_key.remove(&key);
            self.free.push(group);
            self.give_back();
        }
        next
    }

    /// A queue without messages keeps no memory for the groups it had.
    fn give_back(&mut self) {
        const KEPT: usize = 1024;
        if self.by_key.is_empty() && self.groups.len() > KEPT {
            self.groups = Chunks::new();
            self.free = Vec::new();
        }
    }

    /// Takes the first waiting message out of a group, leaving the head where it is.
    pub(crate) fn pop_waiting(&mut self, entries: &mut Entries, group: u32) -> Option<Slot> {
        let it = self.at_mut(group);
        let slot = it.first;
        if slot == NIL {
            return None;
        }
        it.first = entries.at(slot).next;
        it.waiting -= 1;
        if it.first == NIL {
            it.last = NIL;
        }
        let empty = it.waiting == 0;
        entries.at_mut(slot).next = NIL;
        self.waiting -= 1;
        self.held -= u64::from(empty);
        Some(slot)
    }

    /// Takes a message out of the waiting list of its group; false when more than `most` are before
    /// it.
    pub(crate) fn take_waiting(
        &mut self,
        entries: &mut Entries,
        group: u32,
        slot: Slot,
        most: usize,
    ) -> bool {
        if self.at(group).first == slot {
            return self.pop_waiting(entries, group).is_some();
        }
        let mut before = self.at(group).first;
        for _ in 0..most {
            if before == NIL || entries.at(before).next == slot {
                break;
            }
            before = entries.at(before).next;
        }
        if before == NIL || entries.at(before).next != slot {
            return false;
        }
        entries.at_mut(before).next = entries.at(slot).next;
        entries.at_mut(slot).next = NIL;
        let it = self.at_mut(group);
        if it.last == slot {
            it.last = before;
        }
        // One is still before it.
        it.waiting -= 1;
        self.waiting -= 1;
        true
    }

    /// Takes the next waiting message with a position below `limit` out of its group, walking all
    /// groups once, as far as the cursor may look.
    pub(crate) fn purge_next(
        &mut self,
        entries: &mut Entries,
        cursor: &mut PurgeCursor,
        limit: u64,
    ) -> Option<Slot> {
        while cursor.looks > 0
            && let Some(it) = self.groups.get(cursor.group as usize)
        {
            cursor.looks -= 1;
            let first = it.first;
            if it.head != NIL && first != NIL && entries.at(first).position < limit {
                return self.pop_waiting(entries, cursor.group);
            }
            cursor.group += 1;
        }
        None
    }

    /// Groups from `from` on, for walking all of them in slices.
    pub(crate) fn live_from(&self, from: u32) -> impl Iterator<Item = u32> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "one group per message at most"
        )]
        let end = self.groups.len() as u32;
        (from..end).filter(|group| self.at(*group).head != NIL)
    }

    /// Rough bytes of memory that the groups take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.groups.capacity() * (size_of::<Group>() + size_of::<u32>())
            + self.by_key.memory_bytes()
    }

    /// Panics when a group contradicts its messages.
    pub(crate) fn assert_invariants(&self, entries: &Entries) {
        let mut waiting = 0;
        for group in self.live_from(0) {
            let it = self.at(group);
            assert_eq!(entries.at(it.head).group, group, "head of group {group}");
            let (mut walk, mut last) = (it.first, entries.at(it.head).position);
            let mut count = 0;
            while walk != NIL {
                let entry = entries.at(walk);
                assert_eq!(entry.group, group, "message behind group {group}");
                assert!(entry.position > last, "group {group} is out of order");
                last = entry.position;
                count += 1;
                walk = entry.next;
            }
            assert_eq!(count, it.waiting, "waiting messages of group {group}");
            waiting += u64::from(count);
        }
        assert_eq!(waiting, self.waiting, "waiting messages of all groups");
    }
}
