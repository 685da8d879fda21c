//! Heartbeats in both directions (§4.2.7).
//!
//! The server sends one when it has said nothing for half the interval, and gives the peer up when
//! nothing came for two intervals. While the server does not read the socket, silence says nothing.

use tanda_engine::Millis;

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing yet.
    Nothing,
    /// Send a heartbeat.
    Send,
    /// The peer is gone.
    Dead,
}

/// The heartbeats of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeat {
    /// 0: none.
    interval_ms: u64,
    heard_at: Millis,
    said_at: Millis,
    /// Bytes said by then.
    said: u64,
    /// When the newest bytes were said, and how many these were in all.
    spoke: (Millis, u64),
    deaf: bool,
}

impl Heartbeat {
    pub(crate) const fn new(now: Millis, interval_ms: u64) -> Self {
        Self {
            interval_ms,
            heard_at: now,
            said_at: now,
            said: 0,
            spoke: (now, 0),
            deaf: false,
        }
    }

    /// `said` bytes were said in all. Who does not call this is taken to have spoken when
    /// [`Heartbeat::due`] asks, so its heartbeats are late by half an interval at most.
    pub(crate) const fn on_said(&mut self, now: Millis, said: u64) {
        if self.spoke.1 != said {
            self.spoke = (now, said);
        }
    }

    /// Bytes came.
    pub(crate) const fn on_heard(&mut self, now: Millis) {
        self.heard_at = now;
    }

    /// The session wants the socket read, or not.
    pub(crate) const fn on_reading(&mut self, now: Millis, reading: bool) {
        if self.deaf && reading {
            self.heard_at = now;
        }
        self.deaf = !reading;
    }

    /// When [`Heartbeat::due`] says something new.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        if self.interval_ms == 0 {
            return None;
        }
        let send_at = self.said_at.after_ms(self.interval_ms / 2);
        let dead_at = self.heard_at.after_ms(self.interval_ms.saturating_mul(2));
        Some(if self.deaf {
            send_at
        } else {
            send_at.min(dead_at)
        })
    }

    /// What is due now, when `said` bytes were said in all. A heartbeat counts as sent.
    pub(crate) fn due(&mut self, now: Millis, said: u64) -> Due {
        if self.deadline().is_none_or(|at| at > now) {
            return Due::Nothing;
        }
        if !self.deaf && self.heard_at.after_ms(self.interval_ms.saturating_mul(2)) <= now {
            return Due::Dead;
        }
        if said != self.said {
            self.said = said;
            self.said_at = match self.spoke {
                (at, of) if of == said => at,
                _ => now,
            };
            if self.said_at.after_ms(self.interval_ms / 2) > now {
                return Due::Nothing;
            }
        }
        self.said_at = now;
        Due::Send
    }

    /// A heartbeat was appended: it is nothing that was said.
    pub(crate) const fn on_sent(&mut self, said: u64) {
        self.said = said;
        self.spoke = (self.said_at, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_sent_at_half_the_interval_and_two_silent_intervals_are_the_end() {
        let mut beat = Heartbeat::new(Millis(0), 1_000);
        assert_eq!(beat.deadline(), Some(Millis(500)));
        assert_eq!(beat.due(Millis(499), 0), Due::Nothing);
        assert_eq!(beat.due(Millis(500), 0), Due::Send);
        beat.on_sent(8);
        // Something was said meanwhile.
        assert_eq!(beat.due(Millis(1_000), 50), Due::Nothing);
        assert_eq!(beat.due(Millis(1_500), 50), Due::Send);
        beat.on_sent(58);
        assert_eq!(beat.due(Millis(1_999), 58), Due::Nothing);
        assert_eq!(beat.due(Millis(2_000), 58), Due::Dead);
    }

    #[test]
    fn who_says_when_it_spoke_is_never_late() {
        let mut beat = Heartbeat::new(Millis(0), 1_000);
        beat.on_said(Millis(0), 70);
        assert_eq!(beat.due(Millis(500), 70), Due::Send);
        beat.on_sent(79);
        beat.on_said(Millis(600), 79);
        beat.on_said(Millis(900), 200);
        beat.on_said(Millis(950), 200);
        assert_eq!(beat.due(Millis(1_000), 200), Due::Nothing);
        assert_eq!(beat.deadline(), Some(Millis(1_400)));
        assert_eq!(beat.due(Millis(1_400), 200), Due::Send);
    }

    #[test]
    fn silence_while_nobody_reads_says_nothing() {
        let mut beat = Heartbeat::new(Millis(0), 1_000);
        beat.on_reading(Millis(100), false);
        assert_eq!(beat.due(Millis(9_000), 0), Due::Send);
        beat.on_reading(Millis(9_000), true);
        beat.on_sent(8);
        assert_eq!(beat.due(Millis(10_999), 8), Due::Send);
        assert_eq!(beat.due(Millis(11_000), 16), Due::Dead);
    }

    #[test]
    fn none_are_sent_when_the_interval_is_zero() {
        let mut beat = Heartbeat::new(Millis(0), 0);
        assert_eq!(beat.deadline(), None);
        assert_eq!(beat.due(Millis(1 << 40), 0), Due::Nothing);
    }
}
