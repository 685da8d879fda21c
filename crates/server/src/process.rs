//! What the system knows of this process.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides connections: the log, listeners, the runtime's own.
const OTHER_FILES: u64 = 128;

/// Resident memory in bytes; `None` where the system does not say.
#[must_use]
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Memory that this process may use: the machine's, or its control group's where that is less;
/// `None` where the system does not say.
#[must_use]
pub(crate) fn memory_bytes() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let machine = kib.checked_mul(1024)?;
    // Inside a container its own group is mounted here. "max" is no number.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    Some(machine.min(group.unwrap_or(u64::MAX)))
}

/// Raises the limit of open files as far as the system allows, and warns when it is still too low
/// for `connections` connections.
pub(crate) fn raise_open_files(connections: u64) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let needed = connections.saturating_add(OTHER_FILES);
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        tracing::warn!(
            allowed,
            needed,
            "the system allows fewer open files than limits.connections_max needs; raise the \
             limit (ulimit -n) or lower the option"
        );
    }
}
