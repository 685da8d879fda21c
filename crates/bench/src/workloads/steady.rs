//! Producers and consumers together, as fast as the pair goes, with a bounded backlog.

use super::Workload;
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, Producers, add_producers, settle};
use crate::meter::Meter;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "steady",
    cases,
    run,
};

/// Messages sent and not yet acked.
const LAG_MAX: u64 = 20_000;
const CONSUMERS: u32 = 2;
const BATCHES: &[u32] = &[1, 100];
const PAYLOADS: &[usize] = &[100, 1024];

fn name(batch: u32, payload_bytes: usize) -> String {
    format!("batch {batch} x {payload_bytes} B")
}

fn points() -> impl Iterator<Item = (u32, usize)> {
    BATCHES
        .iter()
        .flat_map(|batch| PAYLOADS.iter().map(|bytes| (*batch, *bytes)))
}

fn cases(_: &Lab) -> Vec<String> {
    points().map(|(batch, bytes)| name(batch, bytes)).collect()
}

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let point = points().find(|(batch, bytes)| name(*batch, *bytes) == case);
    let Some((batch, payload_bytes)) = point else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let limits = Limits {
        lag_max: LAG_MAX,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    let shape = Shape {
        queue: &queue,
        batch,
        payload_bytes,
        keys: 0,
    };
    let producers = Producers {
        connections: if batch == 1 { 16 } else { 2 },
        outstanding: if batch == 1 { 16 } else { 4 },
    };
    add_producers(&mut pump, &server, &shape, producers)?;
    let reading = Reading {
        window: 8000,
        acks: Acks::Batches(1),
        payloads: Payloads::Opaque,
    };
    for _ in 0..CONSUMERS {
        let consumer = Consumer::new(&queue, reading);
        pump.add(Lab::link(&server)?, consumer, Timing::Answering)?;
    }
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let before = pump.tally.acked;
    let meter = Meter::start(server.process);
    pump.run(lab.scale.measure, Goal::Time)?;
    let lap = meter.lap();
    let acked = pump.tally.acked - before;
    let mut result = CaseResult::new(case);
    lap.describe(acked, server.process, &mut result);
    settle(lab, &mut pump)?;
    Ok(vec![result])
}
