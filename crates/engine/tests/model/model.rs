//! The naive model: lists of messages, searched from front to back, without anything clever.
//!
//! Written from the documents. Where they leave an order open the model says so at that place, and
//! follows what it sees.

use crate::throttled::Throttle;
use tanda_engine::{Backoff, ConnId, MessageId, Millis, Overflow, QueueConfig, SubId};

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ready,
    Delayed(Millis),
    /// Waits for its ordering group; not before this time.
    Behind(Option<Millis>),
    Leased(Lease),
    /// Settled in this request, which is not over.
    Leaving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// 0 = from before a restart.
    pub(crate) consumer: u64,
    /// `None` = ends with its consumer.
    pub(crate) end: Option<Millis>,
    /// Held back after a restart of a fast queue.
    pub(crate) reclaim: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) position: u64,
    pub(crate) key: String,
    pub(crate) priority: u8,
    pub(crate) weight: u32,
    pub(crate) group: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) failures: u32,
    /// `None` = a fast queue forgot it at a restart.
    pub(crate) deliveries: Option<u32>,
    pub(crate) redrives: u32,
    /// Of a throttle of its queue.
    pub(crate) bucket: String,
    pub(crate) place: Place,
}

impl Message {
    pub(crate) const fn lease(&self) -> Option<Lease> {
        match self.place {
            Place::Leased(lease) => Some(lease),
            Place::Ready | Place::Delayed(_) | Place::Behind(_) | Place::Leaving => None,
        }
    }
}

/// A fairness key of one priority in its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) priority: u8,
    pub(crate) key: String,
    pub(crate) deficit: i64,
    /// Keys with the same number other than 0 came at the same time, none has had its turn yet:
    /// nothing says who of them is first.
    pub(crate) tie: u64,
}

/// A key of a message that was stored.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    pub(crate) key: String,
    pub(crate) id: MessageId,
    pub(crate) left: Option<Millis>,
}

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) is_dead_letter: bool,
    pub(crate) config: QueueConfig,
    pub(crate) next_position: u64,
    /// In no order.
    pub(crate) messages: Vec<Message>,
    /// Of all priorities; the first of a priority has its turn.
    pub(crate) turns: Vec<Turn>,
    /// What each key of each priority weighs.
    pub(crate) weights: Vec<(String, u8, u32)>,
    pub(crate) remembered: Vec<Remembered>,
    /// Numbers of consumers that can take one, in the order of their turns.
    pub(crate) line: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) id: SubId,
    pub(crate) number: u64,
    pub(crate) queue: String,
    pub(crate) credit: Option<u32>,
    pub(crate) is_connection: bool,
    pub(crate) in_line: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Conn {
    pub(crate) id: ConnId,
    pub(crate) outbound: u64,
    pub(crate) outbound_max: u64,
}

impl Conn {
    pub(crate) const fn has_room(&self) -> bool {
        self.outbound < self.outbound_max
    }
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: Millis,
    pub(crate) quantum: u32,
    pub(crate) queues: Vec<Queue>,
    pub(crate) conns: Vec<Conn>,
    /// In the order they came.
    pub(crate) subs: Vec<Sub>,
    pub(crate) next_consumer: u64,
    pub(crate) newest_id: MessageId,
    /// Of what becomes ready now.
    pub(crate) tie: u64,
    pub(crate) ties: u64,
    pub(crate) throttle: Option<Throttle>,
}

/// A message on its way in.
#[derive(Clone, Debug)]
pub(crate) struct NewMessage {
    pub(crate) key: String,
    pub(crate) priority: u8,
    pub(crate) weight: u32,
    pub(crate) bytes: u64,
    pub(crate) group: Option<String>,
    pub(crate) dedup: Option<String>,
    pub(crate) delay_ms: u64,
    pub(crate) bucket: String,
}

impl Queue {
    pub(crate) fn new(name: &str, is_dead_letter: bool, config: &QueueConfig) -> Self {
        Self {
            name: name.to_owned(),
            is_dead_letter,
            config: config.clone(),
            next_position: 1,
            messages: Vec::new(),
            turns: Vec::new(),
            weights: Vec::new(),
            remembered: Vec::new(),
            line: Vec::new(),
        }
    }

    pub(crate) fn find(&self, id: MessageId) -> Option<usize> {
        self.messages.iter().position(|m| m.id == id)
    }

    pub(crate) fn get(&mut self, id: MessageId) -> &mut Message {
        self.messages.iter_mut().find(|m| m.id == id).unwrap()
    }

    pub(crate) fn depth(&self) -> u64 {
        self.messages.iter().filter(|m| m.lease().is_none()).count() as u64
    }

