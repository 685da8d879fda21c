//! A host of scripts that runs none: it says after a while what a script would have said, fails as
//! its seed has it, and gives jobs back in any order.

use tanda_engine::{
    CallContent, Classification, Content, Decision, FailureCall, Form, Millis, Request,
    ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};

use super::Host;
use crate::Canary;
use crate::history::TAG_HEADER;
use crate::invariants::scripted;
use crate::random::Random;

/// See the module.
pub(super) struct Scripts {
    random: Random,
    /// Percents of calls.
    fails: u64,
    times_out: u64,
    takes_ms_max: u64,
    /// It does what it is to do, at once.
    is_kind: bool,
    /// Jobs, and when each is done.
    jobs: Vec<(Millis, ScriptJob)>,
    /// Decisions about failed messages that are on their way to the engine.
    pub(super) decided: Vec<(FailureCall, Decision)>,
}

impl Scripts {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::stream(seed, "scripts");
        Self {
            fails: random.below(30),
            times_out: random.below(30),
            takes_ms_max: *random.pick(&[1, 50, 3_000]).unwrap_or(&1),
            is_kind: false,
            jobs: Vec::new(),
            decided: Vec::new(),
            random,
        }
    }

    pub(super) fn be_kind(&mut self) {
        self.is_kind = true;
        for (due, _) in &mut self.jobs {
            *due = Millis(0);
        }
    }

    /// The process is gone.
    pub(super) fn lose(&mut self) {
        self.jobs.clear();
        self.decided.clear();
    }

    fn fault(&mut self) -> Option<ScriptFault> {
        if self.is_kind {
            return None;
        }
        let draw = self.random.below(100);
        if draw < self.fails {
            return Some(ScriptFault::Failed("not today".to_owned()));
        }
        (draw < self.fails + self.times_out).then_some(ScriptFault::TimedOut)
    }

    fn run(&mut self, canary: Canary, task: &ScriptTask) -> ScriptOutcome {
        match task {
            ScriptTask::Check => ScriptOutcome::Checked(Ok(())),
            ScriptTask::Enqueue(calls) => {
                let results = calls.iter().map(|call| {
                    self.fault()
                        .map_or_else(|| classify(canary, &call.content), Err)
                });
                ScriptOutcome::Enqueue(results.collect())
            }
            ScriptTask::Failure(calls) => {
                let results = calls.iter().map(|call| self.decide(canary, call));
                ScriptOutcome::Failure(results.collect())
            }
        }
    }

    fn decide(
        &mut self,
        canary: Canary,
        call: &FailureCall,
    ) -> Result<Option<Decision>, ScriptFault> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let decision = match self.random.below(4) {
            0 => return Ok(None),
            1 => Decision::DeadLetter,
            2 => Decision::Retry { delay_ms: None },
            _ => Decision::Retry {
                delay_ms: Some(self.random.below(2_000)),
            },
        };
        self.decided.push((call.clone(), decision));
        if canary == Canary::ForgottenDecisions {
            return Ok(Some(Decision::Retry { delay_ms: Some(0) }));
        }
        Ok(Some(decision))
    }
}

fn classify(canary: Canary, content: &CallContent) -> Result<Classification, ScriptFault> {
    if *content == CallContent::Unreadable {
        return Err(ScriptFault::Unreadable);
    }
    if canary == Canary::IgnoredScripts {
        return Ok(Classification::default());
    }
    let tag = Content::new(Form::Fila, content.bytes()).header(TAG_HEADER.as_bytes());
    let tag = tag.and_then(|tag| str::from_utf8(&tag).ok()?.parse::<usize>().ok());
    let Some(tag) = tag else {
        return Err(ScriptFault::Failed("no tag".to_owned()));
    };
    let (fairness_key, weight) = scripted::classified(tag);
    Ok(Classification {
        fairness_key: Some(fairness_key),
        weight: Some(weight),
        attributes: vec![("tag".to_owned(), tag.to_string())],
    })
}

impl Host {
    /// Takes what the node has for scripts.
    pub(super) fn take_script_jobs(&mut self, now: Millis) {
        let Some(node) = &mut self.node else { return };
        let mut jobs = Vec::new();
        node.take_script_jobs(&mut jobs);
        for job in jobs {
            let takes_ms = if self.scripts.is_kind {
                0
            } else {
                self.scripts.random.below(self.scripts.takes_ms_max)
            };
            self.scripts.jobs.push((now.after_ms(takes_ms), job));
        }
    }

    /// One of the jobs that are done goes back. Returns how many did.
    pub(crate) fn finish_script(&mut self, now: Millis) -> usize {
        let jobs = self.scripts.jobs.iter().enumerate();
        let done: Vec<usize> = jobs.filter(|(_, it)| it.0 <= now).map(|(n, _)| n).collect();
        let Some(index) = self.scripts.random.pick(&done).copied() else {
            return 0;
        };
        let (_, job) = self.scripts.jobs.swap_remove(index);
        let outcome = self.scripts.run(self.canary, &job.task);
        let job = Box::new(job);
        // Room for it is always found, as in `server`.
        self.channel.push_back(Request::ScriptDone { job, outcome });
        1
    }

    /// What was decided since the last call.
    pub(crate) fn decisions(&mut self) -> Vec<(FailureCall, Decision)> {
        core::mem::take(&mut self.scripts.decided)
    }
}
