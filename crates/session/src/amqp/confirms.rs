//! Publisher confirms of a channel: which tags were given, and how the answers are said.
//!
//! Tags of one batch are answered together. When all tags before them are answered too, one
//! cumulative `basic.ack` says it. A cumulative ack must never cover a tag that was nacked: after
//! the first `basic.nack` acks are single.

use std::collections::VecDeque;

use tanda_wire::amqp::basic;

use super::outbound::Outbound;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Confirms {
    /// Tags given so far.
    given: u64,
    /// First and last tags of batches that were not answered, in order.
    open: VecDeque<(u64, u64)>,
    /// A tag was nacked.
    nacked: bool,
}

impl Confirms {
    /// Gives the tag of the next message. Tags of one batch, `batch` being its first, follow each
    /// other.
    pub(super) fn give(&mut self, batch: Option<u64>) -> u64 {
        self.given += 1;
        match (batch, self.open.back_mut()) {
            (Some(first), Some(last)) if last.0 == first => last.1 = self.given,
            _ => self.open.push_back((self.given, self.given)),
        }
        self.given
    }

    /// The batch that begins with tag `first` was answered; `stored` says of each message whether
    /// it was. Says so to the peer.
    pub(super) fn answer(
        &mut self,
        (channel, first): (u16, u64),
        stored: impl Iterator<Item = bool>,
        outbound: &mut Outbound,
    ) {
        let Ok(at) = self.open.binary_search_by_key(&first, |range| range.0) else {
            return;
        };
        self.open.remove(at);
        let mut writer = Writer {
            channel,
            cumulative: at == 0 && !self.nacked,
            run: None,
            outbound,
        };
        for (tag, stored) in (first..).zip(stored) {
            if stored {
                writer.ack(tag);
            } else {
                writer.nack(tag);
                self.nacked = true;
            }
        }
        writer.finish();
    }

    /// Messages that were not answered.
    #[cfg(test)]
    fn unanswered(&self) -> u64 {
        self.open.iter().map(|(first, last)| last - first + 1).sum()
    }
}

struct Writer<'a> {
    channel: u16,
    cumulative: bool,
    /// First and last tag of acks not yet said.
    run: Option<(u64, u64)>,
    outbound: &'a mut Outbound,
}

impl Writer<'_> {
    fn ack(&mut self, tag: u64) {
        if self.cumulative {
            let first = self.run.map_or(tag, |(first, _)| first);
            self.run = Some((first, tag));
        } else {
            self.say_ack(tag, false);
        }
    }

    fn nack(&mut self, tag: u64) {
        self.flush();
        self.cumulative = false;
        let nack = basic::Nack {
            delivery_tag: tag,
            multiple: false,
            requeue: false,
        };
        self.outbound.method(self.channel, nack);
    }

    fn flush(&mut self) {
        if let Some((first, last)) = self.run.take() {
            self.say_ack(last, last > first);
        }
    }

    fn finish(mut self) {
        self.flush();
    }

    fn say_ack(&mut self, delivery_tag: u64, multiple: bool) {
        let ack = basic::Ack {
            delivery_tag,
            multiple,
        };
        self.outbound.method(self.channel, ack);
    }
}

#[cfg(test)]
mod tests {
    use tanda_wire::amqp::{Method, Split, split_frame};

    use super::*;

    fn said(outbound: &mut Outbound) -> Vec<(&'static str, u64, bool)> {
        let bytes = outbound.writing().split();
        outbound.on_written(bytes.len());
        let mut rest = &bytes[..];
        let mut said = Vec::new();
        while let Ok(Split::Frame(frame)) = split_frame(rest, 4096) {
            let method = Method::decode(frame.payload).unwrap();
            if let Method::Basic(basic::Method::Ack(it)) = method {
                said.push(("ack", it.delivery_tag, it.multiple));
            } else if let Method::Basic(basic::Method::Nack(it)) = method {
                said.push(("nack", it.delivery_tag, it.multiple));
            } else {
                panic!("{method:?}");
            }
            rest = &rest[frame.consumed()..];
        }
        said
    }

    fn give(confirms: &mut Confirms, count: u64) -> u64 {
        let first = confirms.give(None);
        for _ in 1..count {
            confirms.give(Some(first));
        }
        first
    }

    #[test]
    fn a_batch_in_order_is_one_cumulative_ack() {
        let mut confirms = Confirms::default();
        let mut out = Outbound::default();
        let first = give(&mut confirms, 3);
        assert_eq!(first, 1);
        confirms.answer((1, first), [true; 3].into_iter(), &mut out);
        assert_eq!(said(&mut out), [("ack", 3, true)]);
        let next = give(&mut confirms, 1);
        confirms.answer((1, next), [true].into_iter(), &mut out);
        assert_eq!(said(&mut out), [("ack", 4, false)]);
        assert_eq!(confirms.unanswered(), 0);
    }

    #[test]
    fn a_batch_out_of_order_is_acked_one_by_one() {
        let mut confirms = Confirms::default();
        let mut out = Outbound::default();
        let (first, second) = (give(&mut confirms, 2), give(&mut confirms, 2));
        confirms.answer((1, second), [true; 2].into_iter(), &mut out);
        assert_eq!(said(&mut out), [("ack", 3, false), ("ack", 4, false)]);
        assert_eq!(confirms.unanswered(), 2);
        confirms.answer((1, first), [true; 2].into_iter(), &mut out);
        assert_eq!(said(&mut out), [("ack", 2, true)]);
        confirms.answer((1, first), [true; 2].into_iter(), &mut out);
        assert_eq!(said(&mut out), []);
    }

    #[test]
    fn pitfall_52_a_cumulative_ack_never_covers_a_nacked_tag() {
        let mut confirms = Confirms::default();
        let mut out = Outbound::default();
        let first = give(&mut confirms, 6);
        let stored = [true, true, false, true, true, true];
        confirms.answer((1, first), stored.into_iter(), &mut out);
        let expected = [
            ("ack", 2, true),
            ("nack", 3, false),
            ("ack", 4, false),
            ("ack", 5, false),
            ("ack", 6, false),
        ];
        assert_eq!(said(&mut out), expected);
        let next = give(&mut confirms, 2);
        confirms.answer((1, next), [true; 2].into_iter(), &mut out);
        assert_eq!(said(&mut out), [("ack", 7, false), ("ack", 8, false)]);
    }
}
