//! The broker's process: what `server` does around node and sessions, one small piece at a time.
//!
//! Owns the node, its outstanding flush, the command channel and the broker's ends of connections.
//! Each method is one thing that can happen; the world draws which one happens next.

mod accept;
mod alarms;
mod backup;
mod canary;
mod conn;
mod disk_work;
mod door;
mod keys;
mod scripts;
mod settings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Buf;
use tanda_engine::{ConnId, Event, Millis, Request};
use tanda_node::{Node, NodeConfig, OpenError};
use tanda_session::amaquet::AmaquetConfig;
use tanda_session::amqp::AmqpConfig;
use tanda_session::fila::SessionConfig;
use tanda_session::firemq::FireConfig;
use tanda_wal::Disk;
use tanda_wal::mem_disk::MemDisk;

use crate::Canary;
use crate::disk::SimDisk;
use crate::failure::Check;
use crate::invariants::bounded_memory;
use crate::random::Random;
use crate::trace::Trace;

use backup::Backup;
pub(crate) use backup::BackupStep;
use canary::Toll;
pub(crate) use conn::{Conn, FarEnd, Load, PATIENCE_MS};
use disk_work::DiskWork;
pub(crate) use disk_work::Pace;
pub(crate) use door::Answer;
use door::{DOOR, Door};
pub(crate) use keys::{ROOT_SECRET, StartError};
use scripts::Scripts;
use settings::Settings;

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
    pub(crate) config: NodeConfig,
    pub(crate) session_config: Arc<SessionConfig>,
    amqp_config: Arc<AmqpConfig>,
    fire_config: Arc<FireConfig>,
    amaquet_config: Arc<AmaquetConfig>,
    pub(crate) node: Option<Node<SimDisk>>,
    pub(crate) channel: VecDeque<Request>,
    pub(crate) conns: BTreeMap<u64, Conn>,
    /// How slow the disk is now.
    pub(crate) pace: Pace,
    work: DiskWork,
    door: Door,
    scripts: Scripts,
    backup: Backup,
    /// Bytes that a connection's network holds.
    window_bytes: usize,
    released: Vec<(ConnId, Event)>,
    next_conn: u64,
    toll: Toll,
}

impl Host {
    pub(crate) fn new(seed: u64, canary: Canary) -> Self {
        let Settings {
            config,
            session,
            amqp,
            fire,
            amaquet,
            window_bytes,
        } = Settings::draw(seed);
        Self {
            disk: MemDisk::new(Random::stream(seed, "disk").draw()),
            canary,
            config,
            session_config: Arc::new(session),
            amqp_config: Arc::new(amqp),
            fire_config: Arc::new(fire),
            amaquet_config: Arc::new(amaquet),
            node: None,
            channel: VecDeque::new(),
            conns: BTreeMap::new(),
            pace: Pace::default(),
            work: DiskWork::default(),
            door: Door::default(),
            scripts: Scripts::new(seed),
            backup: Backup::None,
            window_bytes,
            released: Vec::new(),
            next_conn: 0,
            toll: Toll::default(),
        }
    }

    /// Starts the process. `wall` is what the wall clock says; it may be behind the log.
    pub(crate) fn open(&mut self, wall: Millis, random: &mut Random) -> Result<(), StartError> {
        self.config.engine.seed = [random.draw(), random.draw(), random.draw(), random.draw()];
        let disk = Arc::new(SimDisk::new(self.disk.clone(), self.canary));
        let mut node = Node::open(disk, self.config.clone(), wall).map_err(StartError::Open)?;
        if self.asks_for_keys() {
            keys::bootstrap(&mut node)?;
        }
        self.node = Some(node);
        Ok(())
    }

