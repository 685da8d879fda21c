//! What waits to be run, and whose turn is next on each thread.
//!
//! Jobs are kept by version of their scripts, which is as good as by queue. A version with jobs
//! stands in one ring, or is being run: never twice, so its jobs are run one after the other.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
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

/// A quick thread that is so long in one turn is stuck: within one statement nothing can stop a
/// script.
const STUCK: Duration = Duration::from_millis(100);
/// Quick threads at most. All but one end once they are not stuck any more.
const QUICK_MAX: u32 = 4;

/// What a thread does next.
#[derive(Debug)]
pub(super) enum Next {
    /// A turn of this.
    Work(Work),
    /// It starts another quick thread: those there are are stuck, and work waits.
    Help,
    /// It ends.
    End,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Board {
    state: Mutex<State>,
    quick: Condvar,
    slow: Condvar,
    /// Memory of all states of scripts.
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    jobs: HashMap<u64, Jobs>,
    quick: VecDeque<u64>,
    slow: VecDeque<u64>,
    paces: Paces,
    stop: bool,
    /// Versions that quick threads run now, and since when.
    running: HashMap<u64, Instant>,
    /// Quick threads besides the first.
    helpers: u32,
    /// The slow thread looks at the quick ones now and then.
    watching: bool,
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
                if lane == Lane::Quick && state.all_quick_run() && !state.watching {
                    state.watching = true;
                    self.slow.notify_one();
                }
            }
        }
    }

    /// Waits for the next work of a lane, and not before `rest_until`.
    pub(super) fn take(&self, lane: Lane, rest_until: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            if state.stop {
                return Next::End;
            }
            let now = Instant::now();
            let rest = rest_until.map(|until| until.saturating_duration_since(now));
            let mut rest = rest.filter(|rest| !rest.is_zero());
            if rest.is_none()
                && let Some(work) = state.take(lane)
            {
                if lane == Lane::Quick {
                    state.running.insert(work.version(), now);
                }
                return Next::Work(work);
            }
            if lane == Lane::Slow {
                if state.wants_help(now) {
                    state.helpers += 1;
                    return Next::Help;
                }
                state.watching = !state.quick.is_empty();
                if state.watching {
                    rest = Some(rest.map_or(STUCK, |rest| rest.min(STUCK)));
                }
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

    /// A turn is over; `unfinished` is what remains of its work. True when the thread is to end, as
    /// another one has taken its place meanwhile.
    pub(super) fn give_back(&self, version: u64, unfinished: Option<Work>, spent: Spent) -> bool {
        let mut state = self.lock();
        state.paces.note(version, spent);
        let since = state.running.remove(&version);
        let was_stuck = since.is_some_and(|since| since.elapsed() > STUCK);
        let ends = was_stuck && state.helpers > 0;
        state.helpers -= u32::from(ends);
        let Some(jobs) = state.jobs.get_mut(&version) else {
            return ends;
        };
        jobs.running = false;
        if let Some(work) = unfinished {
            jobs.waiting.push_front(work);
        }
        if jobs.waiting.is_empty() {
            state.jobs.remove(&version);
            return ends;
        }
        let lane = state.queue_up(version);
        self.bell(lane).notify_one();
        ends
    }

    /// The thread that was to help could not be started.
    pub(super) fn lost_helper(&self) {
        let mut state = self.lock();
        state.helpers = state.helpers.saturating_sub(1);
    }

    /// The memory of a thread's states was `before` and is `now`.
    pub(super) fn note_memory(&self, before: usize, now: usize) {
        self.bytes.fetch_add(now, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Memory of all states.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
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

    /// All quick threads are in a turn.
    fn all_quick_run(&self) -> bool {
        self.running.len() > self.helpers as usize
    }

    /// Quick work waits, and all threads for it are stuck.
    fn wants_help(&self, now: Instant) -> bool {
        let is_stuck = |since: &Instant| now.saturating_duration_since(*since) > STUCK;
        !self.quick.is_empty()
            && self.helpers + 1 < QUICK_MAX
            && self.all_quick_run()
            && self.running.values().all(is_stuck)
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
