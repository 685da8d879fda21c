//! `tanda-bench`: the load generator, and the workloads that measure a server from outside.
//!
//! Owns: workloads, connections cheap enough not to be what is measured, results.
//! Refuses to know: how the server works; it is a process with a TCP port. The client library is
//! not used, because it must not be the limit. `docs/benchmarks.md` says what each figure means.
//!
//! ```text
//!  workloads ──> lab ──> server (process, directory)
//!      │          └────> door (handshake, queues)
//!      ├──> pump (epoll) ──> link (socket) <──> peers (producer, paced, consumer) ──> tally
//!      ├──> flood (threads): publishers and consumers of AMQP
//!      └──> keyed (epoll): commands on keys, of Amaquet and of Redis
//!  meter (time, CPU, memory) ──> report (table, JSON)
//! ```

mod bare_log;
mod disk;
mod door;
mod error;
mod flood;
mod frames;
mod keyed;
mod lab;
mod link;
mod meter;
mod peers;
mod process;
mod pump;
mod report;
mod routes;
mod self_check;
mod server;
mod sink;
mod tally;
mod workloads;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustix::process::{Resource, getrlimit, setrlimit};

use error::BenchError;
use lab::{Lab, Scale, Source};
use process::Process;
use report::Report;

/// Measures a Tanda server over TCP.
#[derive(Debug, Parser)]
#[command(name = "tanda-bench", version)]
struct Args {
    /// The server's binary. Default: `tanda` beside this program, built first under cargo.
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// Measure a server that runs already. Queues are left behind in it.
    #[arg(long, value_name = "ADDR", conflicts_with = "server")]
    addr: Option<SocketAddr>,
    /// Process of the server at --addr, for CPU and memory.
    #[arg(long, value_name = "PID", requires = "addr")]
    pid: Option<u32>,
    /// Parent of the data directories; its disk is what is measured. Default: beside this program.
    #[arg(long, value_name = "DIR")]
    data_parent: Option<PathBuf>,
    /// Times each case is measured; the table shows medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Short and small: shows that all works, not how fast. One run.
    #[arg(long)]
    quick: bool,
    /// Only cases whose `workload/case` contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Before measuring, touch this much memory once. On a virtual machine a page that was never
    /// used is fetched from the host, at a second of CPU time per GiB, which would be measured.
    #[arg(long, value_name = "GIB", default_value_t = 0)]
    touch_gib: u32,
    /// Write all values to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum Action {
    /// Measure the load generator itself against a server that does nothing.
    SelfCheck,
    /// Measure what it costs an engine to find the queues of a message.
    Routes,
    /// Name all workloads and cases.
    List,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("tanda-bench: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, BenchError> {
    prepare_process();
    let scale = if args.quick {
        Scale::QUICK
    } else {
        Scale::FULL
    };
    let runs = if args.quick { 1 } else { args.runs };
    if args.command == Some(Action::Routes) {
        print(&routes::run(runs)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = Report::default();
    let failed = if args.command == Some(Action::SelfCheck) {
        for _ in 0..runs {
            report.add(self_check::NAME, self_check::run(scale)?);
        }
        0
    } else {
        let lab = lab(args, scale)?;
        if args.command == Some(Action::List) {
            list(&lab)?;
            return Ok(ExitCode::SUCCESS);
        }
        touch(args.touch_gib);
        measure(&lab, runs, args.only.as_deref(), &mut report)
    };
    print(&report.table())?;
    if let Some(path) = &args.json {
        let text = format!("{:#}\n", report.json(runs));
        fs::write(path, text).map_err(BenchError::io("writing the JSON file"))?;
    }
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A thousand hostile connections need file descriptors, also in the server, which inherits the
/// limit; and sends on a schedule need a timer that is not late by its default slack of 50 us.
fn prepare_process() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without either the program still works; workloads that need more will say so.
    setrlimit(Resource::Nofile, limit).ok();
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok();
}

/// Writes to every page of so much memory and gives it back to the system.
fn touch(gib: u32) {
    const PAGE: usize = 4096;
    let mut pieces = Vec::new();
    for _ in 0..gib {
        let mut piece = vec![0_u8; 1 << 30];
        piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        pieces.push(std::hint::black_box(piece));
    }
}

fn lab(args: &Args, scale: Scale) -> Result<Lab, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
    let parent = args.data_parent.clone().map_or_else(
        || lab::default_data_parent(&own),
        |dir| dir.join("tanda-bench"),
    );
    let source = match args.addr {
        Some(addr) => Source::Running {
            addr,
            process: args.pid.map(Process::new),
        },
        None if args.command == Some(Action::List) => Source::Fresh { binary: own },
        None => Source::Fresh {
            binary: server::find_binary(args.server.clone())?,
        },
    };
    Ok(Lab::new(source, parent, scale))
}

fn list(lab: &Lab) -> Result<(), BenchError> {
    let mut text = String::new();
    for workload in workloads::ALL {
        for case in (workload.cases)(lab) {
            text.push_str(&format!("{}/{case}\n", workload.name));
        }
    }
    print(&text)
}

/// Runs everything, all cases before the next run, so that each run sees the machine as it is in
/// turn. Returns how many cases failed; the others are reported all the same.
fn measure(lab: &Lab, runs: u32, only: Option<&str>, report: &mut Report) -> u32 {
    let mut failed = 0;
    for run in 1..=runs {
        for workload in workloads::ALL {
            for case in (workload.cases)(lab) {
                let name = format!("{}/{case}", workload.name);
                if only.is_some_and(|text| !name.contains(text)) {
                    continue;
                }
                say(&format!("run {run} of {runs}: {name}\n"));
                match (workload.run)(lab, &case) {
                    Ok(results) => report.add(workload.name, results),
                    Err(error) => {
                        failed += 1;
                        say(&format!("  failed: {error}\n"));
                    }
                }
            }
        }
    }
    failed
}

/// Progress and errors.
fn say(text: &str) {
    // Nobody to tell when stderr is closed.
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Results.
fn print(text: &str) -> Result<(), BenchError> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(BenchError::io("writing the results"))
}
