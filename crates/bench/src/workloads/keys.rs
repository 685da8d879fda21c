//! Few and many fairness keys: storing them, and picking from them.
//!
//! Picks are measured as deliveries without acks: what acks cost has nothing to do with keys and
//! would hide a difference.

use super::{Workload, only_one};
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, Producers, add_producers, check_done};
use crate::meter::{Meter, as_f64};
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "keys",
    cases: only_one,
    run,
};

const PAYLOAD_BYTES: usize = 100;
/// What the others are compared with.
const FEW: u32 = 10;
const KEYS: &[u32] = &[1, FEW, 10_000];
const PICKS: &str = "picks_per_s";
const PICKS_CPU: &str = "picks_cpu_s_per_million";

fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let most = lab.scale.keyed_backlog;
    let mut results = Vec::new();
    for keys in KEYS.iter().copied().chain([most]) {
        results.push(with_keys(lab, keys)?);
    }
    let few = results.iter().find(|result| result.case == name(FEW));
    let base = few.and_then(|few| Some((few.value(PICKS)?, few.value(PICKS_CPU)?)));
    if let Some((rate, cpu)) = base {
        for result in &mut results {
            let of = result.value(PICKS).map(|own| own / rate.max(1e-9));
            result.push_some("picks_of_10_keys", of);
            let of = result.value(PICKS_CPU).map(|own| own / cpu.max(1e-9));
            result.push_some("picks_cpu_of_10_keys", of);
        }
    }
    Ok(results)
}

fn name(keys: u32) -> String {
    format!("{keys} keys")
}

fn with_keys(lab: &Lab, keys: u32) -> Result<CaseResult, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let mut result = CaseResult::new(name(keys));
    let messages = u64::from(lab.scale.keyed_backlog);
    store(lab, &server, &queue, keys, &mut result)?;

    let mut pump = Pump::new(Limits::NONE)?;
    let reading = Reading {
        window: 0,
        acks: Acks::Never,
        payloads: Payloads::Opaque,
    };
    let consumer = Consumer::new(&queue, reading);
    pump.add(Lab::link(&server)?, consumer, Timing::Answering)?;
    let meter = Meter::start(server.process);
    let reached = pump.run(lab.scale.step_max, Goal::Delivered(messages))?;
    let lap = meter.lap();
    check_done(&pump, reached, "picking from keys")?;
    result.push(PICKS, lap.rate(messages));
    result.push_some(PICKS_CPU, lap.server_cpu_per_million(messages));
    Ok(result)
}

/// One connection, so that keys come strictly in turn.
fn store(
    lab: &Lab,
    server: &Server,
    queue: &str,
    keys: u32,
    result: &mut CaseResult,
) -> Result<(), BenchError> {
    let messages = u64::from(lab.scale.keyed_backlog);
    let limits = Limits {
        sent_max: messages,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    let shape = Shape {
        queue,
        batch: 1000,
        payload_bytes: PAYLOAD_BYTES,
        keys,
    };
    let one = Producers {
        connections: 1,
        outstanding: 4,
    };
    add_producers(&mut pump, server, &shape, one)?;
    let meter = Meter::start(server.process);
    let before = server.process.and_then(|process| process.rss_bytes());
    let reached = pump.run(lab.scale.step_max, Goal::Confirmed(messages))?;
    let lap = meter.lap();
    check_done(&pump, reached, "storing messages with keys")?;
    let after = server.process.and_then(|process| process.rss_bytes());
    result.push("enqueue_per_s", lap.rate(messages));
    result.push_some(
        "enqueue_cpu_s_per_million",
        lap.server_cpu_per_million(messages),
    );
    let growth = before
        .zip(after)
        .map(|(before, after)| as_f64(after.saturating_sub(before)) / as_f64(messages.max(1)));
    result.push_some("rss_bytes_per_message", growth);
    Ok(())
}
