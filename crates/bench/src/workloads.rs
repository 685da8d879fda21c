//! What is measured. One file per workload; `docs/benchmarks.md` describes them all.

mod amaquet;
mod amqp;
mod backlog;
mod beside;
mod big;
mod enqueue;
mod firemq;
mod flood;
mod half_frames;
mod idle;
mod keys;
mod latency;
mod memory;
mod scripts;
mod single;
mod steady;
mod throttles;

use crate::error::BenchError;
use crate::lab::Lab;
use crate::report::CaseResult;

/// One workload and its cases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    /// Its name.
    pub(crate) name: &'static str,
    /// Names of its cases.
    pub(crate) cases: fn(&Lab) -> Vec<String>,
    /// Measures one case once. Results may have more rows than the case has names.
    pub(crate) run: fn(&Lab, &str) -> Result<Vec<CaseResult>, BenchError>,
}

/// All of them, in the order in which they run.
pub(crate) const ALL: &[Workload] = &[
    idle::WORKLOAD,
    single::WORKLOAD,
    enqueue::WORKLOAD,
    backlog::WORKLOAD,
    steady::WORKLOAD,
    latency::WORKLOAD,
    keys::WORKLOAD,
    memory::WORKLOAD,
    half_frames::WORKLOAD,
    beside::WORKLOAD,
    amqp::STREAM,
    amqp::CONFIRM,
    amqp::BACKLOG,
    firemq::STREAM,
    firemq::CONFIRM,
    firemq::BACKLOG,
    amaquet::WORKLOAD,
    amaquet::REDIS,
    scripts::WORKLOAD,
    throttles::WORKLOAD,
    big::WORKLOAD,
];

/// The cases of a workload that has one.
fn only_one(_: &Lab) -> Vec<String> {
    vec!["all".to_owned()]
}
