//! FireMQ.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::firemq::{FireConfig, FireSession};

use super::protocol::Protocol;
use crate::listen::Stream;

/// What the FireMQ doors speak.
#[derive(Debug)]
pub(crate) struct Fire {
    pub(crate) config: Arc<FireConfig>,
}

impl Protocol for Fire {
    type Session = FireSession;

    fn session(&self, conn: ConnId, now: Millis, _stream: &Stream) -> FireSession {
        FireSession::new(conn, Arc::clone(&self.config), true, None, now)
    }
}

/// FireMQ of one connection over a WebSocket, whose URL may name a virtual host.
#[derive(Debug)]
pub(crate) struct FireOverWeb {
    pub(crate) config: Arc<FireConfig>,
    /// Empty when it names none.
    pub(crate) vhost: String,
}

impl Protocol for FireOverWeb {
    type Session = FireSession;

    fn session(&self, conn: ConnId, now: Millis, _stream: &Stream) -> FireSession {
        let session = FireSession::new(conn, Arc::clone(&self.config), false, None, now);
        session.with_vhost(Some(self.vhost.clone()))
    }
}
