//! A job while it is run, and its translation into what `tanda-script` takes and gives.

use std::borrow::Cow;
use std::time::Duration;

use tanda_engine::{
    CallContent, Classification, Content, Decision, EnqueueCall, FailureCall, FailureReason, Form,
    ScriptFault, ScriptJob, ScriptOutcome, ScriptTask,
};
use tanda_script::{HookKind, Host, Reason, Script, ScriptError};

type Enqueued = Result<Classification, ScriptFault>;
type Failed = Result<Option<Decision>, ScriptFault>;

/// A job and the results it has so far.
#[derive(Debug)]
pub(super) struct Work {
    job: ScriptJob,
    results: Results,
}

#[derive(Debug)]
enum Results {
    Check(Option<Result<(), String>>),
    Enqueue(Vec<Enqueued>),
    Failure(Vec<Failed>),
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ran {
    /// Calls with a result.
    pub(super) calls: usize,
    /// One ran out of time.
    pub(super) timed_out: bool,
}

impl Work {
    pub(super) fn new(job: ScriptJob) -> Self {
        let results = match &job.task {
            ScriptTask::Check => Results::Check(None),
            ScriptTask::Enqueue(calls) => Results::Enqueue(Vec::with_capacity(calls.len())),
            ScriptTask::Failure(calls) => Results::Failure(Vec::with_capacity(calls.len())),
        };
        Self { job, results }
    }

    /// The version of its scripts.
    pub(super) fn version(&self) -> u64 {
        self.job.scripts.version
    }

    /// Loading scripts takes longer than calling them.
    pub(super) const fn is_check(&self) -> bool {
        matches!(self.job.task, ScriptTask::Check)
    }

    /// Whether every call has its result.
    pub(super) const fn is_done(&self) -> bool {
        match (&self.job.task, &self.results) {
            (ScriptTask::Enqueue(calls), Results::Enqueue(results)) => results.len() >= calls.len(),
            (ScriptTask::Failure(calls), Results::Failure(results)) => results.len() >= calls.len(),
            (_, Results::Check(result)) => result.is_some(),
            (_, Results::Enqueue(_) | Results::Failure(_)) => true,
        }
    }

    /// Makes calls until `budget` is used up, one at least.
    pub(super) fn run(&mut self, host: &mut Host, budget: Duration) -> Ran {
        host.set_runtime(self.job.runtime.clone());
        let scripts = &*self.job.scripts;
        let script = |source| Script {
            version: scripts.version,
            queue: &self.job.queue,
            source,
        };
        match (&self.job.task, &mut self.results) {
            (ScriptTask::Enqueue(calls), Results::Enqueue(results)) => {
                let left = calls.get(results.len()..).unwrap_or_default();
                match &scripts.on_enqueue {
                    Some(source) => enqueue(host, &script(source), left, budget, results),
                    None => fill(results, left.len(), || Ok(Classification::default())),
                }
            }
            (ScriptTask::Failure(calls), Results::Failure(results)) => {
                let left = calls.get(results.len()..).unwrap_or_default();
                match &scripts.on_failure {
                    Some(source) => failure(host, &script(source), left, budget, results),
                    None => fill(results, left.len(), || Ok(None)),
                }
            }
            (_, Results::Check(result)) => {
                *result = Some(check(host, &self.job));
                Ran {
                    calls: 1,
                    timed_out: false,
                }
            }
            (_, Results::Enqueue(_) | Results::Failure(_)) => Ran::default(),
        }
    }

    /// Fails all calls that are left.
    pub(super) fn give_up(&mut self, why: &str) {
        let fault = || ScriptFault::Failed(why.to_owned());
        match (&self.job.task, &mut self.results) {
            (ScriptTask::Enqueue(calls), Results::Enqueue(results)) => {
                results.resize_with(calls.len(), || Err(fault()));
            }
            (ScriptTask::Failure(calls), Results::Failure(results)) => {
                results.resize_with(calls.len(), || Err(fault()));
            }
            (_, Results::Check(result)) => *result = Some(Err(why.to_owned())),
            (_, Results::Enqueue(_) | Results::Failure(_)) => {}
        }
    }

