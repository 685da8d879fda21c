//! Queues and runtime configuration.

use tanda_engine::{
    AdminReply, AdminRequest, Backoff, CreateQueueError, DeleteQueueError, DeliveryDurability,
    Event, KeyKind, KeyPart, KeyStats, Millis, MissingOrderingKey, Ordering, QueueChanges,
    QueueCounts, QueueNotFound, QueueSpec, QueueStats, QueueSummary, Reclassify, RedriveError,
    Redriven, Request, RuntimeConfigError, ScriptFailure, UpdateQueueError, VhostId,
};
use tanda_wire::fila::config::{
    ConfigEntry, GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig,
    SetConfigResult,
};
use tanda_wire::fila::property_key::{self, PropertyKey};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues, ListQueuesResult,
    QueueInfo, UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::stats::{FairnessKeyStats, GetStats, GetStatsResult};
use tanda_wire::fila::{Body, ErrorCode};

use super::{Peer, Seen, throttles};

/// Sends a request and returns what the engine is asked, with its token.
pub(super) fn asked<'a, B: Body<'a>>(peer: &mut Peer, body: &B) -> (u32, AdminRequest) {
    peer.call(6, body);
    let request = peer.request();
    let Request::Admin { reply, request } = request else {
        panic!("{request:?}")
    };
    (reply.token, request)
}

/// Sends a request, has the engine reply, and returns the answer.
pub(super) fn answer<'a, B: Body<'a>>(body: &B, reply: AdminReply) -> Seen {
    let mut peer = Peer::open();
    let (token, _) = asked(&mut peer, body);
    peer.event(Event::Admin {
        token,
        reply: Box::new(reply),
    });
    let frame = peer.frame();
    assert_eq!(frame.header.request_id, 6);
    assert_eq!(frame.header.flags, 0);
    frame
}

/// Sends a request that is answered without asking the engine.
pub(super) fn at_once<'a, B: Body<'a>>(body: &B) -> Seen {
    let mut peer = Peer::open();
    peer.call(6, body);
    assert!(peer.requests().is_empty());
    assert!(!peer.session.is_closing());
    peer.frame()
}

fn part(kind: u8, name: &str) -> property_key::KeyPart<'_> {
    property_key::KeyPart { kind, name }
}

fn key<'a>(parts: &[(u8, &'a str)]) -> PropertyKey<'a> {
    PropertyKey {
        parts: parts.iter().map(|(kind, name)| part(*kind, name)).collect(),
    }
}

/// Every setting away from its default.
fn full_queue<'a>() -> CreateQueue<'a> {
    CreateQueue {
        name: "full",
        on_enqueue_script: Some("a"),
        on_failure_script: Some(""),
        visibility_timeout_ms: 1,
        ordering: 2,
        ordering_key: key(&[(0, "h"), (1, ""), (2, "a")]),
        when_ordering_key_missing: 1,
        dedup_key: key(&[(3, ""), (4, ""), (5, "")]),
        dedup_window_ms: 2,
        script_failure: 1,
        park_dead_letter_after: 3,
        max_attempts: 4,
        backoff: 2,
        backoff_initial_ms: 5,
        backoff_max_ms: 6,
        delivery_durability: 1,
        reclaim_grace_ms: 7,
    }
}

