//! Regular expressions of permissions, applied as RabbitMQ does: anywhere in the name, on bytes,
//! and an empty one is `^$`.

use regex::bytes::{Regex, RegexBuilder};

/// Memory of one compiled expression, and of the automaton made while it is used.
const COMPILED_BYTES_MAX: usize = 256 << 10;
const AUTOMATON_BYTES_MAX: usize = 256 << 10;

/// A compiled expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(What);

#[derive(Clone, Debug)]
enum What {
    Everything,
    Nothing,
    Regex(Regex),
}

impl Pattern {
    /// Compiles one.
    ///
    /// # Errors
    /// Where it is wrong, or that it would be too large.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if text == ".*" {
            return Ok(Self(What::Everything));
        }
        let text = if text.is_empty() { "^$" } else { text };
        let compiled = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(AUTOMATON_BYTES_MAX)
            .build();
        match compiled {
            Ok(regex) => Ok(Self(What::Regex(regex))),
            Err(error) => Err(format!(
                "cannot use the regular expression {text:?}: {}",
                last_line(&error.to_string())
            )),
        }
    }

    /// Compiles one that was checked when it was set; one that is wrong all the same allows
    /// nothing.
    pub(super) fn checked(text: &str) -> Self {
        Self::compile(text).unwrap_or_else(|problem| {
            tracing::error!(problem, "a permission that cannot be used allows nothing");
            Self(What::Nothing)
        })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match &self.0 {
            What::Everything => true,
            What::Nothing => false,
            What::Regex(regex) => regex.is_match(name.as_bytes()),
        }
    }
}

/// The library's errors draw the expression over several lines; the last says what is wrong.
fn last_line(text: &str) -> String {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.to_owned()
}

/// The text as an expression that matches it alone.
pub(super) fn escape(text: &str) -> String {
    regex::escape(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_rabbitmq() {
        for (pattern, matching, others) in [
            (".*", &["", "a", "amq.gen-x"][..], &[][..]),
            ("", &[""], &["a"]),
            ("^$", &[""], &["a"]),
            ("orders", &["orders", "my.orders.eu"], &["order"]),
            ("^orders", &["orders.eu"], &["my.orders"]),
            (
                r"^amq\.gen.*|^jobs$",
                &["amq.gen-1", "jobs"],
                &["jobs2", "amq-gen"],
            ),
            ("größe", &["größe"], &["grosse"]),
            ("^.{2}$", &["ab", "ü"], &["a", "abc"]),
        ] {
            let compiled = Pattern::compile(pattern).unwrap();
            for name in matching {
                assert!(compiled.matches(name), "{pattern} {name}");
            }
            for name in others {
                assert!(!compiled.matches(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_says_why() {
        for (pattern, why) in [
            ("(", "unclosed group"),
            ("(?!amq).*", "look-around"),
            (r"(a)\1", "backreferences"),
            ("a{1000}{1000}", "size limit"),
        ] {
            let error = Pattern::compile(pattern).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(!Pattern::checked("(").matches("("));
    }
}
