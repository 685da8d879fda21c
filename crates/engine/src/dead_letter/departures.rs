//! Messages on their way from the queue they died in to an exchange.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{DeadLetter, Death, Reason};
use crate::engine::{Cx, Engine};
use crate::incoming::Incoming;
use crate::placing::Target;
use crate::queue::entries::{Flags, Slot};
use crate::queues::QueueIndex;
use crate::{AmqpOverflow, AmqpPolicy, Content, Form, MessageId, Millis, PublishError, QueueId};

/// Messages that one pass sends on their way, and bytes of their contents, at most.
const PASS_MESSAGES: usize = 256;
const PASS_BYTES: usize = 8 << 20;

/// Messages that wait for their turn, at which no more expire.
const LINE_MAX: usize = 1024;

/// A message that cannot be read or stored now is tried again after this time.
const RETRY_MS: u64 = 1_000;

/// Where a queue's dead letters go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadLetterRules {
    pub(crate) exchange: String,
    pub(crate) routing_key: Option<String>,
    /// Also new messages go there that the queue refuses as it is full.
    pub(crate) takes_refused: bool,
}

impl DeadLetterRules {
    /// What a queue was declared with; `None` when its dead letters go nowhere.
    pub(crate) fn of(policy: &AmqpPolicy) -> Option<Arc<Self>> {
        let exchange = policy.dead_letter_exchange.clone()?;
        Some(Arc::new(Self {
            exchange,
            routing_key: policy.dead_letter_routing_key.clone(),
            takes_refused: policy.overflow == AmqpOverflow::RejectDeadLetter,
        }))
    }
}

/// The departing messages of a queue.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    line: VecDeque<(Slot, Reason)>,
    /// Those that wait for another try, by time.
    later: VecDeque<(Millis, Slot, Reason)>,
    /// The queue is in the engine's list.
    listed: bool,
}

/// A new message that its queue refused, and that goes to the exchange for dead letters.
#[derive(Debug)]
pub(crate) struct RefusedMessage {
    queue: QueueId,
    form: Form,
    content: Vec<u8>,
    transient: bool,
    priority: u8,
}

impl Departures {
    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.later.len()
    }

    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        self.later.front().map(|(at, ..)| *at)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.line.capacity() * size_of::<(Slot, Reason)>()
            + self.later.capacity() * size_of::<(Millis, Slot, Reason)>()
    }

    /// How many more messages may be put in line before others have left it.
    pub(crate) fn room(&self) -> usize {
        LINE_MAX.saturating_sub(self.line.len())
    }

    /// Why a message departs.
    pub(crate) fn reason_of(&self, slot: Slot) -> Option<&'static str> {
        let later = self.later.iter().map(|(_, slot, reason)| (*slot, *reason));
        let mut all = self.line.iter().copied().chain(later);
        let found = all.find(|(it, _)| *it == slot);
        found.map(|(_, reason)| reason.name())
    }
}

/// What became of a try to send a dead letter on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It is out of its queue.
    Gone,
    /// It stays.
    Later,
}

impl Engine {
    /// Messages die that are leased, or already taken out of their lane or waiting list: they go to
    /// the queue's exchange for dead letters, or away when it has none.
    pub(crate) fn die(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        slots: &[Slot],
        reason: Reason,
    ) {
        if slots.is_empty() {
            return;
        }
        let queue = self.queues.at_mut(index);
        if queue.dead_letters.is_none() {
            return self.remove_all(cx, index, slots);
        }
        for slot in slots {
            queue.set_departing(*slot);
            queue.departures.line.push_back((*slot, reason));
        }
        self.list_departures(index);
        self.touch(index);
    }

    fn list_departures(&mut self, index: QueueIndex) {
        let departures = &mut self.queues.at_mut(index).departures;
        if !departures.line.is_empty() && !core::mem::replace(&mut departures.listed, true) {
            self.departing.push_back(index);
        }
    }

    /// Messages that waited for another try may have it.
    pub(crate) fn retry_departures(&mut self, index: QueueIndex, now: Millis) {
        let it = &mut self.queues.at_mut(index).departures;
        while let Some((_, slot, reason)) = it.later.pop_front_if(|(at, ..)| *at <= now) {
            it.line.push_back((slot, reason));
        }
        self.list_departures(index);
    }

