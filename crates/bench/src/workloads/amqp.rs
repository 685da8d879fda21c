//! AMQP 0-9-1: streams, confirmed publishes, and backlogs.

use super::Workload;
use super::flood;
use crate::error::BenchError;
use crate::flood::amqp::Amqp;
use crate::lab::Lab;
use crate::report::CaseResult;

/// Publishers and consumers at once.
pub(super) const STREAM: Workload = Workload {
    name: "amqp-stream",
    cases: |_| flood::stream_cases(),
    run: |lab, case| flood::stream::<Amqp>(lab, "amqp", case),
};

/// Publishers that wait for confirms.
pub(super) const CONFIRM: Workload = Workload {
    name: "amqp-confirm",
    cases: |_| flood::confirm_cases(),
    run: |lab, case| flood::confirm::<Amqp>(lab, "amqp", case),
};

/// Publishing alone, then consuming alone.
pub(super) const BACKLOG: Workload = Workload {
    name: "amqp-backlog",
    cases: |_: &Lab| flood::backlog_cases(),
    run: |lab, case| -> Result<Vec<CaseResult>, BenchError> {
        flood::backlog::<Amqp>(lab, "amqp", case)
    },
};
