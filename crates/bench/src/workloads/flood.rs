//! Workloads of protocols in which nobody waits for each message; `amqp` and others give them
//! their frames.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::BenchError;
use crate::flood::consumer;
use crate::flood::publisher::{Load, Publisher};
use crate::flood::{Crew, Dialect, Flood, QueueShape, Settling};
use crate::lab::Lab;
use crate::meter::Meter;
use crate::report::CaseResult;
use crate::server::Server;

/// Messages published and not yet delivered.
const LAG_MAX: u64 = 50_000;
/// Messages a consumer holds at most when it acknowledges.
const PREFETCH: u16 = 1000;

/// One stream.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Publishers, and as many consumers.
    connections: u32,
    payload_bytes: usize,
    durable: bool,
    settling: Settling,
}

impl Stream {
    fn name(self) -> String {
        let kind = kind(self.durable);
        let (count, bytes) = (self.connections, self.payload_bytes);
        let acks = match self.settling {
            Settling::None => "no acks".to_owned(),
            Settling::Window(window) => format!("acks, prefetch {window}"),
        };
        format!("{kind}, {bytes} B, {count} + {count}, {acks}")
    }
}

const fn kind(durable: bool) -> &'static str {
    if durable { "durable" } else { "transient" }
}

fn streams() -> impl Iterator<Item = Stream> {
    let transient = [(1, 16), (1, 1024), (8, 16), (8, 1024)];
    let transient = transient.map(|(count, bytes)| (count, bytes, false, Settling::None));
    let acks = Settling::Window(PREFETCH);
    let acked = [(1, 16, false), (1, 1024, false), (1, 100, true)];
    let acked = acked.map(|(count, bytes, durable)| (count, bytes, durable, acks));
    transient
        .into_iter()
        .chain(acked)
        .map(|(connections, payload_bytes, durable, settling)| Stream {
            connections,
            payload_bytes,
            durable,
            settling,
        })
}

pub(super) fn stream_cases() -> Vec<String> {
    streams().map(Stream::name).collect()
}

fn queue_of(lab: &Lab, durable: bool) -> QueueShape {
    QueueShape {
        name: lab.fresh_name("q"),
        durable,
    }
}

fn publish<D: Dialect>(
    crew: &mut Crew,
    server: &Server,
    door: &str,
    queue: &QueueShape,
    load: Load,
) -> Result<(), BenchError> {
    let publisher = Publisher::new(D::connect(server.door(door)?)?, queue, load)?;
    let stream = publisher.dialect().stream().try_clone();
    let stream = stream.map_err(BenchError::io("a socket"))?;
    let name = queue.name.clone();
    crew.spawn(&stream, move |flood| {
        let mut dialect = publisher.run(flood)?;
        // All is taken when this is answered.
        dialect.count(&name).map(drop)
    })
}

fn consume<D: Dialect>(
    crew: &mut Crew,
    server: &Server,
    door: &str,
    queue: &QueueShape,
    settling: Settling,
) -> Result<(), BenchError> {
    let mut dialect = D::connect(server.door(door)?)?;
    dialect.consume(&queue.name, settling)?;
    let stream = dialect.stream().try_clone();
    let stream = stream.map_err(BenchError::io("a socket"))?;
    crew.spawn(&stream, move |flood| {
        consumer::run(dialect, settling, flood)
    })
}

/// Counts for a while what `count` counts.
fn measure(
    lab: &Lab,
    server: &Server,
    (crew, flood): (&Crew, &Flood),
    count: impl Fn(&Flood) -> u64,
    case: &str,
) -> Result<CaseResult, BenchError> {
    crew.sleep(lab.scale.warm_up)?;
    let before = count(flood);
    let meter = Meter::start(server.process);
    crew.sleep(lab.scale.measure)?;
    let counted = count(flood) - before;
    let lap = meter.lap();
    let mut result = CaseResult::new(case);
    lap.describe(counted, server.process, &mut result);
    Ok(result)
}

