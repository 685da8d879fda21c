//! Messages on their way to a consumer: `Delivery`.
//!
//! ```text
//! u32 count | items: uuid id | string queue | map headers | bytes payload
//!                    | string fairness_key | u32 weight | u32 attempt_count | u32 redrive_count
//!                    | u64 enqueued_at | u64 leased_at | u64 lease_expires_at
//! ```

use super::batch::{Batch, BatchWriter, offset_u32};
use super::field::{EncodeError, Field, write_string};
use super::headers::Headers;
use super::{MessageId, Opcode};
use crate::cursor::{DecodeError, Reader};

/// The messages of a `Delivery` body, read in place.
pub type DeliveryBatch<'a> = Batch<'a, DeliveryMessage<'a>>;

impl DeliveryBatch<'_> {
    /// The opcode of its frame.
    pub const OPCODE: Opcode = Opcode::Delivery;
}

/// What a delivery says about a message besides its texts and content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeliveryMeta {
    /// The message's ID.
    pub message_id: MessageId,
    /// Its fairness weight.
    pub weight: u32,
    /// 1 on the first delivery; a redrive starts again.
    pub attempt_count: u32,
    /// How often it came back from the dead-letter queue.
    pub redrive_count: u32,
    /// Unix time in milliseconds.
    pub enqueued_at_ms: u64,
    /// Unix time in milliseconds.
    pub leased_at_ms: u64,
    /// Unix time in milliseconds; the lease ends then or later.
    pub lease_expires_at_ms: u64,
}

/// One message of a delivery, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryItem<'a> {
    /// Numbers and times.
    pub meta: DeliveryMeta,
    /// The queue it comes from.
    pub queue: &'a str,
    /// Empty when it has none.
    pub fairness_key: &'a str,
    /// Headers map, payload length and payload as on the wire: see
    /// [`EnqueueMessage::content`](super::enqueue::EnqueueMessage::content).
    pub content: &'a [u8],
}

impl DeliveryItem<'_> {
    /// The bytes it takes in a body.
    #[inline]
    #[must_use]
    pub const fn encoded_size(&self) -> usize {
        ITEM_FIXED_BYTES + self.queue.len() + self.content.len() + self.fairness_key.len()
    }
}

/// Bytes of an item besides queue, content and fairness key.
const ITEM_FIXED_BYTES: usize = 16 + 2 + 2 + NUMBERS_BYTES;
/// Bytes from `weight` to the end of an item.
const NUMBERS_BYTES: usize = 3 * 4 + 3 * 8;

/// Appends a `Delivery` body, message by message.
#[derive(Debug)]
#[must_use = "without finish the count stays 0"]
pub struct DeliveryWriter<'o> {
    batch: BatchWriter<'o>,
}

impl<'o> DeliveryWriter<'o> {
    /// Begins a body at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            batch: BatchWriter::new(out),
        }
    }

    /// Messages so far.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Bytes of the body so far.
    #[inline]
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.batch.body_bytes()
    }

    /// Appends one message.
    ///
    /// # Errors
    /// When queue or fairness key is longer than 65,535 bytes; the message is then left out.
    #[inline]
    pub fn push(&mut self, item: &DeliveryItem<'_>) -> Result<(), EncodeError> {
        self.batch.item(|out| {
            out.reserve(item.encoded_size());
            out.extend_from_slice(&item.meta.message_id);
            write_string(out, item.queue)?;
            out.extend_from_slice(item.content);
            write_string(out, item.fairness_key)?;
            write_numbers(out, &item.meta);
            Ok(())
        })
    }

    /// Writes the count and returns it.
    #[inline]
    pub fn finish(self) -> u32 {
        self.batch.finish()
    }
}

#[inline]
fn write_numbers(out: &mut Vec<u8>, meta: &DeliveryMeta) {
    out.extend_from_slice(&meta.weight.to_be_bytes());
    out.extend_from_slice(&meta.attempt_count.to_be_bytes());
    out.extend_from_slice(&meta.redrive_count.to_be_bytes());
    out.extend_from_slice(&meta.enqueued_at_ms.to_be_bytes());
    out.extend_from_slice(&meta.leased_at_ms.to_be_bytes());
    out.extend_from_slice(&meta.lease_expires_at_ms.to_be_bytes());
}

/// One message of a delivery, checked, borrowed from the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryMessage<'a> {
    /// Numbers and times.
    pub meta: DeliveryMeta,
    /// The queue it comes from.
    pub queue: &'a str,
    /// Its headers.
    pub headers: Headers<'a>,
    /// Its payload.
    pub payload: &'a [u8],
    /// Empty when it has none.
    pub fairness_key: &'a str,
    /// Headers map, payload length and payload as on the wire.
    pub content: &'a [u8],
    /// Offset in the body of the first payload byte.
    pub payload_start: u32,
}

impl<'a> DeliveryMessage<'a> {
    /// The message as a writer takes it.
    #[must_use]
    pub const fn as_item(&self) -> DeliveryItem<'a> {
        DeliveryItem {
            meta: self.meta,
            queue: self.queue,
            fairness_key: self.fairness_key,
            content: self.content,
        }
    }
}

impl<'a> Field<'a> for DeliveryMessage<'a> {
    const SIZE_MIN: usize = ITEM_FIXED_BYTES + 2 + 4;

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let message_id = Field::read(r)?;
        let queue = Field::read(r)?;
        let before = *r;
        let headers = Headers::read(r)?;
        let payload_start = offset_u32(r.offset() + 4);
        let payload = Field::read(r)?;
        let content = r.since(&before);
        let fairness_key = Field::read(r)?;
        let meta = DeliveryMeta {
            message_id,
            weight: r.u32_be()?,
            attempt_count: r.u32_be()?,
            redrive_count: r.u32_be()?,
            enqueued_at_ms: r.u64_be()?,
            leased_at_ms: r.u64_be()?,
            lease_expires_at_ms: r.u64_be()?,
        };
        Ok(Self {
            meta,
            queue,
            headers,
            payload,
            fairness_key,
            content,
            payload_start,
        })
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.extend_from_slice(&self.meta.message_id);
        write_string(out, self.queue)?;
        self.headers.write(out)?;
        self.payload.write(out)?;
        write_string(out, self.fairness_key)?;
        write_numbers(out, &self.meta);
        Ok(())
    }

    fn size(&self) -> usize {
        self.as_item().encoded_size()
    }
}
