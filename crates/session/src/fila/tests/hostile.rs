//! No bytes make a session panic, and how bytes are cut makes no difference.

use bytes::BytesMut;
use tanda_engine::{AdminReply, Event, PublishResult, QueueNotFound, Request, SubscribeError};
use tanda_wire::fila::config::{GetConfig, SetConfig};
use tanda_wire::fila::consume::{CancelConsume, Consume, Credit};
use tanda_wire::fila::control::{Disconnect, Ping};
use tanda_wire::fila::queue_admin::{CreateQueue, ListQueues};
use tanda_wire::fila::stats::GetStats;
use tanda_wire::fila::{Capabilities, Opcode};

use super::{Peer, config, deliveries, frame_of, handshake, id, raw_frame, token};
use crate::fila::SessionConfig;

/// A small generator with a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// A conversation that uses every family of frames, some of them wrong.
fn conversation() -> Vec<Vec<u8>> {
    let message = b"\0\0\0\x01\0\x01q\0\x01\0\x01a\0\x01b\0\0\0\x03abc\x01\0\x01k\0\0\0";
    vec![
        handshake(1, Capabilities::CREDIT_FLOW_CONTROL),
        frame_of(
            1,
            &CreateQueue {
                name: "q",
                ..CreateQueue::default()
            },
        ),
        raw_frame(0x10, 0, 2, message),
        frame_of(
            3,
            &Consume {
                queue: "q",
                credit: 5,
                ..Consume::default()
            },
        ),
        frame_of(
            3,
            &Credit {
                additional_credit: 2,
            },
        ),
        frame_of(4, &Ping {}),
        raw_frame(0x10, 1, 5, &message[..7]),
        raw_frame(0x17, 0, 6, b"\0\0\0\x01\0\x01q0123456789abcdef"),
        raw_frame(0x10, 0, 5, &message[7..]),
        raw_frame(0x19, 0, 7, b"\0\0\0\x01\0\x01q0123456789abcdef\0\x02no\0"),
        raw_frame(
            0x1B,
            0,
            8,
            b"\0\0\0\x01\0\x01q0123456789abcdef\0\0\0\0\0\0\0\x09",
        ),
        raw_frame(0x99, 0, 9, b"?"),
        raw_frame(0xEE, 0, 9, b"?"),
        frame_of(10, &ListQueues {}),
        frame_of(0, &ListQueues {}),
        frame_of(
            11,
            &SetConfig {
                key: "k",
                value: "v",
            },
        ),
        frame_of(12, &GetConfig { key: "k" }),
        frame_of(13, &GetStats { queue: "q" }),
        raw_frame(0xDD, 0, 14, b"\0\0\0\x02\0\x01q\0\x01r"),
        raw_frame(0xD9, 0, 15, b"\0\x01q\0\0\0\0\0\0\0\x01"),
        raw_frame(0xD5, 0, 16, b""),
        raw_frame(0x10, 0, 17, &[0xFF; 9]),
        frame_of(3, &CancelConsume {}),
        frame_of(0, &Disconnect {}),
    ]
}

/// Everything a session asks and says, with an engine that answers at once.
fn transcript(chunks: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let mut peer = Peer::accepted(config());
    let (mut asked, mut said) = (Vec::new(), Vec::new());
    for chunk in chunks {
        peer.send(chunk);
        while let Some(request) = peer.session.next_request() {
            asked.push(format!("{request:?}"));
            if let Some(event) = plain_answer(&request) {
                peer.event(event);
            }
        }
        said.extend_from_slice(&peer.bytes());
    }
    assert!(peer.session.is_closing());
    (asked, said)
}

