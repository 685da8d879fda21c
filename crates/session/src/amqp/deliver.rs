//! Messages on their way to the peer: `basic.deliver`, `basic.get-ok`, `basic.return`.
//!
//! Method, header and bodies are written straight from the engine's buffers into the output.
//! Messages of other doors are converted in between.

use tanda_engine::{DeliveryBatch, DeliveryItem, Form};
use tanda_wire::amqp::basic;
use tanda_wire::amqp::frame::FRAME_END;

use crate::convert::{self, Message, Unfit};
use crate::envelope::Envelope;

/// Bytes that all frames of a message have together, apart from names, properties and bodies.
const FIXED_BYTES: usize = 64;
/// Bytes a frame adds to its payload.
const OVERHEAD: usize = 8;

/// Where a message goes and what it is called there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address<'a> {
    pub(super) channel: u16,
    /// Agreed on; never 0.
    pub(super) frame_max: u32,
    /// What stands in the method before exchange and routing key.
    pub(super) start: &'a [u8],
    /// What stands in the method behind them.
    pub(super) end: &'a [u8],
}

/// Appends method, header and bodies.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, address: &Address<'_>, message: &Message<'_>) {
    let part_max = (address.frame_max as usize).saturating_sub(OVERHEAD).max(1);
    let parts = message.body.len().div_ceil(part_max);
    let variable = address.start.len()
        + message.names.len()
        + address.end.len()
        + message.properties.len()
        + message.body.len()
        + parts * OVERHEAD;
    out.reserve(FIXED_BYTES + variable);
    let [c0, c1] = address.channel.to_be_bytes();
    let method = address.start.len() + message.names.len() + address.end.len();
    let [s0, s1, s2, s3] = size(method);
    out.extend_from_slice(&[1, c0, c1, s0, s1, s2, s3]);
    out.extend_from_slice(address.start);
    out.extend_from_slice(message.names);
    out.extend_from_slice(address.end);
    let [s0, s1, s2, s3] = size(12 + message.properties.len());
    let [b0, b1, b2, b3] = size(message.body.len());
    out.extend_from_slice(&[
        FRAME_END, 2, c0, c1, s0, s1, s2, s3, 0, 60, 0, 0, 0, 0, 0, 0, b0, b1, b2, b3,
    ]);
    out.extend_from_slice(message.properties);
    out.push(FRAME_END);
    for part in message.body.chunks(part_max) {
        let [s0, s1, s2, s3] = size(part.len());
        out.extend_from_slice(&[3, c0, c1, s0, s1, s2, s3]);
        out.extend_from_slice(part);
        out.push(FRAME_END);
    }
}

#[inline]
fn size(len: usize) -> [u8; 4] {
    debug_assert!(u32::try_from(len).is_ok(), "messages are bounded");
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

/// The start of a `basic.deliver`, of which the last nine bytes are the delivery tag and whether
/// it was delivered before.
#[derive(Debug, Default)]
pub(super) struct DeliverStart {
    bytes: Vec<u8>,
}

impl DeliverStart {
    pub(super) fn new(tag: &str) -> Self {
        let mut bytes = Vec::with_capacity(14 + tag.len());
        bytes.extend_from_slice(&[0, 60, 0, 60]);
        bytes.push(u8::try_from(tag.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(tag.as_bytes());
        bytes.extend_from_slice(&[0; 9]);
        Self { bytes }
    }

    #[inline]
    pub(super) fn with(&mut self, delivery_tag: u64, redelivered: bool) -> &[u8] {
        let at = self.bytes.len().saturating_sub(9);
        if let Some(end) = self.bytes.get_mut(at..)
            && let Some((last, tag)) = end.split_last_mut()
        {
            tag.copy_from_slice(&delivery_tag.to_be_bytes());
            *last = u8::from(redelivered);
        }
        &self.bytes
    }
}

/// The start of a `basic.get-ok`.
pub(super) fn get_ok_start(delivery_tag: u64, redelivered: bool) -> Vec<u8> {
    let mut start = vec![0, 60, 0, 71];
    start.extend_from_slice(&delivery_tag.to_be_bytes());
    start.push(u8::from(redelivered));
    start
}

/// The start of a `basic.return` of an unroutable message.
pub(super) fn return_start() -> Vec<u8> {
    const TEXT: &[u8; 8] = b"NO_ROUTE";
    let mut start = vec![0, 60, 0, 50];
    start.extend_from_slice(&tanda_wire::amqp::ReplyCode::NoRoute.to_wire().to_be_bytes());
    start.push(8);
    start.extend_from_slice(TEXT);
    start
}

/// A message of a batch in this protocol's terms. `scratch` is what it borrows from when it had to
/// be converted.
///
/// # Errors
/// It fits no frame of this size.
#[inline]
pub(super) fn message<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    (frame_max, no_ack): (u32, bool),
    scratch: &'a mut convert::Scratch,
) -> Result<Message<'a>, Unfit> {
    let properties_max = match no_ack && !item.is_leased {
        // The engine knows that it fits.
        true => usize::MAX,
        false => (frame_max as usize).saturating_sub(OVERHEAD + 12),
    };
    if item.form == Form::Amqp
        && batch.returns(item) == 0
        && let Some(envelope) = Envelope::read(batch.content(item))
        && envelope.properties.len() <= properties_max
    {
        return Ok(of_envelope(&envelope));
    }
    convert::to_amqp(batch, item, properties_max, scratch)
}

/// A message that this protocol brought.
#[inline]
pub(super) const fn of_envelope<'a>(envelope: &Envelope<'a>) -> Message<'a> {
    Message {
        names: envelope.names,
        properties: envelope.properties,
        body: envelope.body,
    }
}

const _: () = assert!(basic::CLASS == 60, "the starts above name the class");
