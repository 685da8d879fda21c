//! One message at a time: the latency of its confirm beside a commit of the bare log.
//!
//! Both write to the same file system in turns of a fraction of a second, so that a disk that gets
//! slower for a while does so for both.

use super::{Workload, only_one};
use crate::bare_log::BareLog;
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, Producers, add_producers, settle};
use crate::meter::Meter;
use crate::pump::{Goal, Pump};
use crate::report::CaseResult;
use crate::tally::{Latencies, Limits};

pub(super) const WORKLOAD: Workload = Workload {
    name: "single",
    cases: only_one,
    run,
};

const PAYLOAD_BYTES: usize = 100;
const ONE: Producers = Producers {
    connections: 1,
    outstanding: 1,
};
/// Turns of each side in one measuring time.
const TURNS: u32 = 8;

fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let mut pump = Pump::new(Limits::NONE)?;
    let shape = Shape {
        queue: &queue,
        batch: 1,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    add_producers(&mut pump, &server, &shape, ONE)?;
    let mut log = BareLog::create(&lab.fresh_dir("log"))?;
    let mut commits = Latencies::new()?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    log.commit_latency(PAYLOAD_BYTES, lab.scale.warm_up, &mut commits)?;
    commits.clear();

    let mut confirms = Latencies::new()?;
    let meter = Meter::start(server.process);
    let before = pump.tally.confirmed;
    for _ in 0..TURNS {
        // The request that waited while the log had its turn is not counted.
        pump.run(
            lab.scale.step_max,
            Goal::Confirmed(pump.tally.confirmed + 2),
        )?;
        pump.tally.confirms.clear();
        pump.run(lab.scale.measure / TURNS, Goal::Time)?;
        confirms.merge(&pump.tally.confirms);
        log.commit_latency(PAYLOAD_BYTES, lab.scale.measure / TURNS, &mut commits)?;
    }
    let lap = meter.lap();
    let confirmed = pump.tally.confirmed - before;
    let mut result = CaseResult::new("1 message of 100 B outstanding");
    result.push("confirm_p50_us", confirms.micros(50.0));
    result.push("commit_p50_us", commits.micros(50.0));
    let ratio = confirms.micros(50.0) / commits.micros(50.0).max(1e-9);
    result.push("p50_of_commit", ratio);
    result.push("confirm_p10_us", confirms.micros(10.0));
    result.push("commit_p10_us", commits.micros(10.0));
    let ratio = confirms.micros(10.0) / commits.micros(10.0).max(1e-9);
    result.push("p10_of_commit", ratio);
    result.push("confirm_p99_us", confirms.micros(99.0));
    result.push("commit_p99_us", commits.micros(99.0));
    result.push_some(
        "server_cpu_s_per_million",
        lap.server_cpu_per_million(confirmed),
    );
    settle(lab, &mut pump)?;
    Ok(vec![result])
}
