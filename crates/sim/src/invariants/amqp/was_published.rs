//! What is delivered was published, unchanged, and routed to the queue it came from.
//!
//! Source: `broker-model`: "one copy per queue"; `docs/amqp.md`, exchanges. A message that came
//! back as unroutable is nowhere, and one whose transaction was rolled back neither; what is
//! transient does not outlive the broker's process. By another door than the one it went in by, a
//! message says the same as far as that door can say it: `firemq.md`, "Interoperability with AMQP
//! 0-9-1".

use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::{Amqp, Arrived, Outcome, Published, Told, origin_of};

pub(crate) const NAME: &str = "what AMQP delivers was published";

pub(crate) fn never(tag: usize) -> Violation {
    Violation {
        invariant: NAME,
        what: format!("AMQP message {tag} was never published"),
    }
}

/// A message came to a client.
pub(crate) fn on_delivery(history: &Amqp, message: &Arrived) -> Check {
    let tag = message.tag;
    let sent = history.published(tag)?;
    let origin = origin_of(&message.queue);
    ensure(sent.may.contains(origin), NAME, || {
        format!(
            "message {tag} to {:?} with {:?} came from {:?}, where no binding leads",
            sent.exchange, sent.key, message.queue
        )
    })?;
    let is_nowhere = sent.is_returned || sent.outcome == Outcome::RolledBack;
    ensure(!is_nowhere, NAME, || {
        format!(
            "message {tag} came from {:?}, although it was returned ({}) or rolled back",
            message.queue, sent.is_returned
        )
    })?;
    ensure(message.body == sent.body, NAME, || {
        format!("the body of message {tag} has changed")
    })?;
    let outlives = history.outlives(&(tag, origin.to_owned()));
    ensure(outlives || sent.epoch == history.epoch, NAME, || {
        format!(
            "message {tag} from {:?} is transient, and has outlived the process",
            message.queue
        )
    })?;
    is_same(message, sent)
}

/// It never died: nothing about it has changed; else it goes on under the name of its queue.
fn is_same(message: &Arrived, sent: &Published) -> Check {
    let tag = message.tag;
    let (exchange, key) = if message.deaths.is_empty() {
        (sent.exchange, sent.key.as_str())
    } else {
        ("", message.queue.as_str())
    };
    let is_same = message.exchange == exchange && message.key == key;
    ensure(is_same, NAME, || {
        format!(
            "message {tag} came with exchange {:?} and key {:?}, not {exchange:?} and {key:?}",
            message.exchange, message.key
        )
    })?;
    // Who has come back says so in a header, `x-delivery-count`.
    let may_differ = !message.deaths.is_empty() || message.is_redelivered;
    if message.door == sent.door && !may_differ {
        return ensure(message.properties == sent.properties, NAME, || {
            format!("the properties of message {tag} have changed")
        });
    }
    let has_died = !message.deaths.is_empty();
    let told = Told::read(message.door, &message.properties);
    let told = told.map(|told| told.without_history(has_died));
    let expected = Told::read(sent.door, &sent.properties);
    let expected = expected.map(|told| {
        let told = told.at(message.door, sent.is_persistent);
        told.without_history(has_died)
    });
    ensure(told == expected, NAME, || {
        format!(
            "message {tag} went in by {:?} and came by {:?}, and says {told:?} instead of \
             {expected:?}",
            sent.door, message.door
        )
    })
}

/// Mandatory messages are confirmed when they went somewhere, or came back before.
pub(crate) fn when_confirmed(tag: usize, message: &Published) -> Check {
    let is_told = !message.is_mandatory || message.is_returned || !message.may.is_empty();
    ensure(is_told, NAME, || {
        format!("message {tag} went nowhere, is mandatory, and did not come back")
    })
}

/// It came back: no binding leads anywhere.
pub(crate) fn when_returned(tag: usize, message: &Published) -> Check {
    ensure(
        message.is_mandatory && message.must.is_empty(),
        NAME,
        || {
            format!(
                "message {tag} came back, although it goes to {:?}",
                message.must
            )
        },
    )
}