    /// Ready messages of a key, oldest first.
    pub(crate) fn ready_of(&self, key: &str, priority: u8) -> Vec<&Message> {
        let mut found: Vec<_> = self
            .messages
            .iter()
            .filter(|m| m.key == key && m.priority == priority && m.place == Place::Ready)
            .collect();
        found.sort_by_key(|m| m.position);
        found
    }

    /// Ready messages, oldest first.
    pub(crate) fn ready(&self) -> Vec<&Message> {
        let mut found: Vec<_> = self.messages.iter().collect();
        found.retain(|m| m.place == Place::Ready);
        found.sort_by_key(|m| m.position);
        found
    }

    pub(crate) fn weight_of(&self, key: &str, priority: u8) -> u32 {
        let of = self
            .weights
            .iter()
            .find(|(k, p, _)| k == key && *p == priority);
        of.map_or(1, |(_, _, weight)| *weight)
    }

    /// Takes a message in at the back. A new message says what its key weighs; one that comes from
    /// another queue only if it is the only one of its key.
    pub(crate) fn put(
        &mut self,
        mut message: Message,
        is_new: bool,
        due: Option<Millis>,
        tie: u64,
    ) {
        message.position = self.next_position;
        self.next_position += 1;
        let (key, priority) = (message.key.clone(), message.priority);
        let is_alone = !self
            .messages
            .iter()
            .any(|m| m.key == key && m.priority == priority);
        if is_new || is_alone {
            self.weights.retain(|(k, p, _)| *k != key || *p != priority);
            self.weights.push((key, priority, message.weight));
        }
        let id = message.id;
        self.messages.push(message);
        self.admit(id, due, tie);
    }

    /// A pending message waits for its group, for a time, or is ready.
    pub(crate) fn admit(&mut self, id: MessageId, due: Option<Millis>, tie: u64) {
        if self.head_of_group(id).is_some_and(|head| head != id) {
            self.get(id).place = Place::Behind(due);
        } else {
            self.let_go(id, due, tie);
        }
    }

    /// The oldest message of a message's group. Dead letters are in no group.
    pub(crate) fn head_of_group(&self, id: MessageId) -> Option<MessageId> {
        let at = self.find(id)?;
        let group = self.messages[at].group.clone()?;
        self.oldest_of_group(&group)
    }

    fn oldest_of_group(&self, group: &str) -> Option<MessageId> {
        if self.is_dead_letter {
            return None;
        }
        let of = self
            .messages
            .iter()
            .filter(|m| m.group.as_deref() == Some(group));
        of.min_by_key(|m| m.position).map(|m| m.id)
    }

    /// Nothing but a time can hold the message back.
    pub(crate) fn let_go(&mut self, id: MessageId, due: Option<Millis>, tie: u64) {
        let message = self.get(id);
        if let Some(due) = due {
            message.place = Place::Delayed(due);
            return;
        }
        message.place = Place::Ready;
        let (key, priority) = (message.key.clone(), message.priority);
        let is_in_turn = |t: &Turn| t.key == key && t.priority == priority;
        if !self.turns.iter().any(is_in_turn) {
            // A key that comes waits for one turn of each other at most.
            self.turns.push(Turn {
                priority,
                key,
                deficit: 0,
                tie,
            });
        }
    }

    /// A message leaves; the next of its group may go on.
    pub(crate) fn take_out(&mut self, id: MessageId, tie: u64) -> Message {
        let at = self.find(id).unwrap();
        let message = self.messages.remove(at);
        let (key, priority) = (&message.key, message.priority);
        if !self
            .messages
            .iter()
            .any(|m| m.key == *key && m.priority == priority)
        {
            self.weights.retain(|(k, p, _)| k != key || *p != priority);
        }
        self.end_empty_turns();
        let next = message
            .group
            .as_ref()
            .and_then(|group| self.oldest_of_group(group));
        if let Some(next) = next
            && let Place::Behind(due) = self.get(next).place
        {
            self.let_go(next, due, tie);
        }
        message
    }

    /// An emptied key leaves the ring and loses its deficit.
    pub(crate) fn end_empty_turns(&mut self) {
        let mut turns = core::mem::take(&mut self.turns);
        turns.retain(|t| !self.ready_of(&t.key, t.priority).is_empty());
        self.turns = turns;
    }

    pub(crate) fn is_full(&self) -> bool {
        let max = self.config.max_length;
        max.is_some_and(|max| max.overflow == Overflow::Reject && self.depth() >= max.messages)
    }

    /// The delay before the retry after failed delivery number `failures`.
    pub(crate) fn backoff_ms(&self, failures: u32) -> u64 {
        let retry = self.config.retry;
        match retry.backoff {
            Backoff::None => 0,
            Backoff::Fixed => retry.initial_ms,
            Backoff::Exponential => {
                let mut ms = retry.initial_ms;
                for _ in 1..failures {
                    ms = (ms * 2).min(retry.max_ms);
                }
                ms.min(retry.max_ms)
            }
        }
    }
}
