//! Settling leased messages: `Ack`, `Nack`, `ExtendLease` and their results.
//!
//! ```text
//! Ack:         u32 count | items: string queue | uuid id
//! Nack:        u32 count | items: string queue | uuid id | string error
//!                               | optional<u64> retry_after_ms
//! ExtendLease: u32 count | items: string queue | uuid id | u64 extend_by_ms
//! ```

use super::batch::{Batch, BatchWriter, offset_u32};
use super::error_code::ErrorCode;
use super::field::{EncodeError, Field, write_string};
use super::wire_struct::wire_struct;
use super::{MessageId, Opcode};
use crate::cursor::{DecodeError, Reader};

/// The items of an `Ack` body, read in place.
pub type AckBatch<'a> = Batch<'a, AckItem<'a>>;
/// The items of a `Nack` body, read in place.
pub type NackBatch<'a> = Batch<'a, NackItem<'a>>;
/// The items of an `ExtendLease` body, read in place.
pub type ExtendBatch<'a> = Batch<'a, ExtendItem<'a>>;

impl AckBatch<'_> {
    /// The opcode of its frame.
    pub const OPCODE: Opcode = Opcode::Ack;
}

impl NackBatch<'_> {
    /// The opcode of its frame.
    pub const OPCODE: Opcode = Opcode::Nack;
}

impl ExtendBatch<'_> {
    /// The opcode of its frame.
    pub const OPCODE: Opcode = Opcode::ExtendLease;
}

/// A message that is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckItem<'a> {
    /// The queue it came from.
    pub queue: &'a str,
    /// The message.
    pub message_id: MessageId,
    /// Offset in the body of the first byte of `queue`; ignored when writing.
    pub queue_start: u32,
}

/// A message that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NackItem<'a> {
    /// The queue it came from.
    pub queue: &'a str,
    /// The message.
    pub message_id: MessageId,
    /// Why, for the `on_failure` script.
    pub error: &'a str,
    /// The delay before the retry; absent: the queue decides.
    pub retry_after_ms: Option<u64>,
    /// Offset in the body of the first byte of `queue`; ignored when writing.
    pub queue_start: u32,
    /// Offset in the body of the first byte of `error`; ignored when writing.
    pub error_start: u32,
}

/// A message whose consumer needs more time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendItem<'a> {
    /// The queue it came from.
    pub queue: &'a str,
    /// The message.
    pub message_id: MessageId,
    /// The new length of the lease, from receipt on.
    pub extend_by_ms: u64,
    /// Offset in the body of the first byte of `queue`; ignored when writing.
    pub queue_start: u32,
}

impl<'a> Field<'a> for AckItem<'a> {
    const SIZE_MIN: usize = 2 + 16;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let queue_start = offset_u32(r.offset() + 2);
        let queue = Field::read(r)?;
        let message_id = Field::read(r)?;
        Ok(Self {
            queue,
            message_id,
            queue_start,
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self.queue)?;
        self.message_id.write(out)
    }

    fn size(&self) -> usize {
        Self::SIZE_MIN + self.queue.len()
    }
}

impl<'a> Field<'a> for NackItem<'a> {
    const SIZE_MIN: usize = 2 + 16 + 2 + 1;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let queue_start = offset_u32(r.offset() + 2);
        let queue = Field::read(r)?;
        let message_id = Field::read(r)?;
        let error_start = offset_u32(r.offset() + 2);
        let error = Field::read(r)?;
        let retry_after_ms = Field::read(r)?;
        Ok(Self {
            queue,
            message_id,
            error,
            retry_after_ms,
            queue_start,
            error_start,
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self.queue)?;
        self.message_id.write(out)?;
        write_string(out, self.error)?;
        self.retry_after_ms.write(out)
    }

    fn size(&self) -> usize {
        self.queue.size() + 16 + self.error.size() + self.retry_after_ms.size()
    }
}

