//! Records in a file or on their way over a connection (docs/formats/record-stream.md): snapshots
//! and backups.
//!
//! Owns the framing: chunks, each with a checksum that goes on from the one before, and an end. It
//! refuses to know what a record means, and where bytes come from or go.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{StreamError, StreamReader};
pub use writer::StreamWriter;

/// Begins every stream.
const MAGIC: [u8; 7] = *b"TANDARS";
/// The version this build writes and reads.
const VERSION: u16 = 1;
/// Magic, kind, version, two zero bytes, sequence, time, identity of the log, log position,
/// checksum.
const HEADER_BYTES: usize = 7 + 1 + 2 + 2 + 8 + 8 + 16 + 8 + 4;
/// Length and checksum before each chunk.
const CHUNK_HEAD_BYTES: usize = 8;
/// Records are gathered into chunks of about this size; a larger record has one for itself. Each is
/// put together in one go, on the shard's thread.
const CHUNK_BYTES: usize = 64 << 10;
/// A chunk longer than this is damage. The largest record of a log, its length, and some: there
/// were writers that gathered 1 MiB.
const CHUNK_BYTES_MAX: usize = tanda_wal::RECORD_BYTES_MAX + (1 << 20);
/// Stands for the length of the last chunk, which holds the number of records.
const END: u32 = u32::MAX;

/// What a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamKind {
    /// The state of a shard, which needs the contents in its log and the pages beside it.
    Snapshot = 1,
    /// The state of a shard with everything inside.
    Backup = 2,
}

/// What a stream says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// What it is.
    pub kind: StreamKind,
    /// Number of the snapshot; a backup has that of the snapshot it was made from.
    pub sequence: u64,
    /// When it was begun, in Unix milliseconds.
    pub taken_at_ms: u64,
    /// Identity of the log whose state it holds.
    pub log_id: u128,
    /// Position of that log as of which it holds the state.
    pub at: tanda_engine::Lsn,
}

impl StreamHeader {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
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
    /// chunks cannot be exchanged, left out or taken from another stream.
    fn seed(header: &[u8; HEADER_BYTES]) -> u32 {
        crc32c::crc32c(header)
    }
}
