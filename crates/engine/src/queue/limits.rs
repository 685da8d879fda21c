//! How full a queue is: its pending messages, and the bytes of their bodies where these are
//! limited.
//!
//! A body's length is not in a message's entry. Queues that limit bytes keep what else each content
//! has; of messages from before a restart that is not known, and all of their content counts.

use std::collections::BTreeMap;

use super::Queue;
use super::entries::Slot;
use crate::{AmqpOverflow, Content, Form, Overflow};

/// Bodies of pending messages.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// Bytes of contents that are not the body's.
    besides: BTreeMap<Slot, u32>,
    pending_bytes: u64,
}

impl Queue {
    fn max_bytes(&self) -> Option<u64> {
        self.config.amqp.as_ref()?.max_bytes
    }

    /// The bytes of bodies are limited.
    pub(crate) fn limits_bytes(&self) -> bool {
        self.max_bytes().is_some()
    }

    /// A message was stored. Call before it is given a place.
    pub(crate) fn note_body(&mut self, slot: Slot, (form, content): (Form, &[u8])) {
        if self.max_bytes().is_some() {
            let besides = content.len() as u64 - body_bytes(form, content);
            let besides = u32::try_from(besides).unwrap_or(u32::MAX);
            self.bodies.besides.insert(slot, besides);
        }
    }

    /// A message is gone.
    pub(super) fn forget_body(&mut self, slot: Slot) {
        if self.max_bytes().is_some() {
            self.bodies.besides.remove(&slot);
        }
    }

    /// Bytes that a message counts.
    pub(crate) fn body_bytes(&self, slot: Slot) -> u64 {
        let besides = self.bodies.besides.get(&slot).copied().unwrap_or(0);
        u64::from(self.entries.at(slot).len.saturating_sub(besides))
    }

    /// A message becomes pending.
    pub(super) fn add_pending(&mut self, slot: Slot) {
        self.lanes.add_pending(self.entries.at(slot).lane);
        if self.max_bytes().is_some() {
            self.bodies.pending_bytes += self.body_bytes(slot);
        }
    }

    /// A message is no longer pending.
    pub(super) fn remove_pending(&mut self, slot: Slot) {
        self.lanes.remove_pending(self.entries.at(slot).lane);
        if self.max_bytes().is_some() {
            let bytes = self.body_bytes(slot);
            self.bodies.pending_bytes = self.bodies.pending_bytes.saturating_sub(bytes);
        }
    }

    /// What gives way when it is full; `None` = nothing limits it.
    pub(crate) fn overflow(&self) -> Option<Overflow> {
        match &self.config.amqp {
            None => self.config.max_length.map(|max| max.overflow),
            Some(policy) if !policy.is_limited() => None,
            Some(policy) => Some(match policy.overflow {
                AmqpOverflow::DropHead => Overflow::DropHead,
                AmqpOverflow::Reject | AmqpOverflow::RejectDeadLetter => Overflow::Reject,
            }),
        }
    }

    /// It holds more than it may, also when so many messages and bytes are gone.
    pub(crate) fn is_over(&self, (messages, bytes): (u64, u64)) -> bool {
        let depth = self.depth().saturating_sub(messages);
        let pending_bytes = self.bodies.pending_bytes.saturating_sub(bytes);
        self.config
            .max_length
            .is_some_and(|max| depth > max.messages)
            || self.max_bytes().is_some_and(|max| pending_bytes > max)
    }

    /// It would hold more than it may with this message, and so many that are to come before it.
    pub(crate) fn is_full_for(&self, (form, content): (Form, &[u8]), before: u64) -> bool {
        let depth = self.depth().saturating_add(before);
        self.config
            .max_length
            .is_some_and(|max| depth >= max.messages)
            || self
                .max_bytes()
                .is_some_and(|max| self.bodies.pending_bytes + body_bytes(form, content) > max)
    }
}

fn body_bytes(form: Form, content: &[u8]) -> u64 {
    let body = Content::new(form, content).payload();
    body.map_or(content.len(), <[u8]>::len) as u64
}
