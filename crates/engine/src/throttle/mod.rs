//! Throttles: named limits on deliveries, declared by subscribers, counted in buckets
//! ([ADR 6](../../../../docs/adr/0006-throttles.md)).
//!
//! Owns what a declaration must look like, who declares what, the buckets with their histories,
//! and when room comes back. What waits for a bucket is the queue's
//! ([`crate::queue::throttled`]); who goes next is the scheduler's.
//!
//! ```text
//!  pick ── admit ──► charge ──► permit ── the delivery leaves ──► history, in its windows
//!            │                     └───── it comes back ────────► as if it never was
//!            └─► park, block a lane, close the queue ◄── wake ◄── room
//! ```

mod admit;
mod buckets;
mod declaration;
mod history;
mod limit;
mod log;
mod permits;
mod registry;
mod rules;
mod stats;
mod values;
mod wake;
mod wanted;

pub(crate) use admit::{Admission, READS_MAX};
pub(crate) use declaration::check_declarations;
pub use declaration::{MissingThrottleKey, ThrottleSpec};
pub use limit::ThrottleLimit;
pub(crate) use log::{Pending, detach_state};
pub(crate) use registry::{Scope, Throttles};
pub(crate) use stats::BucketWalk;
pub use stats::{BucketStats, ThrottleNotFound, ThrottleStats, ThrottleSummary};
pub(crate) use wake::Outcome;
pub(crate) use wanted::Scratch;
