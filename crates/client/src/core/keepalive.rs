//! Noticing that the peer is gone (`Keepalive`).
//!
//! Owns: when to ping, and when silence means the end.
//! Refuses to know: frames; the connection writes the ping.

/// When to ask, and how long to wait for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepaliveConfig {
    /// Silence after which the peer is asked for a sign of life, in milliseconds.
    pub ping_idle_ms: u64,
    /// Further silence after which the connection counts as dead, in milliseconds.
    pub pong_timeout_ms: u64,
}

impl Default for KeepaliveConfig {
    fn default() -> Self {
        Self {
            ping_idle_ms: 15_000,
            pong_timeout_ms: 30_000,
        }
    }
}

/// What time it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// Send a ping.
    Ping,
    /// Close: the peer did not answer.
    Dead,
}

/// The silence of one connection. Any byte counts as a sign of life, not only a pong: on a slow
/// link the pong may stand behind a long delivery.
#[derive(Debug)]
pub(super) struct Keepalive {
    config: KeepaliveConfig,
    heard_at_ms: u64,
    asked_at_ms: Option<u64>,
}

impl Keepalive {
    pub(super) const fn new(config: KeepaliveConfig, now_ms: u64) -> Self {
        Self {
            config,
            heard_at_ms: now_ms,
            asked_at_ms: None,
        }
    }

    pub(super) const fn on_heard(&mut self, now_ms: u64) {
        self.heard_at_ms = now_ms;
        self.asked_at_ms = None;
    }

    pub(super) const fn deadline_ms(&self) -> u64 {
        match self.asked_at_ms {
            None => self.heard_at_ms.saturating_add(self.config.ping_idle_ms),
            Some(asked_at_ms) => asked_at_ms.saturating_add(self.config.pong_timeout_ms),
        }
    }

    pub(super) const fn on_timer(&mut self, now_ms: u64) -> Due {
        if now_ms < self.deadline_ms() {
            return Due::Nothing;
        }
        if self.asked_at_ms.is_some() {
            return Due::Dead;
        }
        self.asked_at_ms = Some(now_ms);
        Due::Ping
    }
}
