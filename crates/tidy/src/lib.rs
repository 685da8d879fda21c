//! The rules of this repository as tests.
//!
//! Owns every rule that neither the compiler nor clippy can state: which crate may depend on
//! which, how long a file may grow, what must not be left behind, and that documents point at
//! what exists. Each rule is a pure function from the files (or from cargo's metadata) to a list
//! of [`Finding`]s, so that each has a test with a bad sample; `tests/repo.rs` runs them all on
//! the repository itself. The crate stands outside the layers: nothing may depend on it.
//!
//! ```text
//! disk ──> tree::read ──> SourceFile ─┐
//! cargo metadata ──> Workspace ───────┼──> rule ──> Vec<Finding>
//! ratchet.txt ──> Ratchet ────────────┘
//! ```

pub mod conformance;
pub mod docs;
pub mod layers;
pub mod manifest;
pub mod modules;
pub mod ratchet;
pub mod sizes;
pub mod tree;
pub mod words;
pub mod workspace;

use std::fmt;

/// One breach of a rule, with the place and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path from the root of the repository, with `/` between the parts.
    pub path: String,
    /// Line counted from 1, or 0 when the finding is about the whole file.
    pub line: usize,
    /// The rule, the value found, and the way out.
    pub what: String,
}

impl Finding {
    /// A finding about one line, counted from 1.
    #[must_use]
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// A finding about a file or crate as a whole.
    #[must_use]
    pub fn whole(path: &str, what: impl Into<String>) -> Self {
        Self::at(path, 0, what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}
