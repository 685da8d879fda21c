//! How often and how long the client tries again.
//!
//! Owns: the policies a caller may choose, and the delays that follow from them.
//! Refuses to know: clocks and randomness; both come in as arguments.

use std::time::Duration;

use crate::message::whole_ms;

/// What happens when the connection is lost.
///
/// While the client reconnects, requests wait for the connection, at most
/// [`request_wait`](Self::request_wait); requests whose answer was still due fail at once, unless
/// they may be repeated without harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectPolicy {
    pub(crate) enabled: bool,
    pub(crate) initial_delay_ms: u64,
    pub(crate) delay_ms_max: u64,
    pub(crate) attempts_max: Option<u32>,
    pub(crate) request_wait_ms: u64,
}

impl ReconnectPolicy {
    /// Never: a lost connection ends the client.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            enabled: false,
            initial_delay_ms: 0,
            delay_ms_max: 0,
            attempts_max: None,
            request_wait_ms: 0,
        }
    }

    /// The delay before the first try (100 ms by default) and the longest one (5 s by default).
    /// The delay doubles with each failed try; a random part of up to a half is taken off it, so
    /// that clients of a restarted server do not all return at the same time.
    #[must_use]
    pub fn delays(mut self, initial: Duration, max: Duration) -> Self {
        self.initial_delay_ms = whole_ms(initial);
        self.delay_ms_max = whole_ms(max);
        self
    }

    /// Gives up, and closes the client, after so many failed tries in a row. No bound by default.
    #[must_use]
    pub const fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = Some(attempts_max);
        self
    }

    /// How long requests wait while there is no connection (10 s by default). When it is over they
    /// fail as not sent, and so do new ones until the connection is back.
    #[must_use]
    pub fn request_wait(mut self, wait: Duration) -> Self {
        self.request_wait_ms = whole_ms(wait);
        self
    }

    /// The delay before try number `attempt`, counted from 0; `random` is any number.
    pub(crate) fn delay_ms(&self, attempt: u32, random: u64) -> u64 {
        let delay = exponential_ms(self.initial_delay_ms, self.delay_ms_max, attempt);
        delay - random % (delay / 2 + 1)
    }
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            initial_delay_ms: 100,
            delay_ms_max: 5_000,
            attempts_max: None,
            request_wait_ms: 10_000,
        }
    }
}

/// What a producer does when the server is overloaded (`ChannelFull`).
///
/// The server then took nothing of the request, so sending it again is safe. The client waits as
/// long as the server asks, or for a delay that doubles with each try, whichever is longer.
/// Messages sent meanwhile may overtake those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverloadRetry {
    pub(crate) tries_max: u32,
    pub(crate) initial_delay_ms: u64,
    pub(crate) delay_ms_max: u64,
}

impl OverloadRetry {
    /// No further try: `ChannelFull` goes to the caller.
    #[must_use]
    pub const fn off() -> Self {
        Self {
            tries_max: 0,
            initial_delay_ms: 0,
            delay_ms_max: 0,
        }
    }

    /// The most times one request is sent again (8 by default) before its error goes to the caller.
    #[must_use]
    pub const fn tries_max(mut self, tries_max: u32) -> Self {
        self.tries_max = tries_max;
        self
    }

    /// The delay before the first further try (50 ms by default) and the longest one (2 s).
    #[must_use]
    pub fn delays(mut self, initial: Duration, max: Duration) -> Self {
        self.initial_delay_ms = whole_ms(initial);
        self.delay_ms_max = whole_ms(max);
        self
    }

    /// The delay before further try number `tries`, counted from 0; `None` when there is none.
    pub(crate) fn delay_ms(&self, tries: u32, asked_ms: Option<u64>) -> Option<u64> {
        if tries >= self.tries_max {
            return None;
        }
        let own = exponential_ms(self.initial_delay_ms, self.delay_ms_max, tries);
        Some(own.max(asked_ms.unwrap_or(0).min(ASKED_MS_MAX)))
    }
}

/// The longest wait a server may ask for. A larger number is a mistake of the server, and the
/// message would seem to hang.
const ASKED_MS_MAX: u64 = 60_000;

impl Default for OverloadRetry {
    fn default() -> Self {
        Self {
            tries_max: 8,
            initial_delay_ms: 50,
            delay_ms_max: 2_000,
        }
    }
}

pub(crate) fn exponential_ms(initial_ms: u64, max_ms: u64, doublings: u32) -> u64 {
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    initial_ms.saturating_mul(factor).min(max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconnect_delays_double_up_to_the_bound() {
        let policy = ReconnectPolicy::default();
        let delays: Vec<u64> = (0..8).map(|attempt| policy.delay_ms(attempt, 0)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(policy.delay_ms(u32::MAX, 0), 5_000);
    }

    #[test]
    fn the_random_part_takes_off_at_most_a_half() {
        let policy = ReconnectPolicy::default();
        for random in [1, 49, 50, 51, u64::MAX] {
            let delay = policy.delay_ms(0, random);
            assert!((50..=100).contains(&delay), "{random} gave {delay}");
        }
    }

    #[test]
    fn overload_honours_what_the_server_asks_within_bounds() {
        let policy = OverloadRetry::default();
        assert_eq!(policy.delay_ms(0, None), Some(50));
        assert_eq!(policy.delay_ms(0, Some(700)), Some(700));
        assert_eq!(policy.delay_ms(3, Some(10)), Some(400));
        assert_eq!(policy.delay_ms(0, Some(u64::MAX)), Some(60_000));
        assert_eq!(policy.delay_ms(8, Some(1)), None);
        assert_eq!(OverloadRetry::off().delay_ms(0, Some(1)), None);
    }
}
