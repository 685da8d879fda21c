//! Noticing that the peer is gone, and not seeming gone oneself (`Heartbeats`).
//!
//! Owns: when to ping, and when silence means the end. Refuses to know: frames.

/// What time it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// Nothing was sent for half the interval: send a ping.
    Ping,
    /// Nothing came for two intervals: the peer is dead.
    Dead,
}

/// The heartbeats of one connection.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// 0: none.
    interval_ms: u64,
    sent_at_ms: u64,
    heard_at_ms: u64,
}

impl Heartbeat {
    /// None yet: the interval comes with `welcome`.
    pub(super) const fn new(now_ms: u64) -> Self {
        Self {
            interval_ms: 0,
            sent_at_ms: now_ms,
            heard_at_ms: now_ms,
        }
    }

    pub(super) const fn set_interval_s(&mut self, interval_s: u64) {
        self.interval_ms = interval_s.saturating_mul(1_000);
    }

    pub(super) const fn on_sent(&mut self, now_ms: u64) {
        self.sent_at_ms = now_ms;
    }

    pub(super) const fn on_heard(&mut self, now_ms: u64) {
        self.heard_at_ms = now_ms;
    }

    const fn ping_at_ms(&self) -> u64 {
        self.sent_at_ms.saturating_add(self.interval_ms / 2)
    }

    const fn dead_at_ms(&self) -> u64 {
        self.heard_at_ms
            .saturating_add(self.interval_ms.saturating_mul(2))
    }

    /// `None`: never.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        (self.interval_ms > 0).then(|| self.ping_at_ms().min(self.dead_at_ms()))
    }

    pub(super) fn on_timer(&mut self, now_ms: u64) -> Due {
        if self.interval_ms == 0 {
            return Due::Nothing;
        }
        if now_ms >= self.dead_at_ms() {
            return Due::Dead;
        }
        if now_ms < self.ping_at_ms() {
            return Due::Nothing;
        }
        // Counted as sent, so that a peer that does not read is not sent one ping after another.
        self.sent_at_ms = now_ms;
        Due::Ping
    }
}
