//! What a delivery costs while many messages wait for throttles, against the same on a queue in
//! which nothing waits, and without a throttle.

use std::time::Duration;

use tanda_wire::fila::consume::{ThrottleDeclaration, ThrottleLimit};
use tanda_wire::fila::property_key::{KeyPart, PropertyKey};

use super::{Workload, only_one};
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, check_done, preload};
use crate::meter::Meter;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::peers::producer::Producer;
use crate::process::Process;
use crate::pump::{Goal, Pump, Timing};
use crate::report::{CaseResult, median};
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "throttles",
    cases: only_one,
    run,
};

const PAYLOAD_BYTES: usize = 100;
/// Messages of each key that waits; one of them goes, then its bucket is full for an hour.
const PER_KEY: u32 = 10;
/// Keys from here on have not been used: each of their buckets has room.
const FRESH_KEYS: u32 = 2_000_000;
const KEYS_MAX: u32 = 9_999_999;
/// Messages sent and not yet acked.
const LAG_MAX: u64 = 20_000;
/// A server that used no processor time for so long is at rest.
const REST_STEP: Duration = Duration::from_millis(300);
const REST_STEPS_MAX: u32 = 100;

/// The rates of one round, in deliveries per second, and the CPU seconds of the server per million.
struct Cost {
    rate: f64,
    cpu: Option<f64>,
}

fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let keys = lab.scale.keyed_backlog / PER_KEY;
    let mut costs: [Vec<Cost>; 3] = Default::default();
    for _ in 0..lab.scale.alternations {
        let [full, empty, free] = &mut costs;
        full.push(deliver(lab, keys, Throttled::Yes)?);
        empty.push(deliver(lab, 0, Throttled::Yes)?);
        free.push(deliver(lab, 0, Throttled::No)?);
    }
    let names = [
        format!(
            "{} wait in {keys} buckets",
            u64::from(keys) * u64::from(PER_KEY - 1)
        ),
        "nothing waits".to_owned(),
        "no throttle".to_owned(),
    ];
    let of = |costs: &[Cost]| {
        let rates: Vec<f64> = costs.iter().map(|it| it.rate).collect();
        let cpus: Vec<f64> = costs.iter().filter_map(|it| it.cpu).collect();
        (median(&rates), median(&cpus))
    };
    let [_, empty, _] = &costs;
    let base = of(empty).1;
    let mut results = Vec::new();
    for (name, costs) in names.into_iter().zip(&costs) {
        let (rate, cpu) = of(costs);
        let mut result = CaseResult::new(name);
        result.push_some("deliveries_per_s", rate);
        result.push_some("cpu_s_per_million", cpu);
        let share = cpu.zip(base).map(|(own, base)| own / base.max(1e-9));
        result.push_some("cpu_of_nothing_waits", share);
        results.push(result);
    }
    Ok(results)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Throttled {
    Yes,
    No,
}

/// One delivery an hour for each fairness key.
fn throttle() -> ThrottleDeclaration<'static> {
    ThrottleDeclaration {
        name: "bench",
        limits: vec![ThrottleLimit {
            max_deliveries: 1,
            window_ms: 3_600_000,
        }],
        key: PropertyKey {
            parts: vec![KeyPart { kind: 1, name: "" }],
        },
        when_key_missing: 0,
    }
}

/// Waits until the server does nothing: each key is looked at once more before it waits.
fn rest(pump: &mut Pump, server: Option<Process>) -> Result<(), BenchError> {
    let cpu = || server.and_then(Process::cpu);
    for _ in 0..REST_STEPS_MAX {
        let before = cpu();
        pump.run(REST_STEP, Goal::Delivered(u64::MAX))?;
        if cpu() == before {
            break;
        }
    }
    Ok(())
}

/// Sends, delivers and acks messages whose buckets have room while those of `keys` others wait.
fn deliver(lab: &Lab, keys: u32, throttled: Throttled) -> Result<Cost, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let shape = |keys| Shape {
        queue: &queue,
        batch: 100,
        payload_bytes: PAYLOAD_BYTES,
        keys,
    };
    let backlog = u64::from(keys) * u64::from(PER_KEY);
    if backlog > 0 {
        preload(lab, &server, &shape(keys), backlog)?;
    }
    let messages = u64::from(lab.scale.keyed_backlog) * 3 / 10;
    let mut pump = Pump::new(Limits {
        sent_max: messages,
        lag_max: LAG_MAX,
        ..Limits::NONE
    })?;
    let reading = Reading {
        window: 8000,
        acks: Acks::Batches(1),
        payloads: Payloads::Opaque,
    };
    let consumer = Consumer::new(&queue, reading);
    let consumer = match throttled {
        Throttled::Yes => consumer.throttled(vec![throttle()]),
        Throttled::No => consumer,
    };
    pump.add(Lab::link(&server)?, consumer, Timing::Answering)?;
    let first = u64::from(keys);
    let reached = pump.run(lab.scale.step_max, Goal::Acked(first))?;
    check_done(&pump, reached, "filling the buckets")?;
    rest(&mut pump, server.process)?;
    // Others sent these: counted here, they would let this producer run as far ahead again.
    pump.tally.acked = 0;
    let template = Template::new(&shape(KEYS_MAX), FRESH_KEYS)?;
    pump.add(
        Lab::link(&server)?,
        Producer::new(template, 4),
        Timing::Answering,
    )?;
    let meter = Meter::start(server.process);
    let reached = pump.run(lab.scale.step_max, Goal::Delivered(first + messages))?;
    let lap = meter.lap();
    check_done(&pump, reached, "delivering beside what waits")?;
    Ok(Cost {
        rate: lap.rate(messages),
        cpu: lap.server_cpu_per_million(messages),
    })
}
