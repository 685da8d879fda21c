//! A thousand connections that send half a frame and stop, and what another client feels of it.

use super::{Workload, only_one};
use crate::door::Door;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, Producers, add_producers, settle};
use crate::pump::{Goal, Pump};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::{Latencies, Limits};

pub(super) const WORKLOAD: Workload = Workload {
    name: "half-frames",
    cases: only_one,
    run,
};

const HOSTILE: u32 = 1000;
const PAYLOAD_BYTES: usize = 1024;
const ONE: Producers = Producers {
    connections: 1,
    outstanding: 1,
};

/// Calm and hostile times alternate, so that a disk that gets slower does so in both.
fn run(lab: &Lab, _: &str) -> Result<Vec<CaseResult>, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let shape = Shape {
        queue: &queue,
        batch: 1,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let mut pump = Pump::new(Limits::NONE)?;
    add_producers(&mut pump, &server, &shape, ONE)?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let (mut calm, mut hostile) = (Latencies::new()?, Latencies::new()?);
    for _ in 0..lab.scale.alternations {
        measure(lab, &mut pump, &mut calm)?;
        let doors = half_frames(&server, &shape)?;
        measure(lab, &mut pump, &mut hostile)?;
        drop(doors);
    }
    settle(lab, &mut pump)?;
    let mut result = CaseResult::new(format!("{HOSTILE} connections"));
    result.push("p50_without_us", calm.micros(50.0));
    result.push("p50_with_us", hostile.micros(50.0));
    result.push("p99_without_us", calm.micros(99.0));
    result.push("p99_with_us", hostile.micros(99.0));
    let ratio = hostile.micros(99.0) / calm.micros(99.0).max(1e-9);
    result.push("p99_with_of_without", ratio);
    Ok(vec![result])
}

fn measure(lab: &Lab, pump: &mut Pump, into: &mut Latencies) -> Result<(), BenchError> {
    // Requests that waited while connections were opened are not counted.
    pump.run(lab.scale.warm_up, Goal::Time)?;
    pump.tally.confirms.clear();
    pump.run(lab.scale.measure, Goal::Time)?;
    into.merge(&pump.tally.confirms);
    Ok(())
}

fn half_frames(server: &Server, shape: &Shape<'_>) -> Result<Vec<Door>, BenchError> {
    let mut template = Template::new(shape, 0)?;
    let frame = template.frame(1);
    let half = frame.get(..frame.len() / 2).unwrap_or_default();
    let mut doors = Vec::new();
    for _ in 0..HOSTILE {
        let mut door = Door::connect(server.addr)?;
        door.send_raw(half)?;
        doors.push(door);
    }
    Ok(doors)
}
