//! What the messages of a queue wait for that are not ready, in sentences.

use serde_json::Value;
use tanda_client::admin::{BucketStats, ThrottleStats};

use super::View;
use crate::{
    key_parts,
    output::printable,
    table::{counted, grouped},
    throttle,
};

/// Buckets named for each throttle.
const BUCKETS_NAMED: usize = 3;

impl View<'_> {
    /// One or more sentences for each reason that there is.
    pub(super) fn waiting(&self) -> Vec<String> {
        let reasons = [
            self.delays(),
            self.throttles(),
            self.order(),
            self.parking(),
            self.passed_over().into_iter().collect(),
        ];
        reasons.into_iter().flatten().collect()
    }

    pub(super) fn leases(&self, in_flight: u64) -> String {
        let verb = if in_flight == 1 { "is" } else { "are" };
        let held = format!(
            "{} {verb} leased to consumers",
            counted(in_flight, "message")
        );
        match self.time("/next_lease_end_at_ms") {
            Some(end) => format!(
                "{held}; the next lease ends {}, unless its message is settled or the lease is \
                 extended.",
                self.ahead(end)
            ),
            None => format!("{held}."),
        }
    }

    fn delays(&self) -> Vec<String> {
        let due = self.time("/next_due_at_ms").map(|due| {
            format!(
                "The next delayed message is due {}: it was sent with a delay, or failed and \
                 waits for its retry.",
                self.ahead(due)
            )
        });
        due.into_iter().collect()
    }

    fn throttles(&self) -> Vec<String> {
        let throttled = self.number("/counts/throttled");
        if throttled == 0 {
            return Vec::new();
        }
        let full: Vec<&ThrottleStats> = self
            .throttles
            .iter()
            .filter(|throttle| throttle.waiting > 0)
            .collect();
        if full.is_empty() {
            let verb = if throttled == 1 { "waits" } else { "wait" };
            return vec![format!(
                "{} {verb} for room in a throttle; `tanda queue inspect {}` names those that \
                 consumers declare.",
                counted(throttled, "message"),
                self.name()
            )];
        }
        full.into_iter().map(|it| self.throttle(it)).collect()
    }

    fn throttle(&self, stats: &ThrottleStats) -> String {
        let summary = &stats.summary;
        let name = printable(summary.name.as_bytes());
        let each = if summary.key.parts.is_empty() {
            String::new()
        } else {
            format!(" for each {}", key_parts::shown(&summary.key))
        };
        let verb = if stats.waiting == 1 { "waits" } else { "wait" };
        let over = match stats.queues.len() {
            0 | 1 => String::new(),
            queues => format!(" of {queues} queues"),
        };
        let buckets = stats.buckets.iter().filter(|bucket| bucket.waiting > 0);
        let named: Vec<String> = buckets
            .clone()
            .take(BUCKETS_NAMED)
            .map(|bucket| self.bucket(bucket, stats))
            .collect();
        let more = if buckets.count() > BUCKETS_NAMED {
            format!("; `tanda throttle stats {name}` shows more")
        } else {
            String::new()
        };
        format!(
            "{}{over} {verb} for throttle {name}, at most {}{each}: {}{more}.",
            counted(stats.waiting, "message"),
            throttle::limits(summary),
            named.join("; "),
        )
    }

    fn bucket(&self, bucket: &BucketStats, stats: &ThrottleStats) -> String {
        let room = self.ahead(bucket.next_room_at_ms);
        if stats.summary.key.parts.is_empty() {
            return format!("there is room {room}");
        }
        format!(
            "{} has {} waiting and room {room}",
            throttle::bucket_name(&bucket.id),
            grouped(bucket.waiting)
        )
    }

    /// The sentences about one message that a throttle holds.
    pub(super) fn throttled(&self, who: &str, place: &Value) -> Vec<String> {
        let text = |field: &str| {
            let found = place.get(field).and_then(Value::as_str);
            printable(found.unwrap_or_default().as_bytes())
        };
        let values = place.get("values").and_then(Value::as_array);
        let values: Vec<String> = values
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|value| printable(value.as_bytes()))
            .collect();
        let is_shared = place.get("shared").and_then(Value::as_bool) == Some(true);
        let bucket = if is_shared {
            " in the bucket of messages without its key".to_owned()
        } else if values.is_empty() {
            String::new()
        } else {
            format!(" in its bucket {}", values.join(" "))
        };
        let room = place.get("next_room_at_ms").and_then(Value::as_u64);
        let room = room.map_or_else(
            || "when a delivery leaves the window".to_owned(),
            |at| self.ahead(at),
        );
        vec![format!(
            "{who} waits for throttle {}{bucket}: there is room {room}.",
            text("throttle")
        )]
    }

    fn order(&self) -> Vec<String> {
        let behind = self.number("/counts/behind");
        if behind == 0 {
            return Vec::new();
        }
        let verb = if behind == 1 { "waits" } else { "wait" };
        let groups = self.number("/groups_held");
        let (have, their) = if groups == 1 {
            ("has", "its")
        } else {
            ("have", "their")
        };
        vec![format!(
            "{} {verb} for order: {} {have} {their} first message leased or delayed, and the next \
             goes only after it. `tanda queue explain {} MESSAGE_ID` names it.",
            counted(behind, "message"),
            counted(groups, "ordering group"),
            self.name(),
        )]
    }

    fn passed_over(&self) -> Option<String> {
        let count = self.number("/unfit_messages");
        if count == 0 {
            return None;
        }
        let id = self.answer.get("first_unfit_message");
        let first = id.and_then(Value::as_str).map_or_else(String::new, |id| {
            format!(" The first of them that is ready is {id}.")
        });
        let (verb, them) = if count == 1 {
            ("fits", "it")
        } else {
            ("fit", "them")
        };
        Some(format!(
            "{} {verb} no frame of any consumer of this queue: a consumer with larger frames, or \
             of Fila, takes {them}.{first}",
            counted(count, "message"),
        ))
    }

    fn parking(&self) -> Vec<String> {
        let parked = self.number("/counts/unclassified");
        if parked == 0 {
            return Vec::new();
        }
        let verb = if parked == 1 { "is" } else { "are" };
        let oldest = self
            .time("/counts/oldest_unclassified_at_ms")
            .map_or_else(String::new, |at| {
                format!("; the oldest was sent at {}", crate::moments::utc(at))
            });
        let error = self.answer.get("last_script_error").and_then(Value::as_str);
        let error = error.map_or_else(String::new, |error| {
            format!(
                " The last error was: {}.",
                printable(error.as_bytes()).trim_end_matches('.')
            )
        });
        let mut sentences = vec![format!(
            "{} {verb} parked because the on_enqueue script failed on them{oldest}.{error} They \
             are tried again when the script changes (`tanda queue update {} --on-enqueue FILE`), \
             and those on which it took too long from time to time.",
            counted(parked, "message"),
            self.name(),
        )];
        let stopped = self.number("/counts/stopped");
        if stopped > 0 {
            let verb = if stopped == 1 { "waits" } else { "wait" };
            sentences.push(format!(
                "{} {verb} behind the first parked one, because the queue keeps an order.",
                counted(stopped, "message")
            ));
        }
        sentences
    }
}
