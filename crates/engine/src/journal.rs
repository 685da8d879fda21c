//! Where the engine's decisions are written.

use crate::Lsn;

/// An append-only log of records. Appending never blocks and never fails towards the engine: a log
/// that can no longer write answers positions that never become durable.
pub trait Journal {
    /// Appends one record and returns the position of its first byte.
    fn append(&mut self, record: &[u8]) -> Lsn;

    /// The position after the newest record: what is durable up to here includes it.
    fn end(&self) -> Lsn;
}
