//! Counting calls, and the calls that are to fail.

use std::collections::BTreeMap;
use std::io;

use crate::disk::DiskCall;

/// What happens to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It fails and does nothing.
    Fail(io::ErrorKind),
    /// A read or write handles this many bytes only (at least one).
    Short(usize),
}

/// Call counters and planned faults.
#[derive(Default)]
pub(super) struct Faults {
    calls: BTreeMap<DiskCall, u64>,
    total: u64,
    planned: BTreeMap<(DiskCall, u64), Fault>,
}

impl Faults {
    /// Plans a fault for the `nth` call of this kind from now.
    pub(super) fn inject(&mut self, call: DiskCall, nth: u64, fault: Fault) {
        let number = self.calls(call) + nth;
        self.planned.insert((call, number), fault);
    }

    /// Counts a call and says what is to happen to it.
    pub(super) fn count(&mut self, call: DiskCall) -> Option<Fault> {
        self.total += 1;
        let number = self.calls.entry(call).or_default();
        *number += 1;
        self.planned.remove(&(call, *number))
    }

    pub(super) fn calls(&self, call: DiskCall) -> u64 {
        self.calls.get(&call).copied().unwrap_or_default()
    }

    pub(super) const fn calls_total(&self) -> u64 {
        self.total
    }

    pub(super) fn forget_planned(&mut self) {
        self.planned.clear();
    }
}
