//! Where workloads get their servers, connections and sizes from.

use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::door::Door;
use crate::error::BenchError;
use crate::frames::{Shape, Template};
use crate::link::Link;
use crate::peers::producer::Producer;
use crate::process::Process;
use crate::pump::{Goal, Pump, Reached, Timing};
use crate::server::Server;
use crate::tally::Limits;

/// The server a workload is given.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A new process on an empty directory for each case.
    Fresh {
        /// The binary.
        binary: PathBuf,
    },
    /// One that runs already; its process is needed for CPU and memory.
    Running {
        /// Its Fila door.
        addr: SocketAddr,
        /// Its process, when named.
        process: Option<Process>,
    },
}

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Before counting begins.
    pub(crate) warm_up: Duration,
    /// Counted.
    pub(crate) measure: Duration,
    /// No step of a workload takes longer.
    pub(crate) step_max: Duration,
    /// Messages of a backlog.
    pub(crate) backlog: u64,
    /// Messages of the backlog with keys, and the largest number of keys.
    pub(crate) keyed_backlog: u32,
    /// Rates of the latency workload, in messages per second.
    pub(crate) rates: &'static [u32],
    /// Repetitions of workloads that alternate.
    pub(crate) alternations: u32,
}

impl Scale {
    /// For figures.
    pub(crate) const FULL: Self = Self {
        warm_up: Duration::from_millis(500),
        measure: Duration::from_secs(2),
        step_max: Duration::from_secs(60),
        backlog: 1_000_000,
        keyed_backlog: 1_000_000,
        rates: &[1_000, 10_000, 50_000],
        alternations: 4,
    };
    /// To see that all works.
    pub(crate) const QUICK: Self = Self {
        warm_up: Duration::from_millis(100),
        measure: Duration::from_millis(300),
        step_max: Duration::from_secs(20),
        backlog: 100_000,
        keyed_backlog: 100_000,
        rates: &[1_000],
        alternations: 1,
    };
}

/// What workloads work with.
#[derive(Debug)]
pub(crate) struct Lab {
    source: Source,
    /// Parent of all directories made; on the file system that is measured.
    data_parent: PathBuf,
    serial: Cell<u32>,
    /// Sizes of everything.
    pub(crate) scale: Scale,
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Fails when something is left in it; then it is good to leave it.
        drop(fs::remove_dir(&self.data_parent));
    }
}

impl Lab {
    /// A lab that makes its directories in `data_parent`.
    pub(crate) const fn new(source: Source, data_parent: PathBuf, scale: Scale) -> Self {
        Self {
            source,
            data_parent,
            serial: Cell::new(0),
            scale,
        }
    }

    /// A server for one case.
    pub(crate) fn server(&self) -> Result<Server, BenchError> {
        self.server_with(&[])
    }

    /// A server for one case, with options that one which runs already is taken to have.
    pub(crate) fn server_with(&self, options: &[String]) -> Result<Server, BenchError> {
        match &self.source {
            Source::Fresh { binary } => Server::start(binary, self.fresh_dir("server"), options),
            Source::Running { addr, process } => Ok(Server::running(*addr, *process)),
        }
    }

    /// Whether each case gets a process of its own.
    pub(crate) const fn starts_servers(&self) -> bool {
        matches!(self.source, Source::Fresh { .. })
    }

    /// A directory that does not exist yet.
    pub(crate) fn fresh_dir(&self, what: &str) -> PathBuf {
        self.data_parent.join(self.fresh_name(what))
    }

    /// A name that no other run used.
    pub(crate) fn fresh_name(&self, what: &str) -> String {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        format!("{what}-{}-{serial}", std::process::id())
    }

    /// A new queue.
    pub(crate) fn queue(&self, server: &Server) -> Result<String, BenchError> {
        let name = self.fresh_name("bench");
        Door::connect(server.addr)?.create_queue(&name)?;
        Ok(name)
    }

    /// A new queue with a script that classifies its messages.
    pub(crate) fn scripted_queue(
        &self,
        server: &Server,
        on_enqueue: &str,
    ) -> Result<String, BenchError> {
        let name = self.fresh_name("bench");
        Door::connect(server.addr)?.create_scripted_queue(&name, Some(on_enqueue))?;
        Ok(name)
    }

    /// A new connection after its handshake.
    pub(crate) fn link(server: &Server) -> Result<Link, BenchError> {
        Door::connect(server.addr)?.into_link()
    }
}

/// So many producers of one shape in a closed loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Producers {
    /// Connections.
    pub(crate) connections: u32,
    /// Requests outstanding on each.
    pub(crate) outstanding: u32,
}

/// Adds producers to a measurement.
pub(crate) fn add_producers(
    pump: &mut Pump,
    server: &Server,
    shape: &Shape<'_>,
    producers: Producers,
) -> Result<(), BenchError> {
    for index in 0..producers.connections {
        let first_key = shape.keys / producers.connections.max(1) * index;
        let template = Template::new(shape, first_key)?;
        let producer = Producer::new(template, producers.outstanding);
        pump.add(Lab::link(server)?, producer, Timing::Answering)?;
    }
    Ok(())
}

/// Stores `messages` messages as fast as may be; they must all be confirmed.
pub(crate) fn preload(
    lab: &Lab,
    server: &Server,
    shape: &Shape<'_>,
    messages: u64,
) -> Result<(), BenchError> {
    let limits = Limits {
        sent_max: messages,
        ..Limits::NONE
    };
    let mut pump = Pump::new(limits)?;
    // One connection: several would put the keys of one turn out of order.
    let one = Producers {
        connections: 1,
        outstanding: 4,
    };
    add_producers(&mut pump, server, shape, one)?;
    let reached = pump.run(lab.scale.step_max, Goal::Confirmed(messages))?;
    check_done(&pump, reached, "storing a backlog")
}

/// A step that had to reach its goal did, and the server refused nothing.
pub(crate) fn check_done(pump: &Pump, reached: Reached, what: &str) -> Result<(), BenchError> {
    let tally = &pump.tally;
    if let Some(why) = &tally.first_failure {
        let failures = tally.failures;
        return Err(BenchError::Stuck(format!(
            "{what}: {failures} messages failed; the first: {why}"
        )));
    }
    if reached == Reached::Goal {
        return Ok(());
    }
    Err(BenchError::Stuck(format!(
        "{what} took too long: {} sent, {} confirmed, {} delivered, {} acked, {} requests open",
        tally.sent, tally.confirmed, tally.delivered, tally.acked, tally.requests_open
    )))
}

/// Lets open requests be answered after a measurement in a closed loop.
pub(crate) fn settle(lab: &Lab, pump: &mut Pump) -> Result<(), BenchError> {
    pump.stop_sending();
    let reached = pump.run(lab.scale.step_max, Goal::Quiet)?;
    check_done(pump, reached, "waiting for the last answers")
}

/// Parent of the data directories when none is named: beside the program, so on the file system
/// of `target`.
pub(crate) fn default_data_parent(own: &Path) -> PathBuf {
    own.with_file_name(format!("bench-data-{}", std::process::id()))
}
