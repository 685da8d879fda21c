//! What the engine has not answered yet, and the live subscriptions.
//!
//! Fila lets a client use a request ID again before its answer came, so the ID cannot serve as the
//! token given to the engine. A token names a slot and how often the slot was used: a late event
//! for an ended subscription never reaches its successor.

use std::collections::BTreeMap;

use bytes::Bytes;
use tanda_wire::fila::ErrorCode;

use super::on_keys::KeysCall;

/// What an event with a token belongs to.
#[derive(Debug)]
pub(super) struct Entry {
    /// The client's request ID.
    pub(super) request_id: u32,
    /// What was asked.
    pub(super) kind: Kind,
    /// The queue of a subscription, where its permission may be taken away.
    queue: Option<Box<str>>,
}

/// What was asked.
#[derive(Debug)]
pub(super) enum Kind {
    /// `Enqueue`.
    Publish,
    /// `Ack`.
    Ack,
    /// `Nack`.
    Nack,
    /// `ExtendLease`.
    Extend,
    /// `Consume`, not answered yet.
    Subscribing,
    /// `Consume`, cancelled before its answer: the answer is still owed.
    Cancelled,
    /// `Consume`, no longer permitted before its answer: it is answered with this.
    Denied(ErrorCode),
    /// A live subscription.
    Subscribed,
    /// A rare request whose reply says which one it was.
    Admin,
    /// `GetRoutes`, which the engine answers with its queues; the frame's body.
    Routes(Bytes),
    /// `MoveQueueLeader`, for which the engine is asked whether the queue exists.
    MoveLeader,
    /// A request about keys whose reply does not say all of it.
    Keys(KeysCall),
}

impl Kind {
    const fn is_waiting(&self) -> bool {
        !matches!(self, Self::Subscribed)
    }

    const fn is_admin(&self) -> bool {
        matches!(
            self,
            Self::Admin | Self::Routes(_) | Self::MoveLeader | Self::Keys(_)
        )
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Times this slot was used before, so many that no event can be that late.
    uses: u16,
    entry: Option<Entry>,
}

/// The slots of one connection.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Live or wanted subscriptions: request ID to token.
    subscriptions: BTreeMap<u32, u32>,
    waiting: usize,
    admin_waiting: usize,
}

impl Slots {
    /// The token of requests whose answer nobody waits for; no slot ever has it.
    pub(super) const NO_ANSWER: u32 = u32::MAX;

    /// Entries the engine owes an answer.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Of these: rare requests.
    pub(super) const fn admin_waiting(&self) -> usize {
        self.admin_waiting
    }

