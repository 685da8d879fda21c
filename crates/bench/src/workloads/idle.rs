//! A server with nothing to do: how soon it is ready, what it holds, what it burns.

use std::thread;
use std::time::Duration;

use super::{Workload, only_one};
use crate::error::BenchError;
use crate::lab::Lab;
use crate::meter::{Meter, mib};
use crate::process::Process;
use crate::report::{CaseResult, median};

pub(super) const WORKLOAD: Workload = Workload {
    name: "idle",
    cases: only_one,
    run,
};

const STARTS: u32 = 5;
const REST: Duration = Duration::from_millis(500);

fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let mut result = CaseResult::new("empty directory");
    if !lab.starts_servers() {
        result.note("needs a server of its own");
        return Ok(vec![result]);
    }
    let mut ready_ms = Vec::new();
    for _ in 1..STARTS {
        ready_ms.push(lab.server()?.ready.as_secs_f64() * 1e3);
    }
    let server = lab.server()?;
    ready_ms.push(server.ready.as_secs_f64() * 1e3);
    thread::sleep(REST);
    let meter = Meter::start(server.process);
    thread::sleep(REST);
    let mut load = CaseResult::new("");
    meter.lap().describe(0, server.process, &mut load);
    let rss = server.process.and_then(Process::rss_bytes);
    result.push_some("ready_ms", median(&ready_ms));
    result.push_some("rss_mib", rss.map(mib));
    result.push_some("cpu_percent", load.value("server_cpu_percent"));
    Ok(vec![result])
}
