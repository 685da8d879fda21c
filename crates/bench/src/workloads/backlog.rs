//! Consuming and acking what is stored already.

use super::Workload;
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, check_done, preload};
use crate::meter::Meter;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "backlog",
    cases,
    run,
};

const PAYLOADS: &[usize] = &[100, 1024];
const CONNECTIONS: &[u32] = &[1, 4];
/// Messages in one ack, and unacked per connection.
const ACKS: usize = 1000;
const WINDOW: u32 = 4000;

fn name(payload_bytes: usize, connections: u32) -> String {
    format!("{payload_bytes} B, {connections} consumers, acks of {ACKS}")
}

fn points() -> impl Iterator<Item = (usize, u32)> {
    PAYLOADS
        .iter()
        .flat_map(|bytes| CONNECTIONS.iter().map(|count| (*bytes, *count)))
}

fn cases(_: &Lab) -> Vec<String> {
    points().map(|(bytes, count)| name(bytes, count)).collect()
}

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let point = points().find(|(bytes, count)| name(*bytes, *count) == case);
    let Some((payload_bytes, connections)) = point else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let shape = Shape {
        queue: &queue,
        batch: 1000,
        payload_bytes,
        keys: 0,
    };
    let backlog = lab.scale.backlog;
    preload(lab, &server, &shape, backlog)?;
    let limits = Limits {
        delivered_expected: backlog,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    let reading = Reading {
        window: WINDOW,
        acks: Acks::Batches(ACKS),
        payloads: Payloads::Opaque,
    };
    for _ in 0..connections {
        let consumer = Consumer::new(&queue, reading);
        pump.add(Lab::link(&server)?, consumer, Timing::Answering)?;
    }
    let meter = Meter::start(server.process);
    let reached = pump.run(lab.scale.step_max, Goal::Acked(backlog))?;
    let lap = meter.lap();
    check_done(&pump, reached, "consuming a backlog")?;
    let mut result = CaseResult::new(case);
    lap.describe(backlog, server.process, &mut result);
    Ok(vec![result])
}
