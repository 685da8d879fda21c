//! Where a message is, as JSON.

use serde_json::{Value, json};
use tanda_engine::MessagePlace;

/// The place of a message.
pub(super) fn place(message: &MessagePlace) -> Value {
    match message {
        MessagePlace::Unknown => json!({"place": "unknown"}),
        MessagePlace::Ready {
            fairness_key,
            ahead_in_key,
            keys_in_ring,
            is_unfit,
            attempts,
        } => json!({
            "place": "ready",
            "fairness_key": fairness_key,
            "ahead_in_key": ahead_in_key,
            "keys_in_ring": keys_in_ring,
            "unfit": is_unfit,
            "attempts": attempts,
        }),
        MessagePlace::Delayed { due_at, attempts } => json!({
            "place": "delayed",
            "due_at_ms": due_at.0,
            "attempts": attempts,
        }),
        MessagePlace::Throttled {
            throttle,
            bucket,
            attempts,
        } => json!({
            "place": "throttled",
            "throttle": throttle,
            "shared": bucket.shared,
            "values": bucket.values,
            "counted": bucket.counted,
            "waiting": bucket.waiting,
            "next_room_at_ms": bucket.next_room_at.0,
            "attempts": attempts,
        }),
        MessagePlace::Behind { head, head_place } => json!({
            "place": "behind",
            "head": head.to_string(),
            "head_place": place(head_place),
        }),
        MessagePlace::Leased {
            expires_at,
            attempts,
            consumer,
        } => json!({
            "place": "leased",
            "expires_at_ms": expires_at.map(|at| at.0),
            "attempts": attempts,
            "consumer": consumer,
        }),
        MessagePlace::Parked { .. }
        | MessagePlace::Stopped { .. }
        | MessagePlace::Deciding { .. }
        | MessagePlace::Redriving => script_place(message),
        MessagePlace::Departing { reason } => json!({
            "place": "departing",
            "reason": reason,
        }),
        MessagePlace::DeadLettered { queue } => json!({
            "place": "dead_lettered",
            "queue": queue,
        }),
    }
}

/// A place in which a message waits for a script.
fn script_place(message: &MessagePlace) -> Value {
    match message {
        MessagePlace::Parked {
            enqueued_at,
            tries,
            error,
            next_try_at,
        } => json!({
            "place": "parked",
            "enqueued_at_ms": enqueued_at.0,
            "tries": tries,
            "error": error,
            "next_try_at_ms": next_try_at.map(|at| at.0),
        }),
        MessagePlace::Stopped {
            first_unclassified,
            place: of_first,
        } => json!({
            "place": "stopped",
            "first_unclassified": first_unclassified.to_string(),
            "first_place": place(of_first),
        }),
        MessagePlace::Deciding { attempts } => json!({
            "place": "deciding",
            "attempts": attempts,
        }),
        MessagePlace::Redriving => json!({"place": "redriving"}),
        MessagePlace::Unknown
        | MessagePlace::Ready { .. }
        | MessagePlace::Delayed { .. }
        | MessagePlace::Throttled { .. }
        | MessagePlace::Behind { .. }
        | MessagePlace::Leased { .. }
        | MessagePlace::Departing { .. }
        | MessagePlace::DeadLettered { .. } => place(message),
    }
}
