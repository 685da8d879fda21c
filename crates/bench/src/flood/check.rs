//! How fast publishers and consumers are against a server that does nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::amqp::Amqp;
use super::publisher::{Load, Publisher};
use super::{Crew, Dialect, Flood, QueueShape, Settling, consumer, sink};
use crate::error::BenchError;
use crate::lab::Scale;
use crate::meter::Meter;
use crate::report::CaseResult;

/// Bytes, and how many may be sent and not confirmed.
const PUBLISHES: &[(usize, Option<u64>)] = &[
    (16, None),
    (1024, None),
    (100, Some(1000)),
    (1024, Some(1000)),
];
const CONSUMES: &[usize] = &[16, 1024];

/// Measures all once.
pub(crate) fn run(scale: Scale) -> Result<Vec<CaseResult>, BenchError> {
    let mut results = Vec::new();
    for (payload_bytes, window) in PUBLISHES {
        let load = Load {
            payload_bytes: *payload_bytes,
            window: *window,
        };
        results.push(publish(scale, load)?);
    }
    for payload_bytes in CONSUMES {
        results.push(consume(scale, *payload_bytes)?);
    }
    Ok(results)
}

fn publish(scale: Scale, load: Load) -> Result<CaseResult, BenchError> {
    let (addr, taken) = sink::start(load.payload_bytes)?;
    let queue = QueueShape {
        name: "queue".to_owned(),
        durable: false,
    };
    let publisher = Publisher::new(Amqp::connect(addr)?, &queue, load)?;
    let flood = Flood::new(u64::MAX, u64::MAX);
    let mut crew = Crew::new(Arc::clone(&flood));
    let stream = publisher.dialect().stream().try_clone();
    let stream = stream.map_err(BenchError::io("a socket"))?;
    crew.spawn(&stream, move |flood| publisher.run(flood).map(drop))?;
    let name = match load.window {
        Some(window) => format!("amqp, {} B, 1 x {window} confirmed", load.payload_bytes),
        None => format!("amqp, {} B, published", load.payload_bytes),
    };
    measure(scale, &crew, name, || taken.load(Ordering::Relaxed))
}

fn consume(scale: Scale, payload_bytes: usize) -> Result<CaseResult, BenchError> {
    let (addr, _) = sink::start(payload_bytes)?;
    let mut dialect = Amqp::connect(addr)?;
    dialect.consume("queue", Settling::None)?;
    let flood = Flood::new(u64::MAX, u64::MAX);
    let mut crew = Crew::new(Arc::clone(&flood));
    let stream = dialect.stream().try_clone();
    let stream = stream.map_err(BenchError::io("a socket"))?;
    crew.spawn(&stream, |flood| {
        consumer::run(dialect, Settling::None, flood)
    })?;
    let name = format!("amqp, {payload_bytes} B, consumed");
    measure(scale, &crew, name, || {
        flood.delivered.load(Ordering::Relaxed)
    })
}

fn measure(
    scale: Scale,
    crew: &Crew,
    name: String,
    count: impl Fn() -> u64,
) -> Result<CaseResult, BenchError> {
    crew.sleep(scale.warm_up)?;
    let before = count();
    let meter = Meter::start(None);
    crew.sleep(scale.measure)?;
    let counted = count() - before;
    let mut result = CaseResult::new(name);
    result.push("messages_per_s", meter.lap().rate(counted));
    Ok(result)
}
