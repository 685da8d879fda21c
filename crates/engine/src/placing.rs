//! One message into several queues within an atomic step: first all of them are asked, then it is
//! stored in all.
//!
//! Queues with an `on_enqueue` script cannot be asked at once. They store the message unclassified,
//! and their script sees it next.

use crate::engine::{Cx, Engine};
use crate::incoming::{Incoming, Keys, NewParked};
use crate::queue::Unclassified;
use crate::queue::parking::NextTry;
use crate::queues::QueueIndex;
use crate::{KeyKind, MessageId, PublishError};

/// A queue that takes a message.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) index: QueueIndex,
    keys: Keys,
    parked: Option<NewParked>,
}

/// What became of a message that was put into queues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed {
    /// Its id in the first queue that stored it.
    pub(crate) stored: Option<MessageId>,
    /// The message that a queue remembers its key from.
    pub(crate) duplicate: Option<MessageId>,
}

impl Engine {
    /// Asks a queue for a message; it must take it later in the same step.
    pub(crate) fn target(
        &mut self,
        cx: &Cx<'_>,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Result<Target, PublishError> {
        if self.storage_full {
            return Err(PublishError::Storage);
        }
        let (keys, parked) = if self.queues.at(index).holds_publishes() {
            self.keys_before_script(index, new)?
        } else {
            (self.keys_of(index, new)?, None)
        };
        if self.remembered(cx, index, keys.dedup).is_none() {
            self.check_room(index, new)?;
        }
        Ok(Target {
            index,
            keys,
            parked,
        })
    }

    fn keys_before_script(
        &self,
        index: QueueIndex,
        new: &Incoming<'_>,
    ) -> Result<(Keys, Option<NewParked>), PublishError> {
        let mut keys = self.keys_of_unclassified(index, new)?;
        let mut known = Unclassified::default();
        let config = &self.queues.at(index).config;
        if config.dedup_needs_script() {
            known.dedup = keys.dedup.take();
            let mut parts = config.dedup_key.iter().flatten();
            if parts.any(|part| part.kind == KeyKind::IdempotencyKey) {
                known.idempotency_key = new.idempotency_key.into();
            }
        }
        let parked = NewParked {
            known,
            next: NextTry::Soon,
            error: String::new(),
        };
        Ok((keys, Some(parked)))
    }

    /// Stores a message in queues that were asked for it, with one body, within an atomic step.
    pub(crate) fn put_in_all(
        &mut self,
        cx: &mut Cx<'_>,
        new: &Incoming<'_>,
        targets: Vec<Target>,
    ) -> Placed {
        let mut placed = Placed::default();
        let mut body = None;
        for target in targets {
            let Target {
                index,
                keys,
                parked,
            } = target;
            if let Some(id) = self.remembered(cx, index, keys.dedup) {
                placed.duplicate = placed.duplicate.or(Some(id));
                continue;
            }
            self.finish_store(cx);
            let new = Incoming {
                parked,
                ..new.clone()
            };
            let id = self.store_message(cx, index, &new, &keys, body);
            let at = self.finish_store(cx);
            body = body.or(at);
            placed.stored = placed.stored.or(Some(id));
        }
        placed
    }
}
