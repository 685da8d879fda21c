//! Maps of a program: headers of messages, arguments of queues and exchanges.
//!
//! Owns: their entries until they are sent. Refuses to know: what a name means.

use tanda_wire::firemq::Value;
use tanda_wire::firemq::writer::MapWriter;

/// Named values: headers of a message, or arguments of an exchange, queue, binding or subscription.
///
/// ```
/// use tanda_client::fire::Fields;
///
/// let arguments = Fields::new()
///     .set("x-message-ttl", 60_000_u32)
///     .set("x-dead-letter-exchange", "failed");
/// assert_eq!(arguments.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fields {
    /// Names, and values as they are sent.
    entries: Vec<(String, Vec<u8>)>,
}

impl Fields {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Adds an entry; a name given again keeps the last value.
    #[must_use]
    pub fn set<'a>(mut self, name: impl Into<String>, value: impl Into<Value<'a>>) -> Self {
        self.insert(name.into(), &value.into());
        self
    }

    /// Adds an entry; a name given again keeps the last value.
    pub fn insert(&mut self, name: String, value: &Value<'_>) {
        let mut encoded = Vec::new();
        value.encode(&mut encoded);
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = encoded,
            None => self.entries.push((name, encoded)),
        }
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The map as it is sent; no bytes when it is empty.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        let mut writer = MapWriter::begin(&mut out);
        for (name, value) in &self.entries {
            writer.key(name).extend_from_slice(value);
        }
        writer.finish();
        out
    }
}
