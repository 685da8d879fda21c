//! Engine values as JSON.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tanda_engine::{
    Backoff, DeliveryDurability, KeyKind, KeyPart, KeyStats, MissingOrderingKey,
    MissingThrottleKey, Ordering, Overflow, QueueConfig, QueueCounts, QueueDetails,
    QueueExplanation, QueueStats, QueueSummary, ScriptFailure, ThrottleLimit, ThrottleSummary,
};
use tanda_node::NodeStats;

use super::{Door, place::place};
use crate::{alarms::Alarms, process, shard::Snapshot};

pub(super) fn health(door: &Door, snapshot: &Snapshot) -> Value {
    let status = if snapshot.failed.is_some() {
        "failed"
    } else if snapshot.node.storage_full {
        "storage_full"
    } else if snapshot.node.memory_full {
        "memory_full"
    } else if snapshot.alarms != Alarms::default() {
        "alarm"
    } else {
        "ok"
    };
    json!({
        "status": status,
        "ready": snapshot.failed.is_none(),
        "alarms": snapshot.alarms.names(),
        "cause": snapshot.failed,
        "uptime_ms": door.clock.uptime_ms(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

pub(super) fn node(door: &Door, snapshot: &Snapshot) -> Value {
    let node = &snapshot.node;
    let log = &node.log;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": door.clock.uptime_ms(),
        "resident_bytes": process::resident_bytes(),
        "connections": {
            "fila": door.fila.now(),
            "fila_max": door.fila.max(),
            "http": door.connections.now(),
            "http_max": door.connections.max(),
        },
        "log": {
            "segments": log.segments,
            "spare_segments": log.spare,
            "bytes_on_disk": log.bytes_on_disk,
            "cached_bytes": log.cached_bytes,
            "undurable_bytes": log.undurable_bytes,
            "durable": node.durable.0,
            "end": node.end.0,
        },
        "effects": {
            "waiting": node.waiting_effects,
            "waiting_bytes": node.waiting_bytes,
            "released_events": node.released_events,
            "released_messages": node.released_messages,
            "returned_messages": node.returned_messages,
        },
        "memory": {
            "bytes": node.memory_bytes,
            "script_bytes": node.script_bytes,
            "limit_bytes": node.memory_limit_bytes,
            "short": snapshot.alarms.memory,
            "full": node.memory_full,
        },
        "snapshot": snapshot_of(node),
        "pages": {
            "count": node.pages,
            "file_bytes": node.page_file_bytes,
            "errors": node.page_errors,
            "last_error": node.last_page_error,
        },
        "delivery_notes": {
            "errors": node.note_errors,
            "last_error": node.last_note_error,
        },
        "reclaim": {
            "kept_bytes": node.pinned.file_bytes,
            "live_bytes": node.pinned.live_bytes,
            "pinned_bytes": node.pinned.file_bytes.saturating_sub(node.pinned.live_bytes),
            "oldest_kept_segment": node.oldest_kept_segment,
            "copied_messages": node.copied.messages,
            "copied_bytes": node.copied.bytes,
            "failures": node.copy_failures,
            "last_error": node.last_copy_error,
        },
        "read_errors": node.read_errors,
        "last_read_error": node.last_read_error,
        "unreadable_messages": node.unreadable_messages,
        "storage_full": node.storage_full,
        "storage_low": snapshot.alarms.disk_low,
        "failed": snapshot.failed,
        "limits": limits(door),
    })
}

fn snapshot_of(node: &NodeStats) -> Value {
    let newest = node.snapshot.map(|it| {
        json!({
            "sequence": it.sequence,
            "at": it.at.0,
            "taken_at_ms": it.taken_at.0,
            "bytes": it.bytes,
            "took_ms": it.took_ms,
        })
    });
    json!({
        "newest": newest,
        "taking": node.taking_snapshot,
        "failures": node.snapshot_failures,
        "last_error": node.last_snapshot_error,
    })
}

fn limits(door: &Door) -> Value {
    let config = &door.config;
    json!({
        "connections_max": config.limits_connections_max,
        "max_frame_bytes": config.limits_max_frame.0,
        "max_body_bytes": config.limits_max_body.0,
        "max_message_bytes": config.limits_max_message.0,
        "unfinished_max": config.limits_unfinished_max,
        "requests_max": config.limits_requests_max,
        "subscriptions_max": config.limits_subscriptions_max,
        "outbound_bytes": config.limits_outbound.0,
        "queues_max": config.limits_queues_max,
        "vhosts_max": config.limits_vhosts_max,
        "exchanges_max": config.limits_exchanges_max,
        "bindings_max": config.limits_bindings_max,
        "waiting_max": config.limits_waiting_max,
        "waiting_bytes": config.limits_waiting.0,
    })
}

pub(super) fn queues(queues: &[QueueSummary]) -> Value {
    let queue = |queue: &QueueSummary| json!({"name": queue.name, "counts": counts(&queue.counts)});
    json!({ "queues": queues.iter().map(queue).collect::<Vec<_>>() })
}

pub(super) fn details(details: &QueueDetails, alarms: Alarms) -> Value {
    json!({
        "name": details.name,
        "id": details.id,
        "dead_letter_queue": details.dead_letter_queue,
        "parent": details.parent,
        "config": config(&details.config),
        "counts": counts(&details.counts),
        "alarms": alarms.names(),
    })
}

fn counts(counts: &QueueCounts) -> Value {
    json!({
        "depth": counts.depth,
        "ready": counts.ready,
        "delayed": counts.delayed,
        "behind": counts.behind,
        "throttled": counts.throttled,
        "in_flight": counts.in_flight,
        "active_fairness_keys": counts.active_fairness_keys,
        "active_consumers": counts.active_consumers,
        "bytes": counts.bytes,
        "remembered_keys": counts.remembered_keys,
        "unclassified": counts.unclassified,
        "oldest_unclassified_at_ms": counts.oldest_unclassified_at.map(|at| at.0),
        "stopped": counts.stopped,
        "late_duplicates": counts.late_duplicates,
        "expired": counts.expired,
        "departing": counts.departing,
        "dead_lettered": counts.dead_lettered,
    })
}

fn config(config: &QueueConfig) -> Value {
    let durability = match config.durability {
        DeliveryDurability::Committed => "committed",
        DeliveryDurability::Fast => "fast",
    };
    let script_failure = match config.script_failure {
        ScriptFailure::Reject => "reject",
        ScriptFailure::Park => "park",
    };
    let max_length = config.max_length.map(|max| {
        let overflow = match max.overflow {
            Overflow::DropHead => "drop_head",
            Overflow::Reject => "reject",
        };
        json!({"messages": max.messages, "overflow": overflow})
    });
    json!({
        "visibility_timeout_ms": config.lease_ms,
        "ordering": ordering(&config.ordering),
        "dedup_key": config.dedup_key.as_deref().map(key),
        "dedup_window_ms": config.dedup_window_ms,
        "on_enqueue": config.on_enqueue.as_deref().map(script),
        "on_failure": config.on_failure.as_deref().map(script),
        "script_failure": script_failure,
        "park_dead_letter_after": config.park_dead_letter_after,
        "retry": {
            "max_attempts": config.retry.max_attempts,
            "backoff": backoff(config.retry.backoff),
            "initial_ms": config.retry.initial_ms,
            "max_ms": config.retry.max_ms,
        },
        "delivery_durability": durability,
        "reclaim_grace_ms": config.reclaim_grace_ms,
        "max_length": max_length,
    })
}

/// A script and what it can be told by: `sha256` is what `sha256sum` says of its file.
fn script(text: &str) -> Value {
    let hash = Sha256::digest(text);
    let sha256: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"bytes": text.len(), "sha256": sha256, "text": text})
}

