//! The record that stores messages: put together message by message, then appended.

use crate::atomic::is_relative;
use crate::dead_letter::Reason;
use crate::engine::{Cx, Engine};
use crate::incoming::Incoming;
use crate::paging::{Next, READS_MAX, Took};
use crate::queue::entries::{NIL, Slot};
use crate::queues::QueueIndex;
use crate::record::finish_stored;
use crate::{Lsn, MessageId, Ordering, Overflow};

/// The `Stored` record under construction: messages of one queue, one after the other.
#[derive(Debug)]
pub(crate) struct StoreScratch {
    pub(crate) queue: QueueIndex,
    pub(crate) record: Vec<u8>,
    pub(crate) first_position: u64,
    pub(crate) first_id: MessageId,
    pub(crate) count: u32,
    /// Transient messages came for that queue, which is to be looked at when all are there.
    pub(crate) transient: bool,
    /// Messages and the offsets of their contents: positions in the log are known at the end.
    pub(crate) contents: Vec<(Slot, StoredAt)>,
}

/// Where a content will lie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredAt {
    /// At this offset of the record under construction.
    Here(usize),
    /// In an earlier record.
    Log(Lsn),
}

impl StoredAt {
    const fn resolve(self, record: Lsn) -> Lsn {
        match self {
            Self::Here(offset) => Lsn(record.0 + offset as u64),
            Self::Log(at) => at,
        }
    }
}

impl Default for StoreScratch {
    fn default() -> Self {
        Self {
            queue: NIL,
            record: Vec::new(),
            first_position: 0,
            first_id: MessageId::NIL,
            count: 0,
            transient: false,
            contents: Vec::new(),
        }
    }
}

/// A record is closed when it has grown to this, so that one batch is not one huge record.
pub(crate) const RECORD_BYTES: usize = 1 << 20;

impl Engine {
    /// Appends the record under construction and tells its messages where their contents lie;
    /// returns where the last one's does. Transient messages that came are all there, too.
    pub(crate) fn finish_store(&mut self, cx: &mut Cx<'_>) -> Option<Lsn> {
        let store = &mut self.store;
        let index = core::mem::replace(&mut store.queue, NIL);
        let transient = core::mem::take(&mut store.transient);
        if transient {
            self.queues.at_mut(index).close_bodies();
        }
        let last = self.append_stored(cx, index);
        if last.is_none() && !transient {
            return None;
        }
        if self.atomic.is_open() {
            self.atomic.note_stored(index);
            return last;
        }
        self.drop_overflow(cx, index);
        self.touch(index);
        last
    }

    fn append_stored(&mut self, cx: &mut Cx<'_>, index: QueueIndex) -> Option<Lsn> {
        let store = &mut self.store;
        if store.count == 0 {
            return None;
        }
        finish_stored(
            &mut store.record,
            store.first_position,
            store.first_id,
            store.count,
        );
        let record = cx.journal.append(&store.record);
        let queue = self.queues.at_mut(index);
        queue.last_lsn = cx.journal.end();
        queue.stored_lsn = queue.last_lsn;
        let mut last = None;
        for (slot, at) in store.contents.drain(..) {
            let at = at.resolve(record);
            last = Some(at);
            let entry = queue.entries.at_mut(slot);
            entry.at = at;
            if is_relative(at) {
                self.atomic.note_placed(index, slot);
            } else {
                self.segments.add(at, entry.len);
            }
        }
        self.stored += u64::from(store.count);
        store.count = 0;
        if store.record.capacity() > 4 * RECORD_BYTES {
            store.record = Vec::new();
        }
        last
    }

    /// A transient message goes into a queue. Those of one request are looked at together, unless
    /// each may push others out.
    pub(crate) fn store_transient(&mut self, index: QueueIndex, slot: Slot, new: &Incoming<'_>) {
        let queue = self.queues.at_mut(index);
        match new.buffer.filter(|_| new.attributes.is_empty()) {
            Some(buffer) => queue.share_body(slot, buffer),
            None => {
                let body = [new.content, new.attributes].concat();
                queue.keep_body(slot, &body.into());
            }
        }
        self.store.queue = index;
        self.store.transient = true;
    }

    /// What came back to a queue counts again: in one that was declared the first ones give way.
    pub(crate) fn make_way(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        if self.queues.at(index).config.amqp.is_some() {
            self.drop_overflow(cx, index);
        }
    }

    /// Drops the oldest ready messages of a queue over its maximum length.
    pub(crate) fn drop_overflow(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let queue = self.queues.at_mut(index);
        if queue.overflow() != Some(Overflow::DropHead) || !queue.is_over((0, 0)) {
            return;
        }
        // What came back after its time leaves for that, pushes nobody out, and holds up no
        // consumer.
        queue.look_at_oldest();
        self.expire_due(cx, index, self.config.slice());
        let queue = self.queues.at_mut(index);
        if queue.config.amqp.is_some() && queue.can_deliver() {
            // What a consumer can take now does not wait, and is not over anything.
            self.serve(cx, index, cx.now);
        }
        let queue = self.queues.at(index);
        // In an ordered queue the next of a group is ready, and may be the oldest, only once the
        // one
        // before it left.
        let one_by_one = queue.config.ordering != Ordering::None;
        let mut dropped = Vec::new();
        // What is left over then goes with the next messages that come.
        let mut reads = READS_MAX;
        loop {
            let mut bytes = 0;
            while self.queues.at(index).is_over((dropped.len() as u64, bytes)) {
                let from = (index, u64::MAX);
                let took = self.take_ready(cx, from, &mut Next::Oldest, &mut reads);
                let Took::Message(slot) = took else { break };
                bytes += self.queues.at(index).body_bytes(slot);
                dropped.push(slot);
                if one_by_one {
                    break;
                }
            }
            if dropped.is_empty() {
                return;
            }
            self.die(cx, index, &dropped, Reason::MaxLength);
            dropped.clear();
        }
    }
}
