//! Messages come in.

use std::borrow::Cow;

use crate::engine::{Cx, Engine};
use crate::incoming::{Incoming, Keys};
use crate::queue::entries::{Flags, Slot};
use crate::queue::{NewMessage, Queue, Weighs};
use crate::queues::QueueIndex;
use crate::record::{StoredContent, StoredFields, add_stored, begin_stored};
use crate::script::{NewAnswer, UNDECIDED};
use crate::store::{RECORD_BYTES, StoredAt};
use crate::topology::LastRoute;
use crate::{
    Content, Event, Lsn, MessageId, Millis, PublishBatch, PublishError, PublishItem, PublishResult,
    PublishTarget, QueueId, ReplyTo, Span,
};

/// Bytes of a fairness key at most, as in records.
const FAIRNESS_KEY_BYTES_MAX: usize = 65_535;

impl Engine {
    pub(crate) fn on_publish(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, batch: &PublishBatch) {
        if self.scripts.are_used() && !self.has_room_to_wait(batch) {
            // Before anything of it is taken: the producer is told to come again with all of it.
            let overloaded = PublishResult::Refused(PublishError::Overloaded);
            let results = vec![overloaded; batch.items.len()];
            let token = reply.token;
            return cx.emit(reply.conn, Lsn::ZERO, Event::Published { token, results });
        }
        let begin = cx.journal.end();
        let mut results = Vec::with_capacity(batch.items.len());
        let mut answer = NewAnswer::new(reply);
        let mut after = Lsn::ZERO;
        let (mut target, mut route) = (LastTarget::default(), LastRoute::default());
        for item in &batch.items {
            let result = match item.target {
                PublishTarget::Refused(error) => PublishResult::Refused(error),
                PublishTarget::Route | PublishTarget::Topic => {
                    let new = (item, batch, results.len());
                    let stored = self.publish_routed(cx, new, &mut route, &mut answer);
                    for index in route.queues().unwrap_or_default() {
                        after = after.max(self.queues.at(*index).last_lsn);
                    }
                    if item.target == PublishTarget::Topic {
                        // The exchange may be as new.
                        after = after.max(self.queues.last_lsn);
                    }
                    stored.unwrap_or_else(PublishResult::Refused)
                }
                PublishTarget::Name(name) => {
                    let index = self.publish_target(&mut target, name, batch);
                    if let Ok(index) = index {
                        after = after.max(self.queues.at(index).last_lsn);
                    }
                    let new = (item, batch, results.len());
                    let stored = index.and_then(|index| self.take_one(cx, index, new, &mut answer));
                    stored.unwrap_or_else(PublishResult::Refused)
                }
                PublishTarget::Queues(routes) => {
                    let ids = routes_of(batch, routes);
                    for index in ids.iter().filter_map(|id| self.queues.index_of(*id)) {
                        after = after.max(self.queues.at(index).last_lsn);
                    }
                    let new = (item, batch, results.len());
                    let stored = self.store_in_all(cx, ids, new, &mut answer);
                    stored.unwrap_or_else(PublishResult::Refused)
                }
            };
            if matches!(result, PublishResult::Refused(_)) {
                after = after.max(self.queues.last_lsn);
            }
            results.push(result);
        }
        self.finish_store(cx);
        if results.iter().any(|result| {
            matches!(
                result,
                PublishResult::Stored(_) | PublishResult::Sent { .. }
            )
        }) {
            // When all that is stored is in memory only, nothing was written.
            let end = cx.journal.end();
            after = if end == begin { after } else { end };
        }
        let after = if batch.confirm { after } else { Lsn::ZERO };
        self.answer_publish(cx, answer, results, after);
    }

    pub(crate) fn publish_target(
        &self,
        last: &mut LastTarget,
        name: Span,
        batch: &PublishBatch,
    ) -> Result<QueueIndex, PublishError> {
        if last.is(name, &batch.data) {
            return last.index;
        }
        let found = self.queues.find_in(batch.vhost, name.text(&batch.data));
        last.name = Some(name);
        last.index = match found {
            _ if self.storage_full => Err(PublishError::Storage),
            None => Err(PublishError::QueueNotFound),
            Some(index) if self.queues.at(index).is_dead_letter() => {
                Err(PublishError::ReservedQueueName)
            }
            Some(index) => Ok(index),
        };
        last.index
    }

