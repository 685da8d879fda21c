//! A batch: header, records, zeros up to the next block.

use bytes::{Buf, BufMut};

use super::{BLOCK_BYTES, FORMAT_VERSION};
use crate::lsn::in_memory;

/// Bytes of a batch header; the first record follows at once.
pub(crate) const BATCH_HEADER_BYTES: usize = 64;

/// Bytes of the length in front of each record.
pub(crate) const LENGTH_BYTES: usize = 4;

const MAGIC: u32 = u32::from_le_bytes(*b"TBAT");

/// Rounds up to whole blocks.
pub(crate) const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(in_memory(BLOCK_BYTES))
}

/// What a batch says about the rest of the log at the time it was sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Claims {
    /// Everything below this position had been synced.
    pub(crate) synced: u64,
    /// Nothing below this position (the base of a segment) is needed any more.
    pub(crate) start: u64,
}

/// First value of the checksums of one epoch of one log.
///
/// A batch of another log or epoch therefore fails its checksum even if its fields match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seed(u32);

impl Seed {
    pub(crate) fn new(log_id: u128, epoch: u64) -> Self {
        let crc = crc32c::crc32c(&log_id.to_le_bytes());
        Self(crc32c::crc32c_append(crc, &epoch.to_le_bytes()))
    }

    fn checksum(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }
}

/// The header of a batch. Layout in `docs/formats/log.md`, "Batch".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BatchHeader {
    pub(crate) epoch: u64,
    /// Position of the header itself; a multiple of the block size.
    pub(crate) position: u64,
    /// Bytes of all records with their lengths.
    pub(crate) body_bytes: u32,
    pub(crate) records: u32,
    pub(crate) claims: Claims,
    body_checksum: u32,
}

/// Why bytes are not the batch that should be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadBatch {
    /// The bytes end before the header or the body does.
    Short,
    /// Not a batch header at all.
    Magic,
    /// A checksummed header of a version this build does not know.
    Version(u16),
    /// The header's checksum does not match.
    HeaderChecksum,
    /// A batch of another place or epoch.
    Stale,
    /// The body's checksum does not match.
    BodyChecksum,
    /// Checksums match but the record lengths do not add up.
    Records,
}

impl BadBatch {
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Short => "a batch reaches beyond the end of its file",
            Self::Magic => "no batch header",
            Self::Version(_) => "a batch of an unknown version",
            Self::HeaderChecksum => "a batch header with a wrong checksum",
            Self::Stale => "a batch of another place or epoch",
            Self::BodyChecksum => "a batch body with a wrong checksum",
            Self::Records => "record lengths that do not add up",
        }
    }
}

impl BatchHeader {
    /// The header for `body`; `body.len()` is below 4 GiB.
    pub(crate) fn seal(seed: Seed, place: (u64, u64), claims: Claims, body: Body<'_>) -> Self {
        let (epoch, position) = place;
        Self {
            epoch,
            position,
            body_bytes: u32::try_from(body.bytes.len()).unwrap_or(u32::MAX),
            records: body.records,
            claims,
            body_checksum: seed.checksum(body.bytes),
        }
    }

    pub(crate) fn encode(&self, seed: Seed) -> [u8; BATCH_HEADER_BYTES] {
        let mut out = [0; BATCH_HEADER_BYTES];
        let mut rest: &mut [u8] = &mut out;
        rest.put_u32_le(MAGIC);
        rest.put_u16_le(FORMAT_VERSION);
        rest.put_u16_le(0);
        rest.put_u64_le(self.epoch);
        rest.put_u64_le(self.position);
        rest.put_u32_le(self.body_bytes);
        rest.put_u32_le(self.records);
        rest.put_u64_le(self.claims.synced);
        rest.put_u64_le(self.claims.start);
        rest.put_u64_le(0);
        rest.put_u32_le(self.body_checksum);
        let (covered, checksum) = out.split_at_mut(BATCH_HEADER_BYTES - 4);
        checksum.copy_from_slice(&seed.checksum(covered).to_le_bytes());
        out
    }

    /// Reads the header that should stand at `position` in `epoch`; does not look at the body.
    pub(crate) fn decode(
        bytes: &[u8],
        seed: Seed,
        epoch: u64,
        position: u64,
    ) -> Result<Self, BadBatch> {
        let bytes: &[u8; BATCH_HEADER_BYTES] = bytes.first_chunk().ok_or(BadBatch::Short)?;
        let mut rest: &[u8] = bytes;
        if rest.get_u32_le() != MAGIC {
            return Err(BadBatch::Magic);
        }
        let (covered, checksum) = bytes.split_at(BATCH_HEADER_BYTES - 4);
        if checksum != seed.checksum(covered).to_le_bytes() {
            return Err(BadBatch::HeaderChecksum);
        }
        let version = rest.get_u16_le();
        if version != FORMAT_VERSION {
            return Err(BadBatch::Version(version));
        }
        let _flags = rest.get_u16_le();
        let (found_epoch, found_position) = (rest.get_u64_le(), rest.get_u64_le());
        if (found_epoch, found_position) != (epoch, position) {
            return Err(BadBatch::Stale);
        }
        let body_bytes = rest.get_u32_le();
        let records = rest.get_u32_le();
        let claims = Claims {
            synced: rest.get_u64_le(),
            start: rest.get_u64_le(),
        };
        let _reserved = rest.get_u64_le();
        Ok(Self {
            epoch,
            position,
            body_bytes,
            records,
            claims,
            body_checksum: rest.get_u32_le(),
        })
    }

    /// Header, records and padding.
    pub(crate) const fn total_bytes(&self) -> u64 {
        padded(BATCH_HEADER_BYTES + self.body_bytes as usize) as u64
    }

    /// Position after the padding: where the next batch of the segment starts.
    pub(crate) const fn end(&self) -> u64 {
        self.position + self.total_bytes()
    }

    /// Checks the body that follows the header in `batch` and returns it.
    pub(crate) fn body<'a>(&self, seed: Seed, batch: &'a [u8]) -> Result<Records<'a>, BadBatch> {
        let body_end = BATCH_HEADER_BYTES + self.body_bytes as usize;
        let body = batch
            .get(BATCH_HEADER_BYTES..body_end)
            .ok_or(BadBatch::Short)?;
        if seed.checksum(body) != self.body_checksum {
            return Err(BadBatch::BodyChecksum);
        }
        let records = Records {
            position: self.position + BATCH_HEADER_BYTES as u64,
            rest: body,
        };
        let mut walk = records.clone();
        let count = walk.by_ref().count();
        if walk.rest.is_empty() && count == self.records as usize {
            Ok(records)
        } else {
            Err(BadBatch::Records)
        }
    }
}

/// The records of a batch to be sealed.
#[derive(Clone, Copy)]
pub(crate) struct Body<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) records: u32,
}

/// The records of a batch: position of the payload, payload. Stops at the first bad length.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a> {
    position: u64,
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The whole body, lengths included.
    pub(crate) const fn as_bytes(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<LENGTH_BYTES>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (record, rest) = rest.split_at_checked(length)?;
        let position = self.position + LENGTH_BYTES as u64;
        self.rest = rest;
        self.position = position + length as u64;
        Some((position, record))
    }
}
