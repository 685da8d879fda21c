//! Publishers mostly say the same again and again: only the body is another one.
//!
//! The frames of a publish and its content header are kept when they were taken in full, with what
//! was made of them. Messages that begin with the same bytes, but for the body's size, and whose
//! body is one frame, need no decoding, no checks and no permission: that they may be sent, and
//! what they mean, is known. Whatever could change that forgets what is kept.

use tanda_engine::PublishItem;
use tanda_wire::amqp::FrameType;
use tanda_wire::amqp::frame::FRAME_END;

use super::channel::{Batch, Channel, ChannelState, Mode, Phase, Segment};
use super::link::Link;
use super::open::Open;
use super::publish::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX};
use crate::batch::{position, shifted};

/// Frames that are longer are not kept.
const KEPT_BYTES_MAX: usize = 1024;
/// Where the body's size stands in the frame of a content header: behind the frame's own header,
/// class and weight.
const SIZE_AT: usize = 7 + 4;
const SIZE_END: usize = SIZE_AT + 8;
/// What a frame has before its payload.
const FRAME_HEADER: usize = 7;

/// The last publish that can be taken again without a look.
#[derive(Debug, Default)]
pub(super) struct Repeat {
    /// The channel, and which opening of it; 0: none.
    channel: (u16, u32),
    /// The frames of the method and the content header.
    frames: Vec<u8>,
    /// Where the content header begins in them.
    header_at: usize,
    /// The envelope up to the body's length.
    envelope: Vec<u8>,
    /// Ranges count from the start of the envelope.
    item: PublishItem,
    mandatory: bool,
    /// Bytes and messages of the batch that was sent last.
    expected: (usize, usize),
}

impl Repeat {
    /// The next batch will be like this one.
    pub(super) fn expect(&mut self, batch: &Batch) {
        self.expected = (batch.data.len(), batch.items.len());
    }

    /// Room for a batch like the last one, but for no more than what has come: a batch that grows
    /// step by step is copied as often, and its messages may keep its memory for long.
    fn make_room(&self, batch: &mut Batch, come: usize) {
        let bytes = (self.expected.0 + self.expected.0 / 8).min(come);
        batch
            .data
            .reserve_exact(bytes.saturating_sub(batch.data.len()));
        let items = self.expected.1.min(come / self.frames.len().max(1));
        batch.items.reserve(items.saturating_sub(batch.items.len()));
    }

    /// Nothing is known.
    pub(super) fn forget(&mut self) {
        self.channel = (0, 0);
    }

    /// The body of the message at the front of `input`, if it is like the last one, and the bytes
    /// that the message takes.
    #[inline]
    fn body_of<'a>(&self, input: &'a [u8], link: &Link) -> Option<(&'a [u8], usize)> {
        let head = input.get(..self.frames.len())?;
        let size_at = self.header_at + SIZE_AT;
        let size_end = self.header_at + SIZE_END;
        let same = head.get(..size_at) == self.frames.get(..size_at)
            && head.get(size_end..) == self.frames.get(size_end..);
        if !same {
            return None;
        }
        let size = u64::from_be_bytes(*head.get(size_at..)?.first_chunk()?);
        let [c0, c1] = self.channel.0.to_be_bytes();
        let rest = input.get(head.len()..)?;
        let (frame, rest) = rest.split_first_chunk::<FRAME_HEADER>()?;
        let [kind, n0, n1, s0, s1, s2, s3] = *frame;
        let part = u32::from_be_bytes([s0, s1, s2, s3]);
        let is_whole = kind == FrameType::Body.to_wire()
            && (n0, n1) == (c0, c1)
            && u64::from(part) == size
            && part > 0
            && part <= link.frame_max.saturating_sub(8)
            && size <= link.config.max_message_bytes;
        if !is_whole {
            return None;
        }
        let (body, rest) = rest.split_at_checked(part as usize)?;
        let taken = head.len() + FRAME_HEADER + body.len() + 1;
        (rest.first() == Some(&FRAME_END)).then_some((body, taken))
    }
}

