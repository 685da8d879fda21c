//! The broker's process: what `server` does around node and sessions, one small piece at a time.
//!
//! Owns the node, its outstanding flush, the command channel and the broker's ends of connections.
//! Each method is one thing that can happen; the world draws which one happens next.

mod canary;
mod conn;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Buf;
use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_node::{BackgroundJob, BackgroundOutcome, Node, NodeConfig, OpenError};
use tanda_session::fila::SessionConfig;
use tanda_wal::mem_disk::MemDisk;
use tanda_wal::{Disk, FlushJob, FlushOutcome};

use crate::Canary;
use crate::disk::SimDisk;
use crate::random::Random;
use crate::trace::Trace;

use canary::Toll;
pub(crate) use conn::Conn;

/// Requests in the command channel.
const CHANNEL_MAX: usize = 64;
/// Above this the node gets no requests while a flush is out.
const BACKLOG_BYTES_MAX: usize = 256 << 10;

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Power loss: what was not synced is lost in part.
    PowerLoss,
    /// SIGKILL: the machine goes on.
    Kill,
}

/// See the module.
pub(crate) struct Host {
    pub(crate) disk: MemDisk,
    canary: Canary,
    config: NodeConfig,
    pub(crate) session_config: Arc<SessionConfig>,
    pub(crate) node: Option<Node<SimDisk>>,
    pub(crate) channel: VecDeque<Request>,
    pub(crate) conns: BTreeMap<u64, Conn>,
    job: Option<FlushJob<SimDisk>>,
    outcome: Option<FlushOutcome<SimDisk>>,
    background_job: Option<BackgroundJob<SimDisk>>,
    background_outcome: Option<BackgroundOutcome<SimDisk>>,
    released: Vec<(ConnId, Event)>,
    next_conn: u64,
    toll: Toll,
}

impl Host {
    pub(crate) fn new(seed: u64, canary: Canary) -> Self {
        let mut random = Random::stream(seed, "settings");
        let mut config = NodeConfig::new(u128::from(seed));
        config.log = tanda_wal::Config::small(u128::from(seed), 0);
        config.log.segment_bytes = 16 << (10 + random.below(3));
        config.log.chunk_bytes = 4096 << random.below(3);
        config.log.cache_bytes = random.index(128 << 10);
        config.log.read_cache_bytes = random.index(32 << 10);
        // Snapshots and pages come often and at other moments in every run.
        config.snapshot_bytes = config.log.segment_bytes * random.between(1, 6);
        config.snapshot_messages = random.between(50, 2000);
        config.engine.page_messages = u32::try_from(random.between(1, 12)).unwrap_or(1);
        config.engine.lane_hot = u32::try_from(random.between(1, 30)).unwrap_or(1);
        config.engine.quantum = u32::try_from(random.between(1, 3)).unwrap_or(1);
        let session_config = SessionConfig {
            max_frame_size: *random.pick(&[1024, 8192, 16 << 20]).unwrap_or(&0),
            outbound_bytes_max: *random.pick(&[1, 4096, 8 << 20]).unwrap_or(&0),
            requests_in_flight_max: random.length(64),
            ..SessionConfig::default()
        };
        Self {
            disk: MemDisk::new(Random::stream(seed, "disk").draw()),
            canary,
            config,
            session_config: Arc::new(session_config),
            node: None,
            channel: VecDeque::new(),
            conns: BTreeMap::new(),
            job: None,
            outcome: None,
            background_job: None,
            background_outcome: None,
            released: Vec::new(),
            next_conn: 0,
            toll: Toll::default(),
        }
    }

    /// Starts the process. `wall` is what the wall clock says; it may be behind the log.
    pub(crate) fn open(&mut self, wall: Millis, random: &mut Random) -> Result<(), OpenError> {
        self.config.engine.seed = [random.draw(), random.draw(), random.draw(), random.draw()];
        let disk = Arc::new(SimDisk::new(self.disk.clone(), self.canary));
        let node = Node::open(disk, self.config.clone(), wall)?;
        self.node = Some(node);
        Ok(())
    }

