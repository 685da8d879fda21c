//! FireMQ: streams, confirmed publishes, and backlogs.

use super::Workload;
use super::flood;
use crate::error::BenchError;
use crate::flood::firemq::Fire;
use crate::lab::Lab;
use crate::report::CaseResult;

/// Publishers and consumers at once.
pub(super) const STREAM: Workload = Workload {
    name: "firemq-stream",
    cases: |_| flood::stream_cases(),
    run: |lab, case| flood::stream::<Fire>(lab, "firemq", case),
};

/// Publishers that wait for confirms.
pub(super) const CONFIRM: Workload = Workload {
    name: "firemq-confirm",
    cases: |_| flood::confirm_cases(),
    run: |lab, case| flood::confirm::<Fire>(lab, "firemq", case),
};

/// Publishing alone, then consuming alone.
pub(super) const BACKLOG: Workload = Workload {
    name: "firemq-backlog",
    cases: |_: &Lab| flood::backlog_cases(),
    run: |lab, case| -> Result<Vec<CaseResult>, BenchError> {
        flood::backlog::<Fire>(lab, "firemq", case)
    },
};
