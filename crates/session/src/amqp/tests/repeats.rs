//! Messages like the one before are taken without a look, and must become what they would have
//! become with one: when each frame comes alone, nothing is ever like what came before.

use tanda_engine::{PublishItem, Request, Span};
use tanda_wire::amqp::{
    LongStr, PropertyValues, Split, Table, TableWriter, Value, basic, split_frame,
};

use super::{Peer, message, short, stored, table};

/// A small generator: the draws need to be the same in every run, and no more.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// What became of one message, without where it stands in its request.
type Taken = (Vec<u8>, String, String, Vec<String>);

/// What the broker is asked for, and what the peer hears.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    messages: Vec<Taken>,
    lines: Vec<String>,
}

fn drain(peer: &mut Peer, outcome: &mut Outcome) {
    for request in peer.requests() {
        let Request::Publish { reply, batch } = request else {
            panic!("{request:?}")
        };
        for item in &batch.items {
            let keys = item.extra_keys;
            let keys = batch.extra_keys.iter().skip(keys.start as usize);
            let keys = keys.take(item.extra_keys.len as usize);
            let placeless = PublishItem {
                content: Span::default(),
                fairness_key: Span::default(),
                idempotency_key: None,
                extra_keys: Span::default(),
                ..*item
            };
            let taken = (
                item.content.of(&batch.data).to_vec(),
                format!("{placeless:?}"),
                item.fairness_key.text(&batch.data).to_owned(),
                keys.map(|key| key.text(&batch.data).to_owned()).collect(),
            );
            outcome.messages.push(taken);
        }
        peer.event(stored(reply.token, batch.items.len()));
    }
    // How confirms are grouped follows from how messages are; the last tag does not.
    let lines = peer.lines();
    outcome
        .lines
        .extend(lines.into_iter().filter(|line| !line.contains("Ack(")));
}

fn drawn(draw: &mut Draw) -> Vec<u8> {
    let headers = table(&[
        ("x-fairness-key", Value::LongString(LongStr::clip("tenant"))),
        ("n", Value::I32(7)),
    ]);
    let mut copies = Vec::new();
    let mut writer = TableWriter::new(&mut copies);
    writer.array(short("CC"), |keys| {
        keys.value(&Value::LongString(LongStr::clip("copy")));
    });
    let mut all = Vec::new();
    let channel = 1 + u16::try_from(draw.below(2)).unwrap();
    let publish = basic::Publish {
        exchange: short(["", "x"][usize::try_from(draw.below(2)).unwrap()]),
        routing_key: short(["q", "other"][usize::try_from(draw.below(2)).unwrap()]),
        mandatory: draw.below(4) == 0,
        ..basic::Publish::default()
    };
    let properties = PropertyValues {
        delivery_mode: (draw.below(2) == 0).then_some(2),
        headers: match draw.below(5) {
            0 => Some(Table::new(&headers).unwrap()),
            1 => Some(Table::new(&copies).unwrap()),
            _ => None,
        },
        expiration: (draw.below(8) == 0).then(|| short("1000")),
        ..PropertyValues::default()
    };
    for _ in 0..draw.below(6) {
        let size = match draw.below(20) {
            0 => 200_000,
            1 => 0,
            other => usize::try_from(other * 3).unwrap(),
        };
        let body: Vec<u8> = (0..size)
            .map(|_| u8::try_from(draw.below(256)).unwrap())
            .collect();
        all.extend(message(channel, publish, &properties, &body));
    }
    all
}

fn run(all: &[u8], cut: impl Fn(&[u8]) -> usize) -> Outcome {
    let mut peer = Peer::open();
    peer.open_channel(2);
    peer.confirm_select(2);
    let mut outcome = Outcome::default();
    let mut rest = all;
    while !rest.is_empty() {
        let (part, others) = rest.split_at(cut(rest).min(rest.len()));
        peer.send(part);
        drain(&mut peer, &mut outcome);
        rest = others;
    }
    outcome
}

fn one_frame(bytes: &[u8]) -> usize {
    match split_frame(bytes, u32::MAX).unwrap() {
        Split::Frame(frame) => frame.consumed(),
        Split::Incomplete { .. } => bytes.len(),
    }
}

#[test]
fn messages_that_repeat_become_what_they_are() {
    for seed in 0..60 {
        let mut draw = Draw(seed);
        let all: Vec<u8> = (0..12).flat_map(|_| drawn(&mut draw)).collect();
        let expected = run(&all, one_frame);
        assert_eq!(run(&all, <[u8]>::len), expected, "in one read, seed {seed}");
        let size = 1 + usize::try_from(draw.below(300)).unwrap();
        assert_eq!(
            run(&all, |_| size),
            expected,
            "in reads of {size}, seed {seed}"
        );
    }
}

#[test]
fn a_method_of_another_channel_in_between_is_not_repeated() {
    let publish = |channel, key| {
        let publish = basic::Publish {
            routing_key: short(key),
            ..basic::Publish::default()
        };
        message(channel, publish, &PropertyValues::default(), b"body")
    };
    let (one, two) = (publish(1, "first"), publish(2, "second"));
    let (a, b) = (one_frame(&one), one_frame(&two));
    // Both methods, then both contents.
    let woven = [&one[..a], &two[..b], &two[b..], &one[a..]].concat();
    let all = woven.repeat(3);
    let expected = run(&all, one_frame);
    assert_eq!(expected.messages.len(), 6);
    assert_eq!(run(&all, <[u8]>::len), expected);
}

#[test]
fn a_repeated_message_must_end_as_frames_do() {
    let plain = |body: &[u8]| super::plain(1, "q", body);
    let mut bad = plain(b"12345");
    let at = bad.len() - 1;
    bad[at] = 0;
    let all = [plain(b"1"), plain(b"22"), bad].concat();
    let mut peer = Peer::open();
    peer.send(&all);
    assert!(peer.lines()[0].contains("reply_code: 501"));
}
