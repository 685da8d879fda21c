//! Reading bytes of records, from memory or back from disk.

use bytes::Bytes;

use super::{Log, search};
use crate::cache::{Found, Run, find_in};
use crate::disk::{Disk, DiskCall, DiskError, read_up_to};
use crate::error::{Corruption, ReadError};
use crate::format::{BatchHeader, Seed};
use crate::lsn::{Lsn, in_memory};
use crate::segments::Segment;

impl<D: Disk> Log<D> {
    /// `len` bytes at `at`, all inside one record.
    ///
    /// From memory where possible, without copying (bytes of the batch that is still open are
    /// copied); otherwise the whole batch is read back, checked and kept for the next reads, with
    /// some small batches after it. Blocks on the disk in that case only.
    ///
    /// The result shares a buffer of up to a chunk (1 MiB by default) or one large record: hold
    /// it until it is sent, and copy it if it is to stay longer.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read(&mut self, at: Lsn, len: u32) -> Result<Bytes, ReadError> {
        let found = self.find(at, len)?;
        Ok(found.into_range(at.0, len))
    }

    /// Like [`Self::read`], but gives all of the buffer that holds the bytes, with the position of
    /// its first byte: who reads many neighbours finds them there without asking again. Only bytes
    /// of records mean something; batch headers and padding lie between them.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_chunk(&mut self, at: Lsn, len: u32) -> Result<(Lsn, Bytes), ReadError> {
        let found = self.find(at, len)?;
        Ok((Lsn(found.position), found.batch))
    }

    /// Like [`Self::read`], but `None` where it would have to go to the disk.
    pub fn read_cached(&mut self, at: Lsn, len: u32) -> Option<Bytes> {
        let found = self.find_cached(at, len)?;
        Some(found.into_range(at.0, len))
    }

    fn find(&mut self, at: Lsn, len: u32) -> Result<Found, ReadError> {
        if let Some(found) = self.find_cached(at, len) {
            return Ok(found);
        }
        let Some(segment) = self.segments.find(at.0) else {
            let is_gone = at.is_cold() || at.0 < self.marks.start_claimed;
            return Err(if is_gone || at < self.oldest() {
                let oldest = self.oldest();
                ReadError::Reclaimed { at, oldest }
            } else {
                ReadError::OutOfRange { at, len }
            });
        };
        let seed = Seed::new(self.config.log_id, segment.epoch);
        let ahead = self.config.read_ahead_bytes;
        let run = if segment.is_unread() {
            search::read_run(segment, seed, (at.0, len), ahead)?
        } else {
            read_run::<D>(segment, seed, at.0, ahead)?.ok_or(ReadError::OutOfRange { at, len })?
        };
        let found = run.find(at.0, len);
        self.read_cache.insert(run);
        found.ok_or(ReadError::OutOfRange { at, len })
    }

    fn find_cached(&mut self, at: Lsn, len: u32) -> Option<Found> {
        let (position, open) = self.tail.open();
        if at.is_cold() {
            return self.read_cache.find(at.0, len);
        }
        if at.0 >= position {
            let from = usize::try_from(at.0 - position).ok()?;
            let bytes = open.get(from..from.checked_add(len as usize)?)?;
            return Some(Found {
                position: at.0,
                batch: Bytes::copy_from_slice(bytes),
            });
        }
        find_in(self.tail.sealed(), at.0, len)
            .or_else(|| self.cache.find(at.0, len))
            .or_else(|| self.read_cache.find(at.0, len))
    }
}

/// Reads and checks the batch that holds `at` and some after it.
fn read_run<D: Disk>(
    segment: &Segment<D::File>,
    seed: Seed,
    at: u64,
    run_bytes: usize,
) -> Result<Option<Run>, ReadError> {
    let Some((position, end)) = segment.run_at(at, run_bytes) else {
        return Ok(None);
    };
    let slot = &segment.slot;
    let mut bytes = vec![0; in_memory(end - position)];
    let filled = read_up_to(&*slot.file, position - segment.base, &mut bytes)
        .map_err(|e| ReadError::Disk(DiskError::new(DiskCall::Read, &slot.name, e)))?;
    bytes.truncate(filled);
    let bytes = Bytes::from(bytes);
    let mut batches = Vec::new();
    let mut next = position;
    while next < end {
        let rest = bytes.slice(in_memory(next - position).min(bytes.len())..);
        let checked = BatchHeader::decode(&rest, seed, segment.epoch, next)
            .and_then(|header| header.body(seed, &rest).map(|_| header));
        match checked {
            Ok(header) => {
                let batch_bytes = in_memory(header.total_bytes()).min(rest.len());
                batches.push((next, rest.slice(..batch_bytes)));
                next = header.end();
            }
            // A bad batch matters to whoever asks for it, not to the one before.
            Err(_) if next > at => break,
            Err(bad) => {
                return Err(ReadError::Corrupt(Corruption {
                    file: slot.name.clone(),
                    offset: next - segment.base,
                    detail: bad.describe().to_owned(),
                }));
            }
        }
    }
    Ok(Some(Run {
        position,
        end: next,
        batches,
    }))
}
