//! Keys made of a message's properties, as 128-bit hashes.

use sha2::{Digest, Sha256};

use crate::content::Pairs;
use crate::{Content, Form, KeyKind, KeyPart};

/// The properties a key can ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties<'a> {
    pub(crate) form: Form,
    pub(crate) content: &'a [u8],
    /// What a script said of it, in the layout of headers; empty = nothing.
    pub(crate) attributes: &'a [u8],
    /// Empty = unkeyed.
    pub(crate) fairness_key: &'a [u8],
    /// Empty = none.
    pub(crate) idempotency_key: &'a [u8],
}

/// The hash of the values of `parts`; `None` when the message lacks one of them.
///
/// 128 bits of SHA-256 over each part's kind and value, lengths included, so that no two
/// different sequences of values hash the same input.
pub(crate) fn key_hash(parts: &[KeyPart], properties: Properties<'_>) -> Option<u128> {
    let mut hasher = Sha256::new();
    let content = Content::new(properties.form, properties.content);
    for part in parts {
        match part.kind {
            KeyKind::Header => {
                add(&mut hasher, 0, &content.header(part.name.as_bytes())?);
            }
            KeyKind::FairnessKey => add(&mut hasher, 1, present(properties.fairness_key)?),
            KeyKind::Attribute => {
                let attributes = Pairs::new(properties.attributes);
                add(&mut hasher, 2, attributes.named(part.name.as_bytes())?);
            }
            KeyKind::IdempotencyKey => add(&mut hasher, 3, present(properties.idempotency_key)?),
            KeyKind::Payload => add(&mut hasher, 4, content.payload().ok()?),
            KeyKind::AllHeaders => add_headers(&mut hasher, content),
        }
    }
    Some(truncate(hasher))
}

/// The hash of a producer's idempotency key, for queues without a key of their own.
pub(crate) fn idempotency_hash(key: &[u8]) -> u128 {
    let mut hasher = Sha256::new();
    add(&mut hasher, 3, key);
    truncate(hasher)
}

/// The one group of a queue that is ordered as a whole.
pub(crate) const WHOLE_QUEUE: u128 = 0;

fn present(value: &[u8]) -> Option<&[u8]> {
    (!value.is_empty()).then_some(value)
}

fn add(hasher: &mut Sha256, kind: u8, value: &[u8]) {
    hasher.update([kind]);
    hasher.update((value.len() as u64).to_be_bytes());
    hasher.update(value);
}

/// Headers count as a set of pairs: the order in which they were given does not matter.
fn add_headers(hasher: &mut Sha256, content: Content<'_>) {
    let mut pairs: Vec<_> = content.headers().collect();
    pairs.sort_unstable();
    hasher.update([5]);
    hasher.update((pairs.len() as u64).to_be_bytes());
    for (name, value) in pairs {
        add(hasher, 0, &name);
        add(hasher, 0, &value);
    }
}

fn truncate(hasher: Sha256) -> u128 {
    let digest = hasher.finalize();
    digest
        .first_chunk::<16>()
        .map_or(0, |bytes| u128::from_be_bytes(*bytes))
}