    /// Takes a slot and returns its token; `None` when all 65,535 are taken.
    pub(super) fn insert(&mut self, request_id: u32, kind: Kind) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u16::try_from(self.slots.len()).ok();
                let index = index.filter(|index| *index < u16::MAX)?;
                self.slots.push(Slot::default());
                index
            }
        };
        let slot = self.slots.get_mut(usize::from(index))?;
        self.waiting += usize::from(kind.is_waiting());
        self.admin_waiting += usize::from(kind.is_admin());
        let subscribing = matches!(kind, Kind::Subscribing);
        slot.entry = Some(Entry {
            request_id,
            kind,
            queue: None,
        });
        let token = u32::from(slot.uses) << 16 | u32::from(index);
        if subscribing {
            self.subscriptions.insert(request_id, token);
        }
        Some(token)
    }

    /// The entry of a token, if it is still the slot's.
    pub(super) fn entry(&self, token: u32) -> Option<&Entry> {
        let slot = self.slots.get(index_of(token))?;
        slot.entry.as_ref().filter(|_| slot.uses == uses_of(token))
    }

    /// Frees the slot of a token and returns what it held.
    pub(super) fn remove(&mut self, token: u32) -> Option<Entry> {
        let slot = self.slots.get_mut(index_of(token))?;
        if slot.uses != uses_of(token) {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.uses = slot.uses.wrapping_add(1);
        self.free.push(low_half(token));
        self.waiting -= usize::from(entry.kind.is_waiting());
        self.admin_waiting -= usize::from(entry.kind.is_admin());
        if self.subscriptions.get(&entry.request_id) == Some(&token) {
            self.subscriptions.remove(&entry.request_id);
        }
        Some(entry)
    }

    /// The engine accepted a subscription. Returns its request ID.
    pub(super) fn on_subscribed(&mut self, token: u32) -> Option<u32> {
        let slot = self.slots.get_mut(index_of(token))?;
        let entry = slot
            .entry
            .as_mut()
            .filter(|_| slot.uses == uses_of(token))?;
        if !matches!(entry.kind, Kind::Subscribing) {
            // Cancelled meanwhile: with this answer nothing is owed any more.
            return self.remove(token).map(|entry| entry.request_id);
        }
        entry.kind = Kind::Subscribed;
        self.waiting -= 1;
        Some(entry.request_id)
    }

    /// The token of the live or wanted subscription of a request ID.
    pub(super) fn subscription(&self, request_id: u32) -> Option<u32> {
        self.subscriptions.get(&request_id).copied()
    }

    /// Ends the subscription of a request ID on the peer's side. Returns its token.
    pub(super) fn cancel(&mut self, request_id: u32) -> Option<u32> {
        let token = self.subscriptions.remove(&request_id)?;
        let entry = self.slots.get_mut(index_of(token))?.entry.as_mut()?;
        if matches!(entry.kind, Kind::Subscribing) {
            entry.kind = Kind::Cancelled;
        } else {
            self.remove(token);
        }
        Some(token)
    }

    /// Notes which queue a subscription is of.
    pub(super) fn set_queue(&mut self, token: u32, queue: &str) {
        if let Some(entry) = self.entry_mut(token) {
            entry.queue = Some(queue.into());
        }
    }

    /// The queue of the live or wanted subscription of a request ID, if it was noted.
    pub(super) fn queue_of(&self, request_id: u32) -> Option<&str> {
        self.entry(self.subscription(request_id)?)?.queue.as_deref()
    }

    /// A cancelled subscription whose answer is still owed will be answered with `code`. False
    /// when nothing is owed.
    pub(super) fn deny(&mut self, token: u32, code: ErrorCode) -> bool {
        let cancelled = self
            .entry_mut(token)
            .filter(|entry| matches!(entry.kind, Kind::Cancelled));
        let Some(entry) = cancelled else {
            return false;
        };
        entry.kind = Kind::Denied(code);
        true
    }

    fn entry_mut(&mut self, token: u32) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(index_of(token))?;
        slot.entry.as_mut().filter(|_| slot.uses == uses_of(token))
    }

    /// The request IDs of all live or wanted subscriptions.
    pub(super) fn subscribed_ids(&self) -> Vec<u32> {
        self.subscriptions.keys().copied().collect()
    }

    /// Panics when counters, list of free slots and subscriptions contradict the slots.
    pub(super) fn assert_invariants(&self) {
        let entries = || self.slots.iter().filter_map(|slot| slot.entry.as_ref());
        let waiting = entries().filter(|entry| entry.kind.is_waiting()).count();
        assert_eq!(waiting, self.waiting, "entries that wait");
        let admin = entries().filter(|entry| entry.kind.is_admin()).count();
        assert_eq!(admin, self.admin_waiting, "rare entries that wait");
        assert_eq!(
            entries().count() + self.free.len(),
            self.slots.len(),
            "slots used or free"
        );
        for (request_id, token) in &self.subscriptions {
            let entry = self.entry(*token);
            let id = entry.map(|entry| entry.request_id);
            assert_eq!(id, Some(*request_id), "subscription of token {token}");
        }
    }
}

const fn index_of(token: u32) -> usize {
    low_half(token) as usize
}

const fn low_half(token: u32) -> u16 {
    let [_, _, high, low] = token.to_be_bytes();
    u16::from_be_bytes([high, low])
}

const fn uses_of(token: u32) -> u16 {
    let [high, low, _, _] = token.to_be_bytes();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_past_finds_nothing() {
        let mut slots = Slots::default();
        let old = slots.insert(7, Kind::Subscribing).unwrap();
        assert_eq!(slots.on_subscribed(old), Some(7));
        assert_eq!(slots.cancel(7), Some(old));
        let new = slots.insert(7, Kind::Subscribing).unwrap();
        assert_ne!(old, new);
        assert!(slots.entry(old).is_none());
        assert!(slots.remove(old).is_none());
        assert_eq!(slots.subscription(7), Some(new));
        assert_eq!(slots.waiting(), 1);
    }

    #[test]
    fn a_subscription_cancelled_before_its_answer_is_still_owed_one() {
        let mut slots = Slots::default();
        let token = slots.insert(7, Kind::Subscribing).unwrap();
        slots.cancel(7).unwrap();
        assert_eq!(slots.subscription(7), None);
        assert_eq!(slots.waiting(), 1);
        assert_eq!(slots.on_subscribed(token), Some(7));
        assert_eq!(slots.waiting(), 0);
        assert!(slots.entry(token).is_none());
    }

    #[test]
    fn slots_run_out_instead_of_tokens_repeating() {
        let mut slots = Slots::default();
        for id in 0..u32::from(u16::MAX) {
            let token = slots.insert(id, Kind::Admin).unwrap();
            assert_ne!(token, Slots::NO_ANSWER);
        }
        assert_eq!(slots.insert(1, Kind::Publish), None);
        assert_eq!(slots.admin_waiting(), 65_535);
        slots.remove(3).unwrap();
        assert!(slots.insert(1, Kind::Publish).is_some());
        assert_eq!(slots.waiting(), 65_535);
    }
}
