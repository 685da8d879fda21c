//! Where a message goes, by the plainest reading of the rules.

use super::HeaderAsk;

/// Whether a binding of an exchange of this kind takes this routing key.
pub(crate) fn takes(kind: &str, pattern: &str, key: &str) -> bool {
    match kind {
        "direct" => pattern == key,
        "fanout" => true,
        _ => matches(&words(pattern), &words(key)),
    }
}

/// Whether a binding of a headers exchange takes these headers.
pub(crate) fn takes_headers(asks: HeaderAsk, headers: &[(&'static str, &'static str)]) -> bool {
    let counts_x = asks.mode.ends_with("-with-x");
    let pairs = asks.pairs.iter();
    let mut pairs = pairs.filter(|(name, _)| counts_x || !name.starts_with("x-"));
    let has = |(name, value): &(&str, Option<&str>)| {
        let mut named = headers.iter().filter(|(other, _)| other == name);
        named.any(|(_, there)| value.is_none_or(|value| value == *there))
    };
    if asks.mode.starts_with("any") {
        pairs.any(has)
    } else {
        pairs.all(has)
    }
}

/// An empty key has no words.
fn words(text: &str) -> Vec<&str> {
    if text.is_empty() {
        Vec::new()
    } else {
        text.split('.').collect()
    }
}

/// `*` is a word, `#` any number of words.
fn matches(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern.split_first(), words.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), tail) => {
            matches(rest, words) || tail.is_some_and(|(_, tail)| matches(pattern, tail))
        }
        (Some((first, rest)), Some((word, tail))) => {
            (*first == "*" || first == word) && matches(rest, tail)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}
