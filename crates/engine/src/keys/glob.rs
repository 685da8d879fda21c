//! Patterns over names of queues and keys.
//!
//! `*` stands for any characters, dots included, also for none; `?` for exactly one character;
//! everything else for itself.

use core::str::Chars;

/// Whether `name` follows `pattern`.
///
/// Only the newest `*` is ever tried again, so the cost is at most the product of both lengths.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Behind the newest `*`, and where in the name it was last tried to end.
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let mut pattern_rest = pattern.clone();
        let wanted = pattern_rest.next();
        if wanted == Some('*') {
            if pattern_rest.as_str().is_empty() {
                return true;
            }
            star = Some((pattern_rest.clone(), name.clone()));
            pattern = pattern_rest;
            continue;
        }
        let mut name_rest = name.clone();
        match (wanted, name_rest.next()) {
            (None, None) => return true,
            // No `*` can make a name longer.
            (Some(_), None) => return false,
            (Some(wanted), Some(found)) if wanted == '?' || wanted == found => {
                (pattern, name) = (pattern_rest, name_rest);
            }
            (_, Some(_)) => {
                let Some((behind, tried)) = &mut star else {
                    return false;
                };
                tried.next();
                (pattern, name) = (behind.clone(), tried.clone());
            }
        }
    }
}

/// Whether every name follows `pattern`.
pub(super) fn is_everything(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_cross_dots_and_question_marks_are_one_character() {
        for (pattern, name) in [
            ("orders", "orders"),
            ("*", ""),
            ("*", "a.b.c"),
            ("**", "a"),
            ("orders.*", "orders.eu.fast"),
            ("*.dlq", "orders.dlq"),
            ("a*b*c", "a.b.b.c.c"),
            ("a?c", "abc"),
            ("a?c", "a\u{1F600}c"),
            ("?", "\u{e9}"),
            ("*a", "aaa"),
            ("[ab]", "[ab]"),
            ("{a,b}", "{a,b}"),
            ("a\\*", "a\\bc"),
        ] {
            assert!(matches(pattern, name), "{pattern:?} {name:?}");
        }
        for (pattern, name) in [
            ("orders", "orders2"),
            ("orders", "order"),
            ("", "a"),
            ("?", ""),
            ("?", "ab"),
            ("a?c", "ac"),
            ("orders.*", "orders"),
            ("*.dlq", "orders.dlq.x"),
            ("Orders", "orders"),
            ("[ab]", "a"),
            ("{a,b}", "a"),
            ("a\\*", "a*"),
            ("*b", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn many_stars_cost_no_more_than_the_product_of_the_lengths() {
        // By trying every star again this would take longer than anybody waits.
        let pattern = "a*".repeat(120) + "b";
        assert!(!matches(&pattern, &"a".repeat(255)));
    }

    #[test]
    fn everything() {
        assert!(is_everything("*") && is_everything("***"));
        assert!(!is_everything("") && !is_everything("*a") && !is_everything("?*"));
    }

    /// By definition: a `*` takes any number of characters.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=name.len()).any(|end| naive(rest, &name[end..])),
            (Some(('?', rest)), Some((_, name))) => naive(rest, name),
            (Some((wanted, rest)), Some((found, name))) => wanted == found && naive(rest, name),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_its_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = naive(&chars(&pattern), &chars(&name));
            prop_assert_eq!(matches(&pattern, &name), expected);
        }
    }
}