    /// Ends the process: everything in memory is gone. Returns whose connections were cut.
    pub(crate) fn die(&mut self, death: Death) -> Vec<usize> {
        self.node = None;
        self.work = DiskWork::default();
        self.released.clear();
        self.lose_door();
        self.scripts.lose();
        self.lose_backup();
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
            .filter(Conn::is_read)
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

    /// Some of the bytes on the way to the broker arrive.
    pub(crate) fn receive(&mut self, number: u64, most: usize, now: Millis) -> usize {
        self.heed_keys(number, now);
        self.heed_alarm(number, now);
        let Some(conn) = self.conns.get_mut(&number) else {
            return 0;
        };
        if !conn.session.wants_read() {
            return 0;
        }
        let count = most.min(conn.to_broker.len());
        let bytes = conn.to_broker.split_to(count);
        conn.input.extend_from_slice(&bytes);
        conn.on_read(now);
        conn.session.on_bytes(now, &mut conn.input);
        self.pump(number);
        count
    }

    /// The socket takes some of what the session has to say.
    pub(crate) fn transmit(&mut self, number: u64, most: usize, now: Millis) -> usize {
        self.heed_keys(number, now);
        self.heed_alarm(number, now);
        let Some(conn) = self.conns.get_mut(&number) else {
            return 0;
        };
        let room = conn.window_bytes.saturating_sub(conn.to_client.len());
        let output = conn.session.output();
        let count = most.min(output.len()).min(room);
        let bytes = output.split_to(count);
        conn.to_client.extend_from_slice(&bytes);
        conn.sent_bytes += bytes.len() as u64;
        conn.on_taken(now, count);
        if count > 0 {
            conn.session.on_written(count);
            conn.decode_rest(now);
        }
        self.pump(number);
        count
    }

    /// Some events of the node reach the session.
    pub(crate) fn deliver_mail(&mut self, number: u64, most: usize, now: Millis) -> usize {
        self.heed_keys(number, now);
        self.heed_alarm(number, now);
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

    /// The timers of sessions and sockets.
    pub(crate) fn session_timers(&mut self, now: Millis) -> usize {
        if self.canary == Canary::NoTimers {
            return 0;
        }
        let due: Vec<u64> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.next_deadline().is_some_and(|at| at <= now))
            .map(|(number, _)| *number)
            .collect();
        for number in &due {
            self.heed_keys(*number, now);
            let Some(conn) = self.conns.get_mut(number) else {
                continue;
            };
            conn.session.on_timer(now);
            let is_over = conn.socket_deadline().is_some_and(|at| at <= now);
            // Of a client that is gone nobody needs to hear; others see it when they look.
            if is_over && conn.far_end == FarEnd::Vanished {
                self.close(*number);
            } else if is_over {
                conn.is_given_up = true;
            }
            self.pump(*number);
        }
        due.len()
    }

    /// Moves requests into the channel; what does not fit is refused.
    fn pump(&mut self, number: u64) {
        self.let_in(number);
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        while let Some(request) = conn.session.next_request() {
            conn.note(&request);
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
            // What it was not told of has not reached its client.
            for event in core::mem::take(&mut conn.mail) {
                conn.session.on_event(conn.read_at, event);
            }
        }
        self.pump(number);
        self.conns.remove(&number);
    }

    /// The node takes requests from the channel.
    pub(crate) fn handle(&mut self, most: usize, now: Millis) -> usize {
        let Some(node) = &self.node else { return 0 };
        if self.work.is_flushing() && node.backlog_bytes() > BACKLOG_BYTES_MAX {
            return 0;
        }
        let count = most.min(self.channel.len());
        for _ in 0..count {
            let Some(mut request) = self.channel.pop_front() else {
                break;
            };
            canary::strip(self.canary, &mut request);
            let binding = self.toll.forget_binding(self.canary, &request);
            let forgotten = binding.or_else(|| self.toll.forget(self.canary, now, &request));
            match forgotten {
                None => {
                    if let Some(node) = &mut self.node {
                        node.handle(now, request);
                    }
                }
                Some((conn, event)) if conn == DOOR.0 => self.on_door_event(event),
                Some((conn, event)) => {
                    if let Some(conn) = self.conns.get_mut(&conn) {
                        conn.mail.push_back(event);
                    }
                }
            }
        }
        self.take_script_jobs(now);
        count
    }

    /// One pass of the node. True when it has more to do.
    pub(crate) fn run_node(&mut self, now: Millis) -> bool {
        let more = self.node.as_mut().is_some_and(|node| node.run(now));
        self.take_script_jobs(now);
        more
    }

    /// What may leave goes into the mailboxes.
    pub(crate) fn release(&mut self, now: Millis, trace: &mut Trace) -> usize {
        let Some(node) = &mut self.node else { return 0 };
        node.drain_released(&mut self.released);
        for (_, event) in &mut self.released {
            canary::spoil(self.canary, event);
        }
        let count = self.released.len();
        let mut released = core::mem::take(&mut self.released);
        for (conn, event) in released.drain(..) {
            trace.note(now, || {
                format!("  released to c{}: {}", conn.0, name_of(&event))
            });
            if let Event::Committed {
                published, settled, ..
            } = &event
            {
                trace.note(now, || format!("  {published:?}, {settled:?}"));
            }
            if conn == DOOR {
                self.on_door_event(event);
                continue;
            }
            let conn_number = conn.0;
            let Some(conn) = self.conns.get_mut(&conn_number) else {
                continue;
            };
            conn.load_with(&event);
            if self.canary == Canary::DrainedEarly
                && let Event::Delivery { batch, .. } = &event
            {
                let bytes = batch.budget_bytes();
                let conn = ConnId(conn_number);
                self.channel.push_back(Request::Drained { conn, bytes });
            }
            if let Some(request) = canary::taken_back(self.canary, conn_number, &event) {
                self.channel.push_back(request);
            }
            if self.toll.repeats(self.canary, &event) {
                conn.mail.push_back(event.clone());
            }
            conn.mail.push_back(event);
        }
        self.released = released;
        count
    }

    /// When something is due although nothing comes.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let node = self.node.as_ref().and_then(Node::next_deadline);
        let sessions = self
            .conns
            .values()
            .filter_map(|conn| conn.next_deadline())
            .filter(|_| self.canary != Canary::NoTimers);
        sessions.chain(node).min()
    }

    /// No connection holds more than its bounds.
    pub(crate) fn check_loads(&mut self) -> Check {
        for conn in self.conns.values_mut() {
            let waiting = conn.session.output().len() as u64;
            bounded_memory::of_connection(conn.bounds, conn.load, waiting)?;
        }
        Ok(())
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
        Event::Committed { .. } => "committed",
        Event::Got { .. } => "got",
        Event::Keys { .. } => "keys",
        Event::Watching { .. } => "watching",
        Event::Watched { .. } => "watched",
        Event::WatchEnded { .. } => "watch ended",
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