pub(super) fn stream<D: Dialect>(
    lab: &Lab,
    door: &str,
    case: &str,
) -> Result<Vec<CaseResult>, BenchError> {
    let Some(stream) = streams().find(|stream| stream.name() == case) else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let queue = queue_of(lab, stream.durable);
    D::connect(server.door(door)?)?.declare(&queue)?;
    let flood = Flood::new(LAG_MAX, u64::MAX);
    let mut crew = Crew::new(Arc::clone(&flood));
    for _ in 0..stream.connections {
        consume::<D>(&mut crew, &server, door, &queue, stream.settling)?;
    }
    let load = Load {
        payload_bytes: stream.payload_bytes,
        window: None,
    };
    for _ in 0..stream.connections {
        publish::<D>(&mut crew, &server, door, &queue, load)?;
    }
    let delivered = |flood: &Flood| flood.delivered.load(Ordering::Relaxed);
    let result = measure(lab, &server, (&crew, &flood), delivered, case)?;
    Ok(vec![result])
}

/// Publishers, window of each, bytes, durable.
const CONFIRMED: &[(u32, u64, usize, bool)] = &[
    (1, 1000, 100, true),
    (8, 200, 100, true),
    (1, 1000, 1024, true),
    (8, 200, 1024, true),
    (1, 1000, 100, false),
];

fn confirm_name((count, window, bytes, durable): (u32, u64, usize, bool)) -> String {
    let kind = kind(durable);
    format!("{kind}, {bytes} B, {count} x {window}")
}

pub(super) fn confirm_cases() -> Vec<String> {
    CONFIRMED.iter().copied().map(confirm_name).collect()
}

pub(super) fn confirm<D: Dialect>(
    lab: &Lab,
    door: &str,
    case: &str,
) -> Result<Vec<CaseResult>, BenchError> {
    let mut all = CONFIRMED.iter().copied();
    let Some(found) = all.find(|it| confirm_name(*it) == case) else {
        return Ok(Vec::new());
    };
    let (connections, window, payload_bytes, durable) = found;
    let server = lab.server()?;
    let queue = queue_of(lab, durable);
    D::connect(server.door(door)?)?.declare(&queue)?;
    let flood = Flood::new(u64::MAX, u64::MAX);
    let mut crew = Crew::new(Arc::clone(&flood));
    let load = Load {
        payload_bytes,
        window: Some(window),
    };
    for _ in 0..connections {
        publish::<D>(&mut crew, &server, door, &queue, load)?;
    }
    let confirmed = |flood: &Flood| flood.confirmed.load(Ordering::Relaxed);
    let result = measure(lab, &server, (&crew, &flood), confirmed, case)?;
    Ok(vec![result])
}

/// Bytes of each message, durable.
const BACKLOGS: &[(usize, bool)] = &[(16, false), (1024, false), (16, true), (1024, true)];

fn backlog_name((bytes, durable): (usize, bool)) -> String {
    format!("{}, {bytes} B", kind(durable))
}

pub(super) fn backlog_cases() -> Vec<String> {
    BACKLOGS.iter().copied().map(backlog_name).collect()
}

pub(super) fn backlog<D: Dialect>(
    lab: &Lab,
    door: &str,
    case: &str,
) -> Result<Vec<CaseResult>, BenchError> {
    let found = BACKLOGS.iter().find(|it| backlog_name(**it) == case);
    let Some((payload_bytes, durable)) = found.copied() else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let queue = queue_of(lab, durable);
    D::connect(server.door(door)?)?.declare(&queue)?;
    let total = lab.scale.backlog;
    let flood = Flood::new(u64::MAX, total);
    let mut crew = Crew::new(Arc::clone(&flood));
    let load = Load {
        payload_bytes,
        window: None,
    };
    let meter = Meter::start(server.process);
    publish::<D>(&mut crew, &server, door, &queue, load)?;
    crew.join()?;
    let lap = meter.lap();
    let mut published = CaseResult::new(format!("{case}, published"));
    lap.describe(total, server.process, &mut published);
    let flood = Flood::new(u64::MAX, 0);
    let mut crew = Crew::new(Arc::clone(&flood));
    let meter = Meter::start(server.process);
    consume::<D>(&mut crew, &server, door, &queue, Settling::Window(PREFETCH))?;
    let delivered = |flood: &Flood| flood.delivered.load(Ordering::Relaxed);
    crew.wait(delivered, total, lab.scale.step_max)?;
    let lap = meter.lap();
    let mut consumed = CaseResult::new(format!("{case}, consumed"));
    lap.describe(total, server.process, &mut consumed);
    Ok(vec![published, consumed])
}
