//! Large backlogs: more than fits in memory, restarts on them, disk space, stalls.

mod limited;
mod old_messages;
mod restart;
mod stalls;

use std::time::Duration;

use super::Workload;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, check_done};
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::peers::producer::Producer;
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "big",
    cases,
    run,
};

type Case = (
    &'static str,
    fn(&Lab, &str) -> Result<Vec<CaseResult>, BenchError>,
);

const CASES: &[Case] = &[
    ("20 M x 1 KiB, memory.limit 512MiB", limited::run),
    ("restart, 10 M x 100 B", restart::run),
    ("old messages among acked ones", old_messages::run),
    ("stalls", stalls::run),
];

fn cases(_: &Lab) -> Vec<String> {
    CASES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let found = CASES.iter().find(|(name, _)| *name == case);
    let Some((name, run)) = found else {
        return Ok(Vec::new());
    };
    if lab.starts_servers() {
        return run(lab, name);
    }
    let mut result = CaseResult::new(*name);
    result.note("needs a server of its own");
    Ok(vec![result])
}

/// A step of these workloads moves ten times what the others move.
fn step_max(lab: &Lab) -> Duration {
    lab.scale.step_max * 10
}

/// Messages in one request.
const BATCH: u32 = 1000;
/// Requests outstanding: few, so that what is measured is the backlog and not what is on its way.
const OUTSTANDING: u32 = 4;

const READING: Reading = Reading {
    window: 4000,
    acks: Acks::Batches(1000),
    payloads: Payloads::Opaque,
};

/// Stores numbered messages; all must be confirmed. One connection, so that they lie in order.
fn store(
    lab: &Lab,
    server: &Server,
    shape: &Shape<'_>,
    numbers: std::ops::Range<u64>,
) -> Result<(), BenchError> {
    let count = numbers.end - numbers.start;
    let limits = Limits {
        sent_max: count,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    let template = Template::new(shape, 0)?.numbered(numbers.start);
    let producer = Producer::new(template, OUTSTANDING);
    pump.add(Lab::link(server)?, producer, Timing::Answering)?;
    let reached = pump.run(step_max(lab), Goal::Confirmed(count))?;
    check_done(&pump, reached, "storing a large backlog")
}

/// Consumes and acks `count` messages of a queue, which must be all that are delivered.
fn drain(
    lab: &Lab,
    server: &Server,
    queue: &str,
    reading: Reading,
    count: u64,
) -> Result<(), BenchError> {
    let limits = Limits {
        delivered_expected: count,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    let consumer = Consumer::new(queue, reading);
    pump.add(Lab::link(server)?, consumer, Timing::Answering)?;
    let reached = pump.run(step_max(lab), Goal::Acked(count))?;
    check_done(&pump, reached, "draining a large backlog")
}
