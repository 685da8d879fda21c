//! Messages come in.

use crate::engine::{Cx, Engine};
use crate::key::{Properties, WHOLE_QUEUE, idempotency_hash, key_hash};
use crate::queue::entries::Flags;
use crate::queue::{NewMessage, Queue, Weighs};
use crate::queues::QueueIndex;
use crate::record::{StoredContent, StoredFields, add_stored, begin_stored};
use crate::store::{RECORD_BYTES, StoredAt};
use crate::{
    Event, Lsn, MessageId, MissingOrderingKey, Ordering, Overflow, PublishBatch, PublishError,
    PublishItem, PublishResult, PublishTarget, QueueId, ReplyTo, Span,
};

/// A message's properties, out of the batch's bytes.
struct Incoming<'a> {
    item: &'a PublishItem,
    content: &'a [u8],
    key: &'a str,
    idempotency_key: &'a [u8],
}

/// What the queue's keys say of a message.
struct Keys {
    dedup: Option<u128>,
    group: Option<u128>,
}

impl Engine {
    pub(crate) fn on_publish(&mut self, cx: &mut Cx<'_>, reply: ReplyTo, batch: &PublishBatch) {
        let mut results = Vec::with_capacity(batch.items.len());
        let mut after = Lsn::ZERO;
        let mut target = LastTarget::default();
        for item in &batch.items {
            let result = match item.target {
                PublishTarget::Refused(error) => PublishResult::Refused(error),
                PublishTarget::Name(name) => {
                    let index = self.publish_target(&mut target, name, &batch.data);
                    if let Ok(index) = index {
                        after = after.max(self.queues.at(index).last_lsn);
                    }
                    let stored = index.and_then(|index| self.store_one(cx, index, item, batch));
                    stored.unwrap_or_else(PublishResult::Refused)
                }
                PublishTarget::Queues(routes) => {
                    let ids = routes_of(batch, routes);
                    for index in ids.iter().filter_map(|id| self.queues.index_of(*id)) {
                        after = after.max(self.queues.at(index).last_lsn);
                    }
                    let stored = self.store_in_all(cx, ids, item, batch);
                    stored.unwrap_or_else(PublishResult::Refused)
                }
            };
            if matches!(result, PublishResult::Refused(_)) {
                after = after.max(self.queues.last_lsn);
            }
            results.push(result);
        }
        self.finish_store(cx);
        if results
            .iter()
            .any(|result| matches!(result, PublishResult::Stored(_)))
        {
            after = cx.journal.end();
        }
        cx.emit(
            reply.conn,
            after,
            Event::Published {
                token: reply.token,
                results,
            },
        );
    }

