//! The limit on time: when a call has used it up, and that nothing revives it then.
//!
//! Luau asks at every call, return and turn of a loop, and in every step of a pattern, so asking
//! must cost next to nothing. It does not ask within a statement, so the clock is read once more at
//! the end of each call. The first few times cost only a counter; then the clock is read; the
//! thread's own CPU time only when the clock says that it might be over. It is CPU time that
//! counts: a script cannot wait for anything, and on a busy machine a thread that was not running
//! for 10 ms must not fail its message.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// Times it may be asked before it reads the clock.
const FREE_TICKS: u32 = 16;
/// One part in this many of the limit passes on the clock before CPU time is read at all.
const EARLY_SHARE: u32 = 10;

/// The time of one call of a hook; reused for all calls of one state.
#[derive(Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    ticks: Cell<u32>,
    /// Nothing is to be looked at before; unknown until the clock was read once.
    look_at: Cell<Option<Instant>>,
    /// The thread's CPU time at the first closer look.
    cpu_mark: Cell<Option<Duration>>,
    expired: Cell<bool>,
    /// When the turn began, and the thread's CPU time then.
    turn: Cell<(Instant, Duration)>,
    /// When the call before ended, or the turn began.
    mark: Cell<Instant>,
}

impl Deadline {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            ticks: Cell::new(0),
            look_at: Cell::new(None),
            cpu_mark: Cell::new(None),
            expired: Cell::new(false),
            turn: Cell::new((Instant::now(), thread_cpu_time())),
            mark: Cell::new(Instant::now()),
        }
    }

    /// Begins a turn: calls one after the other on this thread.
    pub(crate) fn start_turn(&self) {
        let now = Instant::now();
        self.turn.set((now, thread_cpu_time()));
        self.mark.set(now);
    }

    /// Ends the time of a call. What Luau does between two questions may take long, too; it is
    /// found out here. Returns when that was.
    pub(crate) fn end(&self) -> Instant {
        let now = Instant::now();
        let began = self.mark.replace(now);
        if now.saturating_duration_since(began) >= self.limit {
            self.look_back(began);
        }
        now
    }

    /// A call has taken all of its time on the clock. Calls before it in this turn took no more CPU
    /// time than they took on the clock.
    #[cold]
    fn look_back(&self, began: Instant) {
        let (turn, cpu) = self.turn.get();
        let others = began.saturating_duration_since(turn);
        let used = thread_cpu_time().saturating_sub(cpu).saturating_sub(others);
        if used >= self.limit {
            self.expired.set(true);
        }
    }

    /// When the last call ended.
    pub(crate) fn ended_at(&self) -> Instant {
        self.mark.get()
    }

    /// Begins the time of a call.
    pub(crate) fn start(&self) {
        self.ticks.set(0);
        self.look_at.set(None);
        self.cpu_mark.set(None);
        self.expired.set(false);
    }

    /// Whether the call may go on. Once it may not, it never may again before the next `start`.
    #[inline]
    pub(crate) fn may_go_on(&self) -> bool {
        let ticks = self.ticks.get();
        if ticks < FREE_TICKS {
            self.ticks.set(ticks + 1);
            return true;
        }
        !self.expired.get() && self.has_time_at(Instant::now())
    }

    #[inline]
    fn has_time_at(&self, now: Instant) -> bool {
        match self.look_at.get() {
            None => {
                self.look_at.set(Some(now + self.limit / EARLY_SHARE));
                true
            }
            Some(look_at) => now < look_at || self.look_closer(now),
        }
    }

    /// Whether the time of the last call ran out, whatever the script made of it.
    pub(crate) fn has_expired(&self) -> bool {
        self.expired.get()
    }

    #[cold]
    fn look_closer(&self, now: Instant) -> bool {
        let used = thread_cpu_time();
        let mark = self.cpu_mark.get().unwrap_or(used);
        self.cpu_mark.set(Some(mark));
        let allowed = self.limit - self.limit / EARLY_SHARE;
        let left = allowed.saturating_sub(used.saturating_sub(mark));
        self.expired.set(left.is_zero());
        // CPU time passes no faster than the clock.
        self.look_at.set(Some(now + left));
        !left.is_zero()
    }
}

/// CPU time that the calling thread has used so far.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_out(deadline: &Deadline) {
        while deadline.may_go_on() {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn once_over_it_stays_over_until_the_next_call() {
        let deadline = Deadline::new(Duration::from_millis(2));
        deadline.start();
        assert!(deadline.may_go_on());
        run_out(&deadline);
        assert!(deadline.has_expired());
        assert!(!deadline.may_go_on());
        deadline.start();
        assert!(!deadline.has_expired() && deadline.may_go_on());
    }

    #[test]
    fn a_call_that_never_asks_is_over_in_the_end() {
        let deadline = Deadline::new(Duration::from_millis(2));
        deadline.start_turn();
        deadline.start();
        let cpu = thread_cpu_time();
        while thread_cpu_time() - cpu < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        deadline.end();
        assert!(deadline.has_expired());
        deadline.start();
        deadline.end();
        assert!(!deadline.has_expired(), "the next one has its own time");
    }

    #[test]
    fn time_in_which_the_thread_does_not_run_does_not_count() {
        let deadline = Deadline::new(Duration::from_millis(50));
        deadline.start();
        std::thread::sleep(Duration::from_millis(60));
        for _ in 0..100 {
            assert!(deadline.may_go_on());
        }
        deadline.end();
        assert!(!deadline.has_expired());
    }
}
