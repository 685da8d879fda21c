//! Keys that group messages by their properties.

use tanda_wire::fila::property_key::{KeyPart as WirePart, KeyPartKind, PropertyKey as WireKey};

/// One property of a message in a [`PropertyKey`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPart {
    /// The value of the header of this name.
    Header(String),
    /// The fairness key.
    FairnessKey,
    /// The attribute of this name, as the queue's `on_enqueue` script returned it.
    Attribute(String),
    /// The producer's idempotency key. In deduplication keys only.
    IdempotencyKey,
    /// A hash of the payload. In deduplication keys only.
    PayloadHash,
    /// A hash of all headers. In deduplication keys only.
    HeadersHash,
    /// A kind this version does not know, as a server reported it.
    Unknown {
        /// Its number on the wire.
        kind: u8,
        /// The name that came with it.
        name: String,
    },
}

/// Which properties of a message together identify its group: an ordering group, a throttle
/// bucket, or a set of duplicates. Without parts there is no key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertyKey {
    /// The parts, in the order in which their values are reported.
    pub parts: Vec<KeyPart>,
}

impl PropertyKey {
    /// A key of one header.
    pub fn header(name: impl Into<String>) -> Self {
        Self {
            parts: vec![KeyPart::Header(name.into())],
        }
    }

    /// A key that is the fairness key.
    #[must_use]
    pub fn fairness_key() -> Self {
        Self {
            parts: vec![KeyPart::FairnessKey],
        }
    }

    /// A key of these parts.
    pub fn of(parts: impl IntoIterator<Item = KeyPart>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
        }
    }

    pub(crate) fn to_wire(&self) -> WireKey<'_> {
        WireKey {
            parts: self.parts.iter().map(KeyPart::to_wire).collect(),
        }
    }

    pub(crate) fn from_wire(key: &WireKey<'_>) -> Self {
        Self {
            parts: key.parts.iter().map(KeyPart::from_wire).collect(),
        }
    }
}

impl KeyPart {
    /// The value of a header.
    pub fn header(name: impl Into<String>) -> Self {
        Self::Header(name.into())
    }

    /// An attribute that the queue's `on_enqueue` script returned.
    pub fn attribute(name: impl Into<String>) -> Self {
        Self::Attribute(name.into())
    }

    fn to_wire(&self) -> WirePart<'_> {
        let (kind, name) = match self {
            Self::Header(name) => (KeyPartKind::Header, name.as_str()),
            Self::FairnessKey => (KeyPartKind::FairnessKey, ""),
            Self::Attribute(name) => (KeyPartKind::Attribute, name.as_str()),
            Self::IdempotencyKey => (KeyPartKind::IdempotencyKey, ""),
            Self::PayloadHash => (KeyPartKind::PayloadHash, ""),
            Self::HeadersHash => (KeyPartKind::HeadersHash, ""),
            Self::Unknown { kind, name } => return WirePart { kind: *kind, name },
        };
        WirePart {
            kind: kind.to_wire(),
            name,
        }
    }

    fn from_wire(part: &WirePart<'_>) -> Self {
        let name = part.name.to_owned();
        match KeyPartKind::from_wire(part.kind) {
            Some(KeyPartKind::Header) => Self::Header(name),
            Some(KeyPartKind::FairnessKey) => Self::FairnessKey,
            Some(KeyPartKind::Attribute) => Self::Attribute(name),
            Some(KeyPartKind::IdempotencyKey) => Self::IdempotencyKey,
            Some(KeyPartKind::PayloadHash) => Self::PayloadHash,
            Some(KeyPartKind::HeadersHash) => Self::HeadersHash,
            None => Self::Unknown {
                kind: part.kind,
                name,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_survives_the_wire() {
        let key = PropertyKey::of([
            KeyPart::Header("h".into()),
            KeyPart::FairnessKey,
            KeyPart::Attribute("a".into()),
            KeyPart::IdempotencyKey,
            KeyPart::PayloadHash,
            KeyPart::HeadersHash,
            KeyPart::Unknown {
                kind: 9,
                name: "n".into(),
            },
        ]);
        assert_eq!(PropertyKey::from_wire(&key.to_wire()), key);
    }
}
