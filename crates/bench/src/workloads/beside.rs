//! Latency at a fixed rate beside one client that asks for something large again and again, against
//! the same load without it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tanda_wire::fila::frame::write_body;
use tanda_wire::fila::queue_admin::ListQueues;
use tanda_wire::fila::stats::GetStats;

use super::Workload;
use crate::door::Door;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::lab::{Lab, preload, settle};
use crate::meter::as_f64;
use crate::peers::consumer::{Acks, Consumer, Payloads, Reading};
use crate::peers::paced::PacedProducer;
use crate::pump::{Goal, Pump, Timing};
use crate::report::{CaseResult, median};
use crate::server::Server;
use crate::tally::{Latencies, Limits};

pub(super) const WORKLOAD: Workload = Workload {
    name: "beside",
    cases: |_| CASES.iter().map(|case| case.0.to_owned()).collect(),
    run,
};

/// What is asked beside, as a frame.
type Prepare = fn(&Lab, &Server) -> Result<Vec<u8>, BenchError>;

const CASES: &[(&str, Prepare)] = &[
    ("statistics of many keys", statistics),
    ("a list of many queues", list),
    ("batches of many messages", batches),
];

/// Messages whose latency is measured, per second.
const RATE: u32 = 2_000;
const PAYLOAD_BYTES: usize = 100;
/// Before the first message is due.
const HEAD_START: Duration = Duration::from_millis(20);
/// Messages of one byte that fit a frame of 16 MiB.
const BATCH: u32 = 400_000;
/// Largest number of queues; each has a dead-letter queue.
const QUEUES: u32 = 50_000;

fn run(lab: &Lab, case: &str) -> Result<Vec<CaseResult>, BenchError> {
    let Some((name, prepare)) = CASES.iter().find(|(name, _)| *name == case) else {
        return Ok(Vec::new());
    };
    let server = lab.server()?;
    let frame = prepare(lab, &server)?;
    let mut pump = Pump::new(Limits::NONE)?;
    load(lab, &server, &mut pump)?;
    let (mut quiet, mut busy) = (Latencies::new()?, Latencies::new()?);
    let (mut ratios, mut answers) = (Vec::new(), 0);
    for _ in 0..lab.scale.alternations {
        let without = measure(lab, &mut pump)?;
        let asker = Asker::start(server.addr, frame.clone());
        let with = measure(lab, &mut pump)?;
        answers += asker.stop()?;
        ratios.push(with.micros(99.0) / without.micros(99.0).max(1e-9));
        quiet.merge(&without);
        busy.merge(&with);
    }
    settle(lab, &mut pump)?;
    let mut result = CaseResult::new(*name);
    result.push("answers", as_f64(answers));
    result.push("p50_without_us", quiet.micros(50.0));
    result.push("p50_with_us", busy.micros(50.0));
    result.push("p99_without_us", quiet.micros(99.0));
    result.push("p99_with_us", busy.micros(99.0));
    result.push("max_without_us", quiet.micros_max());
    result.push("max_with_us", busy.micros_max());
    result.push_some("p99_with_of_without", median(&ratios));
    Ok(vec![result])
}

/// A queue with paced messages and a consumer that acks each.
fn load(lab: &Lab, server: &Server, pump: &mut Pump) -> Result<(), BenchError> {
    let queue = lab.queue(server)?;
    let reading = Reading {
        window: 0,
        acks: Acks::Batches(1),
        payloads: Payloads::Timed,
    };
    let consumer = Consumer::new(&queue, reading);
    pump.add(Lab::link(server)?, consumer, Timing::Answering)?;
    let shape = Shape {
        queue: &queue,
        batch: 1,
        payload_bytes: PAYLOAD_BYTES,
        keys: 0,
    };
    let step = Duration::from_secs(1) / RATE;
    let producer = PacedProducer::new(Template::new(&shape, 0)?, Instant::now() + HEAD_START, step);
    pump.add(Lab::link(server)?, producer, Timing::Timed)
}

fn measure(lab: &Lab, pump: &mut Pump) -> Result<Latencies, BenchError> {
    pump.run(lab.scale.warm_up, Goal::Time)?;
    pump.tally.end_to_end.clear();
    pump.run(lab.scale.measure, Goal::Time)?;
    Ok(pump.tally.end_to_end.clone())
}

fn statistics(lab: &Lab, server: &Server) -> Result<Vec<u8>, BenchError> {
    let queue = lab.queue(server)?;
    let shape = Shape {
        queue: &queue,
        batch: 1000,
        payload_bytes: PAYLOAD_BYTES,
        keys: lab.scale.keyed_backlog,
    };
    preload(lab, server, &shape, u64::from(shape.keys))?;
    let mut frame = Vec::new();
    write_body(&mut frame, 1, 0, &GetStats { queue: &queue })?;
    Ok(frame)
}

fn list(lab: &Lab, server: &Server) -> Result<Vec<u8>, BenchError> {
    let mut door = Door::connect(server.addr)?;
    for number in 0..QUEUES.min(lab.scale.keyed_backlog / 20) {
        door.create_queue(&format!("of-many-{number}"))?;
    }
    let mut frame = Vec::new();
    write_body(&mut frame, 1, 0, &ListQueues {})?;
    Ok(frame)
}

fn batches(lab: &Lab, server: &Server) -> Result<Vec<u8>, BenchError> {
    let queue = lab.queue(server)?;
    let shape = Shape {
        queue: &queue,
        batch: BATCH.min(lab.scale.keyed_backlog),
        payload_bytes: 8,
        keys: 0,
    };
    Ok(Template::new(&shape, 0)?.frame(1).to_vec())
}

/// A thread that asks until it is stopped.
struct Asker {
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), BenchError>>,
}

impl Asker {
    fn start(addr: SocketAddr, frame: Vec<u8>) -> Self {
        let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::<AtomicU64>::clone(&answers));
        let thread = std::thread::spawn(move || {
            let mut door = Door::connect(addr)?;
            while !stopped.load(Ordering::Relaxed) {
                door.exchange(&frame)?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Self {
            stop,
            answers,
            thread,
        }
    }

    /// How many answers came.
    fn stop(self) -> Result<u64, BenchError> {
        self.stop.store(true, Ordering::Relaxed);
        let gone = |_panic| BenchError::Protocol("the asking thread panicked".to_owned());
        self.thread.join().map_err(gone)??;
        Ok(self.answers.load(Ordering::Relaxed))
    }
}
