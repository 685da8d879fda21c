//! API keys as `server` handles them: the configured one, and the table of keys on its way to the
//! sessions.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tanda_engine::{AdminReply, AdminRequest, ConnId, Event, KeyHash, Millis, ReplyTo, Request};
use tanda_node::{Node, OpenError};
use tanda_session::fila::Authentication;
use tanda_session::secret::Entropy;

use super::Host;
use crate::Canary;
use crate::disk::SimDisk;
use crate::random::Random;

/// The configured key, which may do everything.
pub(crate) const ROOT_SECRET: &str = "the configured key of the simulator";

/// Whose request the configured key is: nobody's.
const NOBODY: ReplyTo = ReplyTo {
    conn: ConnId(0),
    token: 0,
};

/// Why a process did not start.
#[derive(Debug)]
pub(crate) enum StartError {
    Open(OpenError),
    /// The configured key could not be written down.
    Keys,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Keys => f.write_str("the configured key could not be written down"),
        }
    }
}

/// Where the secrets of a run come from.
#[derive(Debug)]
pub(super) struct SimEntropy(AtomicU64);

impl SimEntropy {
    pub(super) fn new(random: &mut Random) -> Self {
        Self(AtomicU64::new(random.draw()))
    }
}

impl Entropy for SimEntropy {
    fn draw(&self) -> Option<[u8; 32]> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::stream(count, "secret");
        let mut bits = [0; 32];
        for part in bits.chunks_exact_mut(8) {
            part.copy_from_slice(&random.draw().to_be_bytes());
        }
        Some(bits)
    }
}

/// Makes the configured key, unless it was made before.
pub(super) fn bootstrap(node: &mut Node<SimDisk>) -> Result<(), StartError> {
    let now = node.clock_floor();
    let request = AdminRequest::Bootstrap {
        hash: KeyHash::of(ROOT_SECRET.as_bytes()),
    };
    let reply = NOBODY;
    node.handle(now, Request::Admin { reply, request });
    while let Some(job) = node.take_flush() {
        let outcome = job.run();
        node.on_flushed(now, outcome);
    }
    let mut released = Vec::new();
    node.drain_released(&mut released);
    let is_made = |(_, event): &_| {
        matches!(event, Event::Admin { reply, .. }
            if matches!(**reply, AdminReply::Bootstrapped(Ok(_))))
    };
    if released.iter().any(is_made) {
        return Ok(());
    }
    Err(StartError::Keys)
}

impl Host {
    /// Clients must show a key.
    pub(crate) fn asks_for_keys(&self) -> bool {
        self.session_config.authentication == Authentication::On
    }

    /// Tells a session of the newest keys, if it does not know them. It comes before everything
    /// that a change may forbid.
    pub(super) fn heed_keys(&mut self, number: u64, now: Millis) -> bool {
        if !self.asks_for_keys() {
            return false;
        }
        let (Some(node), Some(conn)) = (&self.node, self.conns.get_mut(&number)) else {
            return false;
        };
        let keys = node.keys();
        let knows = |known: &Arc<_>| Arc::ptr_eq(known, keys) || self.canary == Canary::StaleKeys;
        if conn.keys.as_ref().is_some_and(knows) {
            return false;
        }
        conn.keys = Some(Arc::clone(keys));
        conn.session.on_keys(now, keys);
        self.pump(number);
        true
    }

    /// Sessions wake because keys have changed: one, or all.
    pub(crate) fn wake_for_keys(&mut self, most: usize, now: Millis) -> usize {
        let numbers: Vec<u64> = self.conns.keys().copied().collect();
        let told = numbers
            .into_iter()
            .filter(|number| self.heed_keys(*number, now));
        told.take(most).count()
    }
}
