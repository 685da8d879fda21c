//! What happened, as a digest, and as text on demand.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use tanda_engine::Millis;

/// Digest of every event of a run, so that two runs can be compared; keeps lines for people when
/// it was asked to.
pub(crate) struct Trace {
    hasher: Sha256,
    lines: Option<Vec<String>>,
    events: u64,
}

impl Trace {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Self {
            hasher: Sha256::new(),
            lines: keeps_lines.then(Vec::new),
            events: 0,
        }
    }

    /// One event: what it was, whom it concerns, its bytes.
    pub(crate) fn event(&mut self, now: Millis, name: &str, whom: u64, bytes: &[u8]) {
        self.events += 1;
        self.hasher.update(name.as_bytes());
        self.hasher.update(now.0.to_be_bytes());
        self.hasher.update(whom.to_be_bytes());
        self.hasher.update((bytes.len() as u64).to_be_bytes());
        self.hasher.update(bytes);
        if let Some(lines) = &mut self.lines {
            lines.push(line(now, name, whom, bytes));
        }
    }

    /// A line for people only.
    pub(crate) fn note(&mut self, now: Millis, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{} {}", now.0, text()));
        }
    }

    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    /// Hexadecimal, 64 characters.
    pub(crate) fn digest(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.hasher.clone().finalize() {
            // Writing to a String cannot fail.
            if write!(text, "{byte:02x}").is_err() {
                break;
            }
        }
        text
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// Eight bytes are a count; more are what was carried.
fn line(now: Millis, name: &str, whom: u64, bytes: &[u8]) -> String {
    match bytes.try_into().map(u64::from_be_bytes) {
        Ok(count) => format!("{} {name} {whom}: {count}", now.0),
        Err(_not_a_count) if bytes.is_empty() => format!("{} {name} {whom}", now.0),
        Err(_not_a_count) => format!("{} {name} {whom} ({} bytes)", now.0, bytes.len()),
    }
}
