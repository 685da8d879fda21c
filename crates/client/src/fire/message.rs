//! A message on its way in, and what became of it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tanda_wire::firemq::{Properties, Value};

use super::core::Returned;
use super::fields::Fields;
use crate::message::whole_ms;

/// A message to publish, built by name. Cheap to clone when it has few headers.
///
/// ```
/// use std::time::Duration;
/// use tanda_client::fire::Message;
///
/// let message = Message::to("events", "order.new")
///     .persistent()
///     .content_type("application/json")
///     .header("customer", "c-7")
///     .expires_after(Duration::from_secs(60))
///     .body(r#"{"total": 12}"#);
/// assert_eq!(message.key(), "order.new");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub(crate) exchange: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) is_mandatory: bool,
    pub(crate) is_persistent: bool,
    pub(crate) is_resent: bool,
    texts: Vec<(Text, String)>,
    priority: u8,
    expiration_ms: u64,
    timestamp_s: u64,
    headers: Fields,
    pub(crate) body: Bytes,
}

/// A property that is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    ContentType,
    ContentEncoding,
    CorrelationId,
    ReplyTo,
    MessageId,
    Kind,
    UserId,
    AppId,
}

impl Message {
    /// A message for an exchange, with a routing key; empty so far.
    pub fn to(exchange: impl Into<Arc<str>>, key: impl Into<Arc<str>>) -> Self {
        Self {
            exchange: exchange.into(),
            key: key.into(),
            ..Self::default()
        }
    }

    /// A message for a queue, by way of the default exchange.
    pub fn to_queue(queue: impl Into<Arc<str>>) -> Self {
        Self::to("", queue)
    }

    /// It is written to disk, and survives a restart of the server in queues that do.
    #[must_use]
    pub const fn persistent(mut self) -> Self {
        self.is_persistent = true;
        self
    }

    /// It comes back when no queue receives it ([`Published::Returned`]).
    #[must_use]
    pub const fn mandatory(mut self) -> Self {
        self.is_mandatory = true;
        self
    }

    /// It is published again when the connection is lost before its confirm. Then it may arrive
    /// twice, unless its queue recognizes duplicates.
    #[must_use]
    pub const fn resend_after_loss(mut self) -> Self {
        self.is_resent = true;
        self
    }

    /// What the body is, such as `application/json`.
    #[must_use]
    pub fn content_type(self, text: impl Into<String>) -> Self {
        self.text(Text::ContentType, text.into())
    }

    /// How the body is packed, such as `gzip`.
    #[must_use]
    pub fn content_encoding(self, text: impl Into<String>) -> Self {
        self.text(Text::ContentEncoding, text.into())
    }

    /// Which request it answers.
    #[must_use]
    pub fn correlation_id(self, text: impl Into<String>) -> Self {
        self.text(Text::CorrelationId, text.into())
    }

    /// Where answers go.
    #[must_use]
    pub fn reply_to(self, text: impl Into<String>) -> Self {
        self.text(Text::ReplyTo, text.into())
    }

    /// The application's own id of the message.
    #[must_use]
    pub fn message_id(self, text: impl Into<String>) -> Self {
        self.text(Text::MessageId, text.into())
    }

    /// What kind of message it is (the property `type`).
    #[must_use]
    pub fn kind(self, text: impl Into<String>) -> Self {
        self.text(Text::Kind, text.into())
    }

    /// Who publishes it; must be the connection's user.
    #[must_use]
    pub fn user_id(self, text: impl Into<String>) -> Self {
        self.text(Text::UserId, text.into())
    }

    /// Which application publishes it.
    #[must_use]
    pub fn app_id(self, text: impl Into<String>) -> Self {
        self.text(Text::AppId, text.into())
    }

    /// Its priority, for queues with `x-max-priority`.
    #[must_use]
    pub const fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// How long it may wait in a queue, to the millisecond.
    #[must_use]
    pub fn expires_after(mut self, time: Duration) -> Self {
        self.expiration_ms = whole_ms(time);
        self
    }

    /// When it was made, to the second.
    #[must_use]
    pub fn timestamp(mut self, time: SystemTime) -> Self {
        // Before 1970 nothing can be said.
        self.timestamp_s = time
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        self
    }

    /// Adds a header; a name given again keeps the last value.
    #[must_use]
    pub fn header<'a>(mut self, name: impl Into<String>, value: impl Into<Value<'a>>) -> Self {
        self.headers.insert(name.into(), &value.into());
        self
    }

    /// Replaces all headers.
    #[must_use]
    pub fn headers(mut self, headers: Fields) -> Self {
        self.headers = headers;
        self
    }

    /// Its body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The exchange it goes to; empty is the default one.
    #[must_use]
    pub fn exchange(&self) -> &str {
        &self.exchange
    }

    /// Its routing key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    fn text(mut self, property: Text, value: String) -> Self {
        match self.texts.iter_mut().find(|(known, _)| *known == property) {
            Some((_, known)) => *known = value,
            None => self.texts.push((property, value)),
        }
        self
    }

    /// Its properties as they are sent; no bytes when there are none.
    pub(crate) fn encode_properties(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let is_plain = self.texts.is_empty() && self.priority == 0;
        if is_plain && self.expiration_ms == 0 && self.timestamp_s == 0 {
            return out;
        }
        let mut properties = Properties {
            priority: self.priority,
            expiration_ms: self.expiration_ms,
            timestamp_s: self.timestamp_s,
            ..Properties::default()
        };
        for (property, value) in &self.texts {
            let field = match property {
                Text::ContentType => &mut properties.content_type,
                Text::ContentEncoding => &mut properties.content_encoding,
                Text::CorrelationId => &mut properties.correlation_id,
                Text::ReplyTo => &mut properties.reply_to,
                Text::MessageId => &mut properties.message_id,
                Text::Kind => &mut properties.kind,
                Text::UserId => &mut properties.user_id,
                Text::AppId => &mut properties.app_id,
            };
            *field = value;
        }
        properties.encode(&mut out);
        out
    }

    /// Its headers as they are sent; no bytes when there are none.
    pub(crate) fn encode_headers(&self) -> Vec<u8> {
        self.headers.encode()
    }
}

/// What the server did with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a mandatory message may have come back"]
pub enum Published {
    /// It has taken responsibility for it: it is on disk when it is persistent and its queue
    /// durable, in memory otherwise. A message that is not mandatory may have reached no queue.
    Taken,
    /// No queue received the mandatory message.
    Returned(Box<Returned>),
}

impl Published {
    /// The message, if it came back.
    #[must_use]
    pub fn returned(&self) -> Option<&Returned> {
        match self {
            Self::Taken => None,
            Self::Returned(returned) => Some(returned),
        }
    }
}
