//! Effects that wait for the log.
//!
//! Owns the engine's outputs between decision and release. It refuses to know the engine, the log
//! and time: positions come in, events go out.
//!
//! Rules:
//! - Nothing leaves before the log is durable up to the position it waits for.
//! - Deliveries, `Subscribed` and `SubscriptionEnded` of one connection leave in the order in which
//!   the engine produced them.
//! - Answers (`Published`, `Settled`, `Admin`, `SubscribeFailed`) may overtake: a session matches
//!   them by token. So a fast queue's ack is answered while other things of its connection wait.

use std::collections::VecDeque;
use std::collections::vec_deque;

use hashbrown::HashMap;
use tanda_engine::{
    AdminReply, ConnId, DeliveryBatch, DeliveryItem, Event, KeyAnswer, Lsn, Output, SubId, VhostId,
};

/// Fixed seeds: the map is never iterated, its keys are the broker's own numbers.
const SEEDS: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0x2545_f491_4f6c_dd1d,
];

/// Outputs whose log position is not durable yet, oldest first.
pub(crate) struct EffectQueue {
    /// `after` never falls from front to back: an output that could go a little earlier than the
    /// one before it goes with that one, so release looks at the front only.
    waiting: VecDeque<Waiting>,
    /// Connections with something in `waiting`; the counts match it.
    conns: HashMap<ConnId, ConnWaiting, ahash::RandomState>,
    /// Sum of `waiting[..].bytes`.
    bytes: usize,
}

struct Waiting {
    after: Lsn,
    bytes: usize,
    conn: ConnId,
    event: Event,
}

/// What one connection has in the queue. `ordered <= all`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ConnWaiting {
    all: u32,
    /// Of `all`: may not be overtaken by its like.
    ordered: u32,
}

impl EffectQueue {
    pub(crate) fn new() -> Self {
        let [a, b, c, d] = SEEDS;
        Self {
            waiting: VecDeque::new(),
            conns: HashMap::with_hasher(ahash::RandomState::with_seeds(a, b, c, d)),
            bytes: 0,
        }
    }

    /// Takes one output; gives it back when it may leave at once.
    #[must_use]
    pub(crate) fn offer(&mut self, output: Output, durable: Lsn) -> Option<(ConnId, Event)> {
        let Output { conn, after, event } = output;
        let ordered = is_ordered(&event);
        let blocked = ordered && self.has_ordered(conn);
        if after <= durable && !blocked {
            return Some((conn, event));
        }
        let after = self.waiting.back().map_or(after, |w| w.after.max(after));
        let bytes = event_bytes(&event);
        self.bytes = self.bytes.saturating_add(bytes);
        let counts = self.conns.entry(conn).or_default();
        counts.all += 1;
        counts.ordered += u32::from(ordered);
        self.waiting.push_back(Waiting {
            after,
            bytes,
            conn,
            event,
        });
        None
    }

    /// The oldest output if the log is durable up to its position. Call again until `None`.
    #[must_use]
    pub(crate) fn pop(&mut self, durable: Lsn) -> Option<(ConnId, Event)> {
        if self.waiting.front()?.after > durable {
            return None;
        }
        let released = self.waiting.pop_front()?;
        self.forget(&released);
        Some((released.conn, released.event))
    }

    /// Removes all that waits for `conn`; what it brings goes to `undelivered`, oldest
    /// first.
    pub(crate) fn remove_conn(&mut self, conn: ConnId, undelivered: &mut Vec<Undelivered>) {
        if !self.conns.contains_key(&conn) {
            return;
        }
        self.remove_where(|waiting| waiting.conn == conn, undelivered);
    }

    /// Removes the deliveries that wait for `sub`; they go to `undelivered`, oldest first.
    pub(crate) fn remove_sub(&mut self, sub: SubId, undelivered: &mut Vec<Undelivered>) {
        if !self.has_ordered(sub.conn) {
            return;
        }
        self.remove_where(
            |waiting| waiting.conn == sub.conn && is_delivery_to(&waiting.event, sub.token),
            undelivered,
        );
    }

    /// The log failed: nothing that waits will ever be durable. Requests that wait for an answer
    /// are told so in `told`; the rest is discarded.
    pub(crate) fn fail(&mut self, told: &mut Vec<(ConnId, Event)>) {
        self.conns.clear();
        self.bytes = 0;
        for waiting in self.waiting.drain(..) {
            told.extend(failed_answer(waiting.conn, &waiting.event));
        }
    }

