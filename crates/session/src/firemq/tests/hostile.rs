//! No bytes make a session panic, and how bytes are cut makes no difference.

use std::sync::Arc;

use tanda_engine::{
    AdminReply, AdminRequest, DeclaredQueue, Event, Form, Got, PublishError, PublishResult,
    Request, SubscribeError, SubscriptionEnd, TopologyCode,
};
use tanda_wire::firemq::consume::{Ack, Credit, Get, Nack, Subscribe, Unsubscribe};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::session::{Close, Ping};
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::firemq::{Op, RawMap, Value};

use super::{
    FireConfig, Peer, VHOST, deliveries, deliveries_of, frame, frame_with, hello, id, map, message,
    publish, raw_frame, to_q, topology_error,
};
use crate::Session;
use crate::login::{Identity, LoginError, Unrestricted};

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

/// Messages, settlements and subscriptions.
fn messages() -> Vec<Vec<u8>> {
    let headers = map(&[
        ("x-fairness-key", Value::Uint(7)),
        ("x-idempotency-key", Value::Str("once")),
        ("h", Value::Bool(true)),
    ]);
    let mandatory = Publish {
        seq: 2,
        exchange: "ex",
        key: "key",
        mandatory: true,
        persistent: true,
        headers: RawMap::decode(&headers).unwrap(),
        ..Publish::default()
    };
    let get = |rid| Get {
        rid,
        queue: "q",
        no_ack: rid == 3,
    };
    vec![
        message(0, "q", b"hello"),
        message(1, "q", b""),
        frame_with(&mandatory, &[b'x'; 300]),
        message(3, "q", b"confirmed"),
        frame(&to_q(1)),
        frame(&Ack {
            tag: 1,
            multiple: false,
        }),
        frame(&Nack {
            tag: 2,
            multiple: true,
            requeue: true,
        }),
        frame(&Credit { sub: 1, credit: 5 }),
        frame(&get(2)),
        frame(&get(3)),
        frame(&Unsubscribe { rid: 4, sub: 1 }),
        frame(&Subscribe {
            no_ack: true,
            ..to_q(1)
        }),
    ]
}

/// A conversation that uses every op of a client.
fn conversation() -> Vec<Vec<u8>> {
    let mut all = vec![
        b"FMQ1".to_vec(),
        frame(&hello()),
        frame(&DeclareExchange {
            rid: 10,
            name: "ex",
            kind: "topic",
            ..DeclareExchange::default()
        }),
        frame(&DeclareQueue {
            rid: 11,
            name: "q",
            exclusive: true,
            ..DeclareQueue::default()
        }),
        frame(&Bind {
            rid: 12,
            exchange: "ex",
            queue: "q",
            ..Bind::default()
        }),
    ];
    all.extend(messages());
    all.extend([
        frame(&Ping {}),
        raw_frame(0x39, b"", b""),
        frame(&Unbind {
            rid: 13,
            exchange: "ex",
            queue: "q",
            ..Unbind::default()
        }),
        frame(&PurgeQueue { rid: 14, name: "q" }),
        frame(&DeleteQueue {
            rid: 15,
            name: "q",
            ..DeleteQueue::default()
        }),
        frame(&DeleteExchange {
            rid: 16,
            name: "ex",
            if_unused: false,
        }),
        frame(&Close::default()),
    ]);
    all
}

/// The conversation, and what may not come.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = conversation();
    // Otherwise most sessions end early.
    frames.pop();
    frames.remove(0);
    frames.extend((4..10).map(|seq| message(seq, "q", b"next")));
    frames.extend([1, 4, 9].map(|tag| {
        frame(&Ack {
            tag,
            multiple: true,
        })
    }));
    frames.extend([1, 2, 3].map(|sub| frame(&to_q(sub))));
    frames.push(frame(&publish(0, &"k".repeat(300))));
    frames
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "sessions of this protocol ask no more"
)]
fn plain_reply(request: &AdminRequest) -> AdminReply {
    let name = |name: &str| DeclaredQueue {
        name: if name.is_empty() { "amq.gen-1" } else { name }.to_owned(),
        messages: 3,
        consumers: 0,
    };
    match request {
        AdminRequest::OpenVhost { .. } => AdminReply::Vhost(Ok(VHOST)),
        AdminRequest::DeclareExchange(_) => AdminReply::ExchangeDeclared(Ok(())),
        AdminRequest::DeclareQueue(it) => AdminReply::QueueDeclared(Ok(name(&it.name))),
        AdminRequest::Bind(_) => AdminReply::Bound(Ok(())),
        AdminRequest::Purge { .. } => AdminReply::QueuePurged(Ok(2)),
        AdminRequest::RemoveQueue { .. } | AdminRequest::RemoveOwnQueues => {
            AdminReply::QueueRemoved(Ok(2))
        }
        AdminRequest::DeleteExchange { .. } => AdminReply::ExchangeDeleted(Ok(())),
        AdminRequest::Unbind(_) => AdminReply::Unbound(Ok(())),
        _ => panic!("{request:?}"),
    }
}

