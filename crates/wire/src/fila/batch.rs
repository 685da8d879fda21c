//! Batches: a `u32` count, then that many items, read and written one item at a time.
//!
//! Owns: the count, checked against the bytes that came, and patched when writing.
//! Refuses to know: the layout of an item.

use core::marker::PhantomData;

use super::field::{EncodeError, Field};
use super::frame::write_at;
use crate::cursor::{DecodeError, DecodeErrorKind, Reader};

/// An offset within a body. `Batch::decode_header` refused bodies whose offsets do not fit.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "decode_header bounds the body's length"
)]
pub(super) const fn offset_u32(offset: usize) -> u32 {
    offset as u32
}

/// Reads the items of one batch in order, checking each as it comes, without allocating.
///
/// After an error it yields nothing more.
#[derive(Debug, Clone)]
pub struct Batch<'a, T> {
    reader: Reader<'a>,
    count: u32,
    left: u32,
    item: PhantomData<fn() -> T>,
}

impl<'a, T: Field<'a>> Batch<'a, T> {
    /// Reads the count of a body and makes sure that so many items can be in it.
    ///
    /// # Errors
    /// When the count promises more than the bytes left can hold, or the body is 4 GiB or more.
    #[inline]
    pub fn decode_header(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body);
        if u32::try_from(body.len()).is_err() {
            return Err(reader.error(DecodeErrorKind::BodyTooLarge { len: body.len() }));
        }
        let count = reader.u32_be()?;
        reader.check_count(count as usize, T::SIZE_MIN, "items")?;
        Ok(Self {
            reader,
            count,
            left: count,
            item: PhantomData,
        })
    }

    /// How many items the batch has in all.
    #[inline]
    #[must_use]
    pub const fn item_count(&self) -> u32 {
        self.count
    }

    /// Bytes from the start of the body to the next item.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.reader.offset()
    }
}

impl<'a, T: Field<'a>> Iterator for Batch<'a, T> {
    type Item = Result<T, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = T::read(&mut self.reader);
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left as usize))
    }
}

/// Appends a batch to `out`: room for the count now, items one by one, the count in `finish`.
#[derive(Debug)]
#[must_use = "without finish the count stays 0"]
pub struct BatchWriter<'o> {
    out: &'o mut Vec<u8>,
    count_at: usize,
    count: u32,
}

impl<'o> BatchWriter<'o> {
    /// Begins a batch at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let count_at = out.len();
        out.extend_from_slice(&[0; 4]);
        Self {
            out,
            count_at,
            count: 0,
        }
    }

    /// Items so far.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of the batch so far, its count included.
    #[inline]
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.out.len() - self.count_at
    }

    /// Appends one item; nothing of it is left when `write` fails.
    #[inline]
    pub(super) fn item(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let before = self.out.len();
        let done = match self.count.checked_add(1) {
            Some(count) => write(self.out).map(|()| self.count = count),
            None => Err(EncodeError {
                what: "batch",
                len: usize::MAX,
                len_max: u32::MAX as usize,
            }),
        };
        if done.is_err() {
            self.out.truncate(before);
        }
        done
    }

    /// Writes the count and returns it.
    #[inline]
    pub fn finish(self) -> u32 {
        write_at(self.out, self.count_at, &self.count.to_be_bytes());
        self.count
    }

    /// Writes the count and hands the output back, for what follows the batch.
    #[inline]
    pub(super) fn finish_into(self) -> &'o mut Vec<u8> {
        write_at(self.out, self.count_at, &self.count.to_be_bytes());
        self.out
    }
}
