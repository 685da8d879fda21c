//! Watches: best-effort bindings of connections to topic exchanges.
//!
//! Owns who watches, how much is on the way to them, and what they lost. Who watches is told of a
//! message as it passes, in the step that stores it: nothing is kept for it, written, or waited
//! for. It refuses to know how patterns match: each topic exchange knows its own watches.

mod on_watch;
mod tell;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::topology::ExchangeId;
use crate::{ConnId, Content, Form, Millis, SubId, VhostId};

/// A watch's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSpec {
    /// The exchange's virtual host.
    pub vhost: VhostId,
    /// A topic exchange; a durable one is made when there is none.
    pub exchange: String,
    /// Of routing keys, as in bindings; at most 255 bytes.
    pub pattern: String,
    /// Most events under way; what comes on top is lost, and counted.
    pub buffer: u32,
}

/// A message that passed a watched exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedMessage {
    /// Headers and payload, in the layout of [`Content`]; shared by all who watch.
    pub content: Bytes,
    /// Which layout that is.
    pub form: Form,
    /// The routing key that matched.
    pub channel: Box<str>,
    /// When it passed.
    pub published_at: Millis,
    /// Messages that the watch lost since its last event.
    pub dropped: u64,
}

impl WatchedMessage {
    /// Fixed cost of an event in the outbound budget.
    pub const OVERHEAD_BYTES: u64 = 128;

    /// What it weighs against the connection's outbound budget.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        (self.content.len() + self.channel.len()) as u64 + Self::OVERHEAD_BYTES
    }

    /// The message.
    #[must_use]
    pub fn content(&self) -> Content<'_> {
        Content::new(self.form, &self.content)
    }
}

/// A watch's place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WatchId(u32);

/// A watch that a message has come to, and which of its routing keys matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) watch: WatchId,
    pub(crate) key: u32,
}

#[derive(Debug)]
struct Watch {
    sub: SubId,
    exchange: ExchangeId,
    pattern: Box<str>,
    /// Most events under way; at least one.
    buffer: u32,
    /// Events that have not left for the peer: at most `buffer`.
    under_way: u32,
    /// Messages lost since the last event.
    dropped: u64,
}

impl Watch {
    /// Rough bytes of memory, with its part of the exchange's tree.
    fn memory_bytes(&self) -> usize {
        512 + 4 * self.pattern.len()
    }
}

/// All watches.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    slots: Vec<Option<Watch>>,
    free: Vec<WatchId>,
    by_sub: BTreeMap<SubId, WatchId>,
    /// Rough bytes of memory.
    bytes: usize,
}

impl Watches {
    fn insert(&mut self, watch: Watch) -> WatchId {
        self.bytes += watch.memory_bytes();
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            WatchId(u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX))
        });
        self.by_sub.insert(watch.sub, id);
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            *slot = Some(watch);
        }
        id
    }

    fn remove(&mut self, id: WatchId) -> Option<Watch> {
        let watch = self.slots.get_mut(id.0 as usize)?.take()?;
        self.by_sub.remove(&watch.sub);
        self.bytes = self.bytes.saturating_sub(watch.memory_bytes());
        self.free.push(id);
        if self.by_sub.is_empty() {
            // Idle memory is none.
            *self = Self::default();
        }
        Some(watch)
    }

    fn at_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    fn find(&self, sub: SubId) -> Option<WatchId> {
        self.by_sub.get(&sub).copied()
    }

    /// Those of a connection.
    fn of_conn(&self, conn: ConnId) -> impl Iterator<Item = WatchId> {
        let sub = |token| SubId { conn, token };
        let all = self.by_sub.range(sub(0)..=sub(u32::MAX));
        all.map(|(_, id)| *id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_sub.len()
    }

    pub(crate) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Panics when the state contradicts itself. `is_known` says whether an exchange knows a watch
    /// by its pattern; `in_exchanges` how many all of them know.
    pub(crate) fn assert_invariants(
        &self,
        in_exchanges: usize,
        is_known: impl Fn(ExchangeId, &str, WatchId) -> bool,
    ) {
        let live = self.slots.iter().flatten();
        assert_eq!(live.clone().count(), self.by_sub.len(), "watches");
        assert_eq!(self.by_sub.len(), in_exchanges, "watches of exchanges");
        let bytes = live.map(Watch::memory_bytes);
        assert_eq!(bytes.sum::<usize>(), self.bytes, "bytes of watches");
        for (sub, id) in &self.by_sub {
            let watch = self.slots.get(id.0 as usize).and_then(Option::as_ref);
            let Some(watch) = watch else {
                unreachable!("{sub:?} is not there");
            };
            assert_eq!(watch.sub, *sub, "whose watch it is");
            assert!(
                watch.under_way <= watch.buffer,
                "{sub:?} is over its buffer"
            );
            assert!(
                is_known(watch.exchange, &watch.pattern, *id),
                "the exchange does not know {sub:?}"
            );
        }
    }
}
