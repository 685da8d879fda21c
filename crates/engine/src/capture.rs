//! Captures: the whole replicated state as of one position of the log, taken in slices while the
//! engine goes on ([ADR 5](../../../docs/adr/0005-snapshots-pages-cold-segments.md)).
//!
//! Messages are captured exactly as they were ([`crate::queue::capture`]). What is set as a whole
//! by its records (a queue's policies and positions, runtime configuration, API keys, users, what
//! keys hold, virtual hosts, exchanges and bindings, the shard's switches, what a fairness key
//! weighs, remembered keys) may be newer than the position: the records after it set it again.

use core::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use crate::engine::{Cx, Engine};
use crate::keys::{ApiKeyId, encode_acl, encode_key};
use crate::queue::entries::Slot;
use crate::queue::page_walks::PageCursor;
use crate::queues::QueueIndex;
use crate::record::{Kind, begin, put_long, put_short};
use crate::topology::Cursor;
use crate::{ContentRead, Journal, Lsn, Millis, Output, QueueId};

/// How far a capture has come.
#[derive(Debug)]
pub(crate) struct Capture {
    now: Millis,
    /// The state is as of here.
    position: Lsn,
    /// Queues from this one on came after the beginning: their records follow in the log.
    first_new: QueueId,
    queue: QueueIndex,
    stage: Stage,
}

/// What comes next.
#[derive(Debug)]
enum Stage {
    /// The shard's counters and switches.
    Shard,
    /// Runtime configuration after this key.
    Config(Option<String>),
    /// What is remembered of API keys that are gone.
    KeyCounters,
    /// API keys after this one.
    ApiKeys(ApiKeyId),
    Topology(Cursor),
    /// Users after this one; before the first of them what is remembered of those that are gone.
    Users(Option<Arc<str>>),
    /// Keys behind this place.
    Keyspaces(crate::keyspace::Cursor),
    /// Buckets of throttles from this one on.
    Buckets(u32),
    /// A queue's own record; from here on of each queue.
    Record,
    Slots(Slot),
    /// Delayed messages after this one.
    Delayed(Option<(Millis, Slot)>),
    Pages(PageCursor),
    /// Remembered keys from this slot on.
    Keys(usize),
}

impl Engine {
    /// Begins to capture the state as of the journal's end, which it returns. Next:
    /// [`Engine::capture_slice`] until it is complete; only then another capture.
    ///
    /// # Panics
    /// When one is under way.
    pub fn begin_capture(&mut self, now: Millis, journal: &dyn Journal) -> Lsn {
        assert!(self.capture.is_none(), "one capture at a time");
        self.generation.turn();
        let newest = self.newest_time.max(self.ids.newest());
        self.capture = Some(Capture {
            now: now.max(newest),
            position: journal.end(),
            first_new: QueueId(self.queues.next_id),
            queue: 0,
            stage: Stage::Shard,
        });
        journal.end()
    }

    /// Captures a bit more, about `budget` messages; records go to `out`. True when all of it is
    /// captured, also when no capture is under way. Applying all records to a new engine, then
    /// those
    /// of the log from the capture's position on, gives the present state.
    pub fn capture_slice(&mut self, budget: usize, out: &mut Vec<Vec<u8>>) -> bool {
        let Some(mut capture) = self.capture.take() else {
            return true;
        };
        let mut left = budget.max(1);
        while left > 0 {
            // A step costs something, also when it finds nothing.
            left -= 1;
            match capture.stage {
                Stage::Shard => {
                    self.capture_shard(capture.now, out);
                    capture.stage = Stage::Config(None);
                }
                Stage::Config(_) => self.capture_config(&mut capture, &mut left, out),
                Stage::KeyCounters => {
                    let mut record = Vec::new();
                    self.keys.encode_counters(&mut record, capture.now);
                    out.push(record);
                    capture.stage = Stage::ApiKeys(ApiKeyId(0));
                }
                Stage::ApiKeys(after) => {
                    capture.stage = self.capture_api_key(capture.now, after, out);
                }
                Stage::Topology(cursor) => {
                    // One more, so that every step gets on.
                    let mut budget = left.saturating_add(1);
                    let next = self.topology.capture(capture.now, cursor, &mut budget, out);
                    left = left.min(budget);
                    capture.stage = next.map_or(Stage::Users(None), Stage::Topology);
                }
                Stage::Users(after) => {
                    let next = self.users.capture(capture.now, after.as_deref(), out);
                    let is_over = next.is_none();
                    capture.stage = if is_over {
                        Stage::Keyspaces(crate::keyspace::Cursor::default())
                    } else {
                        Stage::Users(next)
                    };
                }
                Stage::Keyspaces(cursor) => {
                    let spaces = &self.keyspaces;
                    let next = spaces.capture(capture.now, cursor, &mut left, out);
                    capture.stage = next.map_or(Stage::Buckets(0), Stage::Keyspaces);
                }
                Stage::Buckets(from) => {
                    let as_of = (capture.now, capture.position);
                    let next = self.capture_buckets(from, as_of, out);
                    let end = self.throttles.buckets.end();
                    let looked_at = next.unwrap_or(end) - from;
                    left = left.saturating_sub(looked_at as usize);
                    capture.stage = next.map_or(Stage::Record, Stage::Buckets);
                }
                Stage::Record if capture.queue >= self.queues.end() => return true,
                Stage::Record
                | Stage::Slots(_)
                | Stage::Delayed(_)
                | Stage::Pages(_)
                | Stage::Keys(_) => {
                    if self.capture_queue(&mut capture, &mut left, out) {
                        capture.queue += 1;
                        capture.stage = Stage::Record;
                    }
                }
            }
        }
        self.capture = Some(capture);
        false
    }