    /// One body for several queues: the message is stored in all of them, or in none. Queues with
    /// scripts decide later, each on its own, with a body of their own.
    fn store_in_all(
        &mut self,
        cx: &mut Cx<'_>,
        ids: &[QueueId],
        new: (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        let (item, batch, _) = new;
        let incoming = Incoming::new(item, &batch.data);
        let mut targets = Vec::with_capacity(ids.len());
        for id in ids {
            targets.push(self.check_target(cx, *id, &incoming)?);
        }
        targets.sort_unstable_by_key(|(index, _)| *index);
        targets.dedup_by_key(|(index, _)| *index);
        // One record, so that the second queue's content is where the first one's is wherever a
        // start moves it.
        self.atomically(cx, |engine, cx| {
            engine.store_in_targets(cx, targets, new, answer)
        })
    }

    /// One of several targets: it must take the message, or none gets it. Without keys when a
    /// script decides.
    pub(crate) fn check_target(
        &mut self,
        cx: &Cx<'_>,
        id: QueueId,
        new: &Incoming<'_>,
    ) -> Result<(QueueIndex, Option<Keys>), PublishError> {
        if self.storage_full {
            return Err(PublishError::Storage);
        }
        let index = self.queues.index_of(id);
        let index = index.ok_or(PublishError::QueueNotFound)?;
        if self.queues.at(index).is_dead_letter() {
            return Err(PublishError::ReservedQueueName);
        }
        if self.queues.at(index).holds_publishes() {
            return self.check_size(new).map(|()| (index, None));
        }
        let keys = self.keys_of(index, new)?;
        if self.remembered(cx, index, keys.dedup).is_none() {
            self.check_room(index, new)?;
        }
        Ok((index, Some(keys)))
    }

    pub(crate) fn take_one(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        new: (&PublishItem, &PublishBatch, usize),
        answer: &mut NewAnswer,
    ) -> Result<PublishResult, PublishError> {
        let (item, batch, _) = new;
        let incoming = Incoming::new(item, &batch.data);
        if !self.queues.at(index).holds_publishes() {
            return self.store_one(cx, index, &incoming);
        }
        self.check_size(&incoming)?;
        if let Some(id) = self.early_duplicate(cx, index, &incoming) {
            return Ok(PublishResult::Duplicate(id));
        }
        self.wait_for_script(index, new, answer);
        Ok(UNDECIDED)
    }

    /// Stores a message whose values are known, unless it is a duplicate.
    pub(crate) fn store_one(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        incoming: &Incoming<'_>,
    ) -> Result<PublishResult, PublishError> {
        self.store_into(cx, index);
        let keys = self.keys_of(index, incoming)?;
        if let Some(id) = self.remembered(cx, index, keys.dedup) {
            return Ok(PublishResult::Duplicate(id));
        }
        if let Err(error) = self.check_room(index, incoming) {
            self.refuse(index, incoming, error);
            return Err(error);
        }
        let id = self.store_message(cx, index, incoming, &keys, None);
        Ok(PublishResult::Stored(id))
    }

    /// Ends the record under construction when the next message is not to be put into it.
    pub(crate) fn store_into(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        if self.store.queue != index || self.store.record.len() >= RECORD_BYTES {
            self.finish_store(cx);
        }
    }

    /// Puts one message into its queue and into the record under construction.
    pub(crate) fn store_message(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        new: &Incoming<'_>,
        keys: &Keys,
        body: Option<Lsn>,
    ) -> MessageId {
        let queue = self.queues.at(index);
        let transient = new.transient || queue.is_transient();
        let (key, priority) = (queue.fairness_key(new), queue.priority(new));
        if transient && (self.store.count > 0 || self.store.queue != index) {
            // It takes a position, and a record's positions are consecutive.
            self.finish_store(cx);
        }
        let id = self.ids.next(cx.now);
        let due = (new.delay_ms > 0).then(|| id.enqueued_at().after_ms(new.delay_ms));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked against message_bytes_max"
        )]
        let len = (new.content.len() + new.attributes.len()) as u32;
        let queue = self.queues.at_mut(index);
        let expires = queue.expiry_of(id, new.ttl_ms);
        let flags = flags_of(new, keys, transient);
        let position = queue.next_position;
        let slot = queue.store(NewMessage {
            id,
            at: Lsn::ZERO,
            len,
            key: &key,
            priority,
            weight: new.weight,
            weighs: Weighs::Key,
            redrives: 0,
            flags,
        });
        queue.note_body(slot, (new.form, new.content));
        self.note_expiry((index, slot), new, expires);
        if transient {
            self.place_transient(cx, (index, slot), new, (keys, due));
            return id;
        }
        let queue = self.queues.at_mut(index);
        queue.place_new(slot, new, keys, due);
        let store = &mut self.store;
        if store.count == 0 {
            begin_stored(&mut store.record, queue.identity.id, cx.now);
            store.queue = index;
            store.first_position = position;
            store.first_id = id;
        }
        let fields = StoredFields {
            key: key.as_bytes(),
            weight: new.weight,
            due,
            dedup: keys.dedup,
            group: keys.group,
            priority,
            unclassified: new.parked.as_ref().map(|parked| parked.known.fields()),
            expires,
            form: new.form,
        };
        let content = match body {
            Some(at) => StoredContent::Elsewhere { at, len },
            None => StoredContent::Here {
                content: new.content,
                attributes: new.attributes,
            },
        };
        let offset = add_stored(&mut store.record, &fields, content);
        let at = body.map_or(StoredAt::Here(offset), StoredAt::Log);
        store.count += 1;
        store.contents.push((slot, at));
        if let Some(key) = keys.dedup {
            queue.dedup.insert(key, id);
        }
        id
    }

    fn note_expiry(
        &mut self,
        (index, slot): (QueueIndex, Slot),
        new: &Incoming<'_>,
        expires: Option<Millis>,
    ) {
        let queue = self.queues.at_mut(index);
        if let Some(at) = expires {
            queue.keep_expiry(slot, at);
        }
        if [new.ttl_ms, queue.expiry.ttl_ms].contains(&Some(0)) {
            let at = queue.entries.at(slot).id.enqueued_at();
            self.note_instant(index, at);
        }
    }

    /// A new message whose content is in memory only gets its place.
    fn place_transient(
        &mut self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        new: &Incoming<'_>,
        (keys, due): (&Keys, Option<Millis>),
    ) {
        self.store_transient(index, slot, new);
        let queue = self.queues.at_mut(index);
        queue.place_new(slot, new, keys, due);
        if queue.overflow().is_some() {
            // Each may push others out.
            self.finish_store(cx);
        }
    }
}

