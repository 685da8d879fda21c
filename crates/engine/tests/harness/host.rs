//! A host of scripts that knows no Lua: a script's text is a word or two, and what it says of a
//! message stands in the message's headers.
//!
//! `on_enqueue`: a message whose header `fails` or `hangs` names the script's text makes it fail or
//! time out. Otherwise `tenant` is the fairness key it returns, `w` the weight, and `@name` an
//! attribute. A script `config K` also returns the attribute `config` with `fila.get("K")`.
//!
//! `on_failure`: `retry`, `retry 500`, `dlq`, `nil`, `hang`; any other text fails.
//!
//! A script with `syntax` in it does not compile.

use tanda_engine::{
    CallContent, Classification, Content, Decision, EnqueueCall, Lsn, Output, Request, ScriptFault,
    ScriptJob, ScriptOutcome, ScriptTask,
};

use super::{Harness, MemJournal};

impl Harness {
    /// The jobs that are to be run, with their contents.
    pub(crate) fn script_jobs(&mut self) -> Vec<ScriptJob> {
        let mut jobs = Vec::new();
        self.engine.take_script_jobs(&mut jobs);
        for job in &mut jobs {
            let contents: Vec<&mut CallContent> = match &mut job.task {
                ScriptTask::Check => Vec::new(),
                ScriptTask::Enqueue(calls) => calls.iter_mut().map(|it| &mut it.content).collect(),
                ScriptTask::Failure(calls) => calls.iter_mut().map(|it| &mut it.content).collect(),
            };
            for content in contents {
                if let CallContent::Log { at, len } = *content {
                    *content = match self.journal.content(at, len) {
                        Some(bytes) => CallContent::Here(bytes.into()),
                        None => CallContent::Unreadable,
                    };
                }
            }
        }
        jobs
    }

    /// The only job that is to be run.
    pub(crate) fn script_job(&mut self) -> ScriptJob {
        let jobs = self.script_jobs();
        let [job] = <[ScriptJob; 1]>::try_from(jobs).expect("one job");
        job
    }

    /// Runs a job and gives it back; what the engine says to that.
    pub(crate) fn finish(&mut self, job: ScriptJob) -> Vec<Output> {
        let outcome = run(&job);
        self.finish_with(job, outcome)
    }

    pub(crate) fn finish_with(&mut self, job: ScriptJob, outcome: ScriptOutcome) -> Vec<Output> {
        let job = Box::new(job);
        self.handle(Request::ScriptDone { job, outcome })
    }

    /// Runs jobs and passes until nothing more can be done now.
    pub(crate) fn run_scripts(&mut self) -> Vec<Output> {
        let mut out = self.run();
        loop {
            let jobs = if self.has_host {
                self.script_jobs()
            } else {
                Vec::new()
            };
            if jobs.is_empty() {
                return out;
            }
            for job in jobs {
                out.extend(self.finish(job));
            }
            out.extend(self.run());
        }
    }
}

impl MemJournal {
    /// Bytes that were written at `at`.
    pub(crate) fn content(&self, at: Lsn, len: u32) -> Option<Vec<u8>> {
        let at = self.copies.get(&at).copied().unwrap_or(at);
        let next = self.records.partition_point(|(start, _)| *start <= at);
        let (start, record) = self.records.get(next.checked_sub(1)?)?;
        let from = usize::try_from(at.0 - start.0).unwrap();
        let to = from + usize::try_from(len).unwrap();
        record.get(from..to).map(<[u8]>::to_vec)
    }
}

/// What the job's scripts say.
pub(crate) fn run(job: &ScriptJob) -> ScriptOutcome {
    let scripts = &job.scripts;
    match &job.task {
        ScriptTask::Check => {
            let all = [&scripts.on_enqueue, &scripts.on_failure];
            let bad = all.into_iter().flatten().find(|it| it.contains("syntax"));
            ScriptOutcome::Checked(match bad {
                Some(text) => Err(format!("line 1: {text}")),
                None => Ok(()),
            })
        }
        ScriptTask::Enqueue(calls) => {
            let script = scripts.on_enqueue.as_deref().expect("an on_enqueue script");
            let results = calls.iter().map(|call| on_enqueue(job, script, call));
            ScriptOutcome::Enqueue(results.collect())
        }
        ScriptTask::Failure(calls) => {
            let script = scripts.on_failure.as_deref().expect("an on_failure script");
            let results = calls.iter().map(|_| on_failure(script));
            ScriptOutcome::Failure(results.collect())
        }
    }
}

fn on_enqueue(
    job: &ScriptJob,
    script: &str,
    call: &EnqueueCall,
) -> Result<Classification, ScriptFault> {
    let CallContent::Here(bytes) = &call.content else {
        return Err(ScriptFault::Unreadable);
    };
    let content = Content::new(call.form, bytes);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let header = |name: &str| content.header(name.as_bytes()).map(|it| text(&it));
    let names = |name: &str| header(name).is_some_and(|all| all.split(' ').any(|it| it == script));
    if names("fails") {
        return Err(ScriptFault::Failed(format!("{script} failed")));
    }
    if names("hangs") {
        return Err(ScriptFault::TimedOut);
    }
    let attributes = content.headers().filter_map(|(name, value)| {
        let name = name.strip_prefix(b"@")?;
        Some((text(name), text(&value)))
    });
    let mut attributes: Vec<_> = attributes.collect();
    if let Some(key) = script.strip_prefix("config ")
        && let Some(value) = job.runtime.get(key)
    {
        attributes.push(("config".to_owned(), value.clone()));
    }
    Ok(Classification {
        fairness_key: header("tenant"),
        weight: header("w").map(|weight| weight.parse().unwrap()),
        attributes,
    })
}

fn on_failure(script: &str) -> Result<Option<Decision>, ScriptFault> {
    if let Some(delay) = script.strip_prefix("retry ") {
        let delay_ms = Some(delay.parse().unwrap());
        return Ok(Some(Decision::Retry { delay_ms }));
    }
    match script {
        "retry" => Ok(Some(Decision::Retry { delay_ms: None })),
        "dlq" => Ok(Some(Decision::DeadLetter)),
        "nil" => Ok(None),
        "hang" => Err(ScriptFault::TimedOut),
        other => Err(ScriptFault::Failed(format!("{other} failed"))),
    }
}
