//! Backups as a stream of bytes (docs/formats/backup.md): records with everything they need inside,
//! in checksummed chunks.
//!
//! Owns the framing. It refuses to know what a record means, and where bytes come from or go.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{ArchiveError, ArchiveReader};
pub use writer::ArchiveWriter;

/// Begins every archive.
const MAGIC: [u8; 8] = *b"TANDABAK";
/// The version this build writes and reads.
const VERSION: u16 = 1;
/// Magic, version, two zero bytes, time, identity of the log, log position, checksum.
const HEADER_BYTES: usize = 8 + 2 + 2 + 8 + 16 + 8 + 4;
/// Length and checksum before each chunk.
const CHUNK_HEAD_BYTES: usize = 8;
/// Records are gathered into chunks of about this size; a larger record has one for itself.
const CHUNK_BYTES: usize = 1 << 20;
/// A chunk longer than this is damage. The largest record of a log, its length, and some.
const CHUNK_BYTES_MAX: usize = tanda_wal::RECORD_BYTES_MAX + CHUNK_BYTES;
/// Stands for the length of the last chunk, which holds the number of records.
const END: u32 = u32::MAX;

/// What an archive says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveHeader {
    /// When it was taken, in Unix milliseconds.
    pub taken_at_ms: u64,
    /// Identity of the log it was taken from.
    pub log_id: u128,
    /// Position of that log whose state it holds.
    pub at: tanda_engine::Lsn,
}

impl ArchiveHeader {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&self.taken_at_ms.to_be_bytes());
        bytes.extend_from_slice(&self.log_id.to_be_bytes());
        bytes.extend_from_slice(&self.at.0.to_be_bytes());
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        let mut header = [0; HEADER_BYTES];
        for (to, from) in header.iter_mut().zip(bytes) {
            *to = from;
        }
        header
    }

    /// The checksum of the first chunk goes on from here, of each later one from the one before:
    /// chunks cannot be exchanged, left out or taken from another archive.
    fn seed(header: &[u8; HEADER_BYTES]) -> u32 {
        crc32c::crc32c(header)
    }
}
