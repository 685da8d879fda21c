//! The node: one engine and its log.

use std::collections::{BTreeMap, VecDeque};

use tanda_engine::{
    ConnId, DeliveryBatch, Engine, Event, Lsn, Millis, Output, ReplayError, Request, SubId,
};
use tanda_wal::{Disk, FlushJob, FlushOutcome, Log, Room};

use crate::background::CopyWork;
use crate::backup::Backup;
use crate::delivery::{Chunk, resolve};
use crate::delivery_notes::DeliveryNotes;
use crate::effects::{EffectQueue, failed_answer, is_ordered};
use crate::keys::PublishedTables;
use crate::log_journal::LogJournal;
use crate::memory::MemoryWatch;
use crate::pages::PageFile;
use crate::reclaim::{Rates, Reclaim};
use crate::refuse::storage_failed;
use crate::returns::Unreadable;
use crate::snapshot::Snapshots;
use crate::stats::Counters;
use crate::upkeep::Upkeep;

/// One shard of the broker: engine, log, and the effects between them.
///
/// The caller's loop: [`Self::handle`] what has come, [`Self::run`] until false or its share is
/// used up, hand the job of [`Self::take_flush`] to the sync thread, send what
/// [`Self::drain_released`] gives, wait for the next request, finished flush or
/// [`Self::next_deadline`].
///
/// `now` never falls from call to call; a smaller one counts as the last.
pub struct Node<D: Disk> {
    pub(crate) engine: Engine,
    pub(crate) log: Log<D>,
    pub(crate) effects: EffectQueue,
    /// What the engine said in the call under way; empty between calls.
    outputs: Vec<Output>,
    /// What may leave; the caller takes it.
    pub(crate) released: Vec<(ConnId, Event)>,
    /// What goes back to the engine in the call under way; empty between calls.
    pub(crate) undelivered: Vec<crate::effects::Undelivered>,
    /// Leased messages whose content could not be read, in order of `due_at`.
    pub(crate) unreadable: VecDeque<Unreadable>,
    pub(crate) upkeep: Upkeep,
    pub(crate) counters: Counters,
    /// The newest time seen.
    pub(crate) now: Millis,
    clock_floor: Millis,
    storage_full: bool,
    failed: Option<String>,
    /// Whoever waits for the engine has been told that the node has failed.
    told_waiting: bool,
    pub(crate) pages: PageFile<D>,
    pub(crate) notes: DeliveryNotes<D>,
    pub(crate) snapshots: Snapshots<D>,
    pub(crate) reclaim: Reclaim<D>,
    pub(crate) tables: PublishedTables,
    /// Contents that are to be copied in the background.
    pub(crate) copy: Option<CopyWork<D>>,
    pub(crate) is_background_out: bool,
    pub(crate) backup: Backup,
    pub(crate) log_id: u128,
    /// Records of a slice of a snapshot; empty between calls.
    pub(crate) slices: Vec<Vec<u8>>,
    /// Segments that no message needs any more; empty between calls.
    pub(crate) unreferenced: Vec<u64>,
    /// Those of them whose last message's leaving is on disk once the log is durable up to here.
    pub(crate) emptied: BTreeMap<u64, Lsn>,
    /// Look for segments to free once the log is durable up to here.
    pub(crate) sweep_once_durable: Option<Lsn>,
    /// The log's claimed start when last looked at.
    pub(crate) seen_start: Lsn,
    pub(crate) memory: MemoryWatch,
}

/// What recovery has put together.
pub(crate) struct Recovered<D: Disk> {
    pub(crate) engine: Engine,
    pub(crate) log: Log<D>,
    pub(crate) pages: PageFile<D>,
    pub(crate) notes: DeliveryNotes<D>,
    pub(crate) snapshots: Snapshots<D>,
    pub(crate) log_id: u128,
    pub(crate) memory_limit: u64,
    pub(crate) rates: Rates,
}

impl<D: Disk> Node<D> {
    /// Ends recovery.
    pub(crate) fn start(recovered: Recovered<D>, now: Millis) -> Result<Self, ReplayError> {
        let Recovered {
            engine,
            log,
            pages,
            notes,
            snapshots,
            log_id,
            memory_limit,
            rates,
        } = recovered;
        // Later than all that is recorded: message ids go on after the newest, and a message must
        // not seem to be enqueued in the future.
        let newest = engine.newest_time();
        let now = if newest > Millis(0) {
            now.max(newest.after_ms(1))
        } else {
            now
        };
        let upkeep = Upkeep::new(now, end_of(&log));
        let mut node = Self {
            engine,
            log,
            effects: EffectQueue::new(),
            outputs: Vec::new(),
            released: Vec::new(),
            undelivered: Vec::new(),
            unreadable: VecDeque::new(),
            upkeep,
            counters: Counters::default(),
            now,
            clock_floor: now,
            storage_full: false,
            failed: None,
            told_waiting: false,
            pages,
            notes,
            snapshots,
            reclaim: Reclaim::new(now, rates),
            tables: PublishedTables::default(),
            copy: None,
            is_background_out: false,
            backup: Backup::None,
            log_id,
            slices: Vec::new(),
            unreferenced: Vec::new(),
            emptied: BTreeMap::new(),
            sweep_once_durable: Some(Lsn::ZERO),
            seen_start: Lsn::ZERO,
            memory: MemoryWatch::new(memory_limit),
        };
        node.publish_recovered_tables();
        node.with_engine(|engine, journal, _| engine.start(now, journal))?;
        node.notes.keep_until(end_of(&node.log));
        node.note_room();
        Ok(node)
    }

