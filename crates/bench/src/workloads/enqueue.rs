//! Durable enqueue in a closed loop, beside the bare log with the same records outstanding.

use super::Workload;
use crate::bare_log::{BareLog, Load};
use crate::error::BenchError;
use crate::frames::Shape;
use crate::lab::{Lab, Producers, add_producers, settle};
use crate::meter::{Meter, per_million};
use crate::pump::{Goal, Pump};
use crate::report::CaseResult;
use crate::tally::Limits;

pub(super) const WORKLOAD: Workload = Workload {
    name: "enqueue",
    cases,
    run,
};

/// One point of the grid.
#[derive(Debug, Clone, Copy)]
struct Case {
    batch: u32,
    payload_bytes: usize,
    producers: Producers,
}

/// Batch, then connections with outstanding requests on each. The bare log gets batch x
/// connections x outstanding records.
const LOADS: &[(u32, &[(u32, u32)])] = &[
    (1, &[(1, 16), (4, 16), (64, 1), (64, 16)]),
    (100, &[(1, 4), (4, 2), (64, 1)]),
    (1000, &[(1, 4), (4, 2), (64, 1)]),
];
const PAYLOADS: &[usize] = &[100, 1024];

impl Case {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (batch, producers) in LOADS {
            for payload_bytes in PAYLOADS {
                all.extend(producers.iter().map(|(connections, outstanding)| Self {
                    batch: *batch,
                    payload_bytes: *payload_bytes,
                    producers: Producers {
                        connections: *connections,
                        outstanding: *outstanding,
                    },
                }));
            }
        }
        all
    }

    fn name(&self) -> String {
        format!(
            "batch {} x {} B, {} x {}",
            self.batch, self.payload_bytes, self.producers.connections, self.producers.outstanding
        )
    }

    fn outstanding(&self) -> u64 {
        let requests =
            u64::from(self.producers.connections) * u64::from(self.producers.outstanding);
        requests * u64::from(self.batch)
    }
}

fn cases(_: &Lab) -> Vec<String> {
    Case::all().iter().map(Case::name).collect()
}

fn run(lab: &Lab, name: &str) -> Result<Vec<CaseResult>, BenchError> {
    let case = Case::all().into_iter().find(|case| case.name() == name);
    let Some(case) = case else {
        return Ok(Vec::new());
    };
    let mut result = through_server(lab, case)?;
    beside_bare_log(lab, case, &mut result)?;
    Ok(vec![result])
}

fn through_server(lab: &Lab, case: Case) -> Result<CaseResult, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let mut pump = Pump::new(Limits::NONE)?;
    let shape = Shape {
        queue: &queue,
        batch: case.batch,
        payload_bytes: case.payload_bytes,
        keys: 0,
    };
    add_producers(&mut pump, &server, &shape, case.producers)?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let before = pump.tally.confirmed;
    pump.tally.confirms.clear();
    let meter = Meter::start(server.process);
    pump.run(lab.scale.measure, Goal::Time)?;
    let lap = meter.lap();
    let confirmed = pump.tally.confirmed - before;
    let mut result = CaseResult::new(case.name());
    lap.describe(confirmed, server.process, &mut result);
    result.push("confirm_p50_us", pump.tally.confirms.micros(50.0));
    result.push("confirm_p99_us", pump.tally.confirms.micros(99.0));
    settle(lab, &mut pump)?;
    if pump.tally.refused > 0 {
        result.note(format!("{} refused as ChannelFull", pump.tally.refused));
    }
    Ok(result)
}

fn beside_bare_log(lab: &Lab, case: Case, result: &mut CaseResult) -> Result<(), BenchError> {
    let load = Load {
        record_bytes: case.payload_bytes,
        outstanding: case.outstanding(),
    };
    let mut log = BareLog::create(&lab.fresh_dir("log"))?;
    let bare = log.throughput(load, lab.scale.warm_up, lab.scale.measure / 2)?;
    result.push("bare_log_per_s", bare.per_second());
    let cpu = per_million(bare.cpu, bare.records);
    result.push_some("bare_log_cpu_s_per_million", cpu);
    if let Some(rate) = result.value("messages_per_s") {
        result.push("of_bare_log", rate / bare.per_second().max(1e-9));
    }
    Ok(())
}