#[test]
fn create_queue_carries_every_setting() {
    let mut peer = Peer::open();
    let (_, request) = asked(
        &mut peer,
        &CreateQueue {
            name: "plain",
            ..CreateQueue::default()
        },
    );
    let AdminRequest::CreateQueue(spec) = request else {
        panic!("{request:?}")
    };
    assert_eq!(
        *spec,
        QueueSpec {
            name: "plain".to_owned(),
            ..QueueSpec::default()
        }
    );

    let (_, request) = asked(&mut peer, &full_queue());
    let AdminRequest::CreateQueue(spec) = request else {
        panic!("{request:?}")
    };
    let part = |kind, name: &str| KeyPart {
        kind,
        name: name.to_owned(),
    };
    let expected = QueueSpec {
        vhost: VhostId::DEFAULT,
        name: "full".to_owned(),
        on_enqueue: Some("a".to_owned()),
        on_failure: Some(String::new()),
        lease_ms: 1,
        ordering: Ordering::Key {
            key: vec![
                part(KeyKind::Header, "h"),
                part(KeyKind::FairnessKey, ""),
                part(KeyKind::Attribute, "a"),
            ],
            missing: MissingOrderingKey::Unordered,
        },
        dedup_key: Some(vec![
            part(KeyKind::IdempotencyKey, ""),
            part(KeyKind::Payload, ""),
            part(KeyKind::AllHeaders, ""),
        ]),
        dedup_window_ms: 2,
        script_failure: ScriptFailure::Park,
        park_dead_letter_after: 3,
        max_attempts: 4,
        backoff: Some(Backoff::Fixed),
        backoff_initial_ms: 5,
        backoff_max_ms: 6,
        durability: DeliveryDurability::Fast,
        reclaim_grace_ms: 7,
        max_length: None,
    };
    assert_eq!(*spec, expected);
}

#[test]
fn settings_outside_their_range_are_refused_in_the_result() {
    let good = CreateQueue {
        name: "q",
        ..CreateQueue::default()
    };
    let by_key = |key| CreateQueue {
        ordering: 2,
        ordering_key: key,
        ..good.clone()
    };
    let dedup = |key| CreateQueue {
        dedup_key: key,
        ..good.clone()
    };
    let bad = [
        CreateQueue {
            ordering: 3,
            ..good.clone()
        },
        CreateQueue {
            when_ordering_key_missing: 2,
            ..good.clone()
        },
        CreateQueue {
            script_failure: 2,
            ..good.clone()
        },
        CreateQueue {
            backoff: 4,
            ..good.clone()
        },
        CreateQueue {
            delivery_durability: 2,
            ..good.clone()
        },
        CreateQueue {
            ordering: 1,
            ordering_key: key(&[(1, "")]),
            ..good.clone()
        },
        CreateQueue {
            ordering_key: key(&[(1, "")]),
            ..good.clone()
        },
        by_key(key(&[])),
        by_key(key(&[(1, ""), (3, "")])),
        by_key(key(&[(4, "")])),
        by_key(key(&[(5, "")])),
        by_key(key(&[(6, "")])),
        by_key(key(&[(1, "named")])),
        by_key(key(&[(0, "")])),
        dedup(key(&[(6, "x")])),
        dedup(key(&[(255, "")])),
        dedup(key(&[(3, "named")])),
        dedup(key(&[(4, "named")])),
        dedup(key(&[(5, "named")])),
        dedup(key(&[(2, "")])),
    ];
    for frame in bad {
        let seen = at_once(&frame);
        let error_code = ErrorCode::InvalidConfigValue;
        let expected = CreateQueueResult {
            error_code,
            queue_id: "",
        };
        assert_eq!(
            seen.decode::<CreateQueueResult<'_>>(),
            expected,
            "{frame:?}"
        );
    }
}

