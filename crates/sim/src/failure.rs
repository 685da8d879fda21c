//! How a run ends when a promise was broken.

use core::fmt;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static str,
    pub(crate) what: String,
}

/// The outcome of a check.
pub(crate) type Check = Result<(), Violation>;

/// `Ok` when `holds`; else the violation that `what` describes.
pub(crate) fn ensure(holds: bool, invariant: &'static str, what: impl FnOnce() -> String) -> Check {
    if holds {
        return Ok(());
    }
    Err(Violation {
        invariant,
        what: what(),
    })
}

/// A run that found a bug. Its text begins with the seed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Draws the same run again.
    pub seed: u64,
    /// Steps done before.
    pub step: u64,
    /// The invariant, or `panic`.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// Every event, when the run kept them.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            step,
            invariant,
            what,
            log: _,
        } = self;
        write!(f, "seed {seed}, step {step}: {invariant}: {what}")
    }
}

impl std::error::Error for Failure {}
