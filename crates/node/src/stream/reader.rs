//! Reading a stream, with nothing taken on trust.

use core::fmt;
use std::io::{self, Read};

use super::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, END, HEADER_BYTES, MAGIC, StreamHeader, StreamKind, VERSION,
};

/// Why a stream cannot be read further.
#[derive(Debug)]
pub enum StreamError {
    /// It does not begin like one.
    NotAStream,
    /// A newer build wrote it.
    Version(u16),
    /// It ends in the middle: at this byte there should be more.
    CutOff {
        /// Where.
        at: u64,
    },
    /// Bytes are not what was written.
    Damaged {
        /// Offset of the chunk.
        at: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There are bytes after its end.
    Trailing {
        /// Where they begin.
        at: u64,
    },
    /// It could not be read.
    Io(io::Error),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAStream => f.write_str("it is no backup of Tanda"),
            Self::Version(version) => write!(
                f,
                "it has format version {version}; this build reads version {VERSION}"
            ),
            Self::CutOff { at } => write!(
                f,
                "it is cut off at byte {at}: it was not finished, or not copied whole"
            ),
            Self::Damaged { at, problem } => write!(f, "it is damaged at byte {at}: {problem}"),
            Self::Trailing { at } => write!(f, "something follows its end at byte {at}"),
            Self::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::NotAStream
            | Self::Version(_)
            | Self::CutOff { .. }
            | Self::Damaged { .. }
            | Self::Trailing { .. } => None,
        }
    }
}

/// Gives the records of a stream, one after the other.
#[derive(Debug)]
pub struct StreamReader<R> {
    source: R,
    header: StreamHeader,
    /// Offset of the next byte of the source.
    at: u64,
    checksum: u32,
    /// The chunk that was read, and where its next record begins.
    chunk: Vec<u8>,
    next: usize,
    records: u64,
    ended: bool,
}

