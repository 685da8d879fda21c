//! Where the engine's decisions are written, and its pages.

use crate::{Lsn, PageSlot};

/// An append-only log of records, and a file of pages. Appending never blocks and never fails
/// towards the engine: a log that can no longer write answers positions that never become durable.
pub trait Journal {
    /// Appends one record and returns the position of its first byte.
    fn append(&mut self, record: &[u8]) -> Lsn;

    /// The position after the newest record: what is durable up to here includes it.
    fn end(&self) -> Lsn;

    /// Reads `len` bytes of a record at `at` into `into`, which is added to: a content that lies in
    /// the log, or its beginning.
    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead;

    /// Keeps one page ([`crate::page_bytes`] at most) and says where; the page is readable at once.
    /// `None` when there is no room or writing failed: its messages then stay in memory.
    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot>;

    /// Reads a page into `into`, replacing what is there. False when it cannot be read now.
    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool;

    /// Deliveries may leave before the records of them are on disk: `record` says of which
    /// messages, for [`Engine::replay_noted`](crate::Engine::replay_noted). Whoever lets them leave
    /// keeps it first where the end of the process does not lose it. A journal that does not
    /// outlive the process has nothing to do.
    fn note_deliveries(&mut self, _record: &[u8]) {}

    /// The engine needs a page no more. A snapshot may still.
    fn free_page(&mut self, slot: PageSlot);
}

/// How reading a content went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRead {
    /// Read without going to the disk.
    Cached,
    /// Read from the disk.
    FromDisk,
    /// It cannot be read now; later perhaps.
    Unavailable,
    /// What the disk holds is not what was written.
    Damaged,
}

impl ContentRead {
    /// It was read.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Cached | Self::FromDisk)
    }
}
