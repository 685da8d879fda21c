//! The states of many scripts, loaded when they are needed.
//!
//! Owns when a state is kept, thrown away and loaded again:
//! - after a call that used up time or memory it is thrown away;
//! - a call that met the memory limit in a state that served others before is made once more in a
//!   fresh one, so that what a script gathered in its locals fails no message;
//! - the one that was used least recently goes when all together take too much memory.

use std::{
    cell::RefCell,
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use crate::{
    enqueue::{self, Classification, EnqueueCall},
    error::{Broken, ScriptError},
    failure::{self, Decision, FailureCall},
    hook::{Hook, HookKind},
    limits::{Limits, SOURCE_BYTES_MAX},
    packed::Packed,
    sandbox::{Runtime, RuntimeCell},
};

/// The script of one hook of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// Tells scripts apart: two sources never share one, nor do two queues.
    pub version: u64,
    /// The queue's name, which the script sees.
    pub queue: &'a str,
    /// Its source.
    pub source: &'a str,
}

/// A state that waits for its next turn.
#[derive(Debug)]
struct Kept {
    hook: Hook,
    used_bytes: usize,
    used_at: u64,
}

/// See the module. It stays on the thread that made it.
#[derive(Debug)]
pub struct Host {
    limits: Limits,
    runtime: RuntimeCell,
    kept: HashMap<(u64, HookKind), Kept>,
    kept_bytes: usize,
    /// Counts turns, to know which state was used last.
    clock: u64,
    scratch: Scratch,
}

/// Memory that calls use in turn.
#[derive(Debug, Default)]
struct Scratch {
    packed: Packed,
    read: Vec<u8>,
}

impl Host {
    /// A host without any state yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            runtime: Rc::new(RefCell::new(Runtime::default())),
            kept: HashMap::new(),
            kept_bytes: 0,
            clock: 0,
            scratch: Scratch::default(),
        }
    }

    /// What `fila.get` reads from now on.
    pub fn set_runtime(&mut self, runtime: Runtime) {
        self.runtime.replace(runtime);
    }

    /// Whether a source compiles, runs under the limits and defines its hook. Nothing is kept.
    ///
    /// # Errors
    /// Says what is wrong, with the line.
    pub fn check(&self, kind: HookKind, queue: &str, source: &str) -> Result<(), String> {
        let loaded = self.load(kind, queue, source);
        loaded.map(|_| ()).map_err(|broken| {
            let error = self.error_of(broken);
            match error {
                ScriptError::Failed(text) => text,
                ScriptError::TimedOut => format!(
                    "the code outside of {} ran for longer than {:?}",
                    kind.name(),
                    self.limits.time
                ),
            }
        })
    }

    /// Classifies messages in turn and adds a result for each to `results`. It ends early once
    /// `budget` is used up, after one message at least.
    pub fn on_enqueue<'a>(
        &mut self,
        script: &Script<'_>,
        calls: impl IntoIterator<Item = EnqueueCall<'a>>,
        budget: Duration,
        results: &mut Vec<Result<Classification, ScriptError>>,
    ) {
        let calls = calls.into_iter();
        self.turn(HookKind::OnEnqueue, script, (calls, budget), results, {
            |hook, scratch, call| enqueue::call(hook, call, &mut scratch.packed, &mut scratch.read)
        });
    }

    /// Decides on failed deliveries in turn, likewise; `None` leaves one to the retry policy.
    pub fn on_failure<'a>(
        &mut self,
        script: &Script<'_>,
        calls: impl IntoIterator<Item = FailureCall<'a>>,
        budget: Duration,
        results: &mut Vec<Result<Option<Decision>, ScriptError>>,
    ) {
        let calls = calls.into_iter();
        self.turn(HookKind::OnFailure, script, (calls, budget), results, {
            |hook, scratch, call| failure::call(hook, call, &mut scratch.packed)
        });
    }

    /// Drops the states of a script that will not be called again.
    pub fn forget(&mut self, version: u64) {
        for kind in [HookKind::OnEnqueue, HookKind::OnFailure] {
            self.take((version, kind));
        }
    }

    /// Memory of all states.
    #[must_use]
    pub const fn used_bytes(&self) -> usize {
        self.kept_bytes
    }

    fn turn<C, T>(
        &mut self,
        kind: HookKind,
        script: &Script<'_>,
        (calls, budget): (impl Iterator<Item = C>, Duration),
        results: &mut Vec<Result<T, ScriptError>>,
        call: impl Fn(&mut Hook, &mut Scratch, &C) -> Result<T, Broken>,
    ) {
        let started = Instant::now();
        let mut hook = self.take((script.version, kind));
        hook.iter().for_each(Hook::start_turn);
        for item in calls {
            let result = self.call(&mut hook, kind, script, |hook, scratch| {
                call(hook, scratch, &item)
            });
            results.push(result);
            let ended_at = hook.as_ref().map_or_else(Instant::now, Hook::ended_at);
            if ended_at.saturating_duration_since(started) >= budget {
                break;
            }
        }
        if let Some(hook) = hook {
            self.keep((script.version, kind), hook);
        }
    }

    /// One call. The state it leaves is none when it broke.
    fn call<T>(
        &mut self,
        state: &mut Option<Hook>,
        kind: HookKind,
        script: &Script<'_>,
        mut call: impl FnMut(&mut Hook, &mut Scratch) -> Result<T, Broken>,
    ) -> Result<T, ScriptError> {
        loop {
            let mut hook = match state.take() {
                Some(hook) => hook,
                None => self
                    .load(kind, script.queue, script.source)
                    .map_err(|broken| self.error_of(broken))?,
            };
            match call(&mut hook, &mut self.scratch) {
                Ok(value) => {
                    *state = Some(hook);
                    return Ok(value);
                }
                Err(Broken::Failed(text)) => {
                    *state = Some(hook);
                    return Err(ScriptError::Failed(text));
                }
                // It served others before: once more in a fresh one.
                Err(Broken::Memory) if hook.calls > 1 => {}
                Err(broken) => return Err(self.error_of(broken)),
            }
        }
    }

    fn error_of(&self, broken: Broken) -> ScriptError {
        match broken {
            Broken::Failed(text) => ScriptError::Failed(text),
            Broken::Time => ScriptError::TimedOut,
            Broken::Memory => ScriptError::Failed(format!(
                "the script needs more memory than its limit of {} bytes",
                self.limits.memory_bytes
            )),
        }
    }

    fn load(&self, kind: HookKind, queue: &str, source: &str) -> Result<Hook, Broken> {
        if source.len() > SOURCE_BYTES_MAX {
            let len = source.len();
            return Err(Broken::Failed(format!(
                "the script has {len} bytes; at most {SOURCE_BYTES_MAX}"
            )));
        }
        Hook::load(kind, queue, source, &self.limits, &self.runtime)
    }

    fn take(&mut self, key: (u64, HookKind)) -> Option<Hook> {
        let kept = self.kept.remove(&key)?;
        self.kept_bytes -= kept.used_bytes;
        Some(kept.hook)
    }

    /// Keeps a state for later, and drops the oldest ones when there is no room for it.
    fn keep(&mut self, key: (u64, HookKind), hook: Hook) {
        let used_bytes = hook.used_bytes();
        while self.kept_bytes + used_bytes > self.limits.states_bytes_max {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used_at);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                break;
            };
            self.take(oldest);
        }
        self.clock += 1;
        let used_at = self.clock;
        self.kept_bytes += used_bytes;
        self.kept.insert(
            key,
            Kept {
                hook,
                used_bytes,
                used_at,
            },
        );
    }
}
