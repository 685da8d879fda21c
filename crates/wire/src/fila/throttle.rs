//! The state of throttles and of their buckets.

use super::error_code::ErrorCode;
use super::stats::ThrottleSummary;
use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// Which bucket of a throttle is meant.
    pub enum BucketKind {
        /// The bucket of these key values, or the only bucket of an unkeyed throttle.
        Keyed = 0,
        /// The bucket shared by messages that lack the key.
        Shared = 1,
    }
}

wire_struct! {
    /// Asks for the state of one throttle.
    pub struct GetThrottleStats<'a>: GetThrottleStats {
        /// The throttle's name.
        name: &'a str,
        /// How many of the buckets with most waiting messages to report.
        top_buckets: u32,
    }

    /// Answers `GetThrottleStats`.
    pub struct GetThrottleStatsResult<'a>: GetThrottleStatsResult {
        /// `Ok`, or why all else is empty.
        error_code: ErrorCode,
        /// The throttle; its subscribers are counted over all queues.
        summary: ThrottleSummary<'a>,
        /// The queues it is active on.
        queues: Vec<&'a str>,
        /// Buckets with deliveries inside the window.
        active_buckets: u64,
        /// Buckets without room now.
        buckets_at_limit: u64,
        /// Messages it holds, over all queues.
        waiting: u64,
        /// The buckets with most waiting messages, most first.
        buckets: Vec<BucketStats<'a>>,
    }

    /// The state of one bucket.
    pub struct BucketStats<'a> {
        /// A [`BucketKind`].
        bucket_kind: u8,
        /// One value per part of the key; none for an unkeyed or shared bucket.
        values: Vec<&'a str> as list_u16,
        /// One per limit, in the order of the summary.
        limits: Vec<BucketLimit> as list_u16,
        /// Messages waiting for this bucket.
        waiting: u64,
        /// Unix time in milliseconds when a delivery next fits all limits; 0 = now.
        next_room_at_ms: u64,
    }

    /// How much of one limit is used.
    pub struct BucketLimit {
        /// Deliveries and unexpired grants inside the window.
        counted: u64,
    }

    /// Asks for the state of one bucket.
    pub struct GetThrottleBucket<'a>: GetThrottleBucket {
        /// The throttle's name.
        name: &'a str,
        /// A [`BucketKind`].
        bucket_kind: u8,
        /// One value per part of the key.
        values: Vec<&'a str> as list_u16,
    }

    /// Answers `GetThrottleBucket`.
    pub struct GetThrottleBucketResult<'a>: GetThrottleBucketResult {
        /// `Ok`, or why all else is empty.
        error_code: ErrorCode,
        /// The bucket.
        bucket: BucketStats<'a>,
    }
}
