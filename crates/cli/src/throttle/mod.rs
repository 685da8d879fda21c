//! `tanda throttle ...`: throttles that consumers declare, and their buckets.

mod bucket;
mod stats;

use clap::Subcommand;
use serde_json::{Value, json};
use tanda_client::admin::{BucketId, BucketStats, ThrottleLimit, ThrottleSummary};

use crate::{
    durations, failure::Failure, key_parts, moments, output::printable, table::grouped,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ThrottleCommand {
    /// Show a throttle, and the buckets for which most messages wait.
    Stats(stats::StatsArgs),
    /// Show one bucket of a throttle.
    Bucket(bucket::BucketArgs),
}

pub(crate) async fn run(command: ThrottleCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        ThrottleCommand::Stats(args) => stats::run(args, before).await,
        ThrottleCommand::Bucket(args) => bucket::run(args, before).await,
    }
}

/// "100 in 1s".
pub(crate) fn limit(limit: &ThrottleLimit) -> String {
    let window = durations::exact(limit.window_ms);
    format!("{} in {window}", grouped(limit.max_deliveries))
}

/// "100 in 1s, 1,000 in 1m".
pub(crate) fn limits(summary: &ThrottleSummary) -> String {
    let limits: Vec<String> = summary.limits.iter().map(limit).collect();
    limits.join(", ")
}

pub(crate) fn summary_json(summary: &ThrottleSummary) -> Value {
    let missing = if summary.unthrottled_without_key {
        "unthrottled"
    } else {
        "shared"
    };
    let limits = summary
        .limits
        .iter()
        .map(|limit| json!({"max_deliveries": limit.max_deliveries, "window_ms": limit.window_ms}));
    json!({
        "name": summary.name,
        "limits": limits.collect::<Value>(),
        "key": key_parts::json(&summary.key),
        "missing": missing,
        "declaring_subscribers": summary.declaring_subscribers,
    })
}

/// The values of a bucket, one per part of the key.
pub(crate) fn bucket_name(bucket: &BucketId) -> String {
    match bucket {
        BucketId::Values(values) if values.is_empty() => "(all messages)".to_owned(),
        BucketId::Values(values) => joined(values),
        BucketId::Shared => "(messages without the key)".to_owned(),
        BucketId::Unknown { kind, values } => format!("(kind {kind}) {}", joined(values)),
        _ => "(unknown)".to_owned(),
    }
}

fn joined(values: &[String]) -> String {
    let shown: Vec<String> = values
        .iter()
        .map(|value| match value.as_str() {
            "" => "\"\"".to_owned(),
            value => printable(value.as_bytes()),
        })
        .collect();
    shown.join(" ")
}

/// How full the window of each limit is, like "100/100".
fn counts(bucket: &BucketStats, summary: &ThrottleSummary) -> Vec<String> {
    let counted = bucket.counted.iter().zip(&summary.limits);
    counted
        .map(|(counted, limit)| format!("{}/{}", grouped(*counted), grouped(limit.max_deliveries)))
        .collect()
}

fn room(bucket: &BucketStats, now_ms: u64) -> String {
    match bucket.next_room_at_ms.checked_sub(now_ms) {
        Some(left_ms) if left_ms > 0 => format!("in {}", durations::rough(left_ms)),
        Some(_) | None => "now".to_owned(),
    }
}

fn bucket_json(bucket: &BucketStats) -> Value {
    let (kind, values) = match &bucket.id {
        BucketId::Values(values) => (json!("keyed"), values.clone()),
        BucketId::Shared => (json!("shared"), Vec::new()),
        BucketId::Unknown { kind, values } => (json!(kind), values.clone()),
        _ => (Value::Null, Vec::new()),
    };
    json!({
        "kind": kind,
        "values": values,
        "counted": bucket.counted,
        "waiting": bucket.waiting,
        "next_room_at_ms": bucket.next_room_at_ms,
    })
}

/// The moment when a delivery next fits, for people.
fn room_moment(bucket: &BucketStats) -> String {
    moments::ahead(bucket.next_room_at_ms, moments::now_ms())
}
