//! FireMQ.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::firemq::{FireConfig, FireSession};

use super::protocol::Protocol;
use crate::{config::CertificateName, listen::Stream, tls::name_of};

/// What the FireMQ doors speak.
#[derive(Debug)]
pub(crate) struct Fire {
    pub(crate) config: Arc<FireConfig>,
    /// Which name in certificates is a user's.
    pub(crate) certificate_name: CertificateName,
}

impl Protocol for Fire {
    type Session = FireSession;

    fn session(&self, conn: ConnId, now: Millis, stream: &Stream) -> FireSession {
        let certificate = stream.peer_certificate();
        let name = certificate.and_then(|it| name_of(it, self.certificate_name));
        FireSession::new(conn, Arc::clone(&self.config), true, name, now)
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
