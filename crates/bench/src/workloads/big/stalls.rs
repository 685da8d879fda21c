//! Latency at a fixed rate while snapshots and copying of old messages go on, against the same
//! load without them.

use std::time::{Duration, Instant};

use super::{BATCH, READING, store};
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, settle};
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::peers::paced::PacedProducer;
use crate::pump::{Goal, Pump, Timing};
use crate::report::{CaseResult, median};
use crate::server::Server;
use crate::tally::{Latencies, Limits};

/// A snapshot each time the log grew by this much, against never.
const OFTEN: &str = "16MiB";
const NEVER: &str = "1TiB";
/// Messages that stay: each has a key of its own, so none of them is paged out and every snapshot
/// holds them all. They come while others pass, so every segment has some.
const STAYING_PER_SECOND: u32 = 20_000;
/// Messages whose latency is measured, per second.
const RATE: u32 = 5_000;
const PAYLOAD_BYTES: usize = 100;
const PASSING_BYTES: usize = 8 << 10;
const PASSING_PER_SECOND: u32 = 4_000;
/// Messages that wait before it begins, each with its own key.
const KEYS: u64 = 200_000;
/// Before the first message is due.
const HEAD_START: Duration = Duration::from_millis(20);

pub(super) fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let (mut quiet, mut busy) = (Latencies::new()?, Latencies::new()?);
    let mut ratios = Vec::new();
    for _ in 0..lab.scale.alternations {
        let without = measure(lab, NEVER)?;
        let with = measure(lab, OFTEN)?;
        ratios.push(with.micros(99.0) / without.micros(99.0).max(1e-9));
        quiet.merge(&without);
        busy.merge(&with);
    }
    let mut result = CaseResult::new(case);
    result.push("p50_without_us", quiet.micros(50.0));
    result.push("p50_with_us", busy.micros(50.0));
    result.push("p99_without_us", quiet.micros(99.0));
    result.push("p99_with_us", busy.micros(99.0));
    result.push("max_without_us", quiet.micros_max());
    result.push("max_with_us", busy.micros_max());
    result.push_some("p99_with_of_without", median(&ratios));
    Ok(vec![result])
}

fn measure(lab: &Lab, snapshot_bytes: &str) -> Result<Latencies, BenchError> {
    let options = ["--snapshot-bytes".to_owned(), snapshot_bytes.to_owned()];
    let server = lab.server_with(&options)?;
    let staying = lab.queue(&server)?;
    let keyed = Shape {
        queue: &staying,
        batch: BATCH,
        payload_bytes: PAYLOAD_BYTES,
        keys: u32::try_from(lab.scale.backlog.min(KEYS)).unwrap_or(u32::MAX),
    };
    store(lab, &server, &keyed, 0..u64::from(keyed.keys))?;
    let mut pump = Pump::new(Limits::NONE)?;
    paced(
        &server,
        &mut pump,
        &Shape {
            batch: 100,
            ..keyed
        },
        STAYING_PER_SECOND,
    )?;
    let passing = lab.queue(&server)?;
    reader(&server, &mut pump, &passing, READING)?;
    let large = Shape {
        queue: &passing,
        batch: 10,
        payload_bytes: PASSING_BYTES,
        keys: 0,
    };
    paced(&server, &mut pump, &large, PASSING_PER_SECOND)?;
    let timed = lab.queue(&server)?;
    let reading = Reading {
        acks: Acks::Batches(1),
        payloads: Payloads::Timed,
        ..READING
    };
    reader(&server, &mut pump, &timed, reading)?;
    let small = Shape {
        queue: &timed,
        batch: 1,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    paced(&server, &mut pump, &small, RATE)?;
    pump.run(lab.scale.warm_up * 2, Goal::Time)?;
    pump.tally.end_to_end.clear();
    pump.run(lab.scale.measure * 3, Goal::Time)?;
    let latencies = pump.tally.end_to_end.clone();
    settle(lab, &mut pump)?;
    Ok(latencies)
}

fn reader(
    server: &Server,
    pump: &mut Pump,
    queue: &str,
    reading: Reading,
) -> Result<(), BenchError> {
    let consumer = Consumer::new(queue, reading);
    pump.add(Lab::link(server)?, consumer, Timing::Answering)
}

fn paced(
    server: &Server,
    pump: &mut Pump,
    shape: &Shape<'_>,
    messages_per_second: u32,
) -> Result<(), BenchError> {
    let step = Duration::from_secs(1) * shape.batch / messages_per_second.max(1);
    let first_at = Instant::now() + HEAD_START;
    let producer = PacedProducer::new(Template::new(shape, 0)?, first_at, step);
    pump.add(Lab::link(server)?, producer, Timing::Timed)
}
