//! Storing messages: `Enqueue` and `EnqueueResult`.
//!
//! ```text
//! Enqueue:  u32 count | items: string queue | map headers | bytes payload
//!                             | optional<string> fairness_key | optional<u32> weight
//!                             | optional<u64> delay_ms | optional<string> idempotency_key
//! EnqueueResult: u32 count | items: u8 code | uuid | bool duplicate
//!                || u16 hints: string queue | u64 node | string addr
//! ```

use super::batch::{Batch, BatchWriter, offset_u32};
use super::error_code::ErrorCode;
use super::field::{EncodeError, Field, write_bytes, write_string};
use super::headers::Headers;
use super::wire_struct::wire_struct;
use super::{MessageId, Opcode};
use crate::cursor::{DecodeError, Reader};

/// The messages of an `Enqueue` body, read in place.
pub type EnqueueBatch<'a> = Batch<'a, EnqueueMessage<'a>>;

impl EnqueueBatch<'_> {
    /// The opcode of its frame.
    pub const OPCODE: Opcode = Opcode::Enqueue;
}

/// The four absent optional fields of a plain message.
const NO_OPTIONS: [u8; 4] = [0; 4];

/// One message of an `Enqueue`, checked, borrowed from the body.
///
/// The `_start` fields are offsets in bytes from the start of the body to the first byte of the
/// text or content (after its length prefix), so that a consumer that owns the body can keep
/// slices of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueueMessage<'a> {
    /// The queue to store it in.
    pub queue: &'a str,
    /// Its headers.
    pub headers: Headers<'a>,
    /// Its payload.
    pub payload: &'a [u8],
    /// Absent: the queue's default.
    pub fairness_key: Option<&'a str>,
    /// Absent: the queue's default.
    pub weight: Option<u32>,
    /// Absent or 0: may be delivered at once.
    pub delay_ms: Option<u64>,
    /// The producer's deduplication key.
    pub idempotency_key: Option<&'a str>,
    /// Headers map, payload length and payload as they stand on the wire, in one piece.
    pub content: &'a [u8],
    /// Bytes of the headers map at the front of `content`.
    pub headers_len: u32,
    /// Offset of `queue`.
    pub queue_start: u32,
    /// Offset of `content`.
    pub content_start: u32,
    /// Offset of `fairness_key`; 0 when absent.
    pub fairness_key_start: u32,
    /// Offset of `idempotency_key`; 0 when absent.
    pub idempotency_key_start: u32,
}

impl EnqueueMessage<'_> {
    /// Offset of `payload`.
    #[must_use]
    pub const fn payload_start(&self) -> u32 {
        self.content_start + self.headers_len + 4
    }
}

/// An optional string and the offset of its text; 0 when absent.
#[inline]
fn optional_string<'a>(r: &mut Reader<'a>) -> Result<(Option<&'a str>, u32), DecodeError> {
    let start = r.offset() + 3;
    let text = Option::<&str>::read(r)?;
    Ok((text, if text.is_some() { offset_u32(start) } else { 0 }))
}

impl<'a> Field<'a> for EnqueueMessage<'a> {
    const SIZE_MIN: usize = 2 + 2 + 4 + NO_OPTIONS.len();

    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let queue_start = offset_u32(r.offset() + 2);
        let queue = Field::read(r)?;
        let content_start = offset_u32(r.offset());
        let before = *r;
        let headers = Headers::read(r)?;
        let payload = Field::read(r)?;
        let mut message = Self {
            queue,
            headers,
            payload,
            fairness_key: None,
            weight: None,
            delay_ms: None,
            idempotency_key: None,
            content: r.since(&before),
            headers_len: offset_u32(headers.as_bytes().len()),
            queue_start,
            content_start,
            fairness_key_start: 0,
            idempotency_key_start: 0,
        };
        // Most messages set none of the four: one comparison instead of four branches.
        if r.rest().first_chunk() == Some(&NO_OPTIONS) {
            r.array::<4>("optional fields")?;
            return Ok(message);
        }
        (message.fairness_key, message.fairness_key_start) = optional_string(r)?;
        message.weight = Field::read(r)?;
        message.delay_ms = Field::read(r)?;
        (message.idempotency_key, message.idempotency_key_start) = optional_string(r)?;
        Ok(message)
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        write_string(out, self.queue)?;
        self.headers.write(out)?;
        self.payload.write(out)?;
        self.fairness_key.write(out)?;
        self.weight.write(out)?;
        self.delay_ms.write(out)?;
        self.idempotency_key.write(out)
    }

    fn size(&self) -> usize {
        self.queue.size()
            + self.headers.size()
            + self.payload.size()
            + self.fairness_key.size()
            + self.weight.size()
            + self.delay_ms.size()
            + self.idempotency_key.size()
    }
}

