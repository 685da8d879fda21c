//! What a process has used, from `/proc`.
//!
//! Owns: reading CPU time and memory of a process by its id. Linux only, as the program is.

use std::fs;
use std::time::Duration;

/// A process that is measured: the server, or this program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pid: u32,
}

impl Process {
    /// The process with this id.
    pub(crate) const fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// This program.
    pub(crate) fn own() -> Self {
        Self::new(std::process::id())
    }

    /// User and system time of all its threads so far, in steps of a clock tick (10 ms); `None`
    /// when the process is gone.
    pub(crate) fn cpu(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let ticks = cpu_ticks(&stat)?;
        let per_second = rustix::param::clock_ticks_per_second().max(1);
        Some(Duration::from_micros(ticks * 1_000_000 / per_second))
    }

    /// Bytes of memory it holds now.
    pub(crate) fn rss_bytes(self) -> Option<u64> {
        status_bytes(&self.status()?, "VmRSS:")
    }

    /// The most bytes it held since the start or since [`Self::reset_peak`].
    pub(crate) fn peak_rss_bytes(self) -> Option<u64> {
        status_bytes(&self.status()?, "VmHWM:")
    }

    /// Begins a new peak; says whether the system allowed it.
    pub(crate) fn reset_peak(self) -> bool {
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5").is_ok()
    }

    fn status(self) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()
    }
}

/// Fields 14 and 15 (`utime`, `stime`) of a `stat` line. The second field is the name in
/// parentheses, which may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// The value of a `name: 123 kB` line.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_hold_spaces_and_parentheses() {
        let stat = "12 (a) b (c) S 1 12 12 0 -1 4194560 100 0 0 0 250 50 7 7 20 0 1 0 100 200 300";
        assert_eq!(cpu_ticks(stat), Some(300));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t    100 kB\n";
        assert_eq!(status_bytes(status, "VmRSS:"), Some(102_400));
        assert_eq!(status_bytes(status, "VmHWM:"), Some(2_097_152));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        assert!(Process::own().rss_bytes().unwrap() > 0);
        assert!(Process::own().cpu().is_some());
    }
}
