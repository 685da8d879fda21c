//! Fila.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::fila::{FilaSession, SessionConfig};

use super::protocol::Protocol;
use crate::listen::Stream;

/// What the Fila doors speak.
#[derive(Debug)]
pub(crate) struct Fila {
    pub(crate) config: Arc<SessionConfig>,
}

impl Protocol for Fila {
    type Session = FilaSession;

    fn session(&self, conn: ConnId, now: Millis, _stream: &Stream) -> FilaSession {
        FilaSession::new(conn, Arc::clone(&self.config), now)
    }
}