/// What an engine that has everything says at once.
fn plain_answer(request: &Request) -> Vec<Event> {
    match request {
        Request::Publish { reply, batch } => vec![Event::Published {
            token: reply.token,
            results: vec![PublishResult::Unroutable; batch.items.len()],
        }],
        Request::Settle { reply, .. } => vec![Event::Settled {
            token: reply.token,
            results: Vec::new(),
        }],
        Request::Subscribe { sub, .. } => vec![
            Event::Subscribed {
                token: sub.token,
                consumer: 1,
            },
            Event::Delivery {
                token: sub.token,
                batch: deliveries(1, 2),
            },
        ],
        Request::Admin { reply, request } => vec![Event::Admin {
            token: reply.token,
            reply: Box::new(plain_reply(request)),
        }],
        Request::Get { reply, .. } => vec![Event::Got {
            token: reply.token,
            result: Ok(Got {
                batch: Some(deliveries(5, 1)),
                remaining: 1,
            }),
        }],
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Unsubscribe { .. }
        | Request::Pool { .. }
        | Request::Transaction { .. }
        | Request::Keys { .. }
        | Request::CancelWait { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::Watch { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::ScriptDone { .. } => Vec::new(),
    }
}

fn guest() -> Arc<dyn Identity> {
    Arc::new(Unrestricted::new("guest"))
}

/// Everything a session says, with an engine that answers at once.
fn transcript(chunks: &[&[u8]]) -> Vec<u8> {
    let mut peer = Peer::accepted(FireConfig::default());
    let mut said = Vec::new();
    for chunk in chunks {
        peer.send(chunk);
        loop {
            if peer.session.take_login().is_some() {
                peer.session.on_login(peer.now, Ok(guest()));
                peer.send(b"");
            }
            let requests = peer.requests();
            if requests.is_empty() {
                break;
            }
            for request in requests {
                for event in plain_answer(&request) {
                    peer.event(event);
                }
            }
        }
        said.extend_from_slice(&peer.bytes());
    }
    assert!(peer.session.is_closing());
    said
}

/// Lines, sorted: when confirms and deliveries come is the engine's affair.
fn lines(said: &[u8]) -> Vec<String> {
    let mut lines = super::shown(said);
    // How many publishes one confirm covers is the engine's affair too, but for the last.
    let is_upto = |line: &String| line.starts_with("confirm upto=");
    let last = lines.iter().rfind(|line| is_upto(line)).cloned();
    lines.retain(|line| !is_upto(line));
    lines.extend(last);
    // Which tag a message has depends on what came before it; an ack of the second may come early.
    lines.retain(|line| !line.starts_with("error code=406 msg=unknown delivery tag"));
    lines.sort();
    lines
}

#[test]
fn a_conversation_cut_anywhere_is_the_same_conversation() {
    // What is acknowledged must have come: only when it is sent frame by frame.
    let mut all = conversation();
    all.retain(|frame| !matches!(frame.get(4), Some(0x35 | 0x36)));
    let whole = all.concat();
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    let expected = lines(&transcript(&bytes));
    assert!(expected.len() > 20, "{expected:#?}");
    for cut in 0..=whole.len() {
        let (left, right) = whole.split_at(cut);
        let said = lines(&transcript(&[left, right]));
        assert_eq!(said, expected, "cut at {cut}");
    }
}

#[test]
fn a_conversation_frame_by_frame_has_no_error_but_the_unknown_op() {
    let all = conversation();
    let frames: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let said = super::shown(&transcript(&frames));
    let errors: Vec<&String> = said.iter().filter(|it| it.starts_with("error")).collect();
    assert_eq!(errors, ["error code=540 msg=unknown op 0x39"]);
    assert_eq!(said.last().map(String::as_str), Some("close code=200"));
}

fn any_results(random: &mut Random) -> Vec<PublishResult> {
    let count = random.below(4);
    let any = |random: &mut Random| match random.below(8) {
        0 => PublishResult::Unroutable,
        1 => PublishResult::Refused(PublishError::QueueFull),
        2 => PublishResult::Refused(PublishError::ExchangeNotFound),
        _ => PublishResult::Stored(id(1)),
    };
    (0..count).map(|_| any(random)).collect()
}

/// An event of any kind for any token: the session must bear those that are not its own.
fn any_event(random: &mut Random, token: u32) -> Event {
    let error = || topology_error(TopologyCode::NotFound, "why");
    let reply = |reply| Event::Admin {
        token,
        reply: Box::new(reply),
    };
    match random.below(14) {
        0 => Event::Published {
            token,
            results: any_results(random),
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
            batch: deliveries(1, 3),
        },
        5 => {
            let len = random.below(40);
            let content = random.bytes(len);
            let form = [Form::Fila, Form::Amqp, Form::Fire][random.below(3)];
            Event::Delivery {
                token,
                batch: deliveries_of(1, form, &[content, vec![0; 3_000]]),
            }
        }
        6 => Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::QueueDeleted,
        },
        7 => Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::AckTimedOut { timeout_ms: 5 },
        },
        8 => Event::Committed {
            token,
            published: any_results(random),
            settled: vec![],
        },
        9 => Event::Got {
            token,
            result: Ok(Got {
                batch: Some(deliveries(1, 1)),
                remaining: 1,
            }),
        },
        10 => reply(AdminReply::Vhost(Ok(VHOST))),
        11 => reply(AdminReply::QueueDeclared(error())),
        12 => reply(AdminReply::Bound(Ok(()))),
        _ if random.below(4) == 0 => Event::StorageFailed { token },
        _ => reply(AdminReply::QueuePurged(Ok(1))),
    }
}

