//! The limits of one throttle: those that apply, and those whose windows still run.

use super::history::EXACT_MAX;
use super::{MissingThrottleKey, ThrottleLimit, ThrottleSpec};
use crate::Millis;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    declared: Vec<Declared>,
    /// Those of `declared` that apply, by window and number.
    limits: Vec<ThrottleLimit>,
    /// Windows that are counted in slots.
    coarse: Vec<u64>,
    /// Instants that a history keeps at most.
    instants_max: usize,
    longest_ms: u64,
    /// Grows with every change.
    version: u64,
    /// Declarations that want a shared bucket for messages without the key.
    shared: u32,
}

/// One limit and who declares it.
#[derive(Clone, Copy, Debug)]
struct Declared {
    limit: ThrottleLimit,
    declarations: u32,
    /// Nobody declares it any more: its history is kept until then.
    until: Millis,
}

impl Rules {
    /// The limits that apply: of all declarations, each once, by window.
    pub(crate) fn limits(&self) -> &[ThrottleLimit] {
        &self.limits
    }

    pub(crate) fn coarse(&self) -> &[u64] {
        &self.coarse
    }

    pub(crate) const fn instants_max(&self) -> usize {
        self.instants_max
    }

    pub(crate) const fn longest_ms(&self) -> u64 {
        self.longest_ms
    }

    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// A shared bucket wins over declarations that let such messages pass.
    pub(crate) const fn missing(&self) -> MissingThrottleKey {
        if self.shared > 0 {
            MissingThrottleKey::SharedBucket
        } else {
            MissingThrottleKey::Unthrottled
        }
    }

    /// All limits whose history is kept.
    pub(crate) fn kept(&self) -> impl ExactSizeIterator<Item = ThrottleLimit> {
        self.declared.iter().map(|it| it.limit)
    }

    /// Limits that would apply together with these.
    pub(crate) fn with(&self, spec: &ThrottleSpec) -> usize {
        let fresh = |it: &&ThrottleLimit| !self.limits.contains(it);
        let mut fresh: Vec<_> = spec.limits.iter().filter(fresh).collect();
        fresh.sort_unstable();
        fresh.dedup();
        self.limits.len() + fresh.len()
    }

    /// One more subscriber declares this.
    pub(crate) fn declare(&mut self, spec: &ThrottleSpec, now: Millis) {
        self.shared += u32::from(spec.missing == MissingThrottleKey::SharedBucket);
        for limit in distinct(&spec.limits) {
            match self.declared.binary_search_by_key(&limit, |it| it.limit) {
                Ok(at) => {
                    if let Some(it) = self.declared.get_mut(at) {
                        it.declarations += 1;
                    }
                }
                Err(at) => self.declared.insert(
                    at,
                    Declared {
                        limit,
                        declarations: 1,
                        until: Millis(0),
                    },
                ),
            }
        }
        self.work_out(now);
    }

    /// A subscriber that declared this is gone.
    pub(crate) fn withdraw(&mut self, spec: &ThrottleSpec, now: Millis) {
        self.shared -= u32::from(spec.missing == MissingThrottleKey::SharedBucket);
        for limit in distinct(&spec.limits) {
            let found = self.declared.iter_mut().find(|it| it.limit == limit);
            if let Some(it) = found {
                it.declarations -= 1;
                it.until = now.after_ms(limit.window_ms);
            }
        }
        self.work_out(now);
    }

    /// In replay: a limit under which there were deliveries.
    pub(crate) fn keep(&mut self, limit: ThrottleLimit, now: Millis) {
        let until = now.after_ms(limit.window_ms);
        match self.declared.binary_search_by_key(&limit, |it| it.limit) {
            Ok(at) => {
                if let Some(it) = self.declared.get_mut(at) {
                    it.until = it.until.max(until);
                }
                return;
            }
            Err(at) => self.declared.insert(
                at,
                Declared {
                    limit,
                    declarations: 0,
                    until,
                },
            ),
        }
        self.work_out(now);
    }

    fn work_out(&mut self, now: Millis) {
        self.declared
            .retain(|it| it.declarations > 0 || it.until > now);
        let apply = self.declared.iter().filter(|it| it.declarations > 0);
        self.limits = apply.map(|it| it.limit).collect();
        let kept = self.declared.iter().map(|it| it.limit);
        let is_exact = |it: &ThrottleLimit| it.max_deliveries <= EXACT_MAX;
        self.coarse = kept
            .clone()
            .filter(|it| !is_exact(it))
            .map(|it| it.window_ms)
            .collect();
        self.coarse.dedup();
        let exact = kept.clone().filter(is_exact).map(|it| it.max_deliveries);
        self.instants_max = usize::try_from(exact.max().unwrap_or(0)).unwrap_or(0);
        self.longest_ms = kept.map(|it| it.window_ms).max().unwrap_or(0);
        self.version += 1;
    }
}

fn distinct(limits: &[ThrottleLimit]) -> Vec<ThrottleLimit> {
    let mut limits = limits.to_vec();
    limits.sort_unstable();
    limits.dedup();
    limits
}
