//! Throttles: named limits on deliveries, declared by subscribers, counted in buckets.
//!
//! Owns what a declaration must look like.

mod declaration;
mod limit;

pub(crate) use declaration::check_declarations;
pub use declaration::{MissingThrottleKey, ThrottleSpec};
pub use limit::ThrottleLimit;
