//! Captures: the whole replicated state as of one position of the log, taken in slices while the
//! engine goes on ([ADR 5](../../../docs/adr/0005-snapshots-pages-cold-segments.md)).
//!
//! Messages are captured exactly as they were ([`crate::queue::capture`]). What is set as a whole by
//! its records (a queue's policies and positions, runtime configuration, the shard's switches, what
//! a key weighs, remembered keys) may be newer than the position: the records after it set it again.

use crate::engine::{Cx, Engine};
use crate::queue::entries::Slot;
use crate::queues::QueueIndex;
use crate::record::{Kind, begin, begin_counted, finish_counted};
use crate::{Journal, Lsn, Millis, Output, QueueId};

/// How far a capture has come.
#[derive(Debug)]
pub(crate) struct Capture {
    now: Millis,
    queue: QueueIndex,
    stage: Stage,
}

/// What of a queue comes next.
#[derive(Debug)]
enum Stage {
    Record,
    Slots(Slot),
    /// Delayed messages after this one.
    Delayed(Option<(Millis, Slot)>),
    /// Remembered keys from this slot on.
    Keys(usize),
}

/// Queues looked at in one slice at most.
const SLICE_QUEUES: usize = 64;

impl Engine {
    /// Begins to capture the state as of the journal's end, which it returns. Next:
    /// [`Engine::capture_slice`] until it is complete; only then another capture.
    ///
    /// # Panics
    /// When one is under way.
    pub fn begin_capture(&mut self, now: Millis, journal: &dyn Journal) -> Lsn {
        assert!(self.capture.is_none(), "one capture at a time");
        self.generation.turn();
        self.capture = Some(Capture {
            now,
            queue: 0,
            stage: Stage::Record,
        });
        journal.end()
    }

    /// Captures a bit more, about `budget` messages; records go to `out`. True when all of it is
    /// captured, also when no capture is under way. Applying all records to a new engine, then those
    /// of the log from the capture's position on, gives the present state.
    pub fn capture_slice(&mut self, budget: usize, out: &mut Vec<Vec<u8>>) -> bool {
        let Some(mut capture) = self.capture.take() else {
            return true;
        };
        let mut left = budget.max(1);
        for _ in 0..SLICE_QUEUES {
            if capture.queue == 0 && matches!(capture.stage, Stage::Record) {
                self.capture_shard(capture.now, out);
            }
            if capture.queue >= self.queues.end() {
                return true;
            }
            if left == 0 {
                break;
            }
            if self.capture_queue(&mut capture, &mut left, out) {
                capture.queue += 1;
                capture.stage = Stage::Record;
            }
        }
        self.capture = Some(capture);
        false
    }

    /// Configuration and switches, which are few.
    fn capture_shard(&mut self, now: Millis, out: &mut Vec<Vec<u8>>) {
        let mut records = Records(Vec::new());
        let cx = &mut Cx {
            now: self.newest_time.max(now),
            journal: &mut records,
            out: &mut Vec::<Output>::new(),
        };
        let at = self.shard.at;
        self.write_shard(cx);
        self.shard.at = at;
        for (key, (value, _)) in &self.runtime {
            begin(&mut self.record, Kind::Config, QueueId(0), cx.now);
            crate::record::put_short(&mut self.record, key.as_bytes());
            crate::record::put_long(&mut self.record, value.as_bytes());
            cx.journal.append(&self.record);
        }
        out.append(&mut records.0);
    }

    /// Takes the next part of a queue. True when it has been gone over.
    fn capture_queue(
        &mut self,
        capture: &mut Capture,
        left: &mut usize,
        out: &mut Vec<Vec<u8>>,
    ) -> bool {
        if matches!(capture.stage, Stage::Record) {
            out.extend(self.live_queue_record(capture.queue, capture.now));
            *left -= 1;
            capture.stage = Stage::Slots(0);
            return false;
        }
        let Some(queue) = self.queues.get_mut(capture.queue) else {
            return true;
        };
        match &mut capture.stage {
            Stage::Record => false,
            Stage::Slots(from) => {
                let budget = u32::try_from(*left).unwrap_or(u32::MAX);
                let next = queue.capture_slots(*from, budget);
                let end = next.unwrap_or_else(|| queue.entries.slots());
                *left = left.saturating_sub(end.saturating_sub(*from) as usize);
                capture.stage = next.map_or(Stage::Delayed(None), Stage::Slots);
                queue.take_images(out);
                false
            }
            Stage::Delayed(cursor) => {
                let more = queue.capture_delayed(cursor, *left);
                queue.take_images(out);
                if more {
                    *left = 0;
                } else {
                    capture.stage = Stage::Keys(0);
                }
                false
            }
            Stage::Keys(from) => {
                let from = *from;
                let end = from.saturating_add(*left).min(queue.dedup.slots());
                begin_counted(
                    &mut self.record,
                    Kind::Remembered,
                    queue.identity.id,
                    Millis(0),
                );
                let mut count = 0;
                for key in queue.dedup.images(from, *left) {
                    key.encode(&mut self.record);
                    count += 1;
                }
                if count > 0 {
                    finish_counted(&mut self.record, count);
                    out.push(self.record.clone());
                }
                *left = left.saturating_sub(end.saturating_sub(from));
                capture.stage = Stage::Keys(end);
                end >= queue.dedup.slots()
            }
        }
    }
}

impl Engine {
    fn live_queue_record(&mut self, index: QueueIndex, now: Millis) -> Option<Vec<u8>> {
        self.queues.get_mut(index)?;
        self.queue_record(index, now)
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

    fn write_page(&mut self, _page: &[u8]) -> Option<crate::PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: crate::PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: crate::PageSlot) {}
}
