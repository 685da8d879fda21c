//! The explanation of the HTTP door in sentences: what waits, for what, and what to do.

use serde_json::Value;
use tanda_client::MessageId;

use crate::{
    moments,
    output::printable,
    table::{counted, grouped},
};

/// The sentences about a queue, or about one message of it.
pub(super) fn of(answer: &Value, message: Option<MessageId>, now_ms: u64) -> Vec<String> {
    let view = View { answer, now_ms };
    match (message, answer.get("message")) {
        (Some(id), Some(place)) if !place.is_null() => {
            let mut sentences = view.message(&format!("Message {id}"), place);
            if place.get("place").and_then(Value::as_str) == Some("ready") {
                sentences.extend(view.delivery());
            }
            sentences
        }
        _ => view.queue(),
    }
}

struct View<'a> {
    answer: &'a Value,
    now_ms: u64,
}

impl View<'_> {
    fn number(&self, path: &str) -> u64 {
        self.time(path).unwrap_or(0)
    }

    fn time(&self, path: &str) -> Option<u64> {
        self.answer.pointer(path)?.as_u64()
    }

    fn name(&self) -> String {
        let name = self.answer.get("name").and_then(Value::as_str);
        printable(name.unwrap_or_default().as_bytes())
    }

    fn ahead(&self, time_ms: u64) -> String {
        moments::ahead(time_ms, self.now_ms)
    }

    fn queue(&self) -> Vec<String> {
        let depth = self.number("/counts/depth");
        let in_flight = self.number("/counts/in_flight");
        if depth == 0 && in_flight == 0 {
            return vec![format!(
                "Queue {} is empty: there is nothing to deliver.",
                self.name()
            )];
        }
        let mut sentences = vec![self.summary(depth)];
        if self.number("/counts/ready") > 0 {
            sentences.extend(self.delivery());
        }
        sentences.extend(self.waiting());
        if in_flight > 0 {
            sentences.push(self.leases(in_flight));
        }
        sentences
    }

    fn summary(&self, depth: u64) -> String {
        let is_one = depth == 1;
        let verb = if is_one { "waits" } else { "wait" };
        let ready = self.number("/counts/ready");
        let keys = self.number("/counts/active_fairness_keys");
        let of = if keys > 1 {
            format!(" of {} fairness keys", grouped(keys))
        } else {
            String::new()
        };
        let what = if ready == depth && depth > 0 {
            let all = if is_one { "it is" } else { "all are" };
            format!("; {all} ready")
        } else if depth > 0 {
            format!(
                ": {} ready, {} delayed, {} behind others of their ordering group",
                grouped(ready),
                grouped(self.number("/counts/delayed")),
                grouped(self.number("/counts/behind")),
            )
        } else {
            String::new()
        };
        format!(
            "{}{of} {verb} in queue {}{what}.",
            counted(depth, "message"),
            self.name()
        )
    }

    /// Why ready messages go or do not.
    fn delivery(&self) -> Vec<String> {
        let consumers = self.number("/counts/active_consumers");
        let ready = self.number("/consumers_ready");
        let without_credit = self.number("/consumers_without_credit");
        let full = self.number("/consumers_with_full_buffer");
        if consumers == 0 {
            return vec![format!(
                "Nothing moves because no consumer is connected: start one, for example \
                 `tanda consume {} --ack`.",
                self.name()
            )];
        }
        let who = counted(consumers, "consumer");
        if ready > 0 {
            return vec![format!(
                "It is being delivered: {who}, {} with room for more.",
                grouped(ready)
            )];
        }
        let mut sentences = Vec::new();
        if without_credit > 0 {
            let how_many = if without_credit == consumers {
                "none has credit".to_owned()
            } else {
                format!("{} without credit", grouped(without_credit))
            };
            sentences.push(format!(
                "{who}, {how_many}: they hold as many messages as they asked for. They must settle \
                 some, or ask for more (a larger prefetch); or start more consumers."
            ));
        }
        if full > 0 {
            sentences.push(format!(
                "{who}, {} too slow in reading: their connection's buffer is full. \
                 Deliveries go on when they read.",
                grouped(full)
            ));
        }
        sentences
    }

    /// What the messages that are not ready wait for.
    fn waiting(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(due) = self.time("/next_due_at_ms") {
            let ahead = self.ahead(due);
            sentences.push(format!(
                "The next delayed message is due {ahead}: it was sent with a delay, or failed and \
                 waits for its retry."
            ));
        }
        let behind = self.number("/counts/behind");
        if behind > 0 {
            let verb = if behind == 1 { "waits" } else { "wait" };
            let groups = self.number("/groups_held");
            let (have, their) = if groups == 1 {
                ("has", "its")
            } else {
                ("have", "their")
            };
            sentences.push(format!(
                "{} {verb} for order: {} {have} {their} first message leased or delayed, and the \
                 next goes only after it. `tanda queue explain {} MESSAGE_ID` names it.",
                counted(behind, "message"),
                counted(groups, "ordering group"),
                self.name(),
            ));
        }
        sentences
    }

    fn leases(&self, in_flight: u64) -> String {
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

    fn message(&self, who: &str, place: &Value) -> Vec<String> {
        let text = |field: &str| {
            let found = place.get(field).and_then(Value::as_str).unwrap_or_default();
            printable(found.as_bytes())
        };
        let number = |field: &str| place.get(field).and_then(Value::as_u64);
        let kind = text("place");
        let sentence = match kind.as_str() {
            "unknown" => format!(
                "{who} is not in queue {}: it was acknowledged or purged, or never was here.",
                self.name()
            ),
            "ready" => ready(who, &text("fairness_key"), &number),
            "delayed" => delayed(who, &number, &|at| self.ahead(at)),
            "behind" => {
                let head = text("head");
                let mut sentences = vec![format!(
                    "{who} waits behind message {head} of its ordering group: it goes after that \
                     one is acknowledged or dead-lettered."
                )];
                if let Some(head_place) = place.get("head_place") {
                    sentences.extend(self.message(&format!("Message {head}"), head_place));
                }
                return sentences;
            }
            "leased" => leased(who, &number, &|at| self.ahead(at)),
            "dead_lettered" => format!(
                "{who} failed as often as the queue allows and is in {queue}: `tanda redrive \
                 {queue}` moves dead letters back.",
                queue = text("queue")
            ),
            other => format!("{who} is at a place that this version does not know: {other}."),
        };
        vec![sentence]
    }
}