    fn publish_target(
        &mut self,
        last: &mut LastTarget,
        name: Span,
        data: &[u8],
    ) -> Result<QueueIndex, PublishError> {
        if last.is(name, data) {
            return last.index;
        }
        let found = self.queues.find(name.text(data));
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

    /// One body for several queues: the message is stored in all of them, or in none.
    fn store_in_all(
        &mut self,
        cx: &mut Cx<'_>,
        ids: &[QueueId],
        item: &PublishItem,
        batch: &PublishBatch,
    ) -> Result<PublishResult, PublishError> {
        let incoming = Incoming::new(item, batch);
        let mut targets = Vec::with_capacity(ids.len());
        for id in ids {
            targets.push(self.check_target(cx, *id, &incoming)?);
        }
        targets.sort_unstable_by_key(|(index, _)| *index);
        targets.dedup_by_key(|(index, _)| *index);
        let (mut stored, mut duplicate, mut body) = (None, None, None);
        for (index, keys) in targets {
            if let Some(id) = self.remembered(cx, index, &keys) {
                duplicate = duplicate.or(Some(id));
                continue;
            }
            self.finish_store(cx);
            let id = self.store_message(cx, index, &incoming, &keys, body);
            let at = self.finish_store(cx);
            body = body.or(at);
            stored = stored.or(Some(id));
        }
        let stored = stored.map(PublishResult::Stored);
        stored
            .or_else(|| duplicate.map(PublishResult::Duplicate))
            .ok_or(PublishError::QueueNotFound)
    }

    /// One of several targets: it must take the message, or none gets it.
    fn check_target(
        &mut self,
        cx: &Cx<'_>,
        id: QueueId,
        new: &Incoming<'_>,
    ) -> Result<(QueueIndex, Keys), PublishError> {
        if self.storage_full {
            return Err(PublishError::Storage);
        }
        let index = self.queues.index_of(id);
        let index = index.ok_or(PublishError::QueueNotFound)?;
        if self.queues.at(index).is_dead_letter() {
            return Err(PublishError::ReservedQueueName);
        }
        let keys = self.keys_of(index, new)?;
        if self.remembered(cx, index, &keys).is_none() {
            self.check_room(index)?;
        }
        Ok((index, keys))
    }

    fn store_one(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        item: &PublishItem,
        batch: &PublishBatch,
    ) -> Result<PublishResult, PublishError> {
        if self.store.queue != index || self.store.record.len() >= RECORD_BYTES {
            self.finish_store(cx);
        }
        let incoming = Incoming::new(item, batch);
        let keys = self.keys_of(index, &incoming)?;
        if let Some(id) = self.remembered(cx, index, &keys) {
            return Ok(PublishResult::Duplicate(id));
        }
        self.check_room(index)?;
        let id = self.store_message(cx, index, &incoming, &keys, None);
        Ok(PublishResult::Stored(id))
    }

    /// The keys the queue asks for; refuses what the queue refuses.
    fn keys_of(&self, index: QueueIndex, new: &Incoming<'_>) -> Result<Keys, PublishError> {
        if new.content.len() > self.config.limits.message_bytes_max as usize {
            return Err(PublishError::TooLarge);
        }
        let queue = self.queues.at(index);
        let properties = Properties {
            content: new.content,
            fairness_key: new.key.as_bytes(),
            idempotency_key: new.idempotency_key,
        };
        let group = match &queue.config.ordering {
            Ordering::None => None,
            Ordering::Queue => Some(WHOLE_QUEUE),
            Ordering::Key { key, missing } => match (key_hash(key, properties), missing) {
                (None, MissingOrderingKey::Reject) => return Err(PublishError::OrderingKeyMissing),
                (hash, _) => hash,
            },
        };
        let dedup = match &queue.config.dedup_key {
            Some(parts) => key_hash(parts, properties),
            None if new.idempotency_key.is_empty() => None,
            None => Some(idempotency_hash(new.idempotency_key)),
        };
        Ok(Keys { dedup, group })
    }

    /// Refuses a new message of a full queue that refuses. A duplicate needs no room.
    fn check_room(&self, index: QueueIndex) -> Result<(), PublishError> {
        let queue = self.queues.at(index);
        match queue.config.max_length {
            Some(max) if max.overflow == Overflow::Reject && queue.depth() >= max.messages => {
                Err(PublishError::QueueFull)
            }
            _ => Ok(()),
        }
    }

    /// The message that a deduplication key is remembered from.
    fn remembered(&mut self, cx: &Cx<'_>, index: QueueIndex, keys: &Keys) -> Option<MessageId> {
        let key = keys.dedup?;
        self.forget_keys(index, cx.now, usize::MAX);
        self.queues.at(index).dedup.find(key)
    }

    /// Puts one message into its queue and into the record under construction.
    fn store_message(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        new: &Incoming<'_>,
        keys: &Keys,
        body: Option<Lsn>,
    ) -> MessageId {
        if new.item.transient {
            // It takes a position, and a record's positions are consecutive.
            self.finish_store(cx);
        }
        let id = self.ids.next(cx.now);
        let due = (new.item.delay_ms > 0).then(|| id.enqueued_at().after_ms(new.item.delay_ms));
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked against message_bytes_max"
        )]
        let len = new.content.len() as u32;
        let queue = self.queues.at_mut(index);
        let mut flags = Flags::default();
        if new.item.transient {
            flags = flags.with(Flags::TRANSIENT);
        }
        if keys.dedup.is_some() && !new.item.transient {
            flags = flags.with(Flags::DEDUP);
        }
        let position = queue.next_position;
        let slot = queue.store(NewMessage {
            id,
            at: Lsn::ZERO,
            len,
            key: new.key,
            priority: new.item.priority,
            weight: new.item.weight,
            weighs: Weighs::Key,
            redrives: 0,
            flags,
        });
        if new.item.transient {
            queue.keep_body(slot, bytes::Bytes::copy_from_slice(new.content));
            queue.admit(slot, keys.group, due);
            self.drop_overflow(cx, index);
            self.touch(index);
            return id;
        }
        queue.admit(slot, keys.group, due);
        let store = &mut self.store;
        if store.count == 0 {
            begin_stored(&mut store.record, queue.identity.id, cx.now);
            store.queue = index;
            store.first_position = position;
            store.first_id = id;
        }
        let fields = StoredFields {
            key: new.key.as_bytes(),
            weight: new.item.weight,
            due,
            dedup: keys.dedup,
            group: keys.group,
            priority: new.item.priority,
        };
        let content = body.map_or(StoredContent::Here(new.content), |at| {
            StoredContent::Elsewhere { at, len }
        });
        let offset = add_stored(&mut store.record, &fields, content);
        let at = body.map_or(StoredAt::Here(offset), StoredAt::Log);
        store.count += 1;
        store.contents.push((slot, at));
        if let Some(key) = keys.dedup {
            queue.dedup.insert(key, id);
        }
        id
    }
}

fn routes_of(batch: &PublishBatch, routes: Span) -> &[QueueId] {
    let start = routes.start as usize;
    batch
        .routes
        .get(start..start + routes.len as usize)
        .unwrap_or_default()
}

impl<'a> Incoming<'a> {
    fn new(item: &'a PublishItem, batch: &'a PublishBatch) -> Self {
        Self {
            item,
            content: item.content.of(&batch.data),
            key: item.fairness_key.text(&batch.data),
            idempotency_key: item
                .idempotency_key
                .map_or(&[], |span| span.of(&batch.data)),
        }
    }
}

/// The queue of the item before: most batches have one.
struct LastTarget {
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

impl Queue {
    /// Contents of this queue that lie in the log.
    pub(crate) fn segment_refs(&self) -> u64 {
        self.messages() - self.transient.len() as u64
    }
}
