//! A message on its way in: its properties, and what the queue's keys make of them.

use bytes::Bytes;

use crate::dead_letter::DeadLetter;
use crate::engine::{Cx, Engine};
use crate::key::{Properties, WHOLE_QUEUE, idempotency_hash, key_hash};
use crate::queue::Unclassified;
use crate::queue::parking::NextTry;
use crate::queues::QueueIndex;
use crate::{
    Form, KeyKind, KeyPart, MessageId, MissingOrderingKey, Ordering, Overflow, PublishError,
    PublishItem,
};

/// A message's properties, out of the bytes it came in, or as a script has it.
#[derive(Clone, Debug)]
pub(crate) struct Incoming<'a> {
    /// Headers and payload.
    pub(crate) content: &'a [u8],
    /// The buffer that the content lies in, and where, if it may be kept.
    pub(crate) buffer: Option<(&'a Bytes, u32)>,
    pub(crate) form: Form,
    /// What a script says of it, as it follows the content; empty = nothing.
    pub(crate) attributes: &'a [u8],
    pub(crate) key: &'a str,
    pub(crate) weight: u32,
    pub(crate) idempotency_key: &'a [u8],
    pub(crate) delay_ms: u64,
    /// It leaves undelivered so long after it came in.
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) priority: u8,
    pub(crate) transient: bool,
    /// It is unclassified.
    pub(crate) parked: Option<NewParked>,
}

/// What is known of a new message on which the script failed.
#[derive(Clone, Debug)]
pub(crate) struct NewParked {
    pub(crate) known: Unclassified,
    pub(crate) next: NextTry,
    pub(crate) error: String,
}

/// What the queue's keys say of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) dedup: Option<u128>,
    pub(crate) group: Option<u128>,
}

impl<'a> Incoming<'a> {
    /// As its producer has it.
    pub(crate) fn new(item: &PublishItem, data: &'a Bytes) -> Self {
        Self {
            content: item.content.of(data),
            buffer: Some((data, item.content.start)),
            form: item.form,
            attributes: &[],
            key: item.fairness_key.text(data),
            weight: item.weight,
            idempotency_key: item.idempotency_key.map_or(&[], |span| span.of(data)),
            delay_ms: item.delay_ms,
            ttl_ms: item.ttl_ms,
            priority: item.priority,
            transient: item.transient,
            parked: None,
        }
    }

    fn properties(&self) -> Properties<'a> {
        Properties {
            form: self.form,
            content: self.content,
            attributes: self.attributes,
            fairness_key: self.key.as_bytes(),
            idempotency_key: self.idempotency_key,
        }
    }
}

/// A part of the key may be returned by a script.
fn needs_script(parts: &[KeyPart]) -> bool {
    parts.iter().any(|part| match part.kind {
        KeyKind::FairnessKey | KeyKind::Attribute => true,
        KeyKind::Header | KeyKind::IdempotencyKey | KeyKind::Payload | KeyKind::AllHeaders => false,
    })
}

impl Engine {
    /// The keys the queue asks for; refuses what the queue refuses.
    pub(crate) fn keys_of(
        &self,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Result<Keys, PublishError> {
        self.check_size(new)?;
        let queue = self.queues.at(index);
        let group = match &queue.config.ordering {
            Ordering::None => None,
            Ordering::Queue => Some(WHOLE_QUEUE),
            Ordering::Key { key, missing } => match (key_hash(key, new.properties()), missing) {
                (None, MissingOrderingKey::Reject) => return Err(PublishError::OrderingKeyMissing),
                (hash, _) => hash,
            },
        };
        let dedup = self.dedup_of(index, new);
        Ok(Keys { dedup, group })
    }

    /// The hash of a message's deduplication key.
    pub(crate) fn dedup_of(&self, index: QueueIndex, new: &Incoming<'_>) -> Option<u128> {
        match &self.queues.at(index).config.dedup_key {
            Some(parts) => key_hash(parts, new.properties()),
            None if new.idempotency_key.is_empty() => None,
            None => Some(idempotency_hash(new.idempotency_key)),
        }
    }

    /// The keys of a message that is stored unclassified: what its producer's values make of them,
    /// where a script may still change it. So a group may be missing that the queue asks for.
    pub(crate) fn keys_of_unclassified(
        &self,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Result<Keys, PublishError> {
        match (
            self.keys_of(index, new),
            &self.queues.at(index).config.ordering,
        ) {
            (Err(PublishError::OrderingKeyMissing), Ordering::Key { key, .. })
                if needs_script(key) =>
            {
                let dedup = self.dedup_of(index, new);
                Ok(Keys { dedup, group: None })
            }
            (keys, _) => keys,
        }
    }

    pub(crate) fn check_size(&self, new: &Incoming<'_>) -> Result<(), PublishError> {
        let max = self.config.limits.message_bytes_max as usize;
        // A dead letter was taken once, and has grown by its history since.
        let is_dead_letter = new.attributes == DeadLetter::ATTRIBUTES;
        if new.content.len() > max && !is_dead_letter {
            return Err(PublishError::TooLarge);
        }
        Ok(())
    }

    /// Refuses a new message of a full queue that refuses. A duplicate needs no room.
    pub(crate) fn check_room(
        &self,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Result<(), PublishError> {
        let queue = self.queues.at(index);
        let refuses = queue.overflow() == Some(Overflow::Reject);
        if refuses && queue.is_full_for((new.form, new.content), 0) {
            return Err(PublishError::QueueFull);
        }
        Ok(())
    }

    /// The message that a deduplication key is remembered from.
    pub(crate) fn remembered(
        &mut self,
        cx: &Cx<'_>,
        index: QueueIndex,
        dedup: Option<u128>,
    ) -> Option<MessageId> {
        let key = dedup?;
        self.forget_keys(index, cx.now, usize::MAX);
        self.queues.at(index).dedup.find(key)
    }
}
