//! Amaquet.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::amaquet::{AmaquetConfig, AmaquetSession, NodeIdentity, ServerFacts};

use super::protocol::Protocol;
use crate::{clock::Clock, listen::Stream, node_key::NodeKey, process, tally::Tally};

/// What the Amaquet doors speak.
#[derive(Debug)]
pub(crate) struct Amaquet {
    pub(crate) config: Arc<AmaquetConfig>,
}

impl Protocol for Amaquet {
    type Session = AmaquetSession;

    fn session(&self, conn: ConnId, now: Millis, _stream: &Stream) -> AmaquetSession {
        AmaquetSession::new(conn, Arc::clone(&self.config), now)
    }
}

/// What a server knows of itself and the engine does not.
#[derive(Debug)]
pub(crate) struct Facts {
    clock: Clock,
    /// Those of all doors that speak a protocol over a socket.
    connections: Arc<Tally>,
}

impl Facts {
    pub(crate) fn new(clock: Clock, connections: &Arc<Tally>) -> Self {
        let connections = Arc::clone(connections);
        Self { clock, connections }
    }
}

impl ServerFacts for Facts {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn uptime_ms(&self) -> u64 {
        self.clock.uptime_ms()
    }

    fn connections(&self) -> u64 {
        u64::try_from(self.connections.now()).unwrap_or(u64::MAX)
    }

    fn memory_bytes(&self) -> u64 {
        process::resident_bytes().unwrap_or_default()
    }
}

impl NodeIdentity for NodeKey {
    fn node_id(&self) -> &str {
        self.id()
    }

    fn public_key(&self) -> [u8; 32] {
        self.public()
    }

    fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        Self::sign(self, bytes)
    }
}
