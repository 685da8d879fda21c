//! Known exceptions that may only shrink.
//!
//! Owns the reading of `ratchet.txt` and the judgement of a measured value against it. Knows
//! nothing of what is measured.

use crate::Finding;
use std::fmt;

/// Where the exceptions stand, from the root of the repository.
pub const RATCHET_PATH: &str = "crates/tidy/ratchet.txt";

/// An entry must be lowered once the file is this many lines below it; less would make every
/// small edit touch the list.
const SLACK_LINES: usize = 20;

/// What an entry counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lines of code of a file.
    Code,
    /// Lines of the test modules inside a source file.
    InlineTests,
    /// Lines over the width limit.
    Wide,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Code, Self::InlineTests, Self::Wide];

    /// The word of this kind in the list.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::InlineTests => "inline-tests",
            Self::Wide => "wide",
        }
    }

    const fn way_out(self) -> &'static str {
        match self {
            Self::Code => "split it by concept",
            Self::InlineTests => "move them to `tests.rs` in the folder of the module",
            Self::Wide => "break the lines",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Up to where a file needs no entry, and from where no entry helps.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest value without an entry.
    pub free_max: usize,
    /// Largest value with an entry.
    pub hard_max: usize,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    path: String,
    value: usize,
    line: usize,
}

/// The list of exceptions.
#[derive(Debug, Default)]
pub struct Ratchet {
    entries: Vec<Entry>,
}

impl Ratchet {
    /// Reads lines of `kind path value`; `#` starts a comment.
    ///
    /// # Errors
    /// The lines that do not have this form, or name a pair twice.
    pub fn parse(text: &str) -> Result<Self, Vec<Finding>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut findings = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line, line_number) {
                Some(entry)
                    if !entries
                        .iter()
                        .any(|known| same(known, entry.kind, &entry.path)) =>
                {
                    entries.push(entry);
                }
                _ => {
                    let what = "not `kind path value`, or a second line for one file";
                    findings.push(Finding::at(RATCHET_PATH, line_number, what));
                }
            }
        }
        if findings.is_empty() {
            Ok(Self { entries })
        } else {
            Err(findings)
        }
    }

    /// Judges one measured file.
    #[must_use]
    pub fn judge(
        &self,
        kind: Kind,
        path: &str,
        measured: usize,
        limits: Limits,
    ) -> Option<Finding> {
        let Limits { free_max, hard_max } = limits;
        let way_out = kind.way_out();
        if measured > hard_max {
            let what = format!("{measured} lines ({kind}), over the limit {hard_max}; {way_out}");
            return Some(Finding::whole(path, what));
        }
        let entry = self.entries.iter().find(|entry| same(entry, kind, path));
        let allowed = entry.map_or(free_max, |entry| entry.value);
        if measured > allowed {
            let what = format!(
                "{measured} lines ({kind}), more than {allowed}; {way_out}, or, when that would be \
                 worse, put `{kind} {path} {measured}` into {RATCHET_PATH} with the reason"
            );
            return Some(Finding::whole(path, what));
        }
        let entry = entry?;
        let what = if measured <= free_max {
            "no longer needed; remove the line".to_owned()
        } else if measured + SLACK_LINES <= allowed {
            format!("{path} has shrunk to {measured}; lower the value")
        } else {
            return None;
        };
        Some(Finding::at(RATCHET_PATH, entry.line, what))
    }

    /// Entries for files that were not among the measured `paths`.
    #[must_use]
    pub fn stale(&self, paths: &[&str]) -> Vec<Finding> {
        let gone = self
            .entries
            .iter()
            .filter(|entry| !paths.contains(&entry.path.as_str()));
        gone.map(|entry| {
            let what = format!("{} is not there any more; remove the line", entry.path);
            Finding::at(RATCHET_PATH, entry.line, what)
        })
        .collect()
    }
}

fn same(entry: &Entry, kind: Kind, path: &str) -> bool {
    entry.kind == kind && entry.path == path
}

fn parse_line(text: &str, line: usize) -> Option<Entry> {
    let mut words = text.split_whitespace();
    let (word, path, value) = (words.next()?, words.next()?, words.next()?);
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == word)?;
    let value = value.parse().ok()?;
    let entry = Entry {
        kind,
        path: path.to_owned(),
        value,
        line,
    };
    words.next().is_none().then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        free_max: 400,
        hard_max: 800,
    };

    fn judge(list: &str, measured: usize) -> Option<Finding> {
        Ratchet::parse(list)
            .unwrap()
            .judge(Kind::Code, "a.rs", measured, LIMITS)
    }

    #[test]
    fn without_an_entry_the_free_limit_counts() {
        assert_eq!(judge("", 400), None);
        assert!(judge("", 401).unwrap().what.contains("code a.rs 401"));
        assert!(
            judge("code b.rs 500", 401).is_some(),
            "the entry of another file does not help"
        );
        assert!(
            judge("wide a.rs 500", 401).is_some(),
            "an entry of another kind does not help"
        );
    }

    #[test]
    fn an_entry_never_lets_a_file_grow_and_must_follow_it_down() {
        assert_eq!(judge("code a.rs 500", 500), None);
        assert_eq!(judge("code a.rs 500", 481), None);
        assert!(
            judge("code a.rs 500", 501)
                .unwrap()
                .what
                .contains("more than 500")
        );
        assert!(
            judge("code a.rs 500", 480)
                .unwrap()
                .what
                .contains("lower the value")
        );
        assert!(
            judge("code a.rs 500", 400)
                .unwrap()
                .what
                .contains("remove the line")
        );
    }

    #[test]
    fn no_entry_lifts_the_hard_limit() {
        assert!(
            judge("code a.rs 900", 801)
                .unwrap()
                .what
                .contains("limit 800")
        );
    }

    #[test]
    fn bad_and_stale_lines_are_found() {
        for bad in ["code a.rs", "code a.rs x", "size a.rs 1", "code a.rs 1 2"] {
            assert_eq!(Ratchet::parse(bad).unwrap_err().len(), 1, "{bad}");
        }
        assert_eq!(
            Ratchet::parse("code a.rs 1\n# why\ncode a.rs 2").unwrap_err()[0].line,
            3
        );
        let ratchet = Ratchet::parse("code a.rs 500\n").unwrap();
        assert_eq!(ratchet.stale(&["a.rs"]), []);
        assert_eq!(ratchet.stale(&["b.rs"]).len(), 1);
    }
}