#[test]
fn create_queue_answers() {
    let frame = CreateQueue {
        name: "q",
        ..CreateQueue::default()
    };
    let invalid = CreateQueueError::InvalidSetting {
        setting: "name",
        problem: String::new(),
    };
    for (reply, error_code, queue_id) in [
        (Ok("q7".to_owned()), ErrorCode::Ok, "q7"),
        (
            Err(CreateQueueError::AlreadyExists),
            ErrorCode::QueueAlreadyExists,
            "",
        ),
        (
            Err(CreateQueueError::ReservedName),
            ErrorCode::ReservedQueueName,
            "",
        ),
        (Err(invalid), ErrorCode::InvalidConfigValue, ""),
        (
            Err(CreateQueueError::ScriptsUnsupported),
            ErrorCode::LuaCompilationError,
            "",
        ),
        (
            Err(CreateQueueError::ScriptRefused {
                problem: "on_enqueue, line 3: 'end' expected".to_owned(),
            }),
            ErrorCode::LuaCompilationError,
            "",
        ),
        (
            Err(CreateQueueError::TooManyQueues { max: 1 }),
            ErrorCode::InvalidConfigValue,
            "",
        ),
        (Err(CreateQueueError::Storage), ErrorCode::StorageError, ""),
    ] {
        let seen = answer(&frame, AdminReply::Created(reply));
        let expected = CreateQueueResult {
            error_code,
            queue_id,
        };
        assert_eq!(seen.decode::<CreateQueueResult<'_>>(), expected);
    }
}

#[test]
fn update_queue_carries_what_is_present() {
    let mut peer = Peer::open();
    let (_, request) = asked(
        &mut peer,
        &UpdateQueue {
            queue: "q",
            ..UpdateQueue::default()
        },
    );
    let AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name,
        changes,
    } = request
    else {
        panic!("{request:?}")
    };
    assert_eq!((&*name, *changes), ("q", QueueChanges::default()));

    let frame = UpdateQueue {
        queue: "q",
        on_enqueue_change: 1,
        on_enqueue_script: "s",
        on_failure_change: 2,
        on_failure_script: "",
        visibility_timeout_ms: Some(1),
        dedup_window_ms: Some(2),
        max_attempts: Some(3),
        backoff: Some(0),
        backoff_initial_ms: Some(4),
        backoff_max_ms: Some(5),
        delivery_durability: Some(0),
        reclaim_grace_ms: Some(6),
        park_dead_letter_after: Some(7),
    };
    let (_, request) = asked(&mut peer, &frame);
    let AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        changes,
        ..
    } = request
    else {
        panic!("{request:?}")
    };
    let expected = QueueChanges {
        on_enqueue: Some(Some("s".to_owned())),
        on_failure: Some(None),
        lease_ms: Some(1),
        dedup_window_ms: Some(2),
        max_attempts: Some(3),
        backoff: Some(None),
        backoff_initial_ms: Some(4),
        backoff_max_ms: Some(5),
        durability: Some(DeliveryDurability::Committed),
        reclaim_grace_ms: Some(6),
        park_dead_letter_after: Some(7),
    };
    assert_eq!(*changes, expected);
}

#[test]
fn changes_outside_their_range_are_refused_in_the_result() {
    let good = UpdateQueue {
        queue: "q",
        ..UpdateQueue::default()
    };
    for frame in [
        UpdateQueue {
            on_enqueue_change: 3,
            ..good.clone()
        },
        UpdateQueue {
            on_failure_change: 3,
            ..good.clone()
        },
        UpdateQueue {
            on_enqueue_script: "x",
            ..good.clone()
        },
        UpdateQueue {
            on_failure_change: 2,
            on_failure_script: "x",
            ..good.clone()
        },
        UpdateQueue {
            backoff: Some(4),
            ..good.clone()
        },
        UpdateQueue {
            delivery_durability: Some(2),
            ..good
        },
    ] {
        let error_code = ErrorCode::InvalidConfigValue;
        let seen = at_once(&frame);
        assert_eq!(
            seen.decode::<UpdateQueueResult>(),
            UpdateQueueResult { error_code }
        );
    }
}

#[test]
fn update_and_delete_answers() {
    let update = UpdateQueue {
        queue: "q",
        ..UpdateQueue::default()
    };
    let invalid = UpdateQueueError::InvalidSetting {
        setting: "x",
        problem: String::new(),
    };
    for (reply, error_code) in [
        (Ok(()), ErrorCode::Ok),
        (Err(UpdateQueueError::NotFound), ErrorCode::QueueNotFound),
        (
            Err(UpdateQueueError::ReservedName),
            ErrorCode::ImmutableSetting,
        ),
        (Err(invalid), ErrorCode::InvalidConfigValue),
        (
            Err(UpdateQueueError::ScriptsUnsupported),
            ErrorCode::LuaCompilationError,
        ),
    ] {
        let seen = answer(&update, AdminReply::Updated(reply));
        assert_eq!(
            seen.decode::<UpdateQueueResult>(),
            UpdateQueueResult { error_code }
        );
    }
    for (reply, error_code) in [
        (Ok(()), ErrorCode::Ok),
        (Err(DeleteQueueError::NotFound), ErrorCode::QueueNotFound),
        (
            Err(DeleteQueueError::ReservedName),
            ErrorCode::ReservedQueueName,
        ),
    ] {
        let seen = answer(&DeleteQueue { queue: "q" }, AdminReply::Deleted(reply));
        assert_eq!(
            seen.decode::<DeleteQueueResult>(),
            DeleteQueueResult { error_code }
        );
    }
}

