//! What left a fast queue, for those who keep it where the end of the process does not lose it.
//!
//! Nobody waits until the records of these deliveries are on disk, so a process that is killed
//! loses the newest of them. What was delivered has to say so when it comes again nevertheless:
//! the journal is told of it apart, and at the next start tells what the log does not know.

use std::collections::BTreeMap;

use crate::engine::{Cx, Engine};
use crate::queue::entries::{Flags, Slot};
use crate::queue::leases::NEVER;
use crate::queues::QueueIndex;
use crate::record::{Kind, POSITIONS_MAX, Reader, begin, put_positions};
use crate::{QueueId, ReplayError};

/// Positions of messages that were delivered, although the log does not say so, by their queue.
pub(crate) type Noted = BTreeMap<QueueIndex, Vec<u64>>;

impl Engine {
    /// Messages leave a fast queue for good, and the record of that is not waited for.
    pub(crate) fn note_gone(&mut self, cx: &mut Cx<'_>, index: QueueIndex, gone: &[Slot]) {
        let queue = self.queues.at(index);
        let entries = gone.iter().map(|slot| queue.entries.at(*slot));
        let durable = entries.filter(|entry| !entry.flags.has(Flags::TRANSIENT));
        let mut positions: Vec<u64> = durable.map(|entry| entry.position).collect();
        if positions.is_empty() {
            return;
        }
        positions.sort_unstable();
        let id = queue.identity.id;
        self.put_delivered(cx, id, &positions);
        cx.journal.note_deliveries(&self.record);
    }

    /// Takes what [`Journal::note_deliveries`](crate::Journal::note_deliveries) was told, at
    /// recovery, when the whole log has been replayed. What the log knows of already stays as it
    /// is, and so does what is not there any more.
    ///
    /// # Errors
    /// `ReplayError` when it is no such record, or recovery has ended: do not serve from this
    /// state.
    pub fn replay_noted(&mut self, record: &[u8]) -> Result<(), ReplayError> {
        let mut reader = Reader::new(record);
        let header = reader.header()?;
        if header.kind != Kind::Leased {
            return Err(reader.problem(&format!("{:?} is no note of deliveries", header.kind)));
        }
        reader.millis()?;
        let positions = reader.positions()?;
        let Some(rec) = &mut self.recovery else {
            return Err(reader.problem("recovery has ended"));
        };
        self.newest_time = self.newest_time.max(header.time);
        let Some(index) = self.queues.index_of(header.queue) else {
            return Ok(());
        };
        for position in positions {
            let Some(slot) = rec.queue(index).slot_at(position) else {
                continue;
            };
            let entry = self.queues.at_mut(index).entries.at_mut(slot);
            if entry.deliveries == 0 {
                entry.deliveries = 1;
                rec.noted.entry(index).or_default().push(position);
            }
        }
        Ok(())
    }

    /// The log says from here on what was known from notes only.
    pub(crate) fn write_noted(&mut self, cx: &mut Cx<'_>, noted: Noted) {
        for (index, mut positions) in noted {
            let id = self.queues.at(index).identity.id;
            positions.sort_unstable();
            for positions in positions.chunks(POSITIONS_MAX) {
                self.put_delivered(cx, id, positions);
                self.append(cx);
            }
        }
    }

    /// The record under construction becomes one that says that these were delivered.
    fn put_delivered(&mut self, cx: &Cx<'_>, id: QueueId, positions: &[u64]) {
        begin(&mut self.record, Kind::Leased, id, cx.now);
        self.record.extend_from_slice(&NEVER.0.to_be_bytes());
        put_positions(&mut self.record, positions);
    }
}