impl<'a> Field<'a> for ExtendItem<'a> {
    const SIZE_MIN: usize = 2 + 16 + 8;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let queue_start = offset_u32(r.offset() + 2);
        let queue = Field::read(r)?;
        let message_id = Field::read(r)?;
        let extend_by_ms = Field::read(r)?;
        Ok(Self {
            queue,
            message_id,
            extend_by_ms,
            queue_start,
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self.queue)?;
        self.message_id.write(out)?;
        self.extend_by_ms.write(out)
    }

    fn size(&self) -> usize {
        Self::SIZE_MIN + self.queue.len()
    }
}

macro_rules! settle_writer {
    ($(#[$meta:meta])* $Writer:ident, $Item:ident) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[must_use = "without finish the count stays 0"]
        pub struct $Writer<'o> {
            batch: BatchWriter<'o>,
        }

        impl<'o> $Writer<'o> {
            /// Begins a body at the end of `out`.
            pub fn new(out: &'o mut Vec<u8>) -> Self {
                Self { batch: BatchWriter::new(out) }
            }

            /// Items so far.
            #[must_use]
            pub const fn count(&self) -> u32 {
                self.batch.count()
            }

            /// Appends one item.
            ///
            /// # Errors
            /// When a text is longer than 65,535 bytes; the item is then left out.
            pub fn push(&mut self, item: &$Item<'_>) -> Result<(), EncodeError> {
                self.batch.item(|out| item.write(out))
            }

            /// Writes the count and returns it.
            pub fn finish(self) -> u32 {
                self.batch.finish()
            }
        }
    };
}

settle_writer! {
    /// Appends an `Ack` body, item by item.
    AckWriter, AckItem
}

settle_writer! {
    /// Appends a `Nack` body, item by item.
    NackWriter, NackItem
}

settle_writer! {
    /// Appends an `ExtendLease` body, item by item.
    ExtendWriter, ExtendItem
}

wire_struct! {
    /// Answers `Ack`, in the order of its items.
    pub struct AckResult: AckResult {
        /// One per item.
        results: Vec<ErrorCode>,
    }

    /// Answers `Nack`, in the order of its items.
    pub struct NackResult: NackResult {
        /// One per item.
        results: Vec<ErrorCode>,
    }

    /// Answers `ExtendLease`, in the order of its items.
    pub struct ExtendLeaseResult: ExtendLeaseResult {
        /// One per item.
        results: Vec<ExtendItemResult>,
    }

    /// What became of one extension.
    pub struct ExtendItemResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The new end in Unix milliseconds; 0 on an error.
        lease_expires_at_ms: u64,
    }
}

/// Appends an `AckResult` or `NackResult` body, code by code.
#[derive(Debug)]
#[must_use = "without finish the count stays 0"]
pub struct CodesWriter<'o> {
    batch: BatchWriter<'o>,
}

impl<'o> CodesWriter<'o> {
    /// Begins a body at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            batch: BatchWriter::new(out),
        }
    }

    /// Appends one result.
    ///
    /// # Errors
    /// Only after `u32::MAX` results.
    #[inline]
    pub fn push(&mut self, error_code: ErrorCode) -> Result<(), EncodeError> {
        self.batch.item(|out| error_code.write(out))
    }

    /// Writes the count and returns it.
    #[inline]
    pub fn finish(self) -> u32 {
        self.batch.finish()
    }
}

/// Appends an `ExtendLeaseResult` body, result by result.
#[derive(Debug)]
#[must_use = "without finish the count stays 0"]
pub struct ExtendResultWriter<'o> {
    batch: BatchWriter<'o>,
}

impl<'o> ExtendResultWriter<'o> {
    /// Begins a body at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            batch: BatchWriter::new(out),
        }
    }

    /// Appends one result; `lease_expires_at_ms` is 0 on an error.
    ///
    /// # Errors
    /// Only after `u32::MAX` results.
    #[inline]
    pub fn push(
        &mut self,
        error_code: ErrorCode,
        lease_expires_at_ms: u64,
    ) -> Result<(), EncodeError> {
        self.batch.item(|out| {
            error_code.write(out)?;
            lease_expires_at_ms.write(out)
        })
    }

    /// Writes the count and returns it.
    #[inline]
    pub fn finish(self) -> u32 {
        self.batch.finish()
    }
}
