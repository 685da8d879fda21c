//! From when a message should be sent to its delivery, at fixed rates.

use std::time::{Duration, Instant};

use super::Workload;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, settle};
use crate::meter::Meter;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::peers::paced::PacedProducer;
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "latency",
    cases,
    run,
};

/// Producers, and as many consumers.
const CONNECTIONS: u32 = 4;
const PAYLOAD_BYTES: usize = 100;
/// Before the first message is due.
const HEAD_START: Duration = Duration::from_millis(20);

fn name(rate: u32) -> String {
    format!("{rate} messages/s of {PAYLOAD_BYTES} B")
}

fn cases(lab: &Lab) -> Vec<String> {
    lab.scale.rates.iter().map(|rate| name(*rate)).collect()
}

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let rate = lab.scale.rates.iter().find(|rate| name(**rate) == case);
    let Some(rate) = rate.copied() else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let mut pump = Pump::new(Limits::NONE)?;
    connect(lab, &server, rate, &mut pump)?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    pump.tally.confirms.clear();
    pump.tally.end_to_end.clear();
    let before = pump.tally.delivered;
    let meter = Meter::start(server.process);
    pump.run(lab.scale.measure * 2, Goal::Time)?;
    let lap = meter.lap();
    let delivered = pump.tally.delivered - before;

    let mut result = CaseResult::new(case);
    let (end_to_end, confirms) = (&pump.tally.end_to_end, &pump.tally.confirms);
    result.push("messages_per_s", lap.rate(delivered));
    result.push("end_to_end_p50_us", end_to_end.micros(50.0));
    result.push("end_to_end_p99_us", end_to_end.micros(99.0));
    result.push("end_to_end_p99.9_us", end_to_end.micros(99.9));
    result.push("end_to_end_max_us", end_to_end.micros_max());
    result.push("confirm_p50_us", confirms.micros(50.0));
    result.push("confirm_p99_us", confirms.micros(99.0));
    result.push_some(
        "server_cpu_s_per_million",
        lap.server_cpu_per_million(delivered),
    );
    if end_to_end.count() == 0 {
        result.note("nothing was delivered");
    }
    settle(lab, &mut pump)?;
    if pump.tally.refused > 0 {
        result.note(format!("{} refused as ChannelFull", pump.tally.refused));
    }
    Ok(vec![result])
}

/// The producers' schedules are shifted so that all together send at even distances.
fn connect(lab: &Lab, server: &Server, rate: u32, pump: &mut Pump) -> Result<(), BenchError> {
    let queue = lab.queue(server)?;
    let shape = Shape {
        queue: &queue,
        batch: 1,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let reading = Reading {
        window: 4000,
        acks: Acks::Batches(1),
        payloads: Payloads::Timed,
    };
    for _ in 0..CONNECTIONS {
        let consumer = Consumer::new(&queue, reading);
        pump.add(Lab::link(server)?, consumer, Timing::Answering)?;
    }
    let step = Duration::from_secs(1) / rate.max(1);
    let mut links = Vec::new();
    for _ in 0..CONNECTIONS {
        links.push(Lab::link(server)?);
    }
    let mut first_at = Instant::now() + HEAD_START;
    for link in links {
        let template = Template::new(&shape, 0)?;
        let producer = PacedProducer::new(template, first_at, step * CONNECTIONS);
        pump.add(link, producer, Timing::Timed)?;
        first_at += step;
    }
    Ok(())
}