    /// The moment at which the engine was started: the caller's clock must not start before it. It
    /// is later than the caller's own time when the log was written under a clock that was ahead.
    #[must_use]
    pub const fn clock_floor(&self) -> Millis {
        self.clock_floor
    }

    /// Takes one request. Its answer is released when the log is durable up to it.
    pub fn handle(&mut self, now: Millis, request: Request) {
        self.advance(now);
        if self.failed.is_some() {
            self.released.extend(storage_failed(&request));
            return;
        }
        if let Request::Disconnect { conn } = &request {
            self.return_of_conn(*conn);
        } else if let Request::Unsubscribe { sub, .. } = &request {
            self.return_of_sub(*sub);
        }
        let now = self.now;
        self.with_engine(|engine, journal, out| engine.handle(now, journal, request, out));
    }

    /// One bounded pass: timers, slices of long work, deliveries, upkeep of the log. True when it
    /// is to be called again at once. Call it after requests, after [`Self::on_flushed`] and when
    /// [`Self::next_deadline`] is due; call [`Self::take_flush`] after it.
    #[must_use]
    pub fn run(&mut self, now: Millis) -> bool {
        self.advance(now);
        self.watch_backup();
        if self.failed.is_some() {
            return false;
        }
        self.return_unreadable();
        let now = self.now;
        let more = self.with_engine(|engine, journal, out| engine.run(now, journal, out));
        self.look_after_log();
        let reclaim = self.reclaim_deadline().is_some_and(|at| at <= self.now);
        let more = more || reclaim || self.snapshots.wants_slice();
        more && self.failed.is_none()
    }

    /// What is to be written and synced now. At most one job is out: `None` until it came back
    /// through [`Self::on_flushed`], and when there is nothing to write.
    #[must_use]
    pub fn take_flush(&mut self) -> Option<FlushJob<D>> {
        self.log.take_flush()
    }

    /// A flush has ended, well or not. Releases what waited for it.
    pub fn on_flushed(&mut self, now: Millis, outcome: FlushOutcome<D>) {
        self.advance(now);
        if let Err(poisoned) = self.log.on_flushed(outcome) {
            self.failed.get_or_insert_with(|| poisoned.to_string());
            self.discard_waiting();
            return;
        }
        let durable = self.durable();
        self.tables.on_durable(durable);
        while let Some((conn, event)) = self.effects.pop(durable) {
            self.release(conn, event);
        }
        self.note_start();
        self.sweep_segments();
        self.note_room();
    }

    /// Moves all events that may leave to the end of `out`, in the order in which they may leave:
    /// deliveries, `Subscribed` and `SubscriptionEnded` of one connection as the engine said them;
    /// answers may have overtaken them.
    pub fn drain_released(&mut self, out: &mut Vec<(ConnId, Event)>) {
        if out.is_empty() {
            // Both buffers stay in use, neither is allocated again.
            core::mem::swap(out, &mut self.released);
        } else {
            out.append(&mut self.released);
        }
    }

