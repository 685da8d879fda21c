//! A start after a kill with a large backlog: when it is ready, and when messages come.

use std::time::Instant;

use super::{BATCH, READING, store};
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, check_done};
use crate::meter::{as_f64, mib};
use crate::peers::consumer::{Acks, Consumer, Reading};
use crate::process::Process;
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::Limits;

/// Times the backlog of the scale.
const FACTOR: u64 = 10;
const PAYLOAD_BYTES: usize = 100;
/// Messages of the other queue.
const OTHER: u64 = 1000;

pub(super) fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let messages = FACTOR * lab.scale.backlog;
    let mut server = lab.server()?;
    let (large, other) = (lab.queue(&server)?, lab.queue(&server)?);
    let shape = |queue| Shape {
        queue,
        batch: BATCH,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    store(lab, &server, &shape(&large), 0..messages)?;
    store(lab, &server, &shape(&other), 0..OTHER)?;
    let mut result = CaseResult::new(case);
    let killed_at = Instant::now();
    server.kill_and_restart()?;
    result.push("ready_ms", server.ready.as_secs_f64() * 1e3);
    for (name, queue) in [
        ("first_of_other_queue_ms", &other),
        ("first_of_large_queue_ms", &large),
    ] {
        first_delivery(lab, &server, queue)?;
        result.push(name, killed_at.elapsed().as_secs_f64() * 1e3);
    }
    let peak = server.process.and_then(Process::peak_rss_bytes);
    result.push_some("server_peak_rss_mib", peak.map(mib));
    result.push("messages", as_f64(messages));
    Ok(vec![result])
}

fn first_delivery(lab: &Lab, server: &Server, queue: &str) -> Result<(), BenchError> {
    let mut pump = Pump::new(Limits::NONE)?;
    let reading = Reading {
        window: 1,
        acks: Acks::Batches(2),
        ..READING
    };
    let consumer = Consumer::new(queue, reading);
    pump.add(Lab::link(server)?, consumer, Timing::Answering)?;
    let reached = pump.run(lab.scale.step_max, Goal::Delivered(1))?;
    check_done(&pump, reached, "the first delivery after a start")
}
