//! Commands that are not answered, by the token the engine knows them by and by their request id.
//!
//! A command may wait for minutes while a million others are answered, so tokens name slots that
//! are used again, and how often each was: a late event never reaches a successor.

use std::collections::BTreeMap;

use tanda_engine::Permission;

use super::claims::Claim;
use super::command::Call;
use crate::pending::CONSUMER_BIT;

/// Most slots.
const SLOTS_MAX: usize = 65_000;

/// A command.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its request id.
    pub(super) request_id: u64,
    /// What is to be done with the answer.
    pub(super) call: Call,
    /// For what it may wait.
    pub(super) wait: Option<Wait>,
    /// Why it was told to stop waiting.
    pub(super) stopped: Option<Stop>,
    /// Its place among all commands, and its payload: given back with this.
    pub(super) claims: (Claim, Claim),
}

/// For what a command may wait.
#[derive(Debug)]
pub(super) struct Wait {
    /// The key or queue.
    pub(super) name: Box<str>,
    /// What the caller must be allowed there.
    pub(super) permission: Permission,
}

/// Why a command was told to stop waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// By its client.
    Cancelled,
    /// The caller may not do it any more.
    Forbidden,
    /// The caller's key is gone.
    KeyLost,
    /// The connection is closed.
    Closing,
}

#[derive(Debug, Default)]
struct Slot {
    /// Times this slot was used before, so many that no event can be that late.
    uses: u16,
    entry: Option<Entry>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Active {
    slots: Vec<Slot>,
    free: Vec<u16>,
    by_id: BTreeMap<u64, u32>,
}

impl Active {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < SLOTS_MAX
    }

    /// The token of the command of a request id.
    pub(super) fn token_of(&self, request_id: u64) -> Option<u32> {
        self.by_id.get(&request_id).copied()
    }

    /// Takes a slot and returns its token; `None` when there is no room.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.slots.len() < SLOTS_MAX => {
                let index = u16::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot::default());
                index
            }
            None => return None,
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        let token = (u32::from(slot.uses) << 16 | u32::from(index)) & !CONSUMER_BIT;
        self.by_id.insert(entry.request_id, token);
        slot.entry = Some(entry);
        Some(token)
    }

    /// The command of a token.
    pub(super) fn entry(&mut self, token: u32) -> Option<&mut Entry> {
        let slot = self.slot(token)?;
        slot.entry.as_mut()
    }

    /// Frees the slot of a token.
    pub(super) fn remove(&mut self, token: u32) -> Option<Entry> {
        let slot = self.slot(token)?;
        let entry = slot.entry.take()?;
        slot.uses = slot.uses.wrapping_add(1);
        let (_, index) = split(token);
        self.free.push(index);
        self.by_id.remove(&entry.request_id);
        Some(entry)
    }

    /// Tokens of those that may wait and were not told to stop, by request id.
    pub(super) fn waiting(&self, mut stops: impl FnMut(&Wait) -> bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        for token in self.by_id.values() {
            let (_, index) = split(*token);
            let entry = self.slots.get(usize::from(index));
            let entry = entry.and_then(|slot| slot.entry.as_ref());
            if let Some(entry) = entry
                && entry.stopped.is_none()
                && entry.wait.as_ref().is_some_and(&mut stops)
            {
                tokens.push(*token);
            }
        }
        tokens
    }

    fn slot(&mut self, token: u32) -> Option<&mut Slot> {
        let (uses, index) = split(token);
        let slot = self.slots.get_mut(usize::from(index))?;
        // The highest bit of a token says that it is a subscription's.
        let is_same = token & CONSUMER_BIT == 0 && (slot.uses ^ uses) & (u16::MAX >> 1) == 0;
        is_same.then_some(slot)
    }

    /// Panics when the counters contradict each other.
    pub(super) fn assert_invariants(&self) {
        let used = self.slots.iter().filter(|slot| slot.entry.is_some());
        assert_eq!(used.count(), self.by_id.len(), "slots by id");
        let all = self.by_id.len() + self.free.len();
        assert_eq!(all, self.slots.len(), "slots used or free");
    }
}

/// How often the slot was used, and which it is.
const fn split(token: u32) -> (u16, u16) {
    let [a, b, c, d] = token.to_be_bytes();
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}