#[test]
fn statistics_fill_the_whole_layout() {
    let stats = QueueStats {
        counts: QueueCounts {
            depth: 1,
            in_flight: 2,
            delayed: 3,
            unclassified: 10,
            oldest_unclassified_at: Some(Millis(11)),
            active_fairness_keys: 4,
            active_consumers: 5,
            throttled: 10,
            ..QueueCounts::default()
        },
        keys: vec![KeyStats {
            key: "k".to_owned(),
            pending: 6,
            deficit: -7,
            weight: 8,
        }],
        quantum: 9,
        throttles: vec![throttles::of_engine()],
    };
    let frame = GetStats { queue: "q" };
    let expected = GetStatsResult {
        error_code: ErrorCode::Ok,
        depth: 1,
        in_flight: 2,
        delayed: 3,
        unclassified: 10,
        oldest_unclassified_at_ms: 11,
        active_fairness_keys: 4,
        active_consumers: 5,
        quantum: 9,
        per_key_stats: vec![FairnessKeyStats {
            key: "k",
            pending_count: 6,
            current_deficit: -7,
            weight: 8,
        }],
        throttled: 10,
        active_throttles: vec![throttles::on_wire()],
        ..GetStatsResult::default()
    };
    let seen = answer(&frame, AdminReply::Stats(Ok(stats)));
    assert_eq!(seen.decode::<GetStatsResult<'_>>(), expected);
    let seen = answer(&frame, AdminReply::Stats(Err(QueueNotFound)));
    let error_code = ErrorCode::QueueNotFound;
    let expected = GetStatsResult {
        error_code,
        ..GetStatsResult::default()
    };
    assert_eq!(seen.decode::<GetStatsResult<'_>>(), expected);
    assert_eq!(seen.body.len(), 1 + 7 * 8 + 4 + 4 + 8 + 4 + 4 + 4);
}

#[test]
fn queues_are_listed() {
    let counts = QueueCounts {
        depth: 1,
        in_flight: 2,
        active_consumers: 3,
        ..QueueCounts::default()
    };
    let queues = vec![QueueSummary {
        name: "a".to_owned(),
        counts,
    }];
    let seen = answer(&ListQueues {}, AdminReply::Queues(queues));
    let info = QueueInfo {
        name: "a",
        depth: 1,
        in_flight: 2,
        active_consumers: 3,
        leader_node_id: 0,
    };
    let expected = ListQueuesResult {
        queues: vec![info],
        ..ListQueuesResult::default()
    };
    assert_eq!(seen.decode::<ListQueuesResult<'_>>(), expected);
}

#[test]
fn redrives() {
    let frame = Redrive {
        dlq_queue: "q.dlq",
        count: 12,
        reclassify: 0,
    };
    let mut peer = Peer::open();
    let modes = [Reclassify::All, Reclassify::Unclassified, Reclassify::None];
    for (reclassify, mode) in (0..).zip(modes) {
        let (_, request) = asked(
            &mut peer,
            &Redrive {
                reclassify,
                ..frame.clone()
            },
        );
        let AdminRequest::Redrive {
            vhost: VhostId::DEFAULT,
            name,
            count: 12,
            reclassify,
        } = request
        else {
            panic!("{request:?}")
        };
        assert_eq!((name.as_str(), reclassify), ("q.dlq", mode));
    }
    let seen = at_once(&Redrive {
        reclassify: 3,
        ..frame.clone()
    });
    let error_code = ErrorCode::InvalidConfigValue;
    assert_eq!(
        seen.decode::<RedriveResult>(),
        RedriveResult {
            error_code,
            ..RedriveResult::default()
        }
    );
    let done = Redriven {
        redriven: 5,
        left_unclassified: 6,
        rejected_by_script: 7,
    };
    for (reply, error_code, counts) in [
        (Ok(done), ErrorCode::Ok, [5, 6, 7]),
        (
            Err(RedriveError::NotFound),
            ErrorCode::QueueNotFound,
            [0; 3],
        ),
        (
            Err(RedriveError::NotDeadLetterQueue),
            ErrorCode::NotADLQ,
            [0; 3],
        ),
    ] {
        let seen = answer(&frame, AdminReply::Redriven(reply));
        let [redriven, left_unclassified, rejected_by_script] = counts;
        let expected = RedriveResult {
            error_code,
            redriven,
            left_unclassified,
            rejected_by_script,
        };
        assert_eq!(seen.decode::<RedriveResult>(), expected);
    }
}

#[test]
fn runtime_configuration() {
    let long = "v".repeat(65_535);
    let mut peer = Peer::open();
    let (_, request) = asked(
        &mut peer,
        &SetConfig {
            key: "k",
            value: &long,
        },
    );
    let AdminRequest::SetConfig { key, value } = request else {
        panic!("{request:?}")
    };
    assert_eq!((&*key, &*value), ("k", &*long));
    for (reply, error_code) in [
        (Ok(()), ErrorCode::Ok),
        (
            Err(RuntimeConfigError::BadKey {
                len: 1025,
                max: 1024,
            }),
            ErrorCode::InvalidConfigValue,
        ),
        (
            Err(RuntimeConfigError::TooMany { max: 1 }),
            ErrorCode::InvalidConfigValue,
        ),
    ] {
        let seen = answer(
            &SetConfig {
                key: "k",
                value: "",
            },
            AdminReply::ConfigSet(reply),
        );
        assert_eq!(
            seen.decode::<SetConfigResult>(),
            SetConfigResult { error_code }
        );
    }
    for (reply, error_code, value) in [
        (Some(long.clone()), ErrorCode::Ok, &*long),
        (Some(String::new()), ErrorCode::Ok, ""),
        (None, ErrorCode::InvalidConfigValue, ""),
    ] {
        let seen = answer(&GetConfig { key: "k" }, AdminReply::Config(reply));
        let expected = GetConfigResult { error_code, value };
        assert_eq!(seen.decode::<GetConfigResult<'_>>(), expected);
    }
    let (_, request) = asked(&mut peer, &ListConfig { prefix: "p." });
    assert!(matches!(request, AdminRequest::ListConfig { prefix } if prefix == "p."));
    let list = vec![("p.a".to_owned(), "1".to_owned())];
    let seen = answer(&ListConfig { prefix: "p." }, AdminReply::ConfigList(list));
    let entries = vec![ConfigEntry {
        key: "p.a",
        value: "1",
    }];
    let expected = ListConfigResult {
        error_code: ErrorCode::Ok,
        entries,
    };
    assert_eq!(seen.decode::<ListConfigResult<'_>>(), expected);
}

#[test]
fn a_failed_log_is_an_error_also_here() {
    let mut peer = Peer::open();
    let (token, _) = asked(&mut peer, &ListQueues {});
    peer.event(Event::StorageFailed { token });
    peer.refusal(6, ErrorCode::StorageError);
    // An answer this protocol never asked for is not silence.
    let seen = answer(&ListQueues {}, AdminReply::Purged(Ok(1)));
    assert_eq!(seen.error().error_code, ErrorCode::InternalError);
    // One that does not fit the protocol neither.
    let seen = answer(
        &GetConfig { key: "k" },
        AdminReply::Config(Some("v".repeat(65_536))),
    );
    assert_eq!(seen.error().error_code, ErrorCode::InternalError);
}