const fn backoff(backoff: Backoff) -> &'static str {
    match backoff {
        Backoff::None => "none",
        Backoff::Fixed => "fixed",
        Backoff::Exponential => "exponential",
    }
}

fn ordering(ordering: &Ordering) -> Value {
    match ordering {
        Ordering::None => json!({"by": "none"}),
        Ordering::Queue => json!({"by": "queue"}),
        Ordering::Key {
            key: parts,
            missing,
        } => {
            let missing = match missing {
                MissingOrderingKey::Reject => "reject",
                MissingOrderingKey::Unordered => "unordered",
            };
            json!({"by": "key", "key": key(parts), "missing": missing})
        }
    }
}

fn key(parts: &[KeyPart]) -> Value {
    let part = |part: &KeyPart| {
        let kind = match part.kind {
            KeyKind::Header => "header",
            KeyKind::FairnessKey => "fairness_key",
            KeyKind::Attribute => "attribute",
            KeyKind::IdempotencyKey => "idempotency_key",
            KeyKind::Payload => "payload",
            KeyKind::AllHeaders => "all_headers",
        };
        json!({"kind": kind, "name": part.name})
    };
    parts.iter().map(part).collect()
}

pub(super) fn stats(stats: &QueueStats) -> Value {
    let key = |it: &KeyStats| {
        json!({
            "key": it.key,
            "pending": it.pending,
            "weight": it.weight,
            "deficit": it.deficit,
        })
    };
    json!({
        "counts": counts(&stats.counts),
        "quantum": stats.quantum,
        "fairness_keys": stats.keys.iter().map(key).collect::<Vec<_>>(),
        "throttles": stats.throttles.iter().map(throttle).collect::<Vec<_>>(),
    })
}

pub(super) fn explanation(explanation: &QueueExplanation) -> Value {
    json!({
        "name": explanation.name,
        "counts": counts(&explanation.counts),
        "consumers_ready": explanation.consumers_ready,
        "consumers_without_credit": explanation.consumers_without_credit,
        "consumers_with_full_buffer": explanation.consumers_with_full_buffer,
        "next_due_at_ms": explanation.next_due_at.map(|at| at.0),
        "next_lease_end_at_ms": explanation.next_lease_end_at.map(|at| at.0),
        "groups_held": explanation.groups_held,
        "last_script_error": explanation.last_script_error,
        "unfit_messages": explanation.unfit,
        "first_unfit_message": explanation.first_unfit.map(|id| id.to_string()),
        "throttles": explanation.throttles.iter().map(throttle).collect::<Vec<_>>(),
        "message": explanation.message.as_ref().map(place),
    })
}

fn throttle(summary: &ThrottleSummary) -> Value {
    let limit = |limit: &ThrottleLimit| {
        json!({
            "max_deliveries": limit.max_deliveries,
            "window_ms": limit.window_ms,
        })
    };
    let missing = match summary.missing {
        MissingThrottleKey::SharedBucket => "shared_bucket",
        MissingThrottleKey::Unthrottled => "unthrottled",
    };
    json!({
        "name": summary.name,
        "limits": summary.limits.iter().map(limit).collect::<Vec<_>>(),
        "key": key(&summary.key),
        "missing": missing,
        "declaring_subscribers": summary.subscribers,
    })
}
