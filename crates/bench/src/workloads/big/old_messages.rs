//! A few messages that stay, among very many that come and go: what they keep of the disk.

use std::thread;
use std::time::Duration;

use super::{BATCH, READING, drain, step_max, store};
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, check_done};
use crate::meter::{as_f64, mib};
use crate::peers::consumer::{Consumer, Payloads, Reading};
use crate::peers::producer::Producer;
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::server::Server;
use crate::tally::Limits;

/// Times the backlog of the scale that come and go.
const FACTOR: u64 = 4;
const PAYLOAD_BYTES: usize = 1024;
/// Old messages: one before each part of those that come and go.
const OLD: u64 = 40;
/// Messages sent and not yet acked.
const LAG_MAX: u64 = 20_000;
/// For what the broker does when it has nothing else to do.
const REST: Duration = Duration::from_secs(5);

pub(super) fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let mut server = lab.server()?;
    let (old, passing) = (lab.queue(&server)?, lab.queue(&server)?);
    let shape = |queue, batch| Shape {
        queue,
        batch,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let part = FACTOR * lab.scale.backlog / OLD / u64::from(BATCH) * u64::from(BATCH);
    let mut most = 0;
    for number in 0..OLD {
        store(lab, &server, &shape(&old, 1), number..number + 1)?;
        pass(lab, &server, &shape(&passing, BATCH), part)?;
        most = most.max(server.disk_bytes().unwrap_or_default());
    }
    let mut result = CaseResult::new(case);
    result.push("most_disk_mib", mib(most));
    thread::sleep(REST);
    result.push_some("disk_at_rest_mib", server.disk_bytes().map(mib));
    server.kill_and_restart()?;
    let numbered = Reading {
        payloads: Payloads::Numbered,
        ..READING
    };
    drain(lab, &server, &old, numbered, OLD)?;
    let written = OLD * part * PAYLOAD_BYTES as u64;
    result.push("passed_mib", mib(written));
    result.push("old_messages", as_f64(OLD));
    Ok(vec![result])
}

/// Messages come and go.
fn pass(lab: &Lab, server: &Server, shape: &Shape<'_>, count: u64) -> Result<(), BenchError> {
    let limits = Limits {
        sent_max: count,
        lag_max: LAG_MAX,
        delivered_expected: count,
    };
    let mut pump = Pump::new(limits)?;
    let consumer = Consumer::new(shape.queue, READING);
    pump.add(Lab::link(server)?, consumer, Timing::Answering)?;
    let producer = Producer::new(Template::new(shape, 0)?, super::OUTSTANDING);
    pump.add(Lab::link(server)?, producer, Timing::Answering)?;
    let reached = pump.run(step_max(lab), Goal::Acked(count))?;
    check_done(&pump, reached, "passing messages through")
}