    /// The job with its results.
    pub(super) fn finish(self) -> (ScriptJob, ScriptOutcome) {
        let outcome = match self.results {
            Results::Check(result) => ScriptOutcome::Checked(result.unwrap_or(Ok(()))),
            Results::Enqueue(results) => ScriptOutcome::Enqueue(results),
            Results::Failure(results) => ScriptOutcome::Failure(results),
        };
        (self.job, outcome)
    }
}

fn check(host: &Host, job: &ScriptJob) -> Result<(), String> {
    let scripts = &job.scripts;
    for (kind, source) in [
        (HookKind::OnEnqueue, &scripts.on_enqueue),
        (HookKind::OnFailure, &scripts.on_failure),
    ] {
        if let Some(source) = source {
            host.check(kind, &job.queue, source)?;
        }
    }
    Ok(())
}

fn enqueue(
    host: &mut Host,
    script: &Script<'_>,
    calls: &[EnqueueCall],
    budget: Duration,
    results: &mut Vec<Enqueued>,
) -> Ran {
    let readable = calls.iter().take_while(|call| is_here(&call.content));
    if calls.first().is_some_and(|call| !is_here(&call.content)) {
        return fill(results, 1, || Err(ScriptFault::Unreadable));
    }
    let contents: Vec<_> = readable
        .map(|call| fila_content(call.form, &call.content))
        .collect();
    let mut given = Vec::new();
    let calls = calls.iter().zip(&contents).map(enqueue_call);
    host.on_enqueue(script, calls, budget, &mut given);
    collect(results, given, |given| Classification {
        fairness_key: given.fairness_key,
        weight: given.weight,
        attributes: given.attributes,
    })
}

fn failure(
    host: &mut Host,
    script: &Script<'_>,
    calls: &[FailureCall],
    budget: Duration,
    results: &mut Vec<Failed>,
) -> Ran {
    let readable = calls.iter().take_while(|call| is_here(&call.content));
    if calls.first().is_some_and(|call| !is_here(&call.content)) {
        return fill(results, 1, || Err(ScriptFault::Unreadable));
    }
    let contents: Vec<_> = readable
        .map(|call| fila_content(call.form, &call.content))
        .collect();
    let mut given = Vec::new();
    let calls = calls.iter().zip(&contents).map(failure_call);
    host.on_failure(script, calls, budget, &mut given);
    collect(results, given, |given| {
        given.map(|given| match given {
            tanda_script::Decision::Retry { delay_ms } => Decision::Retry { delay_ms },
            tanda_script::Decision::DeadLetter => Decision::DeadLetter,
        })
    })
}

const fn is_here(content: &CallContent) -> bool {
    matches!(content, CallContent::Here(_))
}

/// A content as scripts read it; those of other protocols as Fila's consumers see them.
fn fila_content(form: Form, content: &CallContent) -> Cow<'_, [u8]> {
    Content::new(form, content.bytes()).in_fila_layout()
}

fn enqueue_call<'a>(
    (call, content): (&'a EnqueueCall, &'a Cow<'_, [u8]>),
) -> tanda_script::EnqueueCall<'a> {
    let payload = Content::new(Form::Fila, content)
        .payload()
        .unwrap_or_default();
    let key = call.fairness_key.as_bytes();
    tanda_script::EnqueueCall {
        content,
        payload_bytes: payload.len() as u64,
        fairness_key: (!key.is_empty()).then_some(key),
        weight: call.weight,
    }
}

fn failure_call<'a>(
    (call, content): (&'a FailureCall, &'a Cow<'_, [u8]>),
) -> tanda_script::FailureCall<'a> {
    tanda_script::FailureCall {
        content,
        id: call.id.0,
        attempts: call.attempts,
        redrives: call.redrives,
        reason: match call.reason {
            FailureReason::Nack => Reason::Nack(str::from_utf8(&call.error).unwrap_or_default()),
            FailureReason::LeaseExpired => Reason::LeaseExpired,
        },
    }
}

fn fill<T>(results: &mut Vec<T>, count: usize, result: impl Fn() -> T) -> Ran {
    results.extend((0..count).map(|_| result()));
    Ran {
        calls: count,
        timed_out: false,
    }
}

fn collect<G, T>(
    results: &mut Vec<Result<T, ScriptFault>>,
    given: Vec<Result<G, ScriptError>>,
    translate: impl Fn(G) -> T,
) -> Ran {
    let ran = Ran {
        calls: given.len(),
        timed_out: given
            .iter()
            .any(|given| matches!(given, Err(ScriptError::TimedOut))),
    };
    results.extend(given.into_iter().map(|given| match given {
        Ok(value) => Ok(translate(value)),
        Err(ScriptError::Failed(text)) => Err(ScriptFault::Failed(text)),
        Err(ScriptError::TimedOut) => Err(ScriptFault::TimedOut),
    }));
    ran
}