    /// Ends the process: everything in memory is gone. Returns whose connections were cut.
    pub(crate) fn die(&mut self, death: Death) -> Vec<usize> {
        self.node = None;
        self.job = None;
        self.outcome = None;
        self.background_job = None;
        self.background_outcome = None;
        self.released.clear();
        self.channel.clear();
        self.disk = match death {
            Death::PowerLoss => self.disk.crash(),
            Death::Kill => self.disk.kill(),
        };
        if self.canary == Canary::FreedSegment {
            self.free_oldest_segment();
        }
        let conns = std::mem::take(&mut self.conns);
        conns
            .into_values()
            .filter(|conn| !conn.is_cut)
            .map(|conn| conn.client)
            .collect()
    }

    /// What the canary does: one of several segments goes, needed or not.
    fn free_oldest_segment(&self) {
        let names = self.disk.names();
        let segments: Vec<&String> = names.iter().filter(|it| it.ends_with(".seg")).collect();
        if let [oldest, _, _, ..] = segments.as_slice() {
            let removed = self.disk.remove(oldest).and_then(|()| self.disk.sync_dir());
            debug_assert!(
                removed.is_ok(),
                "the disk has just begun a life: {removed:?}"
            );
        }
    }

    /// Opens a node of the same settings on a sound copy of the disk.
    pub(crate) fn open_copy(
        &self,
        disk: &MemDisk,
        now: Millis,
    ) -> Result<Node<SimDisk>, OpenError> {
        let disk = Arc::new(SimDisk::new(disk.clone(), Canary::None));
        Node::open(disk, self.config.clone(), now)
    }

    pub(crate) const fn is_flushing(&self) -> bool {
        self.job.is_some() || self.outcome.is_some()
    }

    /// Accepts a connection; `None` while the process is down.
    pub(crate) fn accept(&mut self, client: usize, now: Millis) -> Option<u64> {
        self.node.as_ref()?;
        self.next_conn += 1;
        let conn = Conn::new(
            self.next_conn,
            client,
            Arc::clone(&self.session_config),
            now,
        );
        self.conns.insert(self.next_conn, conn);
        Some(self.next_conn)
    }

    /// Some of the bytes on the way to the broker arrive.
    pub(crate) fn receive(&mut self, number: u64, most: usize, now: Millis) -> usize {
        let Some(conn) = self.conns.get_mut(&number) else {
            return 0;
        };
        if !conn.session.wants_read() {
            return 0;
        }
        let count = most.min(conn.to_broker.len());
        let bytes = conn.to_broker.split_to(count);
        conn.input.extend_from_slice(&bytes);
        conn.session.on_bytes(now, &mut conn.input);
        self.pump(number);
        count
    }

    /// The socket takes some of what the session has to say.
    pub(crate) fn transmit(&mut self, number: u64, most: usize, now: Millis) -> usize {
        let Some(conn) = self.conns.get_mut(&number) else {
            return 0;
        };
        let output = conn.session.output();
        let count = most.min(output.len());
        let bytes = output.split_to(count);
        conn.to_client.extend_from_slice(&bytes);
        if count > 0 {
            conn.session.on_written(count);
            conn.decode_rest(now);
        }
        self.pump(number);
        count
    }

    /// Some events of the node reach the session.
    pub(crate) fn deliver_mail(&mut self, number: u64, most: usize, now: Millis) -> usize {
        let Some(conn) = self.conns.get_mut(&number) else {
            return 0;
        };
        let count = most.min(conn.mail.len());
        for event in conn.mail.drain(..count) {
            conn.session.on_event(now, event);
        }
        conn.decode_rest(now);
        self.pump(number);
        count
    }

