//! A message on its way in.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

/// A message to send, built by name: a queue, and what is to be known about it.
///
/// Cloning is cheap when there are few headers; a template can be cloned for each send.
///
/// ```
/// use std::time::Duration;
/// use tanda_client::Message;
///
/// let message = Message::to("orders")
///     .header("content-type", "application/json")
///     .fairness_key("tenant-7")
///     .weight(3)
///     .delay(Duration::from_secs(5))
///     .idempotency_key("order-1001")
///     .payload(r#"{"total": 12}"#);
/// assert_eq!(message.queue(), "orders");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub(crate) queue: Arc<str>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Bytes,
    pub(crate) fairness_key: Option<Arc<str>>,
    pub(crate) weight: Option<u32>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) idempotency_key: Option<Arc<str>>,
}

impl Message {
    /// A message for this queue, empty so far.
    pub fn to(queue: impl Into<Arc<str>>) -> Self {
        Self {
            queue: queue.into(),
            headers: Vec::new(),
            payload: Bytes::new(),
            fairness_key: None,
            weight: None,
            delay_ms: None,
            idempotency_key: None,
        }
    }

    /// Adds a header; a name given again keeps the last value. Names and values hold at most
    /// 65,535 bytes each.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        let value = value.into();
        match self.headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.headers.push((name, value)),
        }
        self
    }

    /// The group that shares delivery fairly with other groups, such as a tenant. Without one the
    /// message belongs to the group of messages without a key.
    #[must_use]
    pub fn fairness_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.fairness_key = Some(key.into());
        self
    }

    /// The share of the message's group relative to others; 1 when not set.
    #[must_use]
    pub const fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Not to be delivered before this long after it was enqueued, in whole milliseconds.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = Some(whole_ms(delay));
        self
    }

    /// A key under which the queue recognizes this message when it is sent again.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// The content, any bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// The queue it is for.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }
}

/// A duration in whole milliseconds, rounded up, so that what is asked to wait never waits less.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_given_twice_keeps_the_last_value() {
        let message = Message::to("q")
            .header("a", "1")
            .header("b", "2")
            .header("a", "3");
        let headers: Vec<(&str, &str)> = message
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(headers, [("a", "3"), ("b", "2")]);
    }

    #[test]
    fn durations_round_up() {
        assert_eq!(whole_ms(Duration::from_micros(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(7)), 7);
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::MAX), u64::MAX);
    }
}
