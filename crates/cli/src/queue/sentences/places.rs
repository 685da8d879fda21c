//! Where one message is, in sentences.

use serde_json::Value;

use super::View;
use crate::{
    output::printable,
    table::{counted, grouped},
};

/// The fields of a place.
#[derive(Clone, Copy)]
struct Place<'a>(&'a Value);

impl Place<'_> {
    fn text(self, field: &str) -> String {
        let found = self.0.get(field).and_then(Value::as_str);
        printable(found.unwrap_or_default().as_bytes())
    }

    fn is(self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool) == Some(true)
    }

    fn number(self, field: &str) -> Option<u64> {
        self.0.get(field).and_then(Value::as_u64)
    }
}

impl View<'_> {
    /// The sentences about a message at a place; `who` names it.
    pub(super) fn message(&self, who: &str, place: &Value) -> Vec<String> {
        let fields = Place(place);
        let kind = fields.text("place");
        let sentence = match kind.as_str() {
            "unknown" => format!(
                "{who} is not in queue {}: it was acknowledged or purged, or never was here.",
                self.name()
            ),
            "ready" => ready(who, fields),
            "delayed" => self.delayed(who, fields),
            "throttled" => return self.throttled(who, place),
            "behind" => return self.behind(who, place),
            "stopped" => return self.stopped(who, place),
            "leased" => self.leased(who, fields),
            "parked" => self.parked(who, fields),
            "deciding" => format!(
                "{who} failed {}, and the on_failure script of the queue is deciding what becomes \
                 of it.",
                counted(fields.number("attempts").unwrap_or(1), "time")
            ),
            "redriving" => format!(
                "{who} is on its way back to its queue: the on_enqueue script is classifying it."
            ),
            "departing" => format!(
                "{who} is a dead letter ({reason}) on its way to the exchange for dead letters of \
                 the queue: it waits until it can be read and stored.",
                reason = fields.text("reason")
            ),
            "dead_lettered" => format!(
                "{who} failed as often as the queue allows and is in {queue}: `tanda redrive \
                 {queue}` moves dead letters back.",
                queue = fields.text("queue")
            ),
            other => format!("{who} is at a place that this version does not know: {other}."),
        };
        vec![sentence]
    }

    fn behind(&self, who: &str, place: &Value) -> Vec<String> {
        let head = Place(place).text("head");
        let sentence = format!(
            "{who} waits behind message {head} of its ordering group: it goes after that one is \
             acknowledged or dead-lettered."
        );
        self.and_then(sentence, &head, place.get("head_place"))
    }

    fn stopped(&self, who: &str, place: &Value) -> Vec<String> {
        let first = Place(place).text("first_unclassified");
        let sentence = format!(
            "{who} waits behind message {first}, which the on_enqueue script has not classified: \
             its place in the order is not known, so nothing after it may go."
        );
        self.and_then(sentence, &first, place.get("first_place"))
    }

    /// A sentence, and those about the message that it names.
    fn and_then(&self, sentence: String, id: &str, place: Option<&Value>) -> Vec<String> {
        let mut sentences = vec![sentence];
        if let Some(place) = place.filter(|place| !place.is_null()) {
            sentences.extend(self.message(&format!("Message {id}"), place));
        }
        sentences
    }

    fn delayed(&self, who: &str, place: Place<'_>) -> String {
        let due = place.number("due_at_ms");
        let due = due.map_or_else(|| "later".to_owned(), |at| self.ahead(at));
        match place.number("attempts").unwrap_or(0) {
            0 => format!("{who} was sent with a delay: it is due {due}."),
            attempts => format!(
                "{who} failed {} and waits for its retry, which is due {due}.",
                counted(attempts, "time")
            ),
        }
    }

    fn leased(&self, who: &str, place: Place<'_>) -> String {
        let holder = place.number("consumer").map_or_else(
            || "a consumer that is gone, or was there before the broker restarted".to_owned(),
            |consumer| format!("consumer {consumer}"),
        );
        let end = place.number("expires_at_ms").map_or_else(
            || "ends with its connection".to_owned(),
            |at| format!("ends {}, unless it is settled or extended", self.ahead(at)),
        );
        let attempt = place.number("attempts").unwrap_or(1);
        format!("{who} is leased to {holder} (delivery {attempt}); the lease {end}.")
    }

    fn parked(&self, who: &str, place: Place<'_>) -> String {
        let tries = counted(place.number("tries").unwrap_or(1), "time");
        let error = match place.text("error") {
            error if error.is_empty() => String::new(),
            error => format!(" ({error})"),
        };
        let next = place.number("next_try_at_ms").map_or_else(
            || "it is tried again when the script changes".to_owned(),
            |at| {
                format!(
                    "it is tried again {}, and when the script changes",
                    self.ahead(at)
                )
            },
        );
        format!("{who} is parked: the on_enqueue script failed on it {tries}{error}. Next, {next}.")
    }
}

fn ready(who: &str, place: Place<'_>) -> String {
    let group = match place.text("fairness_key").as_str() {
        "" => "messages without a fairness key".to_owned(),
        key => format!("fairness key {key:?}"),
    };
    let ahead = place.number("ahead_in_key").unwrap_or(0);
    let verb = if ahead == 1 { "goes" } else { "go" };
    let turns = match place.number("keys_in_ring").unwrap_or(0) {
        0 | 1 => "no other fairness key takes turns with it".to_owned(),
        keys => format!(
            "{} fairness keys take turns, this one included",
            grouped(keys)
        ),
    };
    let unfit = match place.is("unfit") {
        true => {
            " It fits no frame of any consumer of the queue: it waits for one with larger ones."
        }
        false => "",
    };
    format!(
        "{who} is ready: {} of {group} {verb} before it, and {turns}.{unfit}",
        counted(ahead, "message")
    )
}
