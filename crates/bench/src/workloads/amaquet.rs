//! Values, counters, lists and publishes of 50 connections, without and with pipelining, on Tanda
//! and on Redis.

use std::net::SocketAddr;
use std::time::Instant;

use super::Workload;
use crate::error::BenchError;
use crate::keyed::amaquet::Amaquet;
use crate::keyed::redis::{self, Redis, RedisServer};
use crate::keyed::{Dialect, Herd, Listener, Op, fill};
use crate::lab::Lab;
use crate::meter::Meter;
use crate::process::Process;
use crate::report::CaseResult;

pub(super) const WORKLOAD: Workload = Workload {
    name: "amaquet",
    cases: |_| cases(),
    run: on_tanda,
};

pub(super) const REDIS: Workload = Workload {
    name: "redis",
    // Where it is not installed there is nothing to compare with.
    cases: |_| redis::find().map_or_else(Vec::new, |_| cases()),
    run: on_redis,
};

const CONNECTIONS: usize = 50;
/// Requests of a connection without an answer.
const WINDOWS: [usize; 2] = [1, 16];

fn all() -> impl Iterator<Item = (Op, usize)> {
    let with = |window| Op::ALL.map(|op| (op, window));
    WINDOWS.into_iter().flat_map(with)
}

fn name((op, window): (Op, usize)) -> String {
    format!(
        "{}, {CONNECTIONS} connections, {window} under way",
        op.name()
    )
}

fn cases() -> Vec<String> {
    all().map(name).collect()
}

fn of(case: &str) -> Result<(Op, usize), BenchError> {
    let found = all().find(|it| name(*it) == case);
    found.ok_or_else(|| BenchError::Stuck(format!("there is no case {case}")))
}

fn on_tanda(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let server = lab.server()?;
    let at = (server.door("amaquet")?, server.process);
    measure::<Amaquet>(lab, at, case)
}

fn on_redis(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let missing = || BenchError::Server("there is no redis-server".to_owned());
    let binary = redis::find().ok_or_else(missing)?;
    let server = RedisServer::start(&binary, lab.fresh_dir("redis"))?;
    measure::<Redis>(lab, (server.addr, Some(server.process())), case)
}

fn measure<D: Dialect>(
    lab: &Lab,
    (addr, process): (SocketAddr, Option<Process>),
    case: &str,
) -> Result<Vec<CaseResult>, BenchError> {
    let (op, window) = of(case)?;
    if op == Op::Get {
        fill::<D>(addr, CONNECTIONS)?;
    }
    let listener = (op == Op::Publish).then(|| Listener::start::<D>(addr));
    let listener = listener.transpose()?;
    let mut herd = Herd::connect::<D>(addr, CONNECTIONS, (op, window))?;
    herd.start()?;
    herd.run::<D>(Instant::now() + lab.scale.warm_up)?;
    let before = herd.answered;
    herd.latencies.clear();
    let meter = Meter::start(process);
    herd.run::<D>(Instant::now() + lab.scale.measure)?;
    let lap = meter.lap();
    drop(listener);
    let mut result = CaseResult::new(case);
    lap.describe(herd.answered - before, process, &mut result);
    result.push("p50_us", herd.latencies.micros(50.0));
    result.push("p99_us", herd.latencies.micros(99.0));
    Ok(vec![result])
}
