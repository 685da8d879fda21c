//! What the model does by itself: waits end, leases end, messages go to consumers; and a restart.

use std::collections::{BTreeMap, VecDeque};

use tanda_engine::{DeliveryDurability, MessageId, Millis};

use crate::model::{Lease, Message, Model, Place, Sub, Turn};

/// One delivered message as its consumer saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: MessageId,
    pub(crate) key: String,
    pub(crate) weight: u32,
    pub(crate) attempts: u32,
    pub(crate) deliveries: u32,
    pub(crate) redrives: u32,
    pub(crate) leased_at: Millis,
    /// `Millis(u64::MAX)` = with the connection.
    pub(crate) expires_at: Millis,
    pub(crate) bytes: u64,
}

/// What each consumer got, in order.
pub(crate) type SeenBy = BTreeMap<u64, VecDeque<Seen>>;

/// What a delivery costs in the outbound budget beside its content.
const ITEM_BYTES: u64 = 96;

impl Model {
    /// Passes until nothing more can be done now; takes what consumers saw out of `seen`.
    pub(crate) fn run(&mut self, seen: &mut SeenBy) {
        loop {
            let names: Vec<_> = self.queues.iter().map(|q| q.name.clone()).collect();
            // All that becomes ready by the clock in one pass comes at the same time.
            self.ties += 1;
            self.tie = self.ties;
            let mut changed = false;
            for name in &names {
                changed |= self.release(name);
            }
            for name in &names {
                changed |= self.expire(name);
            }
            self.tie = 0;
            self.forget_keys();
            for name in &names {
                changed |= if self.is_throttled(name) {
                    self.deliver_throttled(name, seen)
                } else {
                    self.deliver(name, seen)
                };
            }
            if !changed {
                break;
            }
        }
        seen.retain(|_, items| !items.is_empty());
        assert!(seen.is_empty(), "nobody was to get {seen:?}");
        self.assert_nothing_waits_without_reason();
    }

    fn release(&mut self, name: &str) -> bool {
        let (now, tie) = (self.now, self.tie);
        let queue = self.queue(name).unwrap();
        let is_due = |m: &&Message| matches!(m.place, Place::Delayed(due) if due <= now);
        let due: Vec<_> = queue.messages.iter().filter(is_due).map(|m| m.id).collect();
        for id in &due {
            queue.let_go(*id, None, tie);
        }
        !due.is_empty()
    }

    /// Leases end in the order of their times; those of a restart's grace without a failure.
    fn expire(&mut self, name: &str) -> bool {
        let (now, tie) = (self.now, self.tie);
        let mut ended = self.lease_ends(name);
        ended.retain(|(end, _)| *end <= now);
        let mut dead = Vec::new();
        for (_, id) in &ended {
            let queue = self.queue(name).unwrap();
            if queue.get(*id).lease().unwrap().reclaim {
                queue.let_go(*id, None, tie);
            } else if self.fail(name, *id, None) {
                dead.push(*id);
            }
        }
        self.bury(name, &dead);
        !ended.is_empty()
    }

    /// When leases end, earliest first.
    pub(crate) fn lease_ends(&mut self, name: &str) -> Vec<(Millis, MessageId)> {
        let queue = self.queue(name).unwrap();
        let ends = queue
            .messages
            .iter()
            .filter_map(|m| Some((m.lease()?.end?, m.id)));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_unstable();
        ends
    }

    /// Consumers take turns; who cannot take a message when its turn comes leaves the line.
    fn deliver(&mut self, name: &str, seen: &mut SeenBy) -> bool {
        let mut delivered = false;
        loop {
            let queue = self.queue(name).unwrap();
            if queue.turns.is_empty() || queue.line.is_empty() {
                return delivered;
            }
            let number = queue.line.remove(0);
            let sub = self.sub(number).unwrap().clone();
            if sub.credit == Some(0) || !self.conn(sub.id.conn).has_room() {
                self.sub(number).unwrap().in_line = false;
                continue;
            }
            let queue = self.queue(name).unwrap();
            let Some(item) = seen.get_mut(&number).and_then(VecDeque::pop_front) else {
                panic!(
                    "{name}: consumer {number} was to get one of {:?}",
                    queue.turns
                );
            };
            self.deliver_one(name, number, sub.is_connection, &item);
            delivered = true;
            let has_room = self.charge(&sub, &item);
            let it = self.sub(number).unwrap();
            it.in_line = it.credit != Some(0) && has_room;
            if it.in_line {
                self.queue(name).unwrap().line.push(number);
            }
        }
    }

    /// A delivery costs credit and room; whether there is room for another.
    pub(crate) fn charge(&mut self, sub: &Sub, item: &Seen) -> bool {
        let it = self.sub(sub.number).unwrap();
        it.credit = it.credit.map(|left| left - 1);
        self.conn(sub.id.conn).outbound += item.bytes + ITEM_BYTES;
        self.conn(sub.id.conn).has_room()
    }

    fn deliver_one(&mut self, name: &str, number: u64, is_connection: bool, item: &Seen) {
        let quantum = self.quantum;
        let queue = self.queue(name).unwrap();
        let turn = queue.next_turn(item.id);
        let oldest = queue.ready_of(&turn.key, turn.priority)[0].id;
        assert_eq!(
            item.id, oldest,
            "{name}: the oldest of the key whose turn it is"
        );
        queue.use_turn(&turn, quantum);
        self.lease(name, number, is_connection, item);
    }

