//! What waits to be run, and whose turn is next on each thread.
//!
//! Jobs are kept by version of their scripts, which is as good as by queue. A version with jobs
//! stands in one ring, or is being run: never twice, so its jobs are run one after the other.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tanda_engine::ScriptJob;

use super::{
    pace::{Paces, Spent},
    work::Work,
};

/// Which thread runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Scripts that take microseconds.
    Quick,
    /// Scripts that take long, and checks of new ones.
    Slow,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Board {
    state: Mutex<State>,
    quick: Condvar,
    slow: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: HashMap<u64, Jobs>,
    quick: VecDeque<u64>,
    slow: VecDeque<u64>,
    paces: Paces,
    stop: bool,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<Work>,
    running: bool,
}

impl Board {
    /// Adds jobs behind those that wait.
    pub(super) fn add(&self, jobs: impl Iterator<Item = ScriptJob>) {
        let mut state = self.lock();
        for job in jobs {
            let work = Work::new(job);
            let version = work.version();
            let jobs = state.jobs.entry(version).or_default();
            let stands = jobs.running || !jobs.waiting.is_empty();
            jobs.waiting.push_back(work);
            if !stands {
                let lane = state.queue_up(version);
                self.bell(lane).notify_one();
            }
        }
    }

    /// Waits for the next work of a lane, and not before `rest_until`. `None`: it is time to end.
    pub(super) fn take(&self, lane: Lane, rest_until: Option<Instant>) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return None;
            }
            let rest = rest_until.map(|until| until.saturating_duration_since(Instant::now()));
            let rest = rest.filter(|rest| !rest.is_zero());
            if rest.is_none()
                && let Some(work) = state.take(lane)
            {
                return Some(work);
            }
            let bell = self.bell(lane);
            state = match rest {
                Some(rest) => {
                    let woken = bell.wait_timeout(state, rest);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => bell.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// A turn is over; `unfinished` is what remains of its work.
    pub(super) fn give_back(&self, version: u64, unfinished: Option<Work>, spent: Spent) {
        let mut state = self.lock();
        state.paces.note(version, spent);
        let Some(jobs) = state.jobs.get_mut(&version) else {
            return;
        };
        jobs.running = false;
        if let Some(work) = unfinished {
            jobs.waiting.push_front(work);
        }
        if jobs.waiting.is_empty() {
            state.jobs.remove(&version);
            return;
        }
        let lane = state.queue_up(version);
        self.bell(lane).notify_one();
    }

    /// Ends both threads after the call they are in.
    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.quick.notify_all();
        self.slow.notify_all();
    }

    const fn bell(&self, lane: Lane) -> &Condvar {
        match lane {
            Lane::Quick => &self.quick,
            Lane::Slow => &self.slow,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Puts a version at the end of the ring it belongs to now.
    fn queue_up(&mut self, version: u64) -> Lane {
        let jobs = self.jobs.get(&version);
        let is_check = jobs.is_some_and(|jobs| jobs.waiting.front().is_some_and(Work::is_check));
        if is_check || self.paces.is_slow(version) {
            self.slow.push_back(version);
            Lane::Slow
        } else {
            self.quick.push_back(version);
            Lane::Quick
        }
    }

    fn take(&mut self, lane: Lane) -> Option<Work> {
        let ring = match lane {
            Lane::Quick => &mut self.quick,
            Lane::Slow => &mut self.slow,
        };
        let jobs = self.jobs.get_mut(&ring.pop_front()?)?;
        jobs.running = true;
        jobs.waiting.pop_front()
    }
}