/// A message to be written into an `Enqueue`, without its headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnqueueItem<'a> {
    /// The queue to store it in.
    pub queue: &'a str,
    /// Its payload.
    pub payload: &'a [u8],
    /// Absent: the queue's default.
    pub fairness_key: Option<&'a str>,
    /// Absent: the queue's default.
    pub weight: Option<u32>,
    /// Absent or 0: may be delivered at once.
    pub delay_ms: Option<u64>,
    /// The producer's deduplication key.
    pub idempotency_key: Option<&'a str>,
}

/// Appends an `Enqueue` body, message by message.
#[derive(Debug)]
#[must_use = "without finish the count stays 0"]
pub struct EnqueueWriter<'o> {
    batch: BatchWriter<'o>,
}

impl<'o> EnqueueWriter<'o> {
    /// Begins a body at the end of `out`.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            batch: BatchWriter::new(out),
        }
    }

    /// Messages so far.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Bytes of the body so far.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.batch.body_bytes()
    }

    /// Appends one message; [`NO_HEADERS`](super::headers::NO_HEADERS) stands for none.
    ///
    /// # Errors
    /// When a text or the payload does not fit its prefix; the message is then left out.
    pub fn push<K: AsRef<str>, V: AsRef<str>>(
        &mut self,
        item: &EnqueueItem<'_>,
        headers: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), EncodeError> {
        self.batch.item(|out| {
            write_string(out, item.queue)?;
            encode_content(out, headers, item.payload)?;
            item.fairness_key.write(out)?;
            item.weight.write(out)?;
            item.delay_ms.write(out)?;
            item.idempotency_key.write(out)
        })
    }

    /// Appends a message that was read before, as it was.
    ///
    /// # Errors
    /// When a text or the payload does not fit its prefix; the message is then left out.
    pub fn push_message(&mut self, message: &EnqueueMessage<'_>) -> Result<(), EncodeError> {
        self.batch.item(|out| message.write(out))
    }

    /// Writes the count and returns it.
    pub fn finish(self) -> u32 {
        self.batch.finish()
    }
}

/// Appends what messages carry as their content: the headers map, then the payload with its
/// length. A [`DeliveryWriter`](super::delivery::DeliveryWriter) takes it as it is.
///
/// # Errors
/// When a header or the payload does not fit its prefix.
pub fn encode_content<K: AsRef<str>, V: AsRef<str>>(
    out: &mut Vec<u8>,
    headers: impl IntoIterator<Item = (K, V)>,
    payload: &[u8],
) -> Result<(), EncodeError> {
    Headers::encode_pairs(out, headers)?;
    write_bytes(out, payload, "payload")
}

wire_struct! {
    /// Answers `Enqueue`, in the order of its messages.
    pub struct EnqueueResult<'a>: EnqueueResult {
        /// One per message.
        results: Vec<EnqueueItemResult>,
        /// One per queue that another node leads.
        route_hints: Vec<RouteHint<'a>> as list_u16,
    }

    /// What became of one message.
    pub struct EnqueueItemResult {
        /// `Ok`, or why it was refused.
        error_code: ErrorCode,
        /// The new ID, or the original's for a duplicate; all zero on an error.
        message_id: MessageId,
        /// Whether a message with its deduplication key was there already.
        duplicate: bool,
    }

    /// Where later messages for a queue had better go.
    pub struct RouteHint<'a> {
        /// The queue.
        queue: &'a str,
        /// The node that leads it.
        leader_node_id: u64,
        /// `host:port`.
        leader_addr: &'a str,
    }
}

/// Appends an `EnqueueResult` body, result by result.
#[derive(Debug)]
#[must_use = "without finish the body is not complete"]
pub struct EnqueueResultWriter<'o> {
    batch: BatchWriter<'o>,
}

impl<'o> EnqueueResultWriter<'o> {
    /// Begins a body at the end of `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self {
            batch: BatchWriter::new(out),
        }
    }

    /// Results so far.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.batch.count()
    }

    /// Appends one result. `message_id` is all zero on an error.
    ///
    /// # Errors
    /// Only after `u32::MAX` results.
    #[inline]
    pub fn push(
        &mut self,
        error_code: ErrorCode,
        message_id: &MessageId,
        duplicate: bool,
    ) -> Result<(), EncodeError> {
        self.batch.item(|out| {
            out.push(error_code.to_wire());
            out.extend_from_slice(message_id);
            out.push(u8::from(duplicate));
            Ok(())
        })
    }

    /// Writes the count and an empty list of route hints.
    #[inline]
    pub fn finish(self) {
        self.batch.finish_into().extend_from_slice(&[0, 0]);
    }

    /// Writes the count and these route hints.
    ///
    /// # Errors
    /// When there are too many, or a text does not fit its prefix.
    pub fn finish_with_hints(self, hints: &[RouteHint<'_>]) -> Result<(), EncodeError> {
        super::layout::list_u16::write(hints, self.batch.finish_into())
    }
}