pub(crate) fn routes_of(batch: &PublishBatch, routes: Span) -> &[QueueId] {
    let start = routes.start as usize;
    batch
        .routes
        .get(start..start + routes.len as usize)
        .unwrap_or_default()
}

/// The queue of the item before: most batches have one.
#[derive(Debug)]
pub(crate) struct LastTarget {
    name: Option<Span>,
    index: Result<QueueIndex, PublishError>,
}

impl Default for LastTarget {
    fn default() -> Self {
        Self {
            name: None,
            index: Err(PublishError::QueueNotFound),
        }
    }
}

impl LastTarget {
    fn is(&self, name: Span, data: &[u8]) -> bool {
        self.name.is_some_and(|last| last.of(data) == name.of(data))
    }
}

fn flags_of(new: &Incoming<'_>, keys: &Keys, transient: bool) -> Flags {
    let flags = [
        (transient, Flags::TRANSIENT),
        (keys.dedup.is_some() && !transient, Flags::DEDUP),
        (!new.attributes.is_empty(), Flags::ATTRIBUTES),
        (new.parked.is_some(), Flags::UNCLASSIFIED),
        (true, Flags::of_form(new.form)),
    ];
    Flags::of(&flags)
}

impl Queue {
    /// Gives a new message its place.
    fn place_new(&mut self, slot: Slot, new: &Incoming<'_>, keys: &Keys, due: Option<Millis>) {
        match &new.parked {
            None => self.admit(slot, keys.group, due),
            Some(parked) => {
                self.unclassified.insert(slot, parked.known.clone());
                self.park(slot, (keys.group, due), parked.next, &parked.error);
            }
        }
    }

    /// A message's fairness key: its own, or the value of the header that the queue names.
    fn fairness_key<'a>(&self, new: &Incoming<'a>) -> Cow<'a, str> {
        let policy = self.config.amqp.as_ref();
        let Some(name) = policy.and_then(|policy| policy.fairness_key.as_ref()) else {
            return Cow::Borrowed(new.key);
        };
        if !new.key.is_empty() {
            return Cow::Borrowed(new.key);
        }
        let header = Content::new(new.form, new.content).header(name.as_bytes());
        let key = match header {
            Some(Cow::Borrowed(value)) => String::from_utf8_lossy(value),
            Some(Cow::Owned(value)) => String::from_utf8_lossy(&value).into_owned().into(),
            None => Cow::Borrowed(""),
        };
        // Headers may be longer than a key can be; those that differ only behind that share a turn.
        let len = key.floor_char_boundary(FAIRNESS_KEY_BYTES_MAX);
        match key {
            Cow::Borrowed(key) => Cow::Borrowed(key.get(..len).unwrap_or_default()),
            Cow::Owned(mut key) => {
                key.truncate(len);
                Cow::Owned(key)
            }
        }
    }

    /// A message's priority. A queue that AMQP or FireMQ declared has as many as it was declared
    /// with, or one.
    fn priority(&self, new: &Incoming<'_>) -> u8 {
        match &self.config.amqp {
            None => new.priority,
            Some(policy) => new.priority.min(policy.max_priority.unwrap_or(0)),
        }
    }

    /// New messages wait for a script, or for others that do.
    pub(crate) fn holds_publishes(&self) -> bool {
        let hooks = self.hooks.as_ref();
        hooks.is_some_and(|hooks| hooks.holds_publishes())
    }

    /// Contents of this queue that lie in the log.
    pub(crate) fn segment_refs(&self) -> u64 {
        self.messages() - self.transient.len() as u64
    }
}
