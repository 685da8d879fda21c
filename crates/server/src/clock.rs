//! The broker's time.

use std::time::{Duration, Instant, SystemTime};

use tanda_engine::Millis;

/// Unix milliseconds, read from the wall once and advanced by the monotonic clock, so that it
/// neither jumps nor runs backwards while the process lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    start_ms: u64,
}

impl Clock {
    /// Starts at the wall clock's time, but not before `floor`.
    #[must_use]
    pub(crate) fn start(floor: Millis) -> Self {
        Self {
            start: Instant::now(),
            start_ms: wall_now().0.max(floor.0),
        }
    }

    /// The time now.
    #[must_use]
    pub(crate) fn now(&self) -> Millis {
        Millis(self.start_ms.saturating_add(self.uptime_ms()))
    }

    /// The time at an instant of the monotonic clock.
    #[must_use]
    pub(crate) fn at(&self, instant: Instant) -> Millis {
        let since_ms = instant.saturating_duration_since(self.start).as_millis();
        let since_ms = u64::try_from(since_ms).unwrap_or(u64::MAX);
        Millis(self.start_ms.saturating_add(since_ms))
    }

    /// Milliseconds since [`Clock::start`].
    #[must_use]
    pub(crate) fn uptime_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When `time` comes, on the monotonic clock; the start when it is before that.
    #[must_use]
    pub(crate) fn instant_of(&self, time: Millis) -> Instant {
        let after = Duration::from_millis(time.0.saturating_sub(self.start_ms));
        // A time too far away to be represented is as good as a year.
        self.start
            .checked_add(after)
            .unwrap_or_else(|| self.start + Duration::from_hours(24 * 365))
    }
}

/// The wall clock's time.
#[must_use]
pub(crate) fn wall_now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Millis(u64::try_from(ms).unwrap_or(u64::MAX))
}
