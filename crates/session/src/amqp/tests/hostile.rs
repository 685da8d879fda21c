//! No bytes make a session panic, and how bytes are cut makes no difference.

use tanda_engine::{
    AdminReply, AdminRequest, DeclaredQueue, Event, Form, Got, PublishError, PublishResult,
    Request, SubscribeError, SubscriptionEnd, TopologyCode,
};
use tanda_wire::amqp::{
    MethodId, PropertyValues, Table, TableWriter, Value, basic, channel, confirm, connection,
    exchange, queue, tx,
};

use super::{
    AmqpConfig, Peer, TUNE_OK, VHOST, client_properties, deliveries, deliveries_of, frame, id,
    message, plain, raw_frame, short, start_ok, topology_error,
};
use crate::Session;
use crate::login::{LoginError, Unrestricted};

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

/// The start of every conversation.
fn greeting() -> Vec<Vec<u8>> {
    let open = connection::Open {
        virtual_host: short("/"),
    };
    vec![
        b"AMQP\0\0\x09\x01".to_vec(),
        frame(0, start_ok(&client_properties(), b"\0guest\0guest")),
        frame(0, TUNE_OK),
        frame(0, open),
        frame(1, channel::Open {}),
        frame(2, channel::Open {}),
    ]
}

fn headers() -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    writer.value(short("x-fairness-key"), &Value::text("tenant"));
    writer.array(short("BCC"), |array| {
        array.value(&Value::text("b"));
    });
    writer.array(short("CC"), |array| {
        array.value(&Value::text("c"));
    });
    out
}

/// Messages, settlements and consumers.
fn messages() -> Vec<Vec<u8>> {
    let headers = headers();
    let properties = PropertyValues {
        headers: Some(Table::new(&headers).unwrap()),
        expiration: Some(short("5")),
        ..PropertyValues::default()
    };
    let mandatory = basic::Publish {
        exchange: short("ex"),
        mandatory: true,
        ..basic::Publish::default()
    };
    let consume = basic::Consume {
        queue: short("q"),
        consumer_tag: short("c"),
        ..basic::Consume::default()
    };
    let replies = basic::Consume {
        queue: short("amq.rabbitmq.reply-to"),
        no_ack: true,
        ..consume
    };
    let qos = basic::Qos {
        prefetch_count: 3,
        ..basic::Qos::default()
    };
    let ack = basic::Ack {
        delivery_tag: 0,
        multiple: true,
    };
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    vec![
        plain(1, "q", b"hello"),
        plain(1, "q", b""),
        message(2, mandatory, &properties, &[b'x'; 300]),
        frame(1, confirm::Select { no_wait: false }),
        plain(1, "q", b"confirmed"),
        frame(1, qos),
        frame(1, consume),
        frame(1, ack),
        frame(
            1,
            basic::Qos {
                global: true,
                ..qos
            },
        ),
        frame(1, basic::Recover { requeue: true }),
        frame(1, get),
        frame(2, tx::Select {}),
        message(2, mandatory, &properties, b"tx"),
        frame(2, tx::Commit {}),
        frame(2, replies),
        frame(2, tx::Rollback {}),
    ]
}

/// A conversation that uses every family of methods.
fn conversation() -> Vec<Vec<u8>> {
    let declare = queue::Declare {
        queue: short("q"),
        exclusive: true,
        ..queue::Declare::default()
    };
    let cancel = basic::Cancel {
        consumer_tag: short("c"),
        no_wait: false,
    };
    let delete = queue::Delete {
        queue: short("q"),
        ..queue::Delete::default()
    };
    let purge = queue::Purge {
        queue: short("q"),
        no_wait: false,
    };
    let mut all = greeting();
    all.extend([
        frame(1, declare),
        frame(1, exchange::Declare::default()),
        frame(1, queue::Bind::default()),
    ]);
    all.extend(messages());
    all.extend([
        frame(1, cancel),
        frame(1, purge),
        frame(1, delete),
        raw_frame(8, 0, b""),
        frame(1, channel::Close::default()),
        frame(0, connection::Close::default()),
    ]);
    all
}

