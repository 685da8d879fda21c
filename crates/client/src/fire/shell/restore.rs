//! Declaring again on a new connection what was declared on the last one.
//!
//! Owns: the order (exchanges and queues, then bindings, then subscriptions), further tries of what
//! the old connection still holds on the server, and what cannot be restored.
//! Refuses to know: requests, and connections.
//!
//! A stage begins when all of the one before is answered: a binding needs the name that its queue
//! got, a subscription must not miss what a binding brings.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::subscriptions::Subscriptions;
use crate::fire::core::declared::Declared;
use crate::fire::error::{Refusal, SubscriptionError};
use crate::fire::topology::Binding;
use crate::policy::exponential_ms;

/// Further tries of one step that may pass: 26 s, in which a server notices that the old connection
/// is dead, with its exclusive queues.
const TRIES_MAX: u32 = 10;
/// The delays between them.
const DELAY_MS: u64 = 100;
const DELAY_MS_MAX: u64 = 5_000;

/// One thing to declare again, by the names the program uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Exchange(String),
    Queue(String),
    Binding(Binding),
    Subscription(u64),
}

/// What restoring does next.
#[derive(Debug)]
pub(super) enum Next {
    /// Ask for this, which was tried so often before.
    Ask(Step, u32),
    /// Wait for an answer, or for the time.
    Wait,
    /// Everything is there.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Nodes,
    Bindings,
    Subscriptions,
}

/// What is on its way back.
#[derive(Debug)]
pub(super) struct Restore {
    stage: Stage,
    ready: VecDeque<(Step, u32)>,
    /// By (time in ms, number).
    delayed: BTreeMap<(u64, u64), (Step, u32)>,
    delayed_count: u64,
    /// Requests without an answer.
    waiting: usize,
    /// Queues that would miss messages, by their program's names, and why.
    broken: HashMap<String, SubscriptionError>,
}

impl Restore {
    pub(super) fn new(declared: &Declared) -> Self {
        let exchanges = declared.exchanges_by_age().into_iter().map(Step::Exchange);
        let queues = declared.queues_by_age().into_iter().map(Step::Queue);
        Self {
            stage: Stage::Nodes,
            ready: exchanges.chain(queues).map(|step| (step, 0)).collect(),
            delayed: BTreeMap::new(),
            delayed_count: 0,
            waiting: 0,
            broken: HashMap::new(),
        }
    }

    /// What to do now. A stage that is done leads to the next one.
    pub(super) fn next(
        &mut self,
        now_ms: u64,
        declared: &Declared,
        subscriptions: &Subscriptions,
    ) -> Next {
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now_ms
        {
            self.ready.push_back(entry.remove());
        }
        loop {
            if let Some((step, tries)) = self.ready.pop_front() {
                return Next::Ask(step, tries);
            }
            if self.waiting > 0 || !self.delayed.is_empty() {
                return Next::Wait;
            }
            let steps: Vec<Step> = match self.stage {
                Stage::Nodes => {
                    self.stage = Stage::Bindings;
                    let bindings = declared.bindings_by_age().into_iter();
                    bindings.map(Step::Binding).collect()
                }
                Stage::Bindings => {
                    self.stage = Stage::Subscriptions;
                    subscriptions.slots().map(Step::Subscription).collect()
                }
                Stage::Subscriptions => return Next::Done,
            };
            self.ready.extend(steps.into_iter().map(|step| (step, 0)));
        }
    }

    /// One was asked for.
    pub(super) const fn on_asked(&mut self) {
        self.waiting += 1;
    }

    /// One was answered.
    pub(super) const fn on_answered(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// When a delayed step is due.
    pub(super) fn next_deadline_ms(&self) -> Option<u64> {
        self.delayed.keys().next().map(|(due_ms, _)| *due_ms)
    }

    /// Puts a refused step off, if trying again may help.
    pub(super) fn delay(
        &mut self,
        now_ms: u64,
        (step, tries): (Step, u32),
        refusal: &Refusal,
    ) -> Option<Step> {
        if !refusal.retryable() || tries >= TRIES_MAX {
            return Some(step);
        }
        let due_ms = now_ms.saturating_add(exponential_ms(DELAY_MS, DELAY_MS_MAX, tries));
        self.delayed_count += 1;
        self.delayed
            .insert((due_ms, self.delayed_count), (step, tries + 1));
        None
    }

    /// A queue would miss messages from now on.
    pub(super) fn on_broken(&mut self, queue: &str, what: String, refusal: Refusal) {
        let error = SubscriptionError::NotRestored {
            what: Arc::from(what),
            refusal,
        };
        self.broken.entry(queue.to_owned()).or_insert(error);
    }

    /// Why a queue would miss messages.
    pub(super) fn broken(&self, queue: &str) -> Option<&SubscriptionError> {
        self.broken.get(queue)
    }
}
