//! How long the calls of each script take, and which are slow.

use std::{collections::HashMap, time::Duration};

/// Above this a script is slow.
const SLOW: Duration = Duration::from_millis(1);
/// Below this a slow script is quick again.
const QUICK: Duration = Duration::from_micros(250);
/// Below this nothing is remembered.
const FORGOTTEN: Duration = Duration::from_micros(50);
/// A new turn counts for one part in this many.
const SHARE: u32 = 5;
/// Scripts remembered at most. Were there more, all would be forgotten, and the slow ones found
/// out again in two turns each.
const SCRIPTS_MAX: usize = 4096;

/// What a turn took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// CPU time.
    pub(super) time: Duration,
    /// Calls made in it, at least 1.
    pub(super) calls: u32,
    /// One of them ran out of time.
    pub(super) timed_out: bool,
}

/// Moving averages of time per call, by version of the script.
#[derive(Debug, Default)]
pub(super) struct Paces {
    known: HashMap<u64, Pace>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    average: Duration,
    slow: bool,
}

impl Paces {
    pub(super) fn is_slow(&self, version: u64) -> bool {
        self.known.get(&version).is_some_and(|pace| pace.slow)
    }

    /// Counts a turn. A call that ran out of time counts for many, so that a script that does so
    /// now and then stays with the slow ones.
    pub(super) fn note(&mut self, version: u64, spent: Spent) {
        let mut pace = self.known.get(&version).copied().unwrap_or_default();
        let per_call = spent.time / spent.calls.max(1);
        pace.average = pace.average * (SHARE - 1) / SHARE + per_call / SHARE;
        if spent.timed_out {
            pace.average = pace.average.max(10 * SLOW);
        }
        pace.slow = pace.average > SLOW || (pace.slow && pace.average > QUICK);
        if pace.average < FORGOTTEN {
            self.known.remove(&version);
            return;
        }
        if self.known.len() >= SCRIPTS_MAX && !self.known.contains_key(&version) {
            self.known.clear();
        }
        self.known.insert(version, pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(micros: u64, calls: u32) -> Spent {
        Spent {
            time: Duration::from_micros(micros),
            calls,
            timed_out: false,
        }
    }

    #[test]
    fn one_long_turn_makes_nobody_slow() {
        let mut paces = Paces::default();
        paces.note(1, turn(3000, 1));
        assert!(!paces.is_slow(1));
        for _ in 0..30 {
            paces.note(1, turn(500, 300));
        }
        assert!(!paces.is_slow(1));
        assert!(paces.known.is_empty(), "a quick script is not remembered");
    }

    #[test]
    fn calls_of_three_milliseconds_are_slow_until_they_are_quick_for_a_while() {
        let mut paces = Paces::default();
        for _ in 0..5 {
            paces.note(1, turn(3000, 1));
        }
        assert!(paces.is_slow(1));
        assert!(!paces.is_slow(2));
        let mut turns = 0;
        while paces.is_slow(1) {
            paces.note(1, turn(100, 50));
            turns += 1;
        }
        assert!((3..20).contains(&turns), "{turns}");
    }

    #[test]
    fn a_call_that_runs_out_of_time_makes_its_script_slow_at_once() {
        let mut paces = Paces::default();
        let spent = Spent {
            timed_out: true,
            ..turn(10_000, 100)
        };
        paces.note(1, spent);
        assert!(paces.is_slow(1));
        for _ in 0..9 {
            paces.note(1, turn(100, 100));
        }
        assert!(paces.is_slow(1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut paces = Paces::default();
        for version in 0..3 * SCRIPTS_MAX as u64 {
            paces.note(version, turn(9000, 1));
            assert!(paces.known.len() <= SCRIPTS_MAX);
        }
    }
}
