//! The broker's end of one connection, and the bytes on the way in both directions.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{ConnId, Event, Millis};
use tanda_session::fila::{FilaSession, SessionConfig};

/// See the module.
pub(crate) struct Conn {
    pub(crate) session: FilaSession,
    /// Read from the socket, not yet taken by the session.
    pub(crate) input: BytesMut,
    pub(crate) to_broker: BytesMut,
    pub(crate) to_client: BytesMut,
    pub(crate) mail: VecDeque<Event>,
    /// The client's index in the world.
    pub(crate) client: usize,
    /// The client is gone; the broker has not noticed.
    pub(crate) is_cut: bool,
}

impl Conn {
    pub(crate) fn new(number: u64, client: usize, config: Arc<SessionConfig>, now: Millis) -> Self {
        Self {
            session: FilaSession::new(ConnId(number), config, now),
            input: BytesMut::new(),
            to_broker: BytesMut::new(),
            to_client: BytesMut::new(),
            mail: VecDeque::new(),
            client,
            is_cut: false,
        }
    }

    /// Frames that were read before there was room for them.
    pub(crate) fn decode_rest(&mut self, now: Millis) {
        if !self.input.is_empty() && self.session.wants_read() {
            self.session.on_bytes(now, &mut self.input);
        }
    }

    /// The session is done and all it said is on its way.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.session.is_closing() && self.session.output().is_empty()
    }
}
