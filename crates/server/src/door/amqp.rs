//! AMQP 0-9-1.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::amqp::{AmqpConfig, AmqpSession};

use super::protocol::Protocol;
use crate::listen::Stream;

/// What the AMQP doors speak.
#[derive(Debug)]
pub(crate) struct Amqp {
    pub(crate) config: Arc<AmqpConfig>,
}

impl Protocol for Amqp {
    type Session = AmqpSession;

    fn session(&self, conn: ConnId, now: Millis, _stream: &Stream) -> AmqpSession {
        AmqpSession::new(conn, Arc::clone(&self.config), None, now)
    }
}
