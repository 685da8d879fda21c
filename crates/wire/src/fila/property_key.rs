//! The `key` primitive: which properties of a message form a group.

use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// What one part of a key looks at.
    pub enum KeyPartKind {
        /// The header of the part's name.
        Header = 0,
        /// The fairness key; the name is empty.
        FairnessKey = 1,
        /// The attribute of the part's name, as `on_enqueue` returned it.
        Attribute = 2,
        /// The producer's idempotency key; the name is empty. Deduplication keys only.
        IdempotencyKey = 3,
        /// A hash of the payload; the name is empty. Deduplication keys only.
        PayloadHash = 4,
        /// A hash of all headers; the name is empty. Deduplication keys only.
        HeadersHash = 5,
    }
}

wire_struct! {
    /// An ordering, throttle or deduplication key. No parts: no key.
    pub struct PropertyKey<'a> {
        /// The parts, all of which together identify the group.
        parts: Vec<KeyPart<'a>> as list_u16,
    }

    /// One part of a key.
    pub struct KeyPart<'a> {
        /// A [`KeyPartKind`], or a number that has no meaning.
        kind: u8,
        /// The header or attribute name; empty for the other kinds.
        name: &'a str,
    }
}

impl PropertyKey<'_> {
    /// Whether there is no key.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.parts.is_empty()
    }
}
