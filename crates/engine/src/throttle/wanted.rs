//! The buckets that a message needs: its queue's, its lane's, and those of its own properties.

use core::ops::Range;

use super::buckets::{BucketKey, Buckets};
use super::registry::Scope;
use super::{MissingThrottleKey, values};
use crate::content::{Content, Pairs};
use crate::engine::{Cx, Engine};
use crate::journal::ContentRead;
use crate::queue::entries::{Flags, Slot};
use crate::queue::throttled::Hold;
use crate::queues::QueueIndex;
use crate::{Form, KeyKind, Lsn};

/// Headers are looked for in this many bytes of a content first.
const HEADER_BYTES: u32 = 4096;

/// What a pass works with.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Buckets of the message that is looked at.
    pub(super) wanted: Vec<Wanted>,
    /// Their values.
    pub(super) bytes: Vec<u8>,
    /// Its content, or the beginning of it.
    pub(super) content: Vec<u8>,
    /// What a script said of it, as headers are laid out.
    pub(super) attributes: Vec<u8>,
    /// Contents that this pass may still read from the disk.
    pub(crate) reads: u32,
    /// Buckets charged in this turn, each as often as it was.
    pub(crate) charged: Vec<u32>,
    /// Permits granted in this turn.
    pub(crate) permits: u32,
    pub(super) holds: Vec<Hold>,
}

/// One bucket that a message needs.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) throttle: u32,
    pub(super) scope: Scope,
    shared: bool,
    values: Range<usize>,
    /// It is there.
    pub(super) bucket: Option<u32>,
}

impl Engine {
    pub(super) fn want_queue(&self, index: QueueIndex, scratch: &mut Scratch) {
        let applying = self.queues.at(index).throttled.applying();
        for (throttle, scope) in applying.filter(|it| it.1 == Scope::Queue) {
            let values = scratch.bytes.len()..scratch.bytes.len();
            scratch.want(&self.throttles.buckets, (throttle, scope), false, values);
        }
    }

    pub(super) fn want_lane(&self, (index, lane): (QueueIndex, u32), scratch: &mut Scratch) {
        let queue = self.queues.at(index);
        let key = queue.lanes.at(lane).key.as_bytes();
        let shared = key.is_empty();
        let applying = queue.throttled.applying();
        for (throttle, scope) in applying.filter(|it| it.1 == Scope::Lane) {
            let Some(it) = self.throttles.at(throttle) else {
                continue;
            };
            let start = scratch.bytes.len();
            if shared {
                if it.rules.missing() == MissingThrottleKey::Unthrottled {
                    continue;
                }
            } else {
                for _ in it.key.iter() {
                    values::push(&mut scratch.bytes, key);
                }
            }
            let values = start..scratch.bytes.len();
            scratch.want(&self.throttles.buckets, (throttle, scope), shared, values);
        }
    }

    /// Reads what keys ask of a message into `scratch`; `None` when this pass may not read any
    /// more.
    pub(super) fn read_headers(
        &self,
        cx: &mut Cx<'_>,
        (index, slot): (QueueIndex, Slot),
        scratch: &mut Scratch,
    ) -> Option<ContentRead> {
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        let form = entry.flags.form();
        let asks = |kind: KeyKind| {
            let applying = queue.throttled.applying();
            let mut keys = applying.filter_map(|(throttle, _)| self.throttles.at(throttle));
            keys.any(|it| it.key.iter().any(|part| part.kind == kind))
        };
        let attributes = entry.flags.has(Flags::ATTRIBUTES) && asks(KeyKind::Attribute);
        scratch.content.clear();
        scratch.attributes.clear();
        if !attributes && !asks(KeyKind::Header) {
            return Some(ContentRead::Cached);
        }
        if entry.flags.has(Flags::TRANSIENT) {
            let body = queue.transient.of(entry).unwrap_or_default();
            scratch.content.extend_from_slice(body);
            scratch.split_attributes(form);
            return Some(ContentRead::Cached);
        }
        if scratch.reads == 0 {
            return None;
        }
        let first = entry.len.min(HEADER_BYTES);
        let mut read = cx
            .journal
            .read_content(entry.at, first, &mut scratch.content);
        let behind = Content::new(form, &scratch.content).attributes_at();
        let cut = first < entry.len && behind.is_none();
        if cut && read.is_read() {
            scratch.content.clear();
            let all = (entry.at, entry.len);
            read = cx.journal.read_content(all.0, all.1, &mut scratch.content);
        }
        if !attributes || !read.is_read() {
            return Some(read);
        }
        if scratch.content.len() == entry.len as usize {
            scratch.split_attributes(form);
        } else if let Some(behind) = behind.and_then(|at| u32::try_from(at).ok()) {
            let at = Lsn(entry.at.0 + u64::from(behind));
            let left = entry.len.saturating_sub(behind);
            read = cx.journal.read_content(at, left, &mut scratch.attributes);
        }
        Some(read)
    }

    /// The buckets that the message needs because of its own properties.
    pub(super) fn want_message(&self, index: QueueIndex, slot: Slot, scratch: &mut Scratch) {
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        let (lane, form) = (queue.lanes.at(entry.lane), entry.flags.form());
        let content = core::mem::take(&mut scratch.content);
        let attributes = core::mem::take(&mut scratch.attributes);
        let applying = queue.throttled.applying();
        for (throttle, scope) in applying.filter(|it| it.1 == Scope::Message) {
            let Some(it) = self.throttles.at(throttle) else {
                continue;
            };
            let start = scratch.bytes.len();
            let complete = it.key.iter().all(|part| {
                let value = match part.kind {
                    KeyKind::Header => Content::new(form, &content).header(part.name.as_bytes()),
                    KeyKind::FairnessKey => {
                        let key = Some(lane.key.as_bytes()).filter(|it| !it.is_empty());
                        key.map(Into::into)
                    }
                    KeyKind::Attribute => {
                        let value = Pairs::new(&attributes).named(part.name.as_bytes());
                        value.map(Into::into)
                    }
                    KeyKind::IdempotencyKey | KeyKind::Payload | KeyKind::AllHeaders => None,
                };
                if let Some(value) = &value {
                    values::push(&mut scratch.bytes, value);
                }
                value.is_some()
            });
            if !complete {
                scratch.bytes.truncate(start);
                if it.rules.missing() == MissingThrottleKey::Unthrottled {
                    continue;
                }
            }
            let values = start..scratch.bytes.len();
            scratch.want(
                &self.throttles.buckets,
                (throttle, scope),
                !complete,
                values,
            );
        }
        (scratch.content, scratch.attributes) = (content, attributes);
    }
}

impl Scratch {
    /// The content is there as a whole: what follows its payload are the attributes.
    fn split_attributes(&mut self, form: Form) {
        let behind = Content::new(form, &self.content).attributes_at();
        let behind = behind.and_then(|at| self.content.get(at..));
        self.attributes
            .extend_from_slice(behind.unwrap_or_default());
    }

    fn want(
        &mut self,
        buckets: &Buckets,
        (throttle, scope): (u32, Scope),
        shared: bool,
        values: Range<usize>,
    ) {
        let mut wanted = Wanted {
            throttle,
            scope,
            shared,
            values,
            bucket: None,
        };
        wanted.bucket = buckets.find(wanted.key(&self.bytes));
        self.wanted.push(wanted);
    }
}

impl Wanted {
    pub(super) fn key<'a>(&self, bytes: &'a [u8]) -> BucketKey<'a> {
        BucketKey {
            throttle: self.throttle,
            shared: self.shared,
            values: bytes.get(self.values.clone()).unwrap_or_default(),
        }
    }
}