fn ready(who: &str, key: &str, number: &dyn Fn(&str) -> Option<u64>) -> String {
    let group = match key {
        "" => "messages without a fairness key".to_owned(),
        key => format!("fairness key {key:?}"),
    };
    let ahead = number("ahead_in_key").unwrap_or(0);
    let verb = if ahead == 1 { "goes" } else { "go" };
    let keys = number("keys_in_ring").unwrap_or(0);
    let turns = match keys {
        0 | 1 => "no other fairness key takes turns with it".to_owned(),
        keys => format!(
            "{} fairness keys take turns, this one included",
            grouped(keys)
        ),
    };
    format!(
        "{who} is ready: {} of {group} {verb} before it, and {turns}.",
        counted(ahead, "message")
    )
}

fn delayed(
    who: &str,
    number: &dyn Fn(&str) -> Option<u64>,
    ahead: &dyn Fn(u64) -> String,
) -> String {
    let due = number("due_at_ms").map_or_else(|| "later".to_owned(), ahead);
    match number("attempts").unwrap_or(0) {
        0 => format!("{who} was sent with a delay: it is due {due}."),
        attempts => format!(
            "{who} failed {} and waits for its retry, which is due {due}.",
            counted(attempts, "time")
        ),
    }
}

fn leased(
    who: &str,
    number: &dyn Fn(&str) -> Option<u64>,
    ahead: &dyn Fn(u64) -> String,
) -> String {
    let holder = number("consumer").map_or_else(
        || "a consumer that is gone, or was there before the broker restarted".to_owned(),
        |consumer| format!("consumer {consumer}"),
    );
    let end = number("expires_at_ms").map_or_else(
        || "ends with its connection".to_owned(),
        |at| format!("ends {}, unless it is settled or extended", ahead(at)),
    );
    let attempt = number("attempts").unwrap_or(1);
    format!("{who} is leased to {holder} (delivery {attempt}); the lease {end}.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn queue(counts: Value, more: Value) -> Vec<String> {
        let mut answer = json!({"name": "q", "counts": counts});
        let fields = answer.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        of(&answer, None, 1_000)
    }

    #[test]
    fn an_empty_queue_has_nothing_to_deliver() {
        let sentences = queue(json!({"depth": 0, "in_flight": 0}), json!({}));
        assert_eq!(
            sentences,
            ["Queue q is empty: there is nothing to deliver."]
        );
    }

    #[test]
    fn without_consumers_it_says_how_to_start_one() {
        let counts = json!({"depth": 3, "ready": 3, "active_fairness_keys": 2});
        let sentences = queue(counts, json!({}));
        assert_eq!(sentences.len(), 2);
        assert_eq!(
            sentences[0],
            "3 messages of 2 fairness keys wait in queue q; all are ready."
        );
        assert!(sentences[1].contains("`tanda consume q --ack`"));
    }

    #[test]
    fn consumers_without_credit_are_named() {
        let counts = json!({"depth": 1, "ready": 1, "active_consumers": 3, "in_flight": 30});
        let more = json!({"consumers_without_credit": 3, "next_lease_end_at_ms": 13_345});
        let sentences = queue(counts, more);
        assert_eq!(sentences[0], "1 message waits in queue q; it is ready.");
        assert!(sentences[1].starts_with("3 consumers, none has credit: "));
        assert!(sentences[2].contains("the next lease ends in 12.3 s (at "));
    }

    #[test]
    fn delays_and_groups_are_told_apart() {
        let counts = json!({"depth": 5, "ready": 0, "delayed": 2, "behind": 3});
        let more = json!({"next_due_at_ms": 13_300, "groups_held": 1});
        let sentences = queue(counts, more);
        assert_eq!(
            sentences[0],
            "5 messages wait in queue q: 0 ready, 2 delayed, 3 behind others of their ordering \
             group."
        );
        assert!(sentences[1].starts_with("The next delayed message is due in 12.3 s"));
        assert!(sentences[2].starts_with("3 messages wait for order: 1 ordering group has its"));
    }

    #[test]
    fn a_message_behind_another_tells_where_that_one_is() {
        let id: MessageId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
        let answer = json!({
            "name": "q",
            "message": {
                "place": "behind",
                "head": "0190163d-8694-739b-aea5-000000000001",
                "head_place": {
                    "place": "leased", "expires_at_ms": 31_000, "attempts": 2, "consumer": 7,
                },
            },
        });
        assert_eq!(
            of(&answer, Some(id), 1_000),
            [
                "Message 0190163d-8694-739b-aea5-966c26f8ad91 waits behind message \
                 0190163d-8694-739b-aea5-000000000001 of its ordering group: it goes after that \
                 one is acknowledged or dead-lettered.",
                "Message 0190163d-8694-739b-aea5-000000000001 is leased to consumer 7 (delivery \
                 2); the lease ends in 30.0 s (at 1970-01-01 00:00:31.000 UTC), unless it is \
                 settled or extended.",
            ]
        );
    }
}
