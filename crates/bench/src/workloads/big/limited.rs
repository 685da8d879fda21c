//! A backlog of many times the memory limit: stored, there after a kill, drained in order.

use super::{BATCH, READING, drain, store};
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::Lab;
use crate::meter::{Meter, as_f64, mib};
use crate::peers::consumer::{Payloads, Reading};
use crate::process::Process;
use crate::report::CaseResult;

/// Times the backlog of the scale.
const FACTOR: u64 = 20;
const PAYLOAD_BYTES: usize = 1024;
const LIMIT: &str = "512MiB";

pub(super) fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let messages = FACTOR * lab.scale.backlog;
    let options = ["--memory-limit".to_owned(), LIMIT.to_owned()];
    let mut server = lab.server_with(&options)?;
    let queue = lab.queue(&server)?;
    let shape = Shape {
        queue: &queue,
        batch: BATCH,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let mut result = CaseResult::new(case);
    let meter = Meter::start(server.process);
    store(lab, &server, &shape, 0..messages)?;
    result.push("stored_per_s", meter.lap().rate(messages));
    let peak = |process: Option<Process>| process.and_then(Process::peak_rss_bytes).map(mib);
    result.push_some("store_peak_rss_mib", peak(server.process));
    result.push_some("disk_mib", server.disk_bytes().map(mib));

    server.kill_and_restart()?;
    result.push("ready_ms", server.ready.as_secs_f64() * 1e3);
    result.push_some("start_peak_rss_mib", peak(server.process));

    let meter = Meter::start(server.process);
    let reading = Reading {
        payloads: Payloads::Numbered,
        ..READING
    };
    drain(lab, &server, &queue, reading, messages)?;
    result.push("drained_per_s", meter.lap().rate(messages));
    result.push_some("drain_peak_rss_mib", peak(server.process));
    result.push("messages", as_f64(messages));
    Ok(vec![result])
}
