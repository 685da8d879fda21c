//! Memory of a queued message besides its body.
//!
//! The server keeps the newest bodies in memory up to a fixed size. The first part of the messages
//! fills that; what the second part adds is the price of having them queued.

use std::thread;
use std::time::Duration;

use super::{Workload, only_one};
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, preload};
use crate::meter::{as_f64, mib};
use crate::process::Process;
use crate::report::CaseResult;

pub(super) const WORKLOAD: Workload = Workload {
    name: "memory",
    cases: only_one,
    run,
};

const PAYLOAD_BYTES: usize = 100;
/// Times the backlog of the scale.
const FIRST: u64 = 1;
const SECOND: u64 = 3;
/// For buffers on their way to be given back.
const REST: Duration = Duration::from_millis(500);

fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let server = lab.server()?;
    let mut result = CaseResult::new(format!("queued messages of {PAYLOAD_BYTES} B"));
    let Some(process) = server.process.filter(|_| lab.starts_servers()) else {
        result.note("needs a server of its own");
        return Ok(vec![result]);
    };
    let queue = lab.queue(&server)?;
    let shape = Shape {
        queue: &queue,
        batch: 1000,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let empty = settled_rss(process);
    preload(lab, &server, &shape, FIRST * lab.scale.backlog)?;
    let first = settled_rss(process);
    preload(lab, &server, &shape, SECOND * lab.scale.backlog)?;
    let second = settled_rss(process);
    let added = second.saturating_sub(first);
    let per_message = as_f64(added) / as_f64((SECOND * lab.scale.backlog).max(1));
    result.push("rss_bytes_per_message", per_message);
    result.push("rss_empty_mib", mib(empty));
    result.push("rss_first_part_mib", mib(first));
    result.push("rss_all_mib", mib(second));
    result.push("messages", as_f64((FIRST + SECOND) * lab.scale.backlog));
    Ok(vec![result])
}

fn settled_rss(process: Process) -> u64 {
    thread::sleep(REST);
    process.rss_bytes().unwrap_or_default()
}