    /// Outputs that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// About how much memory they hold.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Panics when the counts contradict the queue.
    pub(crate) fn assert_invariants(&self) {
        let mut sorted = true;
        let mut newest = Lsn::ZERO;
        let mut bytes = 0;
        let mut ordered = 0;
        for waiting in &self.waiting {
            sorted &= waiting.after >= newest;
            newest = waiting.after;
            bytes += waiting.bytes;
            ordered += u64::from(is_ordered(&waiting.event));
        }
        assert!(sorted, "waiting positions fall from front to back");
        assert_eq!(bytes, self.bytes, "bytes of waiting effects");
        let all: u64 = self.conns.values().map(|c| u64::from(c.all)).sum();
        assert_eq!(
            all,
            self.waiting.len() as u64,
            "waiting effects by connection"
        );
        let by_conn: u64 = self.conns.values().map(|c| u64::from(c.ordered)).sum();
        assert_eq!(by_conn, ordered, "ordered effects by connection");
    }

    fn has_ordered(&self, conn: ConnId) -> bool {
        // The usual case at low load: nothing waits, nothing is looked up.
        !self.waiting.is_empty() && self.conns.get(&conn).is_some_and(|c| c.ordered > 0)
    }

    fn forget(&mut self, gone: &Waiting) {
        self.bytes = self.bytes.saturating_sub(gone.bytes);
        let Some(counts) = self.conns.get_mut(&gone.conn) else {
            return;
        };
        counts.all = counts.all.saturating_sub(1);
        counts.ordered = counts
            .ordered
            .saturating_sub(u32::from(is_ordered(&gone.event)));
        if counts.all == 0 {
            self.conns.remove(&gone.conn);
        }
    }

    fn remove_where(
        &mut self,
        gone: impl Fn(&Waiting) -> bool,
        undelivered: &mut Vec<Undelivered>,
    ) {
        let kept = VecDeque::with_capacity(self.waiting.len());
        let all: vec_deque::IntoIter<Waiting> =
            core::mem::replace(&mut self.waiting, kept).into_iter();
        for waiting in all {
            if !gone(&waiting) {
                self.waiting.push_back(waiting);
                continue;
            }
            self.forget(&waiting);
            undelivered.extend(undelivered_of(waiting.event));
        }
    }
}

/// True when the event may not overtake its like on the same connection.
pub(crate) const fn is_ordered(event: &Event) -> bool {
    match event {
        Event::Delivery { .. }
        | Event::Got { .. }
        | Event::Subscribed { .. }
        | Event::SubscriptionEnded { .. }
        | Event::Watching { .. }
        | Event::Watched { .. }
        | Event::WatchEnded { .. } => true,
        Event::Committed { .. }
        | Event::Published { .. }
        | Event::Settled { .. }
        | Event::SubscribeFailed { .. }
        | Event::Admin { .. }
        | Event::Keys { .. }
        | Event::StorageFailed { .. } => false,
    }
}

/// True for deliveries of the subscription that its session calls `sub_token`.
pub(crate) fn is_delivery_to(event: &Event, sub_token: u32) -> bool {
    matches!(event, Event::Delivery { token, .. } if *token == sub_token)
}

/// What an event brings, which goes back to the engine when the event never leaves.
pub(crate) enum Undelivered {
    /// Messages.
    Messages(DeliveryBatch),
    /// An item of a list, or a lock.
    Key {
        /// Of the answer.
        token: u32,
        /// Of the event.
        vhost: VhostId,
        /// What it brings.
        answer: KeyAnswer,
    },
}

/// What an event brings.
pub(crate) fn undelivered_of(event: Event) -> Option<Undelivered> {
    match event {
        Event::Delivery { batch, .. } => Some(Undelivered::Messages(batch)),
        Event::Got { result, .. } => result.ok()?.batch.map(Undelivered::Messages),
        Event::Keys {
            token,
            vhost,
            result,
        } => {
            let answer = (*result).ok()?;
            answer.is_taken().then_some(Undelivered::Key {
                token,
                vhost,
                answer,
            })
        }
        Event::Published { .. }
        | Event::Settled { .. }
        | Event::Committed { .. }
        | Event::Subscribed { .. }
        | Event::SubscribeFailed { .. }
        | Event::SubscriptionEnded { .. }
        | Event::Watching { .. }
        | Event::Watched { .. }
        | Event::WatchEnded { .. }
        | Event::Admin { .. }
        | Event::StorageFailed { .. } => None,
    }
}

/// What is said in place of an event that can never leave: the log failed. `None` when it answers
/// no request.
pub(crate) const fn failed_answer(conn: ConnId, event: &Event) -> Option<(ConnId, Event)> {
    let token = match event {
        Event::Published { token, .. }
        | Event::Settled { token, .. }
        | Event::Committed { token, .. }
        | Event::Got { token, .. }
        | Event::Subscribed { token, .. }
        | Event::SubscribeFailed { token, .. }
        | Event::Admin { token, .. }
        | Event::Keys { token, .. }
        | Event::Watching { token, .. }
        | Event::StorageFailed { token } => *token,
        Event::Delivery { .. }
        | Event::SubscriptionEnded { .. }
        | Event::Watched { .. }
        | Event::WatchEnded { .. } => return None,
    };
    Some((conn, Event::StorageFailed { token }))
}