/// The conversation, and what may not come.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = conversation();
    // Otherwise most sessions end early.
    frames.pop();
    let ack = |delivery_tag, multiple| basic::Ack {
        delivery_tag,
        multiple,
    };
    frames.extend([
        frame(1, ack(1, false)),
        frame(1, ack(2, true)),
        frame(2, ack(9, true)),
        frame(1, channel::CloseOk {}),
        frame(2, channel::CloseOk {}),
        frame(3, channel::Open {}),
    ]);
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
        Request::Transaction { reply, publish, .. } => vec![Event::Committed {
            token: reply.token,
            published: vec![PublishResult::Stored(id(1)); publish.items.len()],
            settled: Vec::new(),
        }],
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Unsubscribe { .. }
        | Request::Pool { .. }
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

/// Everything a session says, with an engine that answers at once.
fn transcript(chunks: &[&[u8]]) -> Vec<u8> {
    let mut peer = Peer::accepted(AmqpConfig::default());
    let mut said = Vec::new();
    for chunk in chunks {
        peer.send(chunk);
        loop {
            if peer.session.take_login().is_some() {
                let identity = std::sync::Arc::new(Unrestricted::new("guest"));
                peer.session.on_login(peer.now, Ok(identity));
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

/// Lines by channel, sorted: when confirms and deliveries come is the engine's affair.
fn by_channel(said: &[u8]) -> Vec<Vec<String>> {
    let mut lines = vec![Vec::new(); 3];
    for line in super::shown(said) {
        let number = usize::from(line.as_bytes()[0] - b'0');
        lines[number].push(line);
    }
    lines.iter_mut().for_each(|lines| lines.sort());
    lines
}

#[test]
fn a_conversation_cut_anywhere_is_the_same_conversation() {
    let whole = conversation().concat();
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    let expected = by_channel(&transcript(&bytes));
    assert!(
        expected.iter().map(Vec::len).sum::<usize>() > 30,
        "{expected:#?}"
    );
    for cut in 0..=whole.len() {
        let (left, right) = whole.split_at(cut);
        let said = by_channel(&transcript(&[left, right]));
        assert_eq!(said, expected, "cut at {cut}");
    }
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
                batch: deliveries_of(1, form, &[content]),
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

const LIMITS: fn() -> AmqpConfig = || AmqpConfig {
    max_message_bytes: 2_000,
    partial_bytes_max: 3_000,
    tx_bytes_max: 2_000,
    outbound_bytes_max: 2_000,
    reply_bytes_max: 2_000,
    consumers_max: 3,
    unacked_max: 5,
    requests_in_flight_max: 8,
    publish_bytes_in_flight_max: 4_000,
    ..AmqpConfig::default()
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
        _ => {
            peer.bytes();
        }
    }
}

/// One session under random bytes, events, refusals and time.
fn torment(seed: u64, frames: &[Vec<u8>]) {
    let mut random = Random(seed);
    let mut peer = Peer::accepted(LIMITS());
    if random.below(8) > 0 {
        for frame in greeting() {
            peer.send(&frame);
        }
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
        if peer.session.take_login().is_some() {
            let answer = if random.below(20) == 0 {
                Err(LoginError::Refused)
            } else {
                let identity = Unrestricted::new("guest");
                Ok(std::sync::Arc::new(identity) as std::sync::Arc<dyn crate::login::Identity>)
            };
            peer.session.on_login(peer.now, answer);
        }
        for request in peer.all_requests() {
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
        let is_length = (3..7).contains(&at) || at + 1 == frame.len();
        if at > 0 && (!is_length || random.below(20) == 0) {
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
fn every_method_bears_every_short_payload() {
    let mut random = Random(5);
    for id in MethodId::all() {
        for len in 0..24 {
            for fill in [0, 1, 0xFF] {
                let mut payload = id.to_bytes().to_vec();
                payload.extend(if fill == 1 {
                    random.bytes(len)
                } else {
                    vec![fill; len]
                });
                for number in [0, 1, 2] {
                    let mut peer = Peer::open();
                    peer.send(&raw_frame(1, number, &payload));
                    peer.all_requests();
                    peer.bytes();
                    peer.session.close();
                }
            }
        }
    }
}