    /// Dead letters are left for the next pass.
    pub(crate) fn has_departures(&self) -> bool {
        !self.departing.is_empty() || !self.refused.is_empty()
    }

    /// Sends dead letters on their way, as many as one pass may.
    pub(crate) fn run_departures(&mut self, cx: &mut Cx<'_>) {
        let (mut messages, mut bytes) = (PASS_MESSAGES, PASS_BYTES);
        while messages > 0
            && bytes > 0
            && let Some(refused) = self.refused.pop_front()
        {
            messages -= 1;
            bytes = bytes.saturating_sub(refused.content.len());
            self.send_refused(cx, &refused);
        }
        while messages > 0
            && bytes > 0
            && let Some(index) = self.departing.front().copied()
        {
            match self.send_next(cx, index) {
                Some(len) => {
                    messages -= 1;
                    bytes = bytes.saturating_sub(len);
                }
                None => _ = self.departing.pop_front(),
            }
        }
    }

    /// Within a transaction: what died by it goes on its way with the rest of it. What is too much
    /// for one record goes later.
    pub(crate) fn send_within(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let mut bytes = PASS_BYTES;
        while bytes > 0
            && let Some(len) = self.send_next(cx, index)
        {
            bytes = bytes.saturating_sub(len);
        }
    }

    /// Before a queue is deleted: what waits for its turn goes on its way. What waits for another
    /// try goes with the queue.
    pub(crate) fn send_all(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        while self.send_next(cx, index).is_some() {}
    }

    /// Sends the next message of a queue on its way; says how long its content is. `None` when
    /// there is none.
    fn send_next(&mut self, cx: &mut Cx<'_>, index: QueueIndex) -> Option<usize> {
        let queue = self.queues.get_mut(index)?;
        let Some((slot, reason)) = queue.departures.line.pop_front() else {
            queue.departures.listed = false;
            return None;
        };
        let len = queue.entries.at(slot).len;
        if self.send(cx, index, slot, reason) == Sent::Later {
            let at = cx.now.after_ms(RETRY_MS);
            let departures = &mut self.queues.at_mut(index).departures;
            departures.later.push_back((at, slot, reason));
            self.touch(index);
        }
        Some(len as usize)
    }