/// About how much memory the event holds besides contents that lie in the log.
fn event_bytes(event: &Event) -> usize {
    let held = match event {
        Event::Published { results, .. } => size_of_val(results.as_slice()),
        Event::Settled { results, .. } => size_of_val(results.as_slice()),
        Event::Committed {
            published, settled, ..
        } => size_of_val(published.as_slice()) + size_of_val(settled.as_slice()),
        Event::Delivery { batch, .. } => delivery_bytes(batch),
        Event::Got { result, .. } => {
            let got = result.as_ref().ok();
            got.and_then(|got| got.batch.as_ref())
                .map_or(0, delivery_bytes)
        }
        Event::Admin { reply, .. } => reply_bytes(reply),
        Event::Keys { result, .. } => result.as_ref().as_ref().map_or(0, KeyAnswer::memory_bytes),
        // The content is shared with others that watch.
        Event::Watched { message, .. } => message.budget_bytes().try_into().unwrap_or(0),
        Event::Subscribed { .. }
        | Event::SubscribeFailed { .. }
        | Event::SubscriptionEnded { .. }
        | Event::Watching { .. }
        | Event::WatchEnded { .. }
        | Event::StorageFailed { .. } => 0,
    };
    size_of::<Waiting>() + held
}

fn delivery_bytes(batch: &DeliveryBatch) -> usize {
    // A chunk may be shared with messages that do not wait.
    let chunks: usize = batch.chunks.iter().map(bytes::Bytes::len).sum();
    let contents: usize = batch.items.iter().map(|item| item.len as usize).sum();
    let chunks = chunks.min(contents);
    batch.items.len() * size_of::<DeliveryItem>() + batch.keys.len() + chunks
}

/// The replies that grow with the broker's state; all others are small.
fn reply_bytes(reply: &AdminReply) -> usize {
    const ENTRY: usize = 64;
    let entries = match reply {
        AdminReply::Stats(Ok(stats)) => stats.keys.len(),
        AdminReply::Queues(queues) => queues.len(),
        AdminReply::ApiKeys(keys) => keys.len(),
        AdminReply::Acl(Ok(acl)) => acl.grants.len(),
        AdminReply::ConfigList(entries) => {
            return entries.iter().map(|(k, v)| ENTRY + k.len() + v.len()).sum();
        }
        AdminReply::Vhosts(vhosts) => vhosts.len(),
        AdminReply::QueuesOf(Ok(queues)) => {
            // Each with its counters.
            return queues.iter().map(|it| 5 * ENTRY + it.args.len()).sum();
        }
        AdminReply::Exchanges(Ok(exchanges)) => exchanges.len(),
        AdminReply::Bindings(Ok(bindings)) => bindings.len(),
        AdminReply::Channels(Ok(patterns)) => {
            return patterns
                .iter()
                .map(|it| size_of::<String>() + it.len())
                .sum();
        }
        AdminReply::Throttle(Ok(stats)) => stats.buckets.len() + stats.queues.len(),
        AdminReply::Throttle(Err(_))
        | AdminReply::ThrottleBucket(_)
        | AdminReply::Stats(Err(_))
        | AdminReply::Created(_)
        | AdminReply::Updated(_)
        | AdminReply::Deleted(_)
        | AdminReply::Purged(_)
        | AdminReply::ScriptsChecked(_)
        | AdminReply::Inspected(_)
        | AdminReply::Redriven(_)
        | AdminReply::ConfigSet(_)
        | AdminReply::Config(_)
        | AdminReply::RebalancingSet
        | AdminReply::ClusterStatus(_)
        | AdminReply::Explained(_)
        | AdminReply::ApiKeyCreated(_)
        | AdminReply::Bootstrapped(_)
        | AdminReply::ApiKeyRevoked(_)
        | AdminReply::AclSet(_)
        | AdminReply::Acl(Err(_))
        | AdminReply::User(_)
        | AdminReply::Vhost(_)
        | AdminReply::VhostChanged(_)
        | AdminReply::VhostDeleted(_)
        | AdminReply::ExchangeDeclared(_)
        | AdminReply::ExchangeDeleted(_)
        | AdminReply::Bound(_)
        | AdminReply::Unbound(_)
        | AdminReply::Exchanges(Err(_))
        | AdminReply::Bindings(Err(_))
        | AdminReply::Channels(Err(_))
        | AdminReply::VhostCounts(_)
        | AdminReply::QueuesOf(Err(_))
        | AdminReply::QueueDeclared(_)
        | AdminReply::QueueRemoved(_)
        | AdminReply::QueuePurged(_) => 1,
    };
    entries * 2 * ENTRY
}

#[cfg(test)]
mod tests;