    fn capture_shard(&mut self, now: Millis, out: &mut Vec<Vec<u8>>) {
        let mut records = Records(Vec::new());
        let cx = &mut Cx {
            now,
            journal: &mut records,
            out: &mut Vec::<Output>::new(),
        };
        self.write_shard(cx);
        out.append(&mut records.0);
    }

    fn capture_config(&self, capture: &mut Capture, left: &mut usize, out: &mut Vec<Vec<u8>>) {
        let Stage::Config(after) = &mut capture.stage else {
            return;
        };
        let from = after.take().map_or(Unbounded, Excluded);
        let mut last = None;
        let entries = self.runtime.range::<String, _>((from, Unbounded));
        for (key, value) in entries.take(*left + 1) {
            let mut record = Vec::new();
            begin(&mut record, Kind::Config, QueueId(0), capture.now);
            put_short(&mut record, key.as_bytes());
            put_long(&mut record, value.as_bytes());
            out.push(record);
            *left = left.saturating_sub(1);
            last = Some(key);
        }
        capture.stage = match last {
            Some(last) => Stage::Config(Some(last.clone())),
            None => Stage::KeyCounters,
        };
    }

    /// The first key after `after` with its permissions; returns what comes next.
    fn capture_api_key(&self, now: Millis, after: ApiKeyId, out: &mut Vec<Vec<u8>>) -> Stage {
        let Some(key) = self.keys.after(after) else {
            return Stage::Topology(Cursor::Vhosts);
        };
        let mut record = Vec::new();
        encode_key(&mut record, now, key);
        out.push(record);
        if !key.grants.is_empty() {
            let mut record = Vec::new();
            encode_acl(&mut record, now, key.id, &key.grants);
            out.push(record);
        }
        Stage::ApiKeys(key.id)
    }

    /// Takes the next part of a queue. True when it has been gone over.
    fn capture_queue(
        &mut self,
        capture: &mut Capture,
        left: &mut usize,
        out: &mut Vec<Vec<u8>>,
    ) -> bool {
        let Some(queue) = self.queues.get_mut(capture.queue) else {
            return true;
        };
        if queue.identity.id >= capture.first_new {
            return true;
        }
        let budget = *left + 1;
        match &mut capture.stage {
            Stage::Slots(from) => {
                let next = queue.capture_slots(*from, u32::try_from(budget).unwrap_or(u32::MAX));
                let end = next.unwrap_or_else(|| queue.entries.slots());
                *left = left.saturating_sub(end.saturating_sub(*from) as usize);
                capture.stage = next.map_or(Stage::Delayed(None), Stage::Slots);
            }
            Stage::Delayed(cursor) => {
                let taken = queue.capture_delayed(cursor, budget);
                *left = left.saturating_sub(taken);
                if taken < budget {
                    capture.stage = Stage::Pages(PageCursor::default());
                }
            }
            Stage::Pages(cursor) => {
                if !queue.capture_pages(cursor, left) {
                    capture.stage = Stage::Keys(0);
                }
            }
            Stage::Keys(from) => {
                let (start, slots) = (*from, queue.dedup.slots());
                *from = start.saturating_add(budget).min(slots);
                *left = left.saturating_sub(from.saturating_sub(start));
                let is_over = *from >= slots;
                out.extend(queue.captured_keys(start, budget));
                return is_over;
            }
            Stage::Shard
            | Stage::Config(_)
            | Stage::KeyCounters
            | Stage::ApiKeys(_)
            | Stage::Topology(_)
            | Stage::Users(_)
            | Stage::Keyspaces(_)
            | Stage::Buckets(_)
            | Stage::Record => {
                out.extend(self.queue_record(capture.queue, capture.now));
                capture.stage = Stage::Slots(0);
                return false;
            }
        }
        queue.take_images(out);
        false
    }
}

/// Records gathered instead of appended to a log.
struct Records(Vec<Vec<u8>>);

impl Journal for Records {
    fn append(&mut self, record: &[u8]) -> Lsn {
        self.0.push(record.to_vec());
        Lsn::ZERO
    }

    fn end(&self) -> Lsn {
        Lsn::ZERO
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<crate::PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: crate::PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: crate::PageSlot) {}
}