fn plain_answer(request: &Request) -> Option<Event> {
    Some(match request {
        Request::Publish { reply, batch } => Event::Published {
            token: reply.token,
            results: vec![PublishResult::Stored(id(1, 1)); batch.items.len()],
        },
        Request::Settle { reply, batch } => Event::Settled {
            token: reply.token,
            results: vec![Err(tanda_engine::SettleError::MessageNotFound); batch.items.len()],
        },
        Request::Subscribe { sub, .. } => Event::Subscribed {
            token: sub.token,
            consumer: 1,
        },
        Request::Admin { reply, .. } => Event::Admin {
            token: reply.token,
            reply: Box::new(AdminReply::Inspected(Err(QueueNotFound))),
        },
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Unsubscribe { .. }
        | Request::Pool { .. }
        | Request::Get { .. }
        | Request::Transaction { .. }
        | Request::Keys { .. }
        | Request::CancelWait { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::Watch { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::ScriptDone { .. } => return None,
    })
}

#[test]
fn a_conversation_cut_anywhere_is_the_same_conversation() {
    let whole = conversation().concat();
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    let (asked, said) = transcript(&bytes);
    // Answers come when the engine gives them, so the order is that of byte-by-byte feeding
    // only where nothing is asked in one go. The content is the same however it is cut.
    let frames = |said: &[u8]| {
        let mut frames: Vec<_> = super::parse(said)
            .iter()
            .map(|frame| format!("{frame:?}"))
            .collect();
        frames.sort();
        frames
    };
    assert!(asked.len() > 12, "{asked:?}");
    let expected = frames(&said);
    for cut in 0..=whole.len() {
        let (left, right) = whole.split_at(cut);
        let (asked_cut, said_cut) = transcript(&[left, right]);
        assert_eq!(
            without_tokens(&asked_cut),
            without_tokens(&asked),
            "cut at {cut}"
        );
        assert_eq!(frames(&said_cut), expected, "cut at {cut}");
    }
}

/// Which slot a request gets depends on which answers came before.
fn without_tokens(asked: &[String]) -> Vec<String> {
    let strip = |text: &String| {
        let mut parts = text.split("token: ");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        out
    };
    asked.iter().map(strip).collect()
}

#[test]
fn a_conversation_without_answers_is_the_same_to_the_byte() {
    let mut whole = conversation();
    whole.pop();
    let whole = whole.concat();
    let run = |size: usize| {
        let mut peer = Peer::accepted(config());
        for chunk in whole.chunks(size) {
            peer.send(chunk);
        }
        (format!("{:?}", peer.requests()), peer.bytes())
    };
    let at_once = run(whole.len());
    for size in 1..64 {
        assert_eq!(run(size), at_once, "in pieces of {size}");
    }
}

/// An event of any kind for any token: the session must bear those that are not its own.
fn any_event(random: &mut Random, token: u32) -> Event {
    match random.below(9) {
        0 => Event::Published {
            token,
            results: vec![PublishResult::Stored(id(1, 1))],
        },
        1 => Event::Settled {
            token,
            results: vec![],
        },
        2 => Event::Subscribed { token, consumer: 1 },
        3 => Event::SubscribeFailed {
            token,
            error: SubscribeError::QueueNotFound,
        },
        4 => Event::Delivery {
            token,
            batch: deliveries(&[b"x", b"y"]),
        },
        5 => Event::SubscriptionEnded {
            token,
            reason: tanda_engine::SubscriptionEnd::QueueDeleted,
        },
        6 => Event::Admin {
            token,
            reply: Box::new(AdminReply::Queues(vec![])),
        },
        7 => Event::Admin {
            token,
            reply: Box::new(AdminReply::Config(None)),
        },
        _ => Event::StorageFailed { token },
    }
}

/// One session under random bytes, events, refusals and time.
fn torment(seed: u64, frames: &[Vec<u8>]) {
    let mut random = Random(seed);
    let limits = SessionConfig {
        max_frame_size: 4096,
        max_body_bytes: 10_000,
        requests_in_flight_max: 8,
        admin_in_flight_max: 3,
        reply_bytes_max: 2_000,
        outbound_bytes_max: 2_000,
        ..config()
    };
    let mut peer = Peer::accepted(limits);
    if random.below(8) > 0 {
        peer.send(&frames[0]);
    }
    let mut tokens = vec![0];
    for _ in 0..60 {
        match random.below(10) {
            0 => {
                let len = random.below(40);
                let bytes = random.bytes(len);
                peer.send(&bytes);
            }
            1..=5 => {
                let bytes = mutated(&mut random, frames);
                peer.send(&bytes);
            }
            6 => {
                let token = match random.below(4) {
                    0 => u32::try_from(random.below(1 << 20)).unwrap(),
                    _ => tokens[random.below(tokens.len())],
                };
                let event = any_event(&mut random, token);
                peer.event(event);
            }
            7 => {
                let ms = random.below(20_000) as u64;
                peer.pass_ms(ms);
            }
            8 => {
                let len = peer.session.output().len();
                let take = random.below(len + 1);
                bytes::Buf::advance(peer.session.output(), take);
                peer.session.on_written(take);
            }
            _ if random.below(30) == 0 => peer.session.close(),
            _ => {}
        }
        for request in peer.requests() {
            if random.below(6) == 0 {
                peer.session.on_refused(request);
            } else if !matches!(
                request,
                Request::Connect { .. } | Request::Disconnect { .. } | Request::Drained { .. }
            ) {
                tokens.push(token(&request));
            }
        }
        peer.session.assert_invariants();
    }
    peer.session.close();
    peer.session.assert_invariants();
}

/// A frame of the conversation with some bytes changed, its length usually kept right.
fn mutated(random: &mut Random, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut frame = frames[random.below(frames.len())].clone();
    for _ in 0..random.below(4) {
        let at = random.below(frame.len());
        if at > 3 || random.below(20) == 0 {
            frame[at] = random.byte();
        }
    }
    if random.below(4) == 0 {
        let len = frame.len() - 10;
        let cut = 10 + random.below(len + 1);
        frame.truncate(cut);
        let length = u32::try_from(cut - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
    }
    frame
}

#[test]
fn no_bytes_and_no_events_make_a_session_panic() {
    let frames = conversation();
    for seed in 0..4_000 {
        torment(seed, &frames);
    }
}

#[test]
fn every_opcode_bears_every_short_body() {
    let mut random = Random(5);
    for number in 0..=u8::MAX {
        let mut peer = Peer::open();
        for len in 0..24 {
            for fill in [0, 1, 0xFF] {
                let body = if fill == 1 {
                    random.bytes(len)
                } else {
                    vec![fill; len]
                };
                if Opcode::from_wire(number) == Opcode::Disconnect {
                    continue;
                }
                peer.send(&raw_frame(number, 0, 5, &body));
                for request in peer.requests() {
                    peer.session.on_refused(request);
                }
                peer.bytes();
                assert!(!peer.session.is_closing(), "0x{number:02X} {body:?}");
            }
        }
    }
}

#[test]
fn a_gone_session_is_quiet() {
    let mut peer = Peer::open();
    peer.subscribe(1);
    peer.session.close();
    let mut input = BytesMut::from(&frame_of(4, &Ping {})[..]);
    peer.session.on_bytes(peer.now, &mut input);
    assert!(input.is_empty());
    assert!(peer.session.output().is_empty());
    peer.session.begin_shutdown(peer.now);
    peer.session.on_written(10);
    peer.pass_ms(100_000);
    assert!(peer.session.output().is_empty());
    assert!(matches!(peer.requests()[..], [Request::Disconnect { .. }]));
}
