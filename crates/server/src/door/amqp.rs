//! AMQP 0-9-1.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::amqp::{AmqpConfig, AmqpSession};

use super::protocol::Protocol;
use crate::{config::CertificateName, listen::Stream, tls::name_of};

/// What the AMQP doors speak.
#[derive(Debug)]
pub(crate) struct Amqp {
    pub(crate) config: Arc<AmqpConfig>,
    /// Which name in certificates is a user's.
    pub(crate) certificate_name: CertificateName,
}

impl Protocol for Amqp {
    type Session = AmqpSession;

    fn session(&self, conn: ConnId, now: Millis, stream: &Stream) -> AmqpSession {
        let certificate = stream.peer_certificate();
        let name = certificate.and_then(|it| name_of(it, self.certificate_name));
        AmqpSession::new(conn, Arc::clone(&self.config), name, now)
    }
}
