//! Scripts: what one costs per message, and what a script without end costs other queues.

use std::time::{Duration, Instant};

use tanda_script::{EnqueueCall, Host, Limits as ScriptLimits, Script, thread_cpu_time};

use super::Workload;
use crate::door::Door;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, Producers, add_producers};
use crate::meter::Meter;
use crate::pump::{Goal, Pump};
use crate::report::CaseResult;
use crate::tally::{Latencies, Limits};

pub(super) const WORKLOAD: Workload = Workload {
    name: "scripts",
    cases,
    run,
};

/// Three headers read, a table returned.
const TYPICAL: &str = "function on_enqueue(msg)
    local headers = msg.headers
    return {
        fairness_key = headers.tenant,
        weight = headers.plan == 'gold' and 4 or 1,
        attributes = { region = headers.region },
    }
end";
const WITHOUT_ATTRIBUTES: &str = "function on_enqueue(msg)
    local headers = msg.headers
    return {
        fairness_key = headers.tenant .. ':' .. headers.region,
        weight = headers.plan == 'gold' and 4 or 1,
    }
end";
const ENDLESS: &str = "function on_enqueue() while true do pcall(error) end end";
const PLAIN: &str = "function on_enqueue(msg) return { fairness_key = msg.queue, weight = 2 } end";

/// In this process, so that nothing but the scripts is measured.
const COSTS: &[(&str, &str)] = &[
    ("cost, with an attribute", TYPICAL),
    ("cost", WITHOUT_ATTRIBUTES),
];
const BESIDE: &str = "beside a script without end";

const MESSAGES: usize = 1000;
/// Messages of the script without end; with 10 ms each and a quarter of a core, for minutes.
const ENDLESS_BATCH: u32 = 10_000;
const BATCH: u32 = 100;
const PAYLOAD_BYTES: usize = 100;
const LOAD: Producers = Producers {
    connections: 4,
    outstanding: 2,
};

fn cases(_: &Lab) -> Vec<String> {
    let costs = COSTS.iter().map(|(name, _)| (*name).to_owned());
    costs.chain([BESIDE.to_owned()]).collect()
}

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    if let Some((name, source)) = COSTS.iter().find(|(name, _)| *name == case) {
        return Ok(vec![cost(lab, name, source)?]);
    }
    Ok(vec![beside(lab)?])
}

/// CPU time per message, of turns of a thousand, each with values of its own.
fn cost(lab: &Lab, name: &str, source: &str) -> Result<CaseResult, BenchError> {
    let contents: Vec<Vec<u8>> = (0..MESSAGES).map(content).collect();
    let script = Script {
        version: 1,
        queue: "orders",
        source,
    };
    let mut host = Host::new(ScriptLimits::default());
    let mut turns = Latencies::new()?;
    let mut results = Vec::with_capacity(MESSAGES);
    let end = Instant::now() + lab.scale.measure;
    while Instant::now() < end {
        results.clear();
        let started = thread_cpu_time();
        let calls = contents.iter().map(|content| EnqueueCall {
            content,
            payload_bytes: 100,
            fairness_key: None,
            weight: 1,
        });
        host.on_enqueue(&script, calls, Duration::MAX, &mut results);
        turns.record(thread_cpu_time().saturating_sub(started));
        if results.iter().any(Result::is_err) {
            return Err(BenchError::Stuck("the script failed".to_owned()));
        }
    }
    let mut result = CaseResult::new(name);
    // A turn's microseconds are a message's nanoseconds.
    result.push("us_per_message_p50", turns.micros(50.0) / 1e3);
    result.push("us_per_message_p10", turns.micros(10.0) / 1e3);
    result.push("us_per_message_p90", turns.micros(90.0) / 1e3);
    Ok(result)
}

/// Headers of a message as on the wire; what follows them is not looked at.
fn content(number: usize) -> Vec<u8> {
    let tenant = format!("tenant-{number}");
    let headers = [
        ("tenant", tenant.as_str()),
        ("plan", "gold"),
        ("region", "eu-west-1"),
    ];
    let mut bytes = vec![0, 3];
    for text in headers.iter().flat_map(|(name, value)| [*name, *value]) {
        // All are shorter than 256 bytes.
        bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or_default().to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// Enqueue rate of a queue with a script, alone and beside one whose script runs out of time with
/// every message, on one server. Whoever comes second gains or loses by that, so a third time
/// alone would be fairer; but the other script goes on for minutes.
fn beside(lab: &Lab) -> Result<CaseResult, BenchError> {
    let server = lab.server()?;
    let good = lab.scripted_queue(&server, PLAIN)?;
    let bad = lab.scripted_queue(&server, ENDLESS)?;
    let shape = Shape {
        queue: &good,
        batch: BATCH,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let mut pump = Pump::new(Limits::NONE)?;
    add_producers(&mut pump, &server, &shape, LOAD)?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let mut rate = || -> Result<(f64, f64), BenchError> {
        pump.tally.confirms.clear();
        let before = pump.tally.confirmed;
        let meter = Meter::start(server.process);
        pump.run(lab.scale.measure, Goal::Time)?;
        let rate = meter.lap().rate(pump.tally.confirmed - before);
        Ok((rate, pump.tally.confirms.micros(99.0)))
    };
    let (alone, alone_p99) = rate()?;
    let endless = Shape {
        queue: &bad,
        batch: ENDLESS_BATCH,
        ..shape
    };
    let mut door = Door::connect(server.addr)?;
    door.send_raw(Template::new(&endless, 0)?.frame(1))?;
    let (beside, beside_p99) = rate()?;
    let mut result = CaseResult::new(BESIDE);
    result.push("alone_per_s", alone);
    result.push("beside_per_s", beside);
    result.push("share", beside / alone.max(1e-9));
    result.push("alone_confirm_p99_us", alone_p99);
    result.push("beside_confirm_p99_us", beside_p99);
    Ok(result)
}
