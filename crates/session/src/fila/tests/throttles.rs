//! `GetThrottleStats` and `GetThrottleBucket`.

use tanda_engine::{
    AdminReply, AdminRequest, BucketStats, KeyKind, KeyPart, Millis, MissingThrottleKey,
    ThrottleNotFound, ThrottleStats, ThrottleSummary,
};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::consume::ThrottleLimit;
use tanda_wire::fila::property_key::{self, PropertyKey};
use tanda_wire::fila::stats as wire;
use tanda_wire::fila::throttle::{
    self, BucketLimit, GetThrottleBucket, GetThrottleBucketResult, GetThrottleStats,
    GetThrottleStatsResult,
};

use super::Peer;
use super::admin::{answer, asked, at_once};

/// A throttle as the engine describes it.
pub(super) fn of_engine() -> ThrottleSummary {
    let part = |kind, name: &str| KeyPart {
        kind,
        name: name.to_owned(),
    };
    ThrottleSummary {
        name: "api".to_owned(),
        limits: vec![tanda_engine::ThrottleLimit {
            window_ms: 1_000,
            max_deliveries: 5,
        }],
        key: vec![
            part(KeyKind::Header, "to"),
            part(KeyKind::FairnessKey, ""),
            part(KeyKind::Attribute, "tier"),
        ],
        missing: MissingThrottleKey::Unthrottled,
        subscribers: 2,
    }
}

/// The same on the wire.
pub(super) fn on_wire() -> wire::ThrottleSummary<'static> {
    let part = |kind, name| property_key::KeyPart { kind, name };
    wire::ThrottleSummary {
        name: "api",
        limits: vec![ThrottleLimit {
            max_deliveries: 5,
            window_ms: 1_000,
        }],
        key: PropertyKey {
            parts: vec![part(0, "to"), part(1, ""), part(2, "tier")],
        },
        when_key_missing: 1,
        declaring_subscribers: 2,
    }
}

fn bucket_of_engine() -> BucketStats {
    BucketStats {
        shared: false,
        values: vec!["x".to_owned(), "k".to_owned(), "gold".to_owned()],
        counted: vec![5],
        waiting: 7,
        next_room_at: Millis(9_000),
    }
}

fn bucket_on_wire() -> throttle::BucketStats<'static> {
    throttle::BucketStats {
        bucket_kind: 0,
        values: vec!["x", "k", "gold"],
        limits: vec![BucketLimit { counted: 5 }],
        waiting: 7,
        next_room_at_ms: 9_000,
    }
}

#[test]
fn the_state_of_a_throttle_fills_the_whole_layout() {
    let frame = GetThrottleStats {
        name: "api",
        top_buckets: 3,
    };
    let (_, request) = asked(&mut Peer::open(), &frame);
    let AdminRequest::ThrottleStats { name, top_buckets } = request else {
        panic!("not {request:?}");
    };
    assert_eq!((name.as_str(), top_buckets), ("api", 3));
    let shared = BucketStats {
        shared: true,
        values: Vec::new(),
        ..bucket_of_engine()
    };
    let stats = ThrottleStats {
        summary: of_engine(),
        queues: vec!["jobs".to_owned(), "mails".to_owned()],
        active_buckets: 4,
        buckets_at_limit: 3,
        waiting: 21,
        buckets: vec![bucket_of_engine(), shared],
    };
    let seen = answer(&frame, AdminReply::Throttle(Ok(stats)));
    let shared = throttle::BucketStats {
        bucket_kind: 1,
        values: Vec::new(),
        ..bucket_on_wire()
    };
    let expected = GetThrottleStatsResult {
        error_code: ErrorCode::Ok,
        summary: on_wire(),
        queues: vec!["jobs", "mails"],
        active_buckets: 4,
        buckets_at_limit: 3,
        waiting: 21,
        buckets: vec![bucket_on_wire(), shared],
    };
    assert_eq!(seen.decode::<GetThrottleStatsResult<'_>>(), expected);
    let seen = answer(&frame, AdminReply::Throttle(Err(ThrottleNotFound)));
    let expected = GetThrottleStatsResult {
        error_code: ErrorCode::ThrottleNotFound,
        ..GetThrottleStatsResult::default()
    };
    assert_eq!(seen.decode::<GetThrottleStatsResult<'_>>(), expected);
}

#[test]
fn a_bucket_is_named_by_kind_and_values() {
    let frame = GetThrottleBucket {
        name: "api",
        bucket_kind: 0,
        values: vec!["x", "k", "gold"],
    };
    let (_, request) = asked(&mut Peer::open(), &frame);
    let AdminRequest::ThrottleBucket {
        name,
        shared,
        values,
    } = request
    else {
        panic!("not {request:?}");
    };
    assert_eq!((name.as_str(), shared), ("api", false));
    assert_eq!(values, ["x", "k", "gold"]);
    let seen = answer(&frame, AdminReply::ThrottleBucket(Ok(bucket_of_engine())));
    let expected = GetThrottleBucketResult {
        error_code: ErrorCode::Ok,
        bucket: bucket_on_wire(),
    };
    assert_eq!(seen.decode::<GetThrottleBucketResult<'_>>(), expected);
    let seen = answer(&frame, AdminReply::ThrottleBucket(Err(ThrottleNotFound)));
    let not_found = |error_code| GetThrottleBucketResult {
        error_code,
        ..GetThrottleBucketResult::default()
    };
    let expected = not_found(ErrorCode::ThrottleNotFound);
    assert_eq!(seen.decode::<GetThrottleBucketResult<'_>>(), expected);
    let odd = GetThrottleBucket {
        bucket_kind: 2,
        ..frame
    };
    let seen = at_once(&odd);
    let expected = not_found(ErrorCode::InvalidConfigValue);
    assert_eq!(seen.decode::<GetThrottleBucketResult<'_>>(), expected);
}
