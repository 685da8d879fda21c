//! An open connection: which frame is allowed, and who takes it.

use tanda_engine::{Millis, SettleItem};
use tanda_wire::firemq::consume::Ack;
use tanda_wire::firemq::frame::Frame;
use tanda_wire::firemq::message::ToServer;
use tanda_wire::firemq::session::Pong;
use tanda_wire::firemq::{Direction, Op, ReplyCode, peek_uint};

use super::confirms::Confirms;
use super::fault::Fault;
use super::link::Link;
use super::pending::Batch;
use super::subscribe::Subs;
use crate::heartbeat::Heartbeat;
use crate::permits::Written;
use crate::unacked::Unacked;

/// What a frame does to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It stays open.
    Stay,
    /// The frame has to wait for an end of a subscription; it was not taken.
    Wait,
    /// The peer has closed it.
    Closed,
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) heartbeat: Heartbeat,
    pub(super) subs: Subs,
    pub(super) unacked: Unacked,
    /// The delivery tag given last.
    pub(super) last_tag: u64,
    /// Messages of this read.
    pub(super) batch: Batch,
    pub(super) confirms: Confirms,
    /// Settlements of this read.
    pub(super) settled: Vec<SettleItem>,
    /// How many messages of subscriptions were settled in this read.
    pub(super) pool_freed: i64,
    /// The engine was told how many messages the peer may hold.
    pub(super) has_pool: bool,
    /// It asked for queues of its own, which have to be gone when it is closed.
    pub(super) has_own_queues: bool,
    /// The exchange that was published to last, by permission.
    pub(super) written: Option<Written>,
    /// The peer was asked to publish nothing.
    pub(super) is_paused: bool,
    /// The peer's `close` stands in the input.
    pub(super) is_leaving: bool,
    /// The peer has closed, and what it asked before is answered by then.
    pub(super) closes_at: Option<Millis>,
}

impl Open {
    pub(super) fn new(link: &Link, heartbeat_ms: u64) -> Self {
        Self {
            heartbeat: Heartbeat::new(link.now, heartbeat_ms),
            subs: Subs::default(),
            unacked: Unacked::default(),
            last_tag: 0,
            batch: Batch::default(),
            confirms: Confirms::default(),
            settled: Vec::new(),
            pool_freed: 0,
            has_pool: false,
            has_own_queues: false,
            written: None,
            is_paused: false,
            is_leaving: false,
            closes_at: None,
        }
    }

    /// Bytes held for the peer, but for its output.
    pub(super) fn held_bytes(&self) -> usize {
        self.batch.data.len() + self.unacked.held_bytes() + self.confirms.held_bytes()
    }

    /// Takes one frame.
    ///
    /// # Errors
    /// What the peer is told; the connection ends when it says so.
    #[inline]
    pub(super) fn on_frame(&mut self, link: &mut Link, frame: &Frame<'_>) -> Result<Next, Fault> {
        // The two that come a million times a second, then all others.
        if frame.op == Op::Publish {
            return self.on_publish(link, frame).map(|()| Next::Stay);
        }
        if frame.op == Op::Ack {
            let ack = Ack::decode(frame.header).map_err(|error| Fault::of_header(&error))?;
            return self.on_ack(link, &ack).map(|()| Next::Stay);
        }
        self.on_rare_frame(link, frame)
    }

    fn on_rare_frame(&mut self, link: &mut Link, frame: &Frame<'_>) -> Result<Next, Fault> {
        if frame.op == Op::Close {
            // Whatever it says: who closes is not kept.
            return Ok(Next::Closed);
        }
        let rid = || peek_uint(frame.header, "rid").unwrap_or(0);
        let decoded = ToServer::decode(frame.op, frame.header);
        let decoded = decoded.map_err(|error| Fault::of_header(&error).of(rid()))?;
        let Some(message) = decoded else {
            let op = frame.op;
            return Err(match op.direction() {
                Direction::Unknown => {
                    let text = format!("unknown op 0x{:02x}", op.to_wire());
                    Fault::new(ReplyCode::NotImplemented, text).of(rid())
                }
                Direction::ToClient | Direction::ToServer | Direction::Either => {
                    let text = format!("{} is sent by servers only", op.name());
                    Fault::new(ReplyCode::CommandInvalid, text).of(rid())
                }
            });
        };
        self.on_message(link, &message)
    }

    fn on_message(&mut self, link: &mut Link, message: &ToServer<'_>) -> Result<Next, Fault> {
        let (rid, done) = match message {
            ToServer::Ping(_) => {
                link.outbound.frame(&Pong {});
                return Ok(Next::Stay);
            }
            ToServer::Close(_) => return Ok(Next::Closed),
            ToServer::Hello(_) => {
                let text = "hello was said before";
                return Err(Fault::new(ReplyCode::CommandInvalid, text));
            }
            ToServer::Credit(it) => {
                self.on_credit(link, *it);
                return Ok(Next::Stay);
            }
            ToServer::Nack(it) => return self.on_nack(link, it).map(|()| Next::Stay),
            ToServer::Subscribe(it) => {
                let next = self.on_subscribe(link, it);
                return next.map_err(|fault| fault.of(it.rid));
            }
            ToServer::Unsubscribe(it) => return Ok(self.on_unsubscribe(link, *it)),
            // The first two were taken before.
            ToServer::Publish(_) | ToServer::Ack(_) | ToServer::Pong(_) => return Ok(Next::Stay),
            ToServer::DeclareExchange(it) => (it.rid, self.on_declare_exchange(link, it)),
            ToServer::DeleteExchange(it) => (it.rid, self.on_delete_exchange(link, it)),
            ToServer::DeclareQueue(it) => (it.rid, self.on_declare_queue(link, it)),
            ToServer::DeleteQueue(it) => (it.rid, self.on_delete_queue(link, it)),
            ToServer::PurgeQueue(it) => (it.rid, self.on_purge_queue(link, it)),
            ToServer::Bind(it) => (it.rid, self.on_bind(link, it)),
            ToServer::Unbind(it) => (it.rid, self.on_unbind(link, it)),
            ToServer::Get(it) => (it.rid, self.on_get(link, it)),
        };
        done.map(|()| Next::Stay).map_err(|fault| fault.of(rid))
    }

    /// Panics when counters contradict what they count. For tests and the simulator.
    pub(super) fn assert_invariants(&self) {
        self.unacked.assert_invariants();
        self.subs.assert_invariants();
        self.confirms.assert_invariants();
        let segments = self.batch.segments.iter().map(|segment| segment.count);
        assert_eq!(segments.sum::<usize>(), self.batch.items.len(), "messages");
    }
}
