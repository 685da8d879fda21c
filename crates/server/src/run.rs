//! `tanda serve`: a broker from start to signal.

use std::{
    fmt,
    io::{self, Write},
    sync::Arc,
    time::Instant,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    config::Loaded,
    logging, process,
    server::{Server, StartError},
};

/// Why `serve` ended badly.
#[derive(Debug)]
pub enum RunError {
    /// The broker did not start.
    Start(StartError),
    /// The system refused something.
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It was told to stop and could not finish in time.
    Unfinished,
}

/// Runs a broker until SIGTERM or SIGINT. Says on standard output, a line per door, where it
/// listens, then `ready in N ms`.
///
/// # Errors
/// See [`RunError`].
pub fn run(loaded: Loaded) -> Result<(), RunError> {
    let began = Instant::now();
    logging::init(loaded.config.log_level);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(io_threads())
        .thread_name("tanda-io")
        .enable_all()
        .build()
        .map_err(io_error("start the runtime"))?;
    let config = &loaded.config;
    process::raise_open_files(u64::from(config.limits_connections_max));
    let outcome = runtime.block_on(serve(loaded, began));
    // Not waited for: a thread may hang in a disk call that never returns.
    runtime.shutdown_background();
    outcome
}

/// One thread for sockets per core, but for the core of the shard. On two cores one thread instead
/// of two took a lonely message from 1.6 to 1.5 times the commit it waits for, and 20 % off the CPU
/// of delivering to four consumers: nobody is woken to look for work (2026-11, `make bench`).
fn io_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.saturating_sub(1).max(1)
}

async fn serve(loaded: Loaded, began: Instant) -> Result<(), RunError> {
    // Before anything is announced: whoever reads the announcement may signal at once.
    let mut terminate = on_signal(SignalKind::terminate())?;
    let mut interrupt = on_signal(SignalKind::interrupt())?;
    let mut hangup = on_signal(SignalKind::hangup())?;
    let server = Server::start(Arc::new(loaded.config))
        .await
        .map_err(RunError::Start)?;
    announce(&server, began).map_err(io_error("write to standard output"))?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "ready");
    loop {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
            _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
            _ = hangup.recv() => {
                on_hangup(&server);
                continue;
            }
        }
        break;
    }
    let finished = tokio::select! {
        finished = server.stop() => finished,
        // Whoever asks twice means it.
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
    };
    if !finished {
        return Err(RunError::Unfinished);
    }
    tracing::info!("stopped");
    Ok(())
}

fn on_hangup(server: &Server) {
    if server.uses_tls() {
        // First: what comes of it is logged by another thread.
        tracing::info!("SIGHUP: reading the files of TLS again");
        server.reload_certificates();
    } else {
        tracing::info!("SIGHUP: nothing to read again, since no door uses TLS");
    }
}

fn announce(server: &Server, began: Instant) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (door, addr) in server.addresses() {
        writeln!(out, "{door} listening on {addr}")?;
    }
    writeln!(out, "ready in {} ms", began.elapsed().as_millis())?;
    out.flush()
}

fn on_signal(kind: SignalKind) -> Result<Signal, RunError> {
    signal(kind).map_err(io_error("listen for signals"))
}

fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> RunError {
    move |source| RunError::Io { action, source }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => error.fmt(f),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::Unfinished => {
                f.write_str("stopped before everything was written; what was confirmed is safe")
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Unfinished => None,
        }
    }
}