impl<R: Read> StreamReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn open(mut source: R) -> Result<Self, StreamError> {
        let mut header = [0; HEADER_BYTES];
        let filled = read_up_to(&mut source, &mut header)?;
        let read = header.get(..filled).unwrap_or_default();
        if !read.starts_with(MAGIC.get(..filled.min(MAGIC.len())).unwrap_or_default())
            || filled == 0
        {
            return Err(StreamError::NotAStream);
        }
        if filled < HEADER_BYTES {
            return Err(StreamError::CutOff { at: filled as u64 });
        }
        Ok(Self {
            source,
            header: decode(&header)?,
            at: HEADER_BYTES as u64,
            checksum: StreamHeader::seed(&header),
            chunk: Vec::new(),
            next: 0,
            records: 0,
            ended: false,
        })
    }

    /// What it says of itself.
    #[must_use]
    pub const fn header(&self) -> StreamHeader {
        self.header
    }

    /// Records given so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The next record; `None` once the stream has ended as it should.
    ///
    /// # Errors
    /// See [`StreamError`]. Records given before are sound, but not all there are.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>, StreamError> {
        if self.next >= self.chunk.len() && !self.ended {
            self.read_chunk()?;
        }
        if self.ended {
            return Ok(None);
        }
        let chunk_at = self.at - self.chunk.len() as u64;
        let damaged = StreamError::Damaged {
            at: chunk_at,
            problem: "a record is longer than its chunk",
        };
        let rest = self.chunk.get(self.next..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk() else {
            return Err(damaged);
        };
        let len = u32::from_be_bytes(*len) as usize;
        let Some(record) = rest.get(..len) else {
            return Err(damaged);
        };
        self.next += size_of::<u32>() + len;
        self.records += 1;
        Ok(Some(record))
    }

    fn read_chunk(&mut self) -> Result<(), StreamError> {
        let chunk_at = self.at;
        let mut head = [0; CHUNK_HEAD_BYTES];
        self.fill(&mut head)?;
        let [a, b, c, d, e, f, g, h] = head;
        let (len, checksum) = (
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        );
        if len == END {
            return self.read_end(chunk_at, checksum);
        }
        let bytes = len as usize;
        if bytes == 0 || bytes > CHUNK_BYTES_MAX {
            return Err(StreamError::Damaged {
                at: chunk_at,
                problem: "its length cannot be",
            });
        }
        let mut chunk = core::mem::take(&mut self.chunk);
        chunk.clear();
        let read = self.read_into(&mut chunk, bytes);
        self.chunk = chunk;
        self.next = 0;
        read?;
        self.checksum = crc32c::crc32c_append(self.checksum, &len.to_be_bytes());
        self.checksum = crc32c::crc32c_append(self.checksum, &self.chunk);
        if self.checksum == checksum {
            return Ok(());
        }
        Err(StreamError::Damaged {
            at: chunk_at,
            problem: "its checksum is wrong",
        })
    }

    /// Reads so many bytes; memory grows with what comes, not with what a length promises.
    fn read_into(&mut self, into: &mut Vec<u8>, bytes: usize) -> Result<(), StreamError> {
        let read = (&mut self.source).take(bytes as u64).read_to_end(into);
        let read = read.map_err(StreamError::Io)?;
        self.at += read as u64;
        if read < bytes {
            return Err(StreamError::CutOff { at: self.at });
        }
        Ok(())
    }

    fn read_end(&mut self, chunk_at: u64, checksum: u32) -> Result<(), StreamError> {
        let mut count = [0; 8];
        self.fill(&mut count)?;
        let expected = crc32c::crc32c_append(self.checksum, &count);
        if checksum != expected || u64::from_be_bytes(count) != self.records {
            return Err(StreamError::Damaged {
                at: chunk_at,
                problem: "its end does not fit what came before",
            });
        }
        // A snapshot's file keeps what an earlier one left behind the end.
        if self.header.kind == StreamKind::Backup && read_up_to(&mut self.source, &mut [0])? > 0 {
            return Err(StreamError::Trailing { at: self.at });
        }
        self.ended = true;
        Ok(())
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), StreamError> {
        let filled = read_up_to(&mut self.source, into)?;
        self.at += filled as u64;
        if filled < into.len() {
            return Err(StreamError::CutOff { at: self.at });
        }
        Ok(())
    }
}

/// Takes the first bytes off.
fn cut<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], StreamError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(StreamError::Damaged {
        at: 0,
        problem: "its header is short",
    })?;
    *bytes = rest;
    Ok(*first)
}

fn decode(header: &[u8; HEADER_BYTES]) -> Result<StreamHeader, StreamError> {
    let damaged = |problem| StreamError::Damaged { at: 0, problem };
    let rest = &mut header.as_slice();
    let _magic: [u8; MAGIC.len()] = cut(rest)?;
    let [kind] = cut(rest)?;
    let version = u16::from_be_bytes(cut(rest)?);
    if version != VERSION {
        return Err(StreamError::Version(version));
    }
    let (body, checksum) = header.split_at(HEADER_BYTES - size_of::<u32>());
    if checksum != crc32c::crc32c(body).to_be_bytes() {
        return Err(damaged("the checksum of its header is wrong"));
    }
    let kind = match kind {
        1 => StreamKind::Snapshot,
        2 => StreamKind::Backup,
        _ => return Err(damaged("it is neither a snapshot nor a backup")),
    };
    let _zero: [u8; 2] = cut(rest)?;
    Ok(StreamHeader {
        kind,
        sequence: u64::from_be_bytes(cut(rest)?),
        taken_at_ms: u64::from_be_bytes(cut(rest)?),
        log_id: u128::from_be_bytes(cut(rest)?),
        at: tanda_engine::Lsn(u64::from_be_bytes(cut(rest)?)),
    })
}

fn read_up_to(source: &mut impl Read, into: &mut [u8]) -> Result<usize, StreamError> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(StreamError::Io(error)),
        }
    }
    Ok(filled)
}
