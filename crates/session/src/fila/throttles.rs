//! Throttles: declarations from the wire to the engine, their state from there to the wire.

use tanda_engine::{
    AdminRequest, KeyKind, KeyPart, MissingThrottleKey, ThrottleLimit, ThrottleNotFound,
    ThrottleSpec, ThrottleStats, ThrottleSummary,
};
use tanda_wire::fila::consume::{self, ThrottleDeclaration, WhenThrottleKeyMissing};
use tanda_wire::fila::property_key::{self, KeyPartKind, PropertyKey};
use tanda_wire::fila::throttle::{
    BucketKind, BucketLimit, BucketStats, GetThrottleBucket, GetThrottleBucketResult,
    GetThrottleStats, GetThrottleStatsResult,
};
use tanda_wire::fila::{ErrorCode, stats as wire};

use super::link::{Call, Link};
use super::queue_settings;
use super::slots::Kind;

/// A declaration holds numbers that mean nothing.
pub(super) struct InvalidThrottle<'a> {
    pub(super) name: &'a str,
    pub(super) problem: &'static str,
}

/// What a `Consume` declares. What the values must be to each other the engine checks.
pub(super) fn specs<'a>(
    declarations: &[ThrottleDeclaration<'a>],
) -> Result<Vec<ThrottleSpec>, InvalidThrottle<'a>> {
    declarations.iter().map(spec).collect()
}

fn spec<'a>(declaration: &ThrottleDeclaration<'a>) -> Result<ThrottleSpec, InvalidThrottle<'a>> {
    let name = declaration.name;
    let invalid = |problem| InvalidThrottle { name, problem };
    let missing = match WhenThrottleKeyMissing::from_wire(declaration.when_key_missing) {
        Some(WhenThrottleKeyMissing::SharedBucket) => MissingThrottleKey::SharedBucket,
        Some(WhenThrottleKeyMissing::Unthrottled) => MissingThrottleKey::Unthrottled,
        None => {
            return Err(invalid(
                "what to do without a key is 0 (shared) or 1 (unthrottled)",
            ));
        }
    };
    let key = queue_settings::key(&declaration.key, false).map_err(
        |queue_settings::InvalidSetting| {
            invalid("its key has a part that only deduplication keys can have, or a wrong name")
        },
    )?;
    let limits = declaration.limits.iter().map(|limit| ThrottleLimit {
        window_ms: limit.window_ms,
        max_deliveries: limit.max_deliveries,
    });
    Ok(ThrottleSpec {
        name: name.to_owned(),
        limits: limits.collect(),
        key,
        missing,
    })
}

pub(super) fn on_throttle_stats(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<GetThrottleStats<'_>>(call) else {
        return;
    };
    let (name, top_buckets) = (frame.name.to_owned(), frame.top_buckets);
    let request = AdminRequest::ThrottleStats { name, top_buckets };
    link.ask(call.request_id, Kind::Admin, request);
}

pub(super) fn on_throttle_bucket(link: &mut Link, call: &Call) {
    let Some(frame) = link.decode::<GetThrottleBucket<'_>>(call) else {
        return;
    };
    let shared = match BucketKind::from_wire(frame.bucket_kind) {
        Some(BucketKind::Keyed) => false,
        Some(BucketKind::Shared) => true,
        None => {
            let result = GetThrottleBucketResult {
                error_code: ErrorCode::InvalidConfigValue,
                ..GetThrottleBucketResult::default()
            };
            return link.outbound.body(call.request_id, &result);
        }
    };
    let request = AdminRequest::ThrottleBucket {
        name: frame.name.to_owned(),
        shared,
        values: frame.values.iter().map(|it| (*it).to_owned()).collect(),
    };
    link.ask(call.request_id, Kind::Admin, request);
}

/// Answers `GetThrottleStats`.
pub(super) fn stats(link: &mut Link, id: u32, result: &Result<ThrottleStats, ThrottleNotFound>) {
    let stats = match result {
        Ok(stats) => stats,
        Err(ThrottleNotFound) => {
            let result = GetThrottleStatsResult {
                error_code: ErrorCode::ThrottleNotFound,
                ..GetThrottleStatsResult::default()
            };
            return link.outbound.body(id, &result);
        }
    };
    let result = GetThrottleStatsResult {
        error_code: ErrorCode::Ok,
        summary: summary(&stats.summary),
        queues: stats.queues.iter().map(String::as_str).collect(),
        active_buckets: stats.active_buckets,
        buckets_at_limit: stats.buckets_at_limit,
        waiting: stats.waiting,
        buckets: stats.buckets.iter().map(bucket_stats).collect(),
    };
    link.outbound.body(id, &result);
}

/// Answers `GetThrottleBucket`.
pub(super) fn bucket(
    link: &mut Link,
    id: u32,
    result: &Result<tanda_engine::BucketStats, ThrottleNotFound>,
) {
    let (error_code, bucket) = match result {
        Ok(stats) => (ErrorCode::Ok, bucket_stats(stats)),
        Err(ThrottleNotFound) => (ErrorCode::ThrottleNotFound, BucketStats::default()),
    };
    link.outbound
        .body(id, &GetThrottleBucketResult { error_code, bucket });
}

/// The summary that statistics of queues and throttles share.
pub(super) fn summary(summary: &ThrottleSummary) -> wire::ThrottleSummary<'_> {
    let limits = summary.limits.iter().map(|limit| consume::ThrottleLimit {
        max_deliveries: limit.max_deliveries,
        window_ms: limit.window_ms,
    });
    let missing = match summary.missing {
        MissingThrottleKey::SharedBucket => WhenThrottleKeyMissing::SharedBucket,
        MissingThrottleKey::Unthrottled => WhenThrottleKeyMissing::Unthrottled,
    };
    wire::ThrottleSummary {
        name: &summary.name,
        limits: limits.collect(),
        key: PropertyKey {
            parts: summary.key.iter().map(key_part).collect(),
        },
        when_key_missing: missing.to_wire(),
        declaring_subscribers: summary.subscribers,
    }
}

fn key_part(part: &KeyPart) -> property_key::KeyPart<'_> {
    let kind = match part.kind {
        KeyKind::Header => KeyPartKind::Header,
        KeyKind::FairnessKey => KeyPartKind::FairnessKey,
        KeyKind::Attribute => KeyPartKind::Attribute,
        KeyKind::IdempotencyKey => KeyPartKind::IdempotencyKey,
        KeyKind::Payload => KeyPartKind::PayloadHash,
        KeyKind::AllHeaders => KeyPartKind::HeadersHash,
    };
    property_key::KeyPart {
        kind: kind.to_wire(),
        name: &part.name,
    }
}

fn bucket_stats(stats: &tanda_engine::BucketStats) -> BucketStats<'_> {
    let kind = if stats.shared {
        BucketKind::Shared
    } else {
        BucketKind::Keyed
    };
    let limits = stats
        .counted
        .iter()
        .map(|counted| BucketLimit { counted: *counted });
    BucketStats {
        bucket_kind: kind.to_wire(),
        values: stats.values.iter().map(String::as_str).collect(),
        limits: limits.collect(),
        waiting: stats.waiting,
        next_room_at_ms: stats.next_room_at.0,
    }
}
