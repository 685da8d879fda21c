//! Prebuilt frames.
//!
//! Owns: the bytes a load generator sends again and again, and where in them the few bytes lie
//! that change: request ID, fairness keys, the time in the payload. Built once with the encoders
//! of `tanda-wire`; sending one costs a few stores and a copy.

use tanda_wire::fila::Opcode;
use tanda_wire::fila::consume::{Consume, Credit, ThrottleDeclaration};
use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueItem, EnqueueWriter};
use tanda_wire::fila::field::EncodeError;
use tanda_wire::fila::frame::{FRAME_OVERHEAD_BYTES, write_body, write_frame};
use tanda_wire::fila::headers::NO_HEADERS;

use crate::error::BenchError;

/// Digits of a fairness key: enough for ten million.
const KEY_DIGITS: usize = 7;

/// What an `Enqueue` frame holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    /// The queue of all its messages.
    pub(crate) queue: &'a str,
    /// Messages in one frame; at least 1.
    pub(crate) batch: u32,
    /// Bytes of each payload.
    pub(crate) payload_bytes: usize,
    /// Messages take keys 0 to `keys - 1` in turn; 0 = messages have no key.
    pub(crate) keys: u32,
}

/// One `Enqueue` frame that is sent many times.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    batch: u32,
    /// Offset of each message's payload, and of its key when it has one.
    payloads: Vec<usize>,
    key_places: Vec<usize>,
    keys: u32,
    next_key: u32,
    /// Messages carry their numbers; that of the next one.
    next_number: Option<u64>,
}

impl Template {
    /// Builds the frame. The first key used is `first_key`.
    pub(crate) fn new(shape: &Shape<'_>, first_key: u32) -> Result<Self, BenchError> {
        // Not one byte repeated: nothing on the way may gain from that.
        let payload: Vec<u8> = (0u8..=250).cycle().take(shape.payload_bytes).collect();
        let key = "0".repeat(KEY_DIGITS);
        let item = EnqueueItem {
            queue: shape.queue,
            payload: &payload,
            fairness_key: (shape.keys > 0).then_some(key.as_str()),
            ..EnqueueItem::default()
        };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, Opcode::Enqueue, 1, |out| {
            let mut writer = EnqueueWriter::new(out);
            for _ in 0..shape.batch {
                writer.push(&item, NO_HEADERS)?;
            }
            writer.finish();
            Ok(())
        })?;
        let (payloads, key_places) = places(&bytes)?;
        Ok(Self {
            bytes,
            batch: shape.batch,
            payloads,
            key_places,
            keys: shape.keys,
            next_key: first_key,
            next_number: None,
        })
    }

    /// From now on each payload begins with its message's number, the first with `first`.
    pub(crate) fn numbered(mut self, first: u64) -> Self {
        self.next_number = Some(first);
        self
    }

    /// Messages in the frame.
    pub(crate) const fn batch(&self) -> u32 {
        self.batch
    }

    /// The frame for this request, with the next keys in it.
    pub(crate) fn frame(&mut self, request_id: u32) -> &[u8] {
        patch(&mut self.bytes, REQUEST_ID_AT, &request_id.to_be_bytes());
        if self.keys > 1 {
            for at in &self.key_places {
                patch(&mut self.bytes, *at, &digits(self.next_key));
                self.next_key = (self.next_key + 1) % self.keys;
            }
        }
        if let Some(next) = &mut self.next_number {
            for at in &self.payloads {
                patch(&mut self.bytes, *at, &next.to_be_bytes());
                *next += 1;
            }
        }
        &self.bytes
    }

    /// Puts a time into the first 8 bytes of the first payload, where there is room.
    pub(crate) fn stamp(&mut self, nanos: u64) {
        if let Some(at) = self.payloads.first() {
            patch(&mut self.bytes, *at, &nanos.to_be_bytes());
        }
    }
}

const REQUEST_ID_AT: usize = FRAME_OVERHEAD_BYTES - size_of::<u32>();

fn places(frame: &[u8]) -> Result<(Vec<usize>, Vec<usize>), BenchError> {
    let body = frame.get(FRAME_OVERHEAD_BYTES..).unwrap_or_default();
    let mut payloads = Vec::new();
    let mut keys = Vec::new();
    for message in EnqueueBatch::decode_header(body)? {
        let message = message?;
        payloads.push(FRAME_OVERHEAD_BYTES + message.payload_start() as usize);
        if message.fairness_key.is_some() {
            keys.push(FRAME_OVERHEAD_BYTES + message.fairness_key_start as usize);
        }
    }
    Ok((payloads, keys))
}

fn patch(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

fn digits(mut key: u32) -> [u8; KEY_DIGITS] {
    let mut text = [b'0'; KEY_DIGITS];
    for place in text.iter_mut().rev() {
        *place = b'0' + u8::try_from(key % 10).unwrap_or_default();
        key /= 10;
    }
    text
}

/// A time that [`Template::stamp`] put into a payload; `None` when it is shorter than 8 bytes.
pub(crate) fn stamp_of(payload: &[u8]) -> Option<u64> {
    payload
        .first_chunk()
        .map(|bytes| u64::from_be_bytes(*bytes))
}

/// Appends a `Consume`. `credit` 0 means no limit.
pub(crate) fn push_consume(
    out: &mut Vec<u8>,
    request_id: u32,
    queue: &str,
    credit: u32,
    throttles: &[ThrottleDeclaration<'_>],
) -> Result<(), EncodeError> {
    let body = Consume {
        queue,
        credit,
        throttles: throttles.to_vec(),
    };
    write_body(out, request_id, 0, &body)
}

/// Appends a `Credit` for the subscription of `request_id`.
pub(crate) fn push_credit(
    out: &mut Vec<u8>,
    request_id: u32,
    additional_credit: u32,
) -> Result<(), EncodeError> {
    write_body(out, request_id, 0, &Credit { additional_credit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tanda_wire::fila::frame::{MAX_FRAME_DEFAULT, split_frame};

    const SHAPE: Shape<'static> = Shape {
        queue: "orders",
        batch: 3,
        payload_bytes: 20,
        keys: 2,
    };

    fn keys_of(frame: &[u8]) -> Vec<String> {
        let body = split_frame(frame, MAX_FRAME_DEFAULT).unwrap().unwrap().body;
        EnqueueBatch::decode_header(body)
            .unwrap()
            .map(|message| message.unwrap().fairness_key.unwrap().to_owned())
            .collect()
    }

    #[test]
    fn keys_go_round_over_frames() {
        let mut template = Template::new(&SHAPE, 1).unwrap();
        assert_eq!(
            keys_of(template.frame(7)),
            ["0000001", "0000000", "0000001"]
        );
        assert_eq!(
            keys_of(template.frame(8)),
            ["0000000", "0000001", "0000000"]
        );
    }

    #[test]
    fn request_id_and_time_are_where_a_reader_finds_them() {
        let mut template = Template::new(&Shape { keys: 0, ..SHAPE }, 0).unwrap();
        template.stamp(0x0102_0304_0506_0708);
        let frame = split_frame(template.frame(99), MAX_FRAME_DEFAULT)
            .unwrap()
            .unwrap();
        assert_eq!(frame.header.request_id, 99);
        let first = EnqueueBatch::decode_header(frame.body).unwrap().next();
        let payload = first.unwrap().unwrap().payload;
        assert_eq!(stamp_of(payload), Some(0x0102_0304_0506_0708));
        assert_eq!(payload.len(), 20);
    }
}