const LIMITS: fn() -> FireConfig = || FireConfig {
    max_frame: 2_500,
    max_message_bytes: 2_000,
    outbound_bytes_max: 2_000,
    reply_bytes_max: 2_000,
    subscriptions_max: 3,
    unacked_max: 5,
    requests_in_flight_max: 8,
    publish_bytes_in_flight_max: 4_000,
    ..FireConfig::default()
};

fn token_of(request: &Request) -> Option<u32> {
    match request {
        Request::Publish { reply, .. }
        | Request::Settle { reply, .. }
        | Request::Get { reply, .. }
        | Request::Transaction { reply, .. }
        | Request::Admin { reply, .. } => Some(reply.token),
        Request::Subscribe { sub, .. }
        | Request::Grant { sub, .. }
        | Request::Unsubscribe { sub, .. } => Some(sub.token),
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Pool { .. }
        | Request::Keys { .. }
        | Request::CancelWait { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::Watch { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::ScriptDone { .. } => None,
    }
}

/// What happens beside bytes and events.
fn befall(random: &mut Random, peer: &mut Peer) {
    match random.below(8) {
        0 => {
            let ms = random.below(40_000) as u64;
            peer.pass_ms(ms);
        }
        1 => {
            let len = peer.session.output().len();
            let take = random.below(len + 1);
            bytes::Buf::advance(peer.session.output(), take);
            peer.session.on_written(take);
        }
        2 => {
            let reason = [None, Some("memory")][random.below(2)];
            peer.session.on_alarm(peer.now, reason);
        }
        3 if random.below(20) == 0 => peer.session.close(),
        4 if random.below(20) == 0 => peer.session.begin_shutdown(peer.now),
        5 if random.below(20) == 0 => peer.session.on_end(peer.now),
        6 if random.below(20) == 0 => peer.session.on_overload(peer.now),
        _ => drop(peer.session.output().split()),
    }
}

fn let_in(random: &mut Random, peer: &mut Peer) {
    if peer.session.take_login().is_some() {
        let answer = if random.below(20) == 0 {
            Err(LoginError::Refused)
        } else {
            Ok(guest())
        };
        peer.session.on_login(peer.now, answer);
    }
}

/// One session under random bytes, events, refusals and time.
fn torment(seed: u64, frames: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut peer = Peer::accepted(LIMITS());
    if random.below(8) > 0 {
        peer.send(b"FMQ1");
        peer.say(&hello());
    }
    let mut tokens = vec![0];
    for _ in 0..80 {
        match random.below(10) {
            0 if random.below(20) == 0 => {
                let len = random.below(40);
                let bytes = random.bytes(len);
                peer.send(&bytes);
            }
            0..=5 => {
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
            _ => befall(&mut random, &mut peer),
        }
        let_in(&mut random, &mut peer);
        while let Some(request) = peer.session.next_request() {
            if random.below(12) == 0 {
                peer.session.on_refused(request);
                continue;
            }
            tokens.extend(token_of(&request));
            if random.below(3) > 0 {
                for event in plain_answer(&request) {
                    peer.event(event);
                }
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
    if random.below(3) > 0 {
        return frame;
    }
    for _ in 0..random.below(3) {
        let at = random.below(frame.len());
        let is_length = at < 4 || (5..9).contains(&at);
        if !is_length || random.below(20) == 0 {
            frame[at] = if random.below(2) == 0 {
                random.byte()
            } else {
                frame[at].wrapping_add(1)
            };
        }
    }
    frame
}

#[test]
fn no_bytes_and_no_events_make_a_session_panic() {
    let frames = frames();
    for seed in 0..4_000 {
        torment(seed, &frames);
    }
}

#[test]
fn every_op_bears_every_short_header() {
    let mut random = Random(5);
    for op in 0..=u8::MAX {
        let is_known = Op::ALL.iter().any(|known| known.to_wire() == op);
        for len in 0..if is_known { 24 } else { 2 } {
            let header = random.bytes(len);
            for open in [true, false] {
                let mut peer = if open {
                    Peer::open()
                } else {
                    let mut peer = Peer::accepted(FireConfig::default());
                    peer.send(b"FMQ1");
                    peer
                };
                peer.send(&raw_frame(op, &header, b"payload"));
                peer.requests();
                // What it says can be read.
                peer.lines();
                peer.session.close();
            }
        }
    }
}
