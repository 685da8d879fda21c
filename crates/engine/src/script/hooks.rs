//! What a queue has of scripts: their texts, and what waits for their results.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::FailureReason;
use super::answers::Owed;
use crate::queue::entries::Slot;
use crate::{MessageId, PublishItem, QueueScripts};

/// Of one queue that has scripts, or had some since the start.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    pub(crate) scripts: Arc<QueueScripts>,
    /// New messages that are in no job yet, in the order they came.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Failed deliveries that are in no job yet.
    pub(crate) failures: VecDeque<Failing>,
    /// Messages that wait, those in a job included, and their bytes.
    pub(crate) held: Held,
    /// Bytes of the consumers' words that wait.
    pub(crate) error_bytes: usize,
    /// A job of this kind is out.
    pub(crate) out: Out,
    /// It is in the engine's list of queues with something to run.
    pub(crate) listed: bool,
    /// What its script said when it failed last.
    pub(crate) last_error: Option<Box<str>>,
}

/// A number of messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// Jobs of a queue that are out: one of each kind at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) publish: bool,
    pub(crate) reclassify: bool,
    pub(crate) failure: bool,
}

/// A new message that waits for its script.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) owed: Owed,
    pub(crate) item: PublishItem,
    /// What the item's spans point into.
    pub(crate) data: Bytes,
    /// What it counts for in [`Hooks::held`].
    pub(crate) bytes: usize,
}

/// A message whose delivery failed, and whose script decides what follows.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pub(crate) slot: Slot,
    pub(crate) id: MessageId,
    pub(crate) reason: FailureReason,
    pub(crate) error: Bytes,
    /// Replaces the delay before a retry.
    pub(crate) retry_after_ms: Option<u64>,
    /// A nack's answer waits for it.
    pub(crate) owed: Option<Owed>,
}

/// Bytes of consumers' words that wait at one queue; beyond it they are cut.
const ERROR_BYTES: usize = 16 << 20;
/// What is left of them then.
const CUT_ERROR: usize = 256;

impl Hooks {
    /// New messages wait for a script, or for others that do.
    pub(crate) fn holds_publishes(&self) -> bool {
        self.scripts.on_enqueue.is_some() || self.held.messages > 0
    }

    /// Failed deliveries wait for a script.
    pub(crate) fn decides_failures(&self) -> bool {
        self.scripts.on_failure.is_some()
    }

    /// The consumer's words, copied: the frame they came in may be large.
    pub(crate) fn keep_error(&mut self, error: &[u8]) -> Bytes {
        let is_full = self.error_bytes.saturating_add(error.len()) > ERROR_BYTES;
        let text = core::str::from_utf8(error).unwrap_or_default();
        let end = if is_full {
            text.floor_char_boundary(CUT_ERROR)
        } else {
            text.len()
        };
        let kept = Bytes::copy_from_slice(text.get(..end).unwrap_or_default().as_bytes());
        self.error_bytes += kept.len();
        kept
    }

    pub(crate) fn note_error(&mut self, error: &str) {
        self.last_error = Some(error.into());
    }

    /// Rough bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let texts = [&self.scripts.on_enqueue, &self.scripts.on_failure];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        size_of::<Self>()
            + texts.sum::<usize>()
            + self.held.bytes
            + self.held.messages * size_of::<Waiting>()
            + self.failures.capacity() * size_of::<Failing>()
            + self.error_bytes
    }
}
