//! What a script may use.

use std::time::Duration;

/// Limits of every script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time of one call of a hook, or of loading the script.
    pub time: Duration,
    /// Memory of one state beside the 0.6 MiB that an empty one takes: the script and its data, the
    /// message, and what waits to be collected.
    pub memory_bytes: usize,
    /// Memory of all states of a host together, before those that were used least recently are
    /// dropped; they are loaded again when they are needed.
    pub states_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_millis(10),
            memory_bytes: 1 << 20,
            states_bytes_max: 64 << 20,
        }
    }
}

/// Longest source of a script, in bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Longest fairness key a hook may return; the wire carries no longer one.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;
/// Most attributes a hook may return for one message.
pub const ATTRIBUTES_MAX: usize = 64;
/// Most bytes of their names and values together.
pub const ATTRIBUTE_BYTES_MAX: usize = 16 << 10;
/// Longest delay that `on_failure` may ask for: about 317 years, as for a queue's own delays.
pub const DELAY_MS_MAX: u64 = 10_000_000_000_000;

const _: () = assert!(
    ATTRIBUTE_BYTES_MAX <= u16::MAX as usize,
    "lengths of attributes are written in 16 bits"
);