    /// The session's timers.
    pub(crate) fn session_timers(&mut self, now: Millis) -> usize {
        let due: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.session.next_deadline().is_some_and(|at| at <= now))
            .map(|(number, _)| *number)
            .collect();
        for number in &due {
            if let Some(conn) = self.conns.get_mut(number) {
                conn.session.on_timer(now);
            }
            self.pump(*number);
        }
        due.len()
    }

    /// Moves requests into the channel; what does not fit is refused.
    fn pump(&mut self, number: u64) {
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        while let Some(request) = conn.session.next_request() {
            // Room for a connection's end is always found, as in `server`.
            let is_last = matches!(request, Request::Disconnect { .. });
            if self.channel.len() < CHANNEL_MAX || is_last {
                self.channel.push_back(request);
            } else {
                conn.session.on_refused(request);
            }
        }
    }

    /// The socket is closed on the client's side and the broker has noticed.
    pub(crate) fn close(&mut self, number: u64) {
        if let Some(conn) = self.conns.get_mut(&number) {
            conn.session.close();
        }
        self.pump(number);
        self.conns.remove(&number);
    }

    /// The node takes requests from the channel.
    pub(crate) fn handle(&mut self, most: usize, now: Millis) -> usize {
        let Some(node) = &mut self.node else { return 0 };
        if self.job.is_some() && node.backlog_bytes() > BACKLOG_BYTES_MAX {
            return 0;
        }
        let count = most.min(self.channel.len());
        for request in self.channel.drain(..count) {
            match self.toll.forget(self.canary, now, &request) {
                None => node.handle(now, request),
                Some((conn, event)) => {
                    if let Some(conn) = self.conns.get_mut(&conn) {
                        conn.mail.push_back(event);
                    }
                }
            }
        }
        count
    }

    /// One pass of the node. True when it has more to do.
    pub(crate) fn run_node(&mut self, now: Millis) -> bool {
        self.node.as_mut().is_some_and(|node| node.run(now))
    }

    pub(crate) fn take_flush(&mut self) -> bool {
        if self.is_flushing() {
            return false;
        }
        self.job = self.node.as_mut().and_then(Node::take_flush);
        self.job.is_some()
    }

    /// The sync thread does its work.
    pub(crate) fn run_flush(&mut self) -> bool {
        let Some(job) = self.job.take() else {
            return false;
        };
        self.outcome = Some(job.run());
        true
    }

    /// The node hears of it.
    pub(crate) fn finish_flush(&mut self, now: Millis) -> bool {
        let (Some(node), Some(outcome)) = (&mut self.node, self.outcome.take()) else {
            return false;
        };
        node.on_flushed(now, outcome);
        true
    }

    pub(crate) fn take_background(&mut self) -> bool {
        if self.background_job.is_some() || self.background_outcome.is_some() {
            return false;
        }
        self.background_job = self.node.as_mut().and_then(Node::take_background);
        self.background_job.is_some()
    }

    /// The background thread does its work.
    pub(crate) fn run_background(&mut self) -> bool {
        let Some(job) = self.background_job.take() else {
            return false;
        };
        self.background_outcome = Some(job.run());
        true
    }

    /// The node hears of it.
    pub(crate) fn finish_background(&mut self, now: Millis) -> bool {
        let (Some(node), Some(outcome)) = (&mut self.node, self.background_outcome.take()) else {
            return false;
        };
        node.on_background(now, outcome);
        true
    }

    /// What may leave goes into the mailboxes.
    pub(crate) fn release(&mut self, now: Millis, trace: &mut Trace) -> usize {
        let Some(node) = &mut self.node else { return 0 };
        node.drain_released(&mut self.released);
        let count = self.released.len();
        for (conn, event) in self.released.drain(..) {
            trace.note(now, || {
                format!("  released to c{}: {}", conn.0, name_of(&event))
            });
            let Some(conn) = self.conns.get_mut(&conn.0) else {
                continue;
            };
            if self.toll.repeats(self.canary, &event) {
                conn.mail.push_back(event.clone());
            }
            conn.mail.push_back(event);
        }
        count
    }

    /// When something is due although nothing comes.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let node = self.node.as_ref().and_then(Node::next_deadline);
        let sessions = self
            .conns
            .values()
            .filter_map(|conn| conn.session.next_deadline());
        sessions.chain(node).min()
    }

    pub(crate) fn assert_invariants(&self) {
        if let Some(node) = &self.node {
            node.assert_invariants();
        }
        for conn in self.conns.values() {
            conn.session.assert_invariants();
        }
    }
}

const fn name_of(event: &Event) -> &'static str {
    match event {
        Event::Published { .. } => "published",
        Event::Settled { .. } => "settled",
        Event::Subscribed { .. } => "subscribed",
        Event::SubscribeFailed { .. } => "subscribe failed",
        Event::Delivery { .. } => "delivery",
        Event::SubscriptionEnded { .. } => "subscription ended",
        Event::Admin { .. } => "admin",
        Event::StorageFailed { .. } => "storage failed",
    }
}

impl Conn {
    /// Some of the bytes on the way to the client arrive there.
    pub(crate) fn take_for_client(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.to_client.len());
        let mut bytes = vec![0; count];
        self.to_client.copy_to_slice(&mut bytes);
        bytes
    }
}
