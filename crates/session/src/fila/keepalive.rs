//! Noticing that a peer is gone: a ping after silence, a close when no pong follows.

use tanda_engine::Millis;

use super::SessionConfig;

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing yet.
    Nothing,
    /// Send a ping with this request ID.
    Ping(u32),
    /// No pong came in time.
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    id: u32,
    sent_at: Millis,
}

/// The keepalive of one open connection.
#[derive(Debug)]
pub(super) struct Keepalive {
    heard_at: Millis,
    ping: Option<Ping>,
    last_id: u32,
    /// While the server does not read the socket, a pong could not be seen.
    deaf: bool,
}

/// The first request ID of a server.
const SERVER_ID_BIT: u32 = 1 << 31;

impl Keepalive {
    pub(super) const fn new(now: Millis) -> Self {
        Self {
            heard_at: now,
            ping: None,
            last_id: SERVER_ID_BIT,
            deaf: false,
        }
    }

    /// A request ID of the server's own.
    pub(super) const fn next_id(&mut self) -> u32 {
        self.last_id = if self.last_id == u32::MAX {
            SERVER_ID_BIT + 1
        } else {
            self.last_id + 1
        };
        self.last_id
    }

    /// Bytes came.
    pub(super) const fn on_heard(&mut self, now: Millis) {
        self.heard_at = now;
    }

    /// A pong came. Pongs to other pings say nothing.
    pub(super) fn on_pong(&mut self, id: u32) {
        if self.ping.is_some_and(|ping| ping.id == id) {
            self.ping = None;
        }
    }

    /// The session wants the socket read, or not.
    pub(super) fn on_reading(&mut self, now: Millis, reading: bool) {
        if self.deaf && reading {
            self.heard_at = now;
            if let Some(ping) = &mut self.ping {
                ping.sent_at = now;
            }
        }
        self.deaf = !reading;
    }

    /// When [`Keepalive::due`] says something new.
    pub(super) fn deadline(&self, config: &SessionConfig) -> Option<Millis> {
        if self.deaf {
            return None;
        }
        Some(match self.ping {
            Some(ping) => ping.sent_at.after_ms(config.pong_timeout_ms),
            None => self.heard_at.after_ms(config.ping_idle_ms),
        })
    }

    /// What is due now. A ping counts as sent.
    pub(super) fn due(&mut self, now: Millis, config: &SessionConfig) -> Due {
        if self.deadline(config).is_none_or(|at| at > now) {
            return Due::Nothing;
        }
        if self.ping.is_some() {
            return Due::Dead;
        }
        let id = self.next_id();
        self.ping = Some(Ping { id, sent_at: now });
        Due::Ping(id)
    }
}
