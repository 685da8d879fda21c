//! An open connection: which frame is allowed, and who takes it.

use std::collections::BTreeSet;

use tanda_engine::Event;
use tanda_wire::firemq::frame::Frame;
use tanda_wire::firemq::session::Pong;
use tanda_wire::firemq::{Op, ReplyCode, peek_uint};

use super::fault::Fault;
use super::link::Link;
use crate::heartbeat::Heartbeat;
use crate::permits::Written;

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
    /// Queues of this connection, which have to be gone when it is closed.
    pub(super) exclusive: BTreeSet<String>,
    /// The exchange that was published to last, by permission.
    pub(super) written: Option<Written>,
    /// The peer was asked to publish nothing.
    pub(super) is_paused: bool,
}

impl Open {
    pub(super) fn new(link: &Link, heartbeat_ms: u64) -> Self {
        Self {
            heartbeat: Heartbeat::new(link.now, heartbeat_ms),
            exclusive: BTreeSet::new(),
            written: None,
            is_paused: false,
        }
    }
}

impl Open {
    /// Bytes held for the peer, but for its output.
    pub(super) fn held_bytes(&self) -> usize {
        0
    }

    /// Takes one frame.
    ///
    /// # Errors
    /// What the peer is told; the connection ends when it says so.
    pub(super) fn on_frame(&mut self, link: &mut Link, frame: &Frame<'_>) -> Result<Next, Fault> {
        if frame.op == Op::Close {
            return Ok(Next::Closed);
        }
        if frame.op == Op::Ping {
            link.outbound.frame(&Pong {});
        } else if frame.op != Op::Pong {
            let rid = peek_uint(frame.header, "rid").unwrap_or(0);
            let text = format!("unknown op 0x{:02x}", frame.op.to_wire());
            return Err(Fault::new(ReplyCode::NotImplemented, text).of(rid));
        }
        Ok(Next::Stay)
    }

    pub(super) fn on_event(&mut self, _link: &mut Link, _event: Event) -> Result<(), Fault> {
        Ok(())
    }

    pub(super) fn flush(&mut self, _link: &mut Link) {}

    pub(super) fn assert_invariants(&self) {}
}
