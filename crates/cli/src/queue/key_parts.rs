//! Property keys as they are typed: `header:account,fairness-key`.

use tanda_client::{KeyPart, PropertyKey};

/// Where a key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Ordering,
    Deduplication,
}

const PARTS: &str = "header:NAME, attribute:NAME and fairness-key";
const DEDUP_PARTS: &str = "header:NAME, attribute:NAME, fairness-key, idempotency-key, payload and \
                           headers (all of them)";

/// Reads parts separated by commas.
///
/// # Errors
/// Names the part that is wrong, and those there are.
pub(super) fn parse(text: &str, purpose: Purpose) -> Result<PropertyKey, String> {
    let parts: Result<Vec<KeyPart>, String> = text
        .split(',')
        .map(|part| parse_part(part, purpose))
        .collect();
    Ok(PropertyKey::of(parts?))
}

pub(super) fn parse_ordering(text: &str) -> Result<PropertyKey, String> {
    parse(text, Purpose::Ordering)
}

pub(super) fn parse_dedup(text: &str) -> Result<PropertyKey, String> {
    parse(text, Purpose::Deduplication)
}

fn parse_part(text: &str, purpose: Purpose) -> Result<KeyPart, String> {
    let (kind, name) = match text.split_once(':') {
        Some((kind, name)) => (kind, Some(name)),
        None => (text, None),
    };
    let part = match (kind, name.filter(|name| !name.is_empty())) {
        ("header", Some(name)) => Some(KeyPart::Header(name.to_owned())),
        ("attribute", Some(name)) => Some(KeyPart::Attribute(name.to_owned())),
        _ if name.is_some() => None,
        ("fairness-key", _) => Some(KeyPart::FairnessKey),
        ("idempotency-key", _) if purpose == Purpose::Deduplication => {
            Some(KeyPart::IdempotencyKey)
        }
        ("payload", _) if purpose == Purpose::Deduplication => Some(KeyPart::PayloadHash),
        ("headers", _) if purpose == Purpose::Deduplication => Some(KeyPart::HeadersHash),
        _ => None,
    };
    part.ok_or_else(|| {
        let allowed = match purpose {
            Purpose::Ordering => PARTS,
            Purpose::Deduplication => DEDUP_PARTS,
        };
        format!("{text:?} is no part of such a key; parts are {allowed}, separated by commas")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_part_is_read() {
        let key =
            parse_dedup("header:a:b,attribute:x,fairness-key,idempotency-key,payload,headers");
        assert_eq!(
            key.unwrap().parts,
            [
                KeyPart::Header("a:b".into()),
                KeyPart::Attribute("x".into()),
                KeyPart::FairnessKey,
                KeyPart::IdempotencyKey,
                KeyPart::PayloadHash,
                KeyPart::HeadersHash,
            ]
        );
    }

    #[test]
    fn wrong_parts_are_named() {
        for (text, part) in [
            ("", ""),
            ("header", "header"),
            ("header:", "header:"),
            ("fairness-key:x", "fairness-key:x"),
            ("fairness-key, header:a", " header:a"),
            ("fairness-key,payload", "payload"),
        ] {
            let error = parse_ordering(text).unwrap_err();
            assert!(error.starts_with(&format!("{part:?} ")), "{error}");
        }
        assert!(parse_dedup("payload:x").is_err());
    }
}
