//! Time, CPU and memory between two points.

use std::time::{Duration, Instant};

use crate::process::Process;
use crate::report::CaseResult;

/// Where a measurement began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meter {
    server: Option<Process>,
    at: Instant,
    server_cpu: Option<Duration>,
    own_cpu: Option<Duration>,
}

/// What lies between begin and end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lap {
    /// Wall time.
    pub(crate) elapsed: Duration,
    server_cpu: Option<Duration>,
    own_cpu: Option<Duration>,
}

impl Meter {
    /// Begins now. The server's memory peak begins anew too.
    pub(crate) fn start(server: Option<Process>) -> Self {
        if let Some(process) = server {
            // Where the system does not allow it, the peak is that of the whole life.
            let _ = process.reset_peak();
        }
        Self {
            server,
            at: Instant::now(),
            server_cpu: server.and_then(Process::cpu),
            own_cpu: Process::own().cpu(),
        }
    }

    /// Ends now.
    pub(crate) fn lap(&self) -> Lap {
        let since = |now: Option<Duration>, then: Option<Duration>| now?.checked_sub(then?);
        Lap {
            elapsed: self.at.elapsed(),
            server_cpu: since(self.server.and_then(Process::cpu), self.server_cpu),
            own_cpu: since(Process::own().cpu(), self.own_cpu),
        }
    }
}

impl Lap {
    /// Per second of this lap.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        as_f64(count) / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Server CPU seconds per million.
    pub(crate) fn server_cpu_per_million(&self, count: u64) -> Option<f64> {
        per_million(self.server_cpu, count)
    }

    /// Adds rate, costs and the server's peak memory to a result. The generator's share says
    /// how much of one core this program took: near 100 it was the limit.
    pub(crate) fn describe(&self, count: u64, server: Option<Process>, result: &mut CaseResult) {
        result.push("messages_per_s", self.rate(count));
        result.push_some(
            "server_cpu_s_per_million",
            self.server_cpu_per_million(count),
        );
        let share = |cpu: Duration| cpu.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        result.push_some(
            "server_cpu_percent",
            self.server_cpu.map(|c| share(c) * 100.0),
        );
        result.push_some(
            "generator_cpu_percent",
            self.own_cpu.map(|c| share(c) * 100.0),
        );
        let peak = server.and_then(Process::peak_rss_bytes);
        result.push_some("server_peak_rss_mib", peak.map(mib));
    }
}

/// CPU seconds per million of something.
pub(crate) fn per_million(cpu: Option<Duration>, count: u64) -> Option<f64> {
    (count > 0)
        .then_some(cpu?)
        .map(|cpu| cpu.as_secs_f64() * 1e6 / as_f64(count))
}

/// Bytes in MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    as_f64(bytes) / f64::from(1 << 20)
}

/// A count as a number to divide by.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and bytes of a run are far below 2^53"
)]
pub(crate) const fn as_f64(count: u64) -> f64 {
    count as f64
}