impl Open {
    /// Keeps a publish whose method and header were just taken, if nothing of it has to be looked
    /// at each time.
    pub(super) fn keep_repeat(&mut self, number: u16, method: &[u8], header: &[u8]) {
        self.repeat.forget();
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let partial = &channel.partial;
        let (Phase::Body(_), Some(at)) = (partial.phase, partial.tail_at) else {
            return;
        };
        let is_plain = partial.extra_keys.is_empty()
            && partial.bcc.is_empty()
            && partial.number_key.is_none()
            && !matches!(channel.mode, Mode::Tx(_));
        let properties = header.get(SIZE_END..header.len().saturating_sub(1));
        let envelope = self.batch.data.get(at..).unwrap_or_default();
        // Without the length of the body.
        let envelope = envelope.get(..envelope.len().saturating_sub(4));
        let (Some(properties), Some(envelope)) = (properties, envelope) else {
            return;
        };
        let is_short = method.len() + header.len() <= KEPT_BYTES_MAX;
        // Another channel's method may stand in between.
        let is_one = method.get(1..3) == header.get(1..3);
        // What was rewritten depends on more than these bytes.
        if !is_plain || !is_short || !is_one || !envelope.ends_with(properties) {
            return;
        }
        let it = &mut self.repeat;
        it.channel = (number, channel.epoch);
        it.frames.clear();
        it.frames.extend_from_slice(method);
        it.header_at = method.len();
        it.frames.extend_from_slice(header);
        it.envelope.clear();
        it.envelope.extend_from_slice(envelope);
        it.item = partial.item;
        it.mandatory = partial.mandatory;
    }

    /// Takes messages like the last one off the front of `input`; returns the bytes they took.
    #[inline]
    pub(super) fn take_repeats(&mut self, link: &mut Link, input: &[u8]) -> usize {
        if self.repeat.channel.1 == 0 || self.alarm.is_some() || self.tail.is_some() {
            return 0;
        }
        let mut taken = 0;
        loop {
            let rest = input.get(taken..).unwrap_or_default();
            let bytes = self.take_run(link, rest);
            taken += bytes;
            let is_full = self.is_full();
            if is_full {
                self.send_batch(link);
            }
            if bytes == 0 || !is_full || !link.has_room() {
                return taken;
            }
        }
    }

    /// Takes them while the batch has room.
    fn take_run(&mut self, link: &Link, input: &[u8]) -> usize {
        let (repeat, batch) = (&self.repeat, &mut self.batch);
        let Some(channel) = self.channels.find(repeat.channel.0) else {
            return 0;
        };
        if !may_repeat(channel, repeat.channel.1) {
            return 0;
        }
        repeat.make_room(batch, input.len());
        let mut at = 0;
        while batch.data.len() < BATCH_BYTES_MAX && batch.items.len() < BATCH_ITEMS_MAX {
            let rest = input.get(at..).unwrap_or_default();
            let Some((body, taken)) = repeat.body_of(rest, link) else {
                break;
            };
            at += taken;
            let start = batch.data.len();
            if batch.data.capacity() - batch.data.len() < taken {
                // Messages are shorter than the frames they come in.
                let most = rest.len().min(BATCH_BYTES_MAX);
                batch.data.reserve_exact(most.max(taken));
            }
            batch.data.extend_from_slice(&repeat.envelope);
            batch
                .data
                .extend_from_slice(&position(body.len()).to_be_bytes());
            batch.data.extend_from_slice(body);
            let base = position(start);
            let mut item = repeat.item;
            item.content.start = base;
            item.content.len = position(batch.data.len() - start);
            item.fairness_key = shifted(item.fairness_key, base);
            item.idempotency_key = item.idempotency_key.map(|key| shifted(key, base));
            let kind = (channel.number, channel.epoch);
            let first_tag = if let Mode::Confirm(confirms) = &mut channel.mode {
                let joined = batch.joins(kind, repeat.mandatory);
                Some(confirms.give(joined.and_then(|segment| segment.first_tag)))
            } else {
                None
            };
            let segment = Segment {
                kind,
                first_tag,
                mandatory: repeat.mandatory,
                start,
                count: 1,
                is_closed: false,
            };
            batch.push(item, segment);
        }
        at
    }

    const fn is_full(&self) -> bool {
        self.batch.data.len() >= BATCH_BYTES_MAX || self.batch.items.len() >= BATCH_ITEMS_MAX
    }
}

/// Whether a message may begin on the channel, which is still the one that was opened then.
fn may_repeat(channel: &Channel, epoch: u32) -> bool {
    let takes = match channel.mode {
        Mode::Plain | Mode::Confirm(_) => true,
        Mode::Tx(_) => false,
    };
    takes
        && channel.epoch == epoch
        && channel.state == ChannelState::Open
        && !channel.is_busy
        && channel.partial.phase == Phase::Idle
}
