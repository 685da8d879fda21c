//! The explanation of the HTTP door in sentences: what waits, for what, and what to do.

use serde_json::Value;
use tanda_client::{MessageId, admin::ThrottleStats};

use crate::{
    moments,
    output::printable,
    table::{counted, grouped},
};

mod places;
mod waiting;

/// The sentences about a queue, or about one message of it. `throttles` are those of the queue, as
/// far as they may be known.
pub(super) fn of(
    answer: &Value,
    throttles: &[ThrottleStats],
    message: Option<MessageId>,
    now_ms: u64,
) -> Vec<String> {
    let view = View {
        answer,
        throttles,
        now_ms,
    };
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
    throttles: &'a [ThrottleStats],
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
            format!(": {}", self.kinds(ready))
        } else {
            String::new()
        };
        format!(
            "{}{of} {verb} in queue {}{what}.",
            counted(depth, "message"),
            self.name()
        )
    }

    /// How many messages wait for what, without what none waits for.
    fn kinds(&self, ready: u64) -> String {
        let mut kinds = vec![format!("{} ready", grouped(ready))];
        let others = [
            ("delayed", "delayed"),
            ("throttled", "throttled"),
            ("behind", "behind others of their ordering group"),
            ("unclassified", "parked"),
            ("stopped", "behind a parked one"),
            ("departing", "on their way to another queue"),
        ];
        for (count, words) in others {
            let number = self.number(&format!("/counts/{count}"));
            if number > 0 {
                kinds.push(format!("{} {words}", grouped(number)));
            }
        }
        kinds.join(", ")
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
}

#[cfg(test)]
mod tests;