    /// When [`Self::run`] has something to do although nothing comes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        if self.failed.is_some() {
            return None;
        }
        let unreadable = self.unreadable.front().map(|u| u.due_at);
        [
            self.engine.next_deadline(),
            self.upkeep.next_deadline(),
            self.reclaim_deadline(),
            self.snapshot_deadline(),
            self.backup.next_deadline(),
            self.memory.next_deadline(),
            unreadable,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// About how much memory waits for the disk: above its bound the caller stops taking requests
    /// until a flush has ended.
    #[must_use]
    pub fn backlog_bytes(&self) -> usize {
        self.log.pending_bytes() + self.log.in_flight_bytes() + self.effects.bytes()
    }

    /// Whether publishes are refused because the disk is full.
    #[must_use]
    pub const fn storage_full(&self) -> bool {
        self.storage_full
    }

    /// How often contents could not be read from the log so far.
    #[must_use]
    pub const fn read_errors(&self) -> u64 {
        self.counters.read_errors
    }

    /// The newest of these errors.
    #[must_use]
    pub fn last_read_error(&self) -> Option<&str> {
        self.counters.last_read_error.as_deref()
    }

    /// Why nothing is confirmed any more, if so: the log failed and the node has to be opened
    /// again.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Checks what must always hold. For tests and the simulator.
    ///
    /// # Panics
    /// When it does not: a bug.
    pub fn assert_invariants(&self) {
        self.log.assert_invariants();
        self.effects.assert_invariants();
        if self.failed.is_none() {
            self.engine.assert_invariants();
        }
        assert!(self.outputs.is_empty(), "outputs outside of a call");
        assert!(self.undelivered.is_empty(), "returns outside of a call");
        let waits = self.effects.len() > 0;
        assert!(
            !waits || self.durable() < end_of(&self.log),
            "{} effects wait for a log that is durable up to its end",
            self.effects.len()
        );
    }

    pub(crate) fn advance(&mut self, now: Millis) {
        self.now = self.now.max(now);
    }

    /// Calls the engine, then admits what it said.
    pub(crate) fn with_engine<R>(
        &mut self,
        call: impl FnOnce(&mut Engine, &mut LogJournal<'_, D>, &mut Vec<Output>) -> R,
    ) -> R {
        let mut refused = None;
        let mut journal = LogJournal {
            log: &mut self.log,
            refused: &mut refused,
            pages: &mut self.pages,
            notes: &mut self.notes,
        };
        let result = call(&mut self.engine, &mut journal, &mut self.outputs);
        if let Some(why) = refused {
            self.failed.get_or_insert(why);
        }
        if self.failed.is_some() {
            self.discard_waiting();
            return result;
        }
        let durable = self.durable();
        let end = end_of(&self.log);
        self.tables.take_from(&mut self.engine, (end, durable));
        let mut outputs = core::mem::take(&mut self.outputs);
        let unnoted = self.notes.write(durable, end);
        for mut output in outputs.drain(..) {
            if is_ordered(&output.event) {
                output.after = output.after.max(unnoted);
            }
            if let Some((conn, event)) = self.effects.offer(output, durable) {
                self.release(conn, event);
            }
        }
        self.outputs = outputs;
        self.upkeep.note_end(self.now, end_of(&self.log));
        result
    }

    /// The log is durable up to this event: it may leave.
    fn release(&mut self, conn: ConnId, mut event: Event) {
        if let Event::Delivery { token, batch } = &mut event {
            let sub = SubId {
                conn,
                token: *token,
            };
            self.fill(sub, batch);
            if batch.items.is_empty() {
                return;
            }
            self.note_released(batch);
        } else if let Event::Got { token, result } = &mut event
            && let Ok(got) = result
            && let Some(batch) = &mut got.batch
        {
            let sub = SubId {
                conn,
                token: *token,
            };
            self.fill(sub, batch);
            self.note_released(batch);
            if batch.items.is_empty() {
                got.batch = None;
            }
        }
        self.counters.released_events += 1;
        self.released.push((conn, event));
    }

    fn note_released(&mut self, batch: &mut DeliveryBatch) {
        if batch.throttled {
            self.engine.released(self.now, batch);
        }
        self.counters.released_messages += batch.items.len() as u64;
    }

    /// Reads the contents of a delivery; what cannot be read is set aside.
    fn fill(&mut self, sub: SubId, batch: &mut DeliveryBatch) {
        let (log, counters) = (&mut self.log, &mut self.counters);
        let mut damaged = true;
        let lost = resolve(batch, |at, len| {
            match log.read_chunk(tanda_wal::Lsn(at.0), len) {
                Ok((base, bytes)) => Some(Chunk {
                    base: Lsn(base.0),
                    bytes,
                }),
                Err(error) => {
                    damaged &= matches!(error, tanda_wal::ReadError::Corrupt(_));
                    counters.read_errors += 1;
                    counters.last_read_error = Some(error.to_string());
                    None
                }
            }
        });
        if let Some(batch) = lost {
            self.set_aside(sub, batch, damaged);
        }
    }

    fn note_room(&mut self) {
        let is_full = match self.log.room() {
            Room::Ok => false,
            Room::PublishRefused => true,
        };
        self.upkeep.note_room(self.now, !is_full);
        if is_full != self.storage_full {
            self.storage_full = is_full;
            self.note_refusal();
        }
    }

    pub(crate) fn note_refusal(&mut self) {
        self.engine
            .set_storage_full(self.storage_full || self.memory.is_full);
    }

    /// The node has failed: nothing that waits will become durable, and what the engine knows is
    /// ahead of the disk.
    #[cold]
    fn discard_waiting(&mut self) {
        self.effects.fail(&mut self.released);
        for output in self.outputs.drain(..) {
            self.released
                .extend(failed_answer(output.conn, &output.event));
        }
        self.unreadable.clear();
        if !core::mem::replace(&mut self.told_waiting, true) {
            let waiting = self.engine.waiting_replies();
            self.released.extend(waiting.map(|reply| {
                let token = reply.token;
                (reply.conn, Event::StorageFailed { token })
            }));
        }
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.log.durable().0)
    }
}

pub(crate) fn end_of<D: Disk>(log: &Log<D>) -> Lsn {
    Lsn(log.end().0)
}