    /// A consumer gets a message, as it has seen it.
    pub(crate) fn lease(&mut self, name: &str, number: u64, is_connection: bool, item: &Seen) {
        let now = self.now;
        let queue = self.queue(name).unwrap();
        let end = (!is_connection).then(|| now.after_ms(queue.config.lease_ms));
        let message = queue.get(item.id);
        message.deliveries = Some(message.deliveries.map_or(item.deliveries, |n| n + 1));
        message.place = Place::Leased(Lease {
            consumer: number,
            end,
            reclaim: false,
        });
        let expected = Seen {
            id: message.id,
            key: message.key.clone(),
            weight: message.weight,
            attempts: message.failures + 1,
            deliveries: message.deliveries.unwrap(),
            redrives: message.redrives,
            leased_at: now,
            expires_at: end.unwrap_or(Millis(u64::MAX)),
            bytes: message.bytes,
        };
        assert_eq!(*item, expected, "{name}: what consumer {number} got");
        queue.end_empty_turns();
    }

    /// A delivery that did not leave the broker: as if it had not been.
    pub(crate) fn undelivered(&mut self, name: &str, number: u64, items: &[Seen]) {
        let Some(sub) = self.sub(number) else { return };
        sub.credit = sub
            .credit
            .map(|left| left + u32::try_from(items.len()).unwrap());
        let conn = sub.id.conn;
        for item in items {
            self.conn(conn).outbound -= item.bytes + ITEM_BYTES;
            let queue = self.queue(name).unwrap();
            let message = queue.get(item.id);
            message.deliveries = message.deliveries.map(|n| n - 1);
            queue.let_go(item.id, None, 0);
            self.uncharge(name, item.id);
        }
        self.refresh_all(conn);
    }

    /// All is as before, but leases have no holder and their full length from now on, and turns
    /// begin anew in the order of the messages. A fast queue does not know who had what.
    pub(crate) fn restart(&mut self, now: Millis) {
        self.now = now;
        self.conns.clear();
        self.subs.clear();
        self.next_consumer = 0;
        if let Some(throttle) = &mut self.throttle {
            throttle.restart(now);
        }
        for queue in &mut self.queues {
            queue.line.clear();
            queue.turns.clear();
            let is_fast = queue.config.durability == DeliveryDurability::Fast;
            let (lease_ms, grace_ms) = (queue.config.lease_ms, queue.config.reclaim_grace_ms);
            let mut messages = core::mem::take(&mut queue.messages);
            messages.sort_by_key(|m| m.position);
            for mut message in messages {
                let (id, place) = (message.id, message.place);
                message.place = Place::Leaving;
                if is_fast {
                    message.deliveries = None;
                }
                queue.messages.push(message);
                let due = match place {
                    Place::Delayed(due) | Place::Behind(Some(due)) if due > now => Some(due),
                    Place::Ready
                    | Place::Delayed(_)
                    | Place::Behind(_)
                    | Place::Leased(_)
                    | Place::Leaving => None,
                };
                let end = match place {
                    Place::Leased(Lease { end: Some(end), .. }) if !is_fast => {
                        Some(end.max(now.after_ms(lease_ms)))
                    }
                    Place::Ready
                    | Place::Delayed(_)
                    | Place::Behind(_)
                    | Place::Leased(_)
                    | Place::Leaving => (is_fast && due.is_none()).then(|| now.after_ms(grace_ms)),
                };
                queue.admit(id, due, 0);
                let is_behind = matches!(queue.get(id).place, Place::Behind(_));
                if end.is_some() && !is_behind {
                    queue.get(id).place = Place::Leased(Lease {
                        consumer: 0,
                        end,
                        reclaim: is_fast,
                    });
                    queue.end_empty_turns();
                }
            }
        }
        self.forget_keys();
    }
}

impl crate::model::Queue {
    /// The key whose turn it is: the first of the highest priority, or one that came with it.
    fn next_turn(&mut self, seen: MessageId) -> Turn {
        let top = self.turns.iter().map(|t| t.priority).max().unwrap();
        let ring = |t: &&Turn| t.priority == top;
        let first = self.turns.iter().find(ring).unwrap().clone();
        let message = self.messages.iter().find(|m| m.id == seen);
        let Some(message) = message.filter(|m| m.priority == top && m.key != first.key) else {
            return first;
        };
        let tied = self
            .turns
            .iter()
            .filter(ring)
            .take_while(|t| t.tie == first.tie);
        let tied: Vec<_> = tied.cloned().collect();
        match tied.into_iter().find(|t| t.key == message.key) {
            Some(turn) if first.tie != 0 => turn,
            _ => first,
        }
    }

    /// A turn of a key adds `weight * quantum`, a delivery costs 1.
    fn use_turn(&mut self, turn: &Turn, quantum: u32) {
        let at = self.turns.iter().position(|t| t == turn).unwrap();
        let mut turn = self.turns.remove(at);
        let weight = self.weight_of(&turn.key, turn.priority);
        if turn.deficit <= 0 {
            turn.deficit += i64::from(weight) * i64::from(quantum);
        }
        turn.deficit -= 1;
        turn.tie = 0;
        if turn.deficit > 0 {
            self.turns.insert(0, turn);
        } else {
            self.turns.push(turn);
        }
    }
}
