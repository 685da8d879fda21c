//! How fast the load generator itself is: the ordinary loads against a [`sink`].

use crate::error::BenchError;
use crate::flood;
use crate::frames::Shape;
use crate::lab::{Lab, Producers, Scale, Source, add_producers, settle};
use crate::meter::Meter;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::pump::{Goal, Pump, Timing};
use crate::report::CaseResult;
use crate::sink;
use crate::tally::Limits;

/// Name of its table.
pub(crate) const NAME: &str = "self-check";

const PAYLOAD_BYTES: usize = 100;
/// Batch, connections, outstanding.
const LOADS: &[(u32, u32, u32)] = &[(1, 1, 1), (1, 64, 16), (100, 4, 2), (1000, 4, 2)];

/// Measures all loads once.
pub(crate) fn run(scale: Scale) -> Result<Vec<CaseResult>, BenchError> {
    let addr = sink::start(PAYLOAD_BYTES)?;
    let source = Source::Running {
        addr,
        process: None,
    };
    // Nothing is written, so the directory does not matter.
    let lab = Lab::new(source, std::env::temp_dir().join("tanda-self-check"), scale);
    let mut results = Vec::new();
    for (batch, connections, outstanding) in LOADS {
        let producers = Producers {
            connections: *connections,
            outstanding: *outstanding,
        };
        results.push(enqueue(&lab, *batch, producers)?);
    }
    results.push(consume(&lab)?);
    results.extend(flood::check::run(scale)?);
    Ok(results)
}

fn enqueue(lab: &Lab, batch: u32, producers: Producers) -> Result<CaseResult, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let mut pump = Pump::new(Limits::NONE)?;
    let shape = Shape {
        queue: &queue,
        batch,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    add_producers(&mut pump, &server, &shape, producers)?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let before = pump.tally.confirmed;
    let meter = Meter::start(None);
    pump.run(lab.scale.measure, Goal::Time)?;
    let lap = meter.lap();
    let mut result = CaseResult::new(format!(
        "enqueue, batch {batch} x {PAYLOAD_BYTES} B, {} x {}",
        producers.connections, producers.outstanding
    ));
    result.push("messages_per_s", lap.rate(pump.tally.confirmed - before));
    result.push("confirm_p50_us", pump.tally.confirms.micros(50.0));
    settle(lab, &mut pump)?;
    Ok(result)
}

fn consume(lab: &Lab) -> Result<CaseResult, BenchError> {
    let server = lab.server()?;
    let queue = lab.queue(&server)?;
    let mut pump = Pump::new(Limits::NONE)?;
    let reading = Reading {
        window: 4000,
        acks: Acks::Batches(1000),
        payloads: Payloads::Opaque,
    };
    pump.add(
        Lab::link(&server)?,
        Consumer::new(&queue, reading),
        Timing::Answering,
    )?;
    pump.run(lab.scale.warm_up, Goal::Time)?;
    let before = pump.tally.acked;
    let meter = Meter::start(None);
    pump.run(lab.scale.measure, Goal::Time)?;
    let lap = meter.lap();
    let mut result = CaseResult::new("consume and ack");
    result.push("messages_per_s", lap.rate(pump.tally.acked - before));
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_gets_its_answers() {
        let results = run(Scale::QUICK).unwrap();
        assert!(results.len() > LOADS.len() + 1);
        for result in results {
            let rate = result.value("messages_per_s").unwrap();
            assert!(rate > 0.0, "{} got no answer", result.case);
        }
    }
}
