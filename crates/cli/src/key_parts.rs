//! Property keys as they are typed: `header:account,fairness-key`.

use serde_json::{Value, json};
use tanda_client::{KeyPart, PropertyKey};

use crate::output::printable;

/// Where a key is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Ordering,
    Deduplication,
    Throttle,
}

const PARTS: &str = "header:NAME, attribute:NAME and fairness-key";
const DEDUP_PARTS: &str = "header:NAME, attribute:NAME, fairness-key, idempotency-key, payload and \
                           headers (all of them)";

/// Reads parts separated by commas.
///
/// # Errors
/// Names the part that is wrong, and those there are.
pub(crate) fn parse(text: &str, purpose: Purpose) -> Result<PropertyKey, String> {
    let parts: Result<Vec<KeyPart>, String> = text
        .split(',')
        .map(|part| parse_part(part, purpose))
        .collect();
    Ok(PropertyKey::of(parts?))
}

pub(crate) fn parse_ordering(text: &str) -> Result<PropertyKey, String> {
    parse(text, Purpose::Ordering)
}

pub(crate) fn parse_throttle(text: &str) -> Result<PropertyKey, String> {
    parse(text, Purpose::Throttle)
}

pub(crate) fn parse_dedup(text: &str) -> Result<PropertyKey, String> {
    parse(text, Purpose::Deduplication)
}

/// A key in the form in which it is typed.
pub(crate) fn shown(key: &PropertyKey) -> String {
    let part = |part: &KeyPart| {
        let (kind, name) = kind_and_name(part);
        let colon = if name.is_empty() { "" } else { ":" };
        let kind = match kind {
            "all_headers" => "headers".to_owned(),
            kind => kind.replace('_', "-"),
        };
        format!("{kind}{colon}{}", printable(name.as_bytes()))
    };
    let parts: Vec<String> = key.parts.iter().map(part).collect();
    parts.join(",")
}

/// A key as the HTTP door tells one.
pub(crate) fn json(key: &PropertyKey) -> Value {
    let part = |part: &KeyPart| {
        let (kind, name) = kind_and_name(part);
        json!({"kind": kind, "name": name})
    };
    key.parts.iter().map(part).collect()
}

fn kind_and_name(part: &KeyPart) -> (&'static str, &str) {
    match part {
        KeyPart::Header(name) => ("header", name),
        KeyPart::FairnessKey => ("fairness_key", ""),
        KeyPart::Attribute(name) => ("attribute", name),
        KeyPart::IdempotencyKey => ("idempotency_key", ""),
        KeyPart::PayloadHash => ("payload", ""),
        KeyPart::HeadersHash => ("all_headers", ""),
        KeyPart::Unknown { name, .. } => ("unknown", name),
        _ => ("unknown", ""),
    }
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
            Purpose::Ordering | Purpose::Throttle => PARTS,
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
    fn a_key_is_shown_as_it_is_typed() {
        for text in [
            "header:a:b,attribute:x,fairness-key",
            "idempotency-key,payload,headers",
        ] {
            assert_eq!(shown(&parse_dedup(text).unwrap()), text);
        }
        let kinds = json(&parse_dedup("headers,header:a").unwrap());
        assert_eq!(kinds[0]["kind"], "all_headers");
        assert_eq!(kinds[1]["name"], "a");
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