    /// Sends one message on its way.
    fn send(&mut self, cx: &mut Cx<'_>, index: QueueIndex, slot: Slot, reason: Reason) -> Sent {
        self.finish_store(cx);
        let Some(bytes) = self.content_of(cx, index, slot) else {
            return Sent::Later;
        };
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        let is_transient = entry.flags.has(Flags::TRANSIENT);
        let source = Source {
            index,
            id: entry.id,
            content: Content::new(entry.flags.form(), &bytes),
            // A message of a transient queue may have been a persistent one.
            transient: is_transient && !queue.is_transient(),
            priority: queue.lanes.priority(entry.lane),
        };
        let Ok((letter, targets)) = self.address(cx, &source, reason) else {
            return Sent::Later;
        };
        self.queues.at_mut(index).dead_lettered += 1;
        let new = source.incoming(&letter);
        let step = |engine: &mut Self, cx: &mut Cx<'_>| {
            engine.put_in_all(cx, &new, targets);
            engine.remove_all(cx, index, &[slot]);
            engine.atomic.note_touched(index);
        };
        if self.atomic.is_open() {
            step(self, cx);
        } else {
            self.atomically(cx, step);
        }
        Sent::Gone
    }

    /// Makes a dead letter of a message and asks the queues that it goes to. Those that refuse it
    /// do not get it, and neither do those where it would go round in a circle.
    ///
    /// # Errors
    /// `Storage` when none can be stored.
    fn address(
        &mut self,
        cx: &mut Cx<'_>,
        source: &Source<'_>,
        reason: Reason,
    ) -> Result<(DeadLetter, Vec<Target>), PublishError> {
        let queue = self.queues.at(source.index);
        let vhost = queue.identity.vhost;
        let name = Arc::clone(&queue.identity.name);
        let rules = queue.dead_letters.clone();
        let exchange = rules.as_ref().map_or("", |rules| &rules.exchange);
        let death = Death {
            reason,
            at: cx.now,
            queue: &name,
            exchange,
            routing_key: rules
                .as_ref()
                .and_then(|rules| rules.routing_key.as_deref()),
        };
        let letter = DeadLetter::new(source.content, source.id, &death);
        let keys: Vec<_> = letter.keys.iter().map(String::as_str).collect();
        let content = Content::new(letter.form, &letter.content);
        let (mut found, of) = (Vec::new(), (vhost, exchange));
        // An exchange that is not there gives it to no queue.
        self.topology.route(
            &self.queues,
            of,
            (&keys, content),
            &mut self.routes,
            &mut found,
        );
        let new = source.incoming(&letter);
        let mut targets = Vec::with_capacity(found.len());
        for index in found {
            let queue = self.queues.at(index);
            if queue.is_dead_letter() || letter.is_cycle(reason, &queue.identity.name) {
                continue;
            }
            match self.target(cx, index, &new) {
                Ok(target) => targets.push(target),
                Err(PublishError::Storage) => return Err(PublishError::Storage),
                Err(error) => self.refuse(index, &new, error),
            }
        }
        if !self.routes.watches.is_empty() {
            let seen = core::mem::take(&mut self.routes.watches);
            self.tell_watches(cx, content, &keys, &seen);
            self.routes.watches = seen;
        }
        drop(keys);
        Ok((letter, targets))
    }

    /// The content of a departing message.
    fn content_of(&self, cx: &mut Cx<'_>, index: QueueIndex, slot: Slot) -> Option<bytes::Bytes> {
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        if entry.flags.has(Flags::TRANSIENT) {
            return queue.transient.of(entry).map(bytes::Bytes::copy_from_slice);
        }
        let mut bytes = Vec::new();
        let read = cx.journal.read_content(entry.at, entry.len, &mut bytes);
        read.is_read().then(|| bytes.into())
    }

    /// A queue refused a new message: it may want it to be dead-lettered.
    pub(crate) fn refuse(&mut self, index: QueueIndex, new: &Incoming<'_>, error: PublishError) {
        let queue = self.queues.at(index);
        let takes = queue
            .dead_letters
            .as_ref()
            .is_some_and(|rules| rules.takes_refused);
        if error != PublishError::QueueFull || !takes {
            return;
        }
        self.refused.push_back(RefusedMessage {
            queue: queue.identity.id,
            form: new.form,
            content: [new.content, new.attributes].concat(),
            transient: new.transient,
            priority: new.priority,
        });
    }

    /// Sends a message on its way that its queue never took. Nobody was told that it is stored.
    fn send_refused(&mut self, cx: &mut Cx<'_>, refused: &RefusedMessage) {
        self.finish_store(cx);
        let Some(index) = self.queues.index_of(refused.queue) else {
            return;
        };
        let source = Source {
            index,
            id: self.ids.next(cx.now),
            content: Content::new(refused.form, &refused.content),
            transient: refused.transient,
            priority: refused.priority,
        };
        if let Ok((letter, targets)) = self.address(cx, &source, Reason::MaxLength) {
            self.queues.at_mut(index).dead_lettered += 1;
            let new = source.incoming(&letter);
            self.atomically(cx, |engine, cx| engine.put_in_all(cx, &new, targets));
        }
    }
}

/// A message that died, wherever it is.
struct Source<'a> {
    index: QueueIndex,
    id: MessageId,
    content: Content<'a>,
    transient: bool,
    priority: u8,
}

impl Source<'_> {
    fn incoming<'a>(&self, letter: &'a DeadLetter) -> Incoming<'a> {
        Incoming {
            content: &letter.content,
            buffer: None,
            attributes: DeadLetter::ATTRIBUTES,
            form: letter.form,
            key: &letter.fairness_key,
            weight: 1,
            idempotency_key: &[],
            delay_ms: 0,
            ttl_ms: None,
            priority: letter.priority.unwrap_or(self.priority),
            transient: letter.persistent.map_or(self.transient, |it| !it),
            parked: None,
        }
    }
}
