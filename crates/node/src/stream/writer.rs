//! Writing a stream.

use super::{CHUNK_BYTES, CHUNK_HEAD_BYTES, END, StreamHeader};

/// Puts a stream together, chunk by chunk.
#[derive(Debug)]
pub struct StreamWriter {
    /// The chunk under construction, room for its head included.
    chunk: Vec<u8>,
    /// Checksum of the chunk before.
    checksum: u32,
    records: u64,
}

impl StreamWriter {
    /// Begins a stream; its header goes to `out`.
    #[must_use]
    pub fn new(header: StreamHeader, out: &mut Vec<u8>) -> Self {
        let bytes = header.encode();
        out.extend_from_slice(&bytes);
        Self {
            chunk: vec![0; CHUNK_HEAD_BYTES],
            checksum: StreamHeader::seed(&bytes),
            records: 0,
        }
    }

    /// Adds a record. Chunks that are full go to `out`.
    pub fn push(&mut self, record: &[u8], out: &mut Vec<u8>) {
        if self.chunk.len() > CHUNK_HEAD_BYTES && self.chunk.len() + record.len() > CHUNK_BYTES {
            self.flush(out);
        }
        // The largest record of a log is far below 4 GiB.
        let len = u32::try_from(record.len()).unwrap_or(u32::MAX);
        self.chunk.extend_from_slice(&len.to_be_bytes());
        self.chunk.extend_from_slice(record);
        self.records += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush(out);
        }
    }

    /// Ends the stream. Without this end a reader takes it for cut off.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        if self.chunk.len() > CHUNK_HEAD_BYTES {
            self.flush(out);
        }
        let count = self.records.to_be_bytes();
        let checksum = crc32c::crc32c_append(self.checksum, &count);
        out.extend_from_slice(&END.to_be_bytes());
        out.extend_from_slice(&checksum.to_be_bytes());
        out.extend_from_slice(&count);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let payload = self.chunk.get(CHUNK_HEAD_BYTES..).unwrap_or_default();
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.checksum = crc32c::crc32c_append(self.checksum, &len.to_be_bytes());
        self.checksum = crc32c::crc32c_append(self.checksum, payload);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&self.checksum.to_be_bytes());
        out.extend_from_slice(payload);
        self.chunk.truncate(CHUNK_HEAD_BYTES);
    }
}
