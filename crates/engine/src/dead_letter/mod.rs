//! Messages that die in a queue with an `x-dead-letter-exchange` go to that exchange.
//!
//! A message that leaves for an exchange is *departing*: it is in its queue, out of every list,
//! until a later moment of the same step or pass routes it. Then it is read, its history is written
//! into its headers, and one atomic step stores it as a new message where the exchange says and
//! takes it out of the queue it died in. Nothing is recorded before that: after a crash it is where
//! it was, and dies again. What cannot be read now, or cannot be stored as the disk is full, stays.
//!
//! Owns: what a dead letter looks like, and the way there. It refuses to know why messages die.

mod amqp;
mod death;
mod departures;
mod fire;
#[cfg(test)]
mod journeys;
#[cfg(test)]
mod tests;

use crate::{Content, Form, MessageId, Millis};
use death::History;
pub(crate) use death::Reason;
pub(crate) use departures::{DeadLetterRules, Departures, RefusedMessage};

/// Says of a content that its history was written by the broker: one that a client wrote counts for
/// nothing. It stands where a script's attributes do, which is never shown to consumers. An
/// attribute's name is never empty otherwise.
const MARK: &[u8] = &[0, 1, 0, 0, 0, 1, b'd'];

/// The header with a message's fairness key.
const FAIRNESS_KEY: &[u8] = b"x-fairness-key";

/// A death, and where the message goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death<'a> {
    pub(crate) reason: Reason,
    pub(crate) at: Millis,
    /// The queue it died in.
    pub(crate) queue: &'a str,
    /// `x-dead-letter-exchange`.
    pub(crate) exchange: &'a str,
    /// `x-dead-letter-routing-key`; `None` = the keys it was published with.
    pub(crate) routing_key: Option<&'a str>,
}

/// What the forms of messages know of a death.
#[derive(Clone, Copy, Debug)]
struct Burial<'a> {
    reason: Reason,
    at: Millis,
    queue: &'a str,
    /// Where it had been published to.
    exchange: &'a str,
    routing_key: Option<&'a str>,
}

/// New properties.
struct Buried {
    properties: Vec<u8>,
    /// The keys it was published with.
    keys: Vec<String>,
    /// Whether it outlives a restart; `None` when its properties do not say.
    persistent: Option<bool>,
    /// Its priority, if they say one.
    priority: Option<u8>,
    history: History,
}

/// A dead letter, ready to be routed.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) form: Form,
    /// Without [`Self::attributes`].
    pub(crate) content: Vec<u8>,
    /// Routing keys.
    pub(crate) keys: Vec<String>,
    /// The header `x-fairness-key`.
    fairness_key: String,
    persistent: Option<bool>,
    priority: Option<u8>,
    history: History,
}

impl DeadLetter {
    /// What a content with the mark ends with.
    pub(crate) const ATTRIBUTES: &'static [u8] = MARK;

    /// Makes a dead letter of a message.
    pub(crate) fn new(content: Content<'_>, id: MessageId, death: &Death<'_>) -> Self {
        let is_ours = content.attribute(b"").is_some();
        let (form, exchange, key, properties) = match content.form() {
            Form::Amqp | Form::Fire => {
                let properties = content.properties().to_vec();
                (
                    content.form(),
                    content.exchange(),
                    content.routing_key(),
                    properties,
                )
            }
            Form::Fila => {
                let headers = content.headers().collect::<Vec<_>>();
                let headers = headers.iter().map(|(name, value)| (&**name, &**value));
                (Form::Amqp, "", death.queue, amqp::of_fila(headers, id))
            }
        };
        let burial = Burial {
            reason: death.reason,
            at: death.at,
            queue: death.queue,
            exchange,
            routing_key: death.routing_key,
        };
        let how = (key, is_ours);
        let Buried {
            properties,
            keys,
            persistent,
            priority,
            history,
        } = match form {
            Form::Fire => fire::bury(&properties, how, &burial),
            Form::Fila | Form::Amqp => amqp::bury(&properties, how, &burial),
        };
        let payload = content.payload().unwrap_or_default();
        let mut bytes = Vec::with_capacity(payload.len() + properties.len() + 64);
        put_name(&mut bytes, death.exchange);
        put_name(&mut bytes, death.routing_key.unwrap_or(key));
        crate::record::put_long(&mut bytes, &properties);
        crate::record::put_long(&mut bytes, payload);
        let replaced = death.routing_key.map(|key| vec![key.to_owned()]);
        let fairness_key = content.header(FAIRNESS_KEY).unwrap_or_default();
        Self {
            form,
            fairness_key: String::from_utf8_lossy(&fairness_key).into_owned(),
            content: bytes,
            keys: replaced.unwrap_or(keys),
            persistent,
            priority,
            history,
        }
    }

    /// It would go round in a circle in this queue.
    pub(crate) fn is_cycle(&self, reason: Reason, queue: &str) -> bool {
        reason != Reason::Rejected && self.history.is_cycle(queue)
    }
}

/// Appends a name with its u8 length; names are never longer.
fn put_name(out: &mut Vec<u8>, name: &str) {
    let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
    out.push(len);
    out.extend(name.bytes().take(usize::from(len)));
}
