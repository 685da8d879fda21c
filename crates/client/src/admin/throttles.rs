//! The state of throttles and of their buckets.

use tanda_wire::fila::throttle::{
    BucketKind, BucketStats as WireBucket, GetThrottleBucket, GetThrottleBucketResult,
    GetThrottleStats, GetThrottleStatsResult,
};

use super::{Admin, ThrottleSummary, check, read};
use crate::error::RequestError;
use crate::shell::handle::Repeat;

/// Which bucket of a throttle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketId {
    /// The one of these values, one per part of the key; no values for a throttle without a key.
    Values(Vec<String>),
    /// The one shared by messages that lack a part of the key.
    Shared,
    /// A kind this version does not know.
    Unknown {
        /// Its number on the wire.
        kind: u8,
        /// The values that came with it.
        values: Vec<String>,
    },
}

impl BucketId {
    const fn kind(&self) -> u8 {
        match self {
            Self::Values(_) => BucketKind::Keyed.to_wire(),
            Self::Shared => BucketKind::Shared.to_wire(),
            Self::Unknown { kind, .. } => *kind,
        }
    }

    fn values(&self) -> Vec<&str> {
        match self {
            Self::Values(values) | Self::Unknown { values, .. } => {
                values.iter().map(String::as_str).collect()
            }
            Self::Shared => Vec::new(),
        }
    }

    fn from_wire(kind: u8, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        match BucketKind::from_wire(kind) {
            Some(BucketKind::Keyed) => Self::Values(values),
            Some(BucketKind::Shared) => Self::Shared,
            None => Self::Unknown { kind, values },
        }
    }
}

/// The state of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketStats {
    /// Which one.
    pub id: BucketId,
    /// Deliveries and unexpired grants inside the window of each limit, in the order of the
    /// summary's limits.
    pub counted: Vec<u64>,
    /// Messages that wait for this bucket.
    pub waiting: u64,
    /// When a delivery next fits all limits, in Unix milliseconds; 0 = now.
    pub next_room_at_ms: u64,
}

impl BucketStats {
    fn from_wire(bucket: &WireBucket<'_>) -> Self {
        Self {
            id: BucketId::from_wire(bucket.bucket_kind, &bucket.values),
            counted: bucket.limits.iter().map(|limit| limit.counted).collect(),
            waiting: bucket.waiting,
            next_room_at_ms: bucket.next_room_at_ms,
        }
    }
}

/// The state of one throttle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleStats {
    /// The throttle; its subscribers are counted over all queues.
    pub summary: ThrottleSummary,
    /// The queues it applies to.
    pub queues: Vec<String>,
    /// Buckets with deliveries inside the window.
    pub active_buckets: u64,
    /// Buckets without room now.
    pub buckets_at_limit: u64,
    /// Messages it holds, over all queues.
    pub waiting: u64,
    /// The buckets with most messages waiting, most first.
    pub buckets: Vec<BucketStats>,
}

impl Admin {
    /// The state of a throttle, with the `top_buckets` buckets for which most messages wait.
    ///
    /// # Errors
    /// `ThrottleNotFound` when no subscription declares it, `Forbidden`.
    pub async fn throttle_stats(
        &self,
        name: &str,
        top_buckets: u32,
    ) -> Result<ThrottleStats, RequestError> {
        let request = GetThrottleStats { name, top_buckets };
        let body = self.handle.call(&request, Repeat::Harmless).await?;
        let answer = read(GetThrottleStatsResult::decode(&body))?;
        check(answer.error_code)?;
        Ok(ThrottleStats {
            summary: ThrottleSummary::from_wire(&answer.summary),
            queues: answer
                .queues
                .iter()
                .map(|queue| (*queue).to_owned())
                .collect(),
            active_buckets: answer.active_buckets,
            buckets_at_limit: answer.buckets_at_limit,
            waiting: answer.waiting,
            buckets: answer.buckets.iter().map(BucketStats::from_wire).collect(),
        })
    }

    /// The state of one bucket of a throttle.
    ///
    /// # Errors
    /// `ThrottleNotFound`, `Forbidden`.
    pub async fn throttle_bucket(
        &self,
        name: &str,
        bucket: &BucketId,
    ) -> Result<BucketStats, RequestError> {
        let request = GetThrottleBucket {
            name,
            bucket_kind: bucket.kind(),
            values: bucket.values(),
        };
        let body = self.handle.call(&request, Repeat::Harmless).await?;
        let answer = read(GetThrottleBucketResult::decode(&body))?;
        check(answer.error_code)?;
        Ok(BucketStats::from_wire(&answer.bucket))
    }
}
