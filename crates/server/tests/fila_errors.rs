//! Every error code that a single node can give, as a client meets it. (fila.md, "Error Codes")

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

#[path = "support/frames.rs"]
mod frames;
mod support;

use std::{collections::BTreeSet, io::Write};

use frames::{ack, bytes};
use support::{Peer, TempDir, TestServer};
use tanda_wire::fila::{
    Body, Capabilities, ErrorCode, Opcode,
    cluster::{DrainNode, DrainNodeResult},
    consume::{Consume, ConsumeOk, ThrottleDeclaration, ThrottleLimit},
    control::Handshake,
    enqueue::EnqueueItem,
    error::ErrorFrame,
    keys::{RevokeApiKey, RevokeApiKeyResult},
    property_key::{KeyPart, PropertyKey},
    queue_admin::{CreateQueue, CreateQueueResult, DeleteQueue, UpdateQueue, UpdateQueueResult},
    redrive::{Redrive, RedriveResult},
    settle::AckResult,
    throttle::{GetThrottleStats, GetThrottleStatsResult},
};

/// What only a cluster can say.
const CLUSTER_ONLY: [ErrorCode; 3] = [
    ErrorCode::NotLeader,
    ErrorCode::NodeNotReady,
    ErrorCode::AuthStateStale,
];

/// What this broker never has a reason to say.
const NEVER: [(ErrorCode, &str); 3] = [
    (
        ErrorCode::ParentQueueNotFound,
        "a queue and its dead-letter queue are deleted together",
    ),
    (
        ErrorCode::CreditExhausted,
        "the broker alone keeps account of credit: none can diverge",
    ),
    (ErrorCode::InternalError, "only a bug is"),
];

/// What the tests of API keys and permissions show.
const ELSEWHERE: [ErrorCode; 2] = [ErrorCode::Unauthorized, ErrorCode::Forbidden];

struct Case {
    code: ErrorCode,
    options: &'static [(&'static str, &'static str)],
    meet: fn(&mut Peer) -> ErrorCode,
}

const fn case(code: ErrorCode, meet: fn(&mut Peer) -> ErrorCode) -> Case {
    Case {
        code,
        options: &[],
        meet,
    }
}

/// How each is met. The peer has a queue `q`.
const CASES: [Case; 22] = [
    case(ErrorCode::Ok, |peer| enqueue(peer, "q")),
    case(ErrorCode::QueueNotFound, |peer| enqueue(peer, "none")),
    case(ErrorCode::MessageNotFound, |peer| {
        let answer = peer.ask_bytes(Opcode::Ack, 5, &ack("q", [7; 16]));
        answer.parse::<AckResult>().results[0]
    }),
    case(ErrorCode::QueueAlreadyExists, |peer| {
        create(peer, &named("q"))
    }),
    case(ErrorCode::LuaCompilationError, |peer| {
        let queue = CreateQueue {
            on_enqueue_script: Some("function on_enqueue(msg"),
            ..named("scripted")
        };
        create(peer, &queue)
    }),
    Case {
        code: ErrorCode::StorageError,
        options: &[("memory.limit", "1KiB")],
        meet: |peer| {
            let mut codes = (0..10_000).map(|_| enqueue(peer, "q"));
            codes.find(|code| *code != ErrorCode::Ok).unwrap()
        },
    },
    case(ErrorCode::NotADLQ, |peer| {
        let redrive = Redrive {
            dlq_queue: "q",
            ..Redrive::default()
        };
        peer.ask(5, &redrive).parse::<RedriveResult>().error_code
    }),
    case(ErrorCode::InvalidConfigValue, |peer| {
        let queue = CreateQueue {
            ordering: 9,
            ..named("odd")
        };
        create(peer, &queue)
    }),
    Case {
        code: ErrorCode::ChannelFull,
        options: &[("limits.waiting_max", "64")],
        meet: flood,
    },
    case(ErrorCode::UnsupportedVersion, |peer| {
        refused_handshake(peer, 0)
    }),
    case(ErrorCode::InvalidFrame, |peer| {
        peer.ask_bytes(Opcode::Unknown(0x7F), 5, &[]).error()
    }),
    case(ErrorCode::InvalidThrottle, |peer| {
        let throttle = ThrottleDeclaration {
            name: "no limits",
            ..ThrottleDeclaration::default()
        };
        peer.ask(5, &consume(throttle)).error()
    }),
    case(ErrorCode::ThrottleConflict, |peer| {
        let throttle = |header: &'static str| ThrottleDeclaration {
            name: "api",
            limits: vec![ThrottleLimit {
                max_deliveries: 1,
                window_ms: 1000,
            }],
            key: PropertyKey {
                parts: vec![KeyPart {
                    kind: 0,
                    name: header,
                }],
            },
            when_key_missing: 0,
        };
        peer.ask(5, &consume(throttle("tenant")))
            .parse::<ConsumeOk<'_>>();
        peer.ask(6, &consume(throttle("account"))).error()
    }),
    case(ErrorCode::ApiKeyNotFound, |peer| {
        let revoke = RevokeApiKey { key_id: "none" };
        peer.ask(5, &revoke)
            .parse::<RevokeApiKeyResult>()
            .error_code
    }),
    case(ErrorCode::ScriptError, |peer| {
        enqueue_scripted(peer, "function on_enqueue(msg) error('no') end")
    }),
    case(ErrorCode::ScriptTimeout, |peer| {
        enqueue_scripted(peer, "function on_enqueue(msg) while true do end end")
    }),
    case(ErrorCode::OrderingKeyMissing, |peer| {
        // By the header "account".
        let mut body = bytes(&named("ordered"));
        let ordering = 2 + "ordered".len() + 2 + 8;
        body.splice(ordering..ordering + 3, [2, 0, 1, 0]);
        let key = ordering + 4;
        body.splice(key..key, [&[0, 7][..], b"account"].concat());
        let answer = peer.ask_bytes(Opcode::CreateQueue, 5, &body);
        assert_eq!(
            answer.parse::<CreateQueueResult<'_>>().error_code,
            ErrorCode::Ok
        );
        enqueue(peer, "ordered")
    }),
    case(ErrorCode::ReservedQueueName, |peer| {
        create(peer, &named("x.dlq"))
    }),
    case(ErrorCode::ThrottleNotFound, |peer| {
        let stats = GetThrottleStats {
            name: "t",
            ..GetThrottleStats::default()
        };
        peer.ask(5, &stats)
            .parse::<GetThrottleStatsResult<'_>>()
            .error_code
    }),
    case(ErrorCode::ImmutableSetting, |peer| {
        let changes = UpdateQueue {
            queue: "q.dlq",
            max_attempts: Some(7),
            ..UpdateQueue::default()
        };
        peer.ask(5, &changes)
            .parse::<UpdateQueueResult>()
            .error_code
    }),
    case(ErrorCode::NodeNotFound, |peer| {
        let drain = DrainNode {
            node_id: 1,
            drain: true,
        };
        peer.ask(5, &drain).parse::<DrainNodeResult>().error_code
    }),
    // A subscription ends with its queue.
    case(ErrorCode::QueueNotFound, |peer| {
        peer.consume("q", 9);
        peer.send(
            <DeleteQueue<'_> as Body<'_>>::OPCODE.to_wire(),
            10,
            &support::string("q"),
        );
        let (first, second) = (peer.answer(), peer.answer());
        if first.id == 9 {
            first.error()
        } else {
            second.error()
        }
    }),
];

fn named(name: &str) -> CreateQueue<'_> {
    CreateQueue {
        name,
        ..CreateQueue::default()
    }
}

fn create(peer: &mut Peer, queue: &CreateQueue<'_>) -> ErrorCode {
    let answer = peer.ask(5, queue);
    answer.parse::<CreateQueueResult<'_>>().error_code
}

fn enqueue(peer: &mut Peer, queue: &str) -> ErrorCode {
    let item = EnqueueItem {
        queue,
        payload: b"x",
        ..EnqueueItem::default()
    };
    peer.enqueue_item(&item).0
}

fn enqueue_scripted(peer: &mut Peer, script: &str) -> ErrorCode {
    let queue = CreateQueue {
        on_enqueue_script: Some(script),
        ..named("scripted")
    };
    assert_eq!(create(peer, &queue), ErrorCode::Ok);
    enqueue(peer, "scripted")
}

/// More requests at once than may wait. Whoever is refused is told how long to wait.
fn flood(peer: &mut Peer) -> ErrorCode {
    const REQUESTS: u32 = 1000;
    let body = support::enqueue("q", &[b"x"]);
    let frames = (1..=REQUESTS).flat_map(|id| support::frame(support::ENQUEUE, id, &body));
    peer.stream.write_all(&frames.collect::<Vec<u8>>()).unwrap();
    let answers: Vec<_> = (0..REQUESTS).map(|_| peer.answer()).collect();
    let refused = answers
        .iter()
        .find(|answer| answer.opcode == support::ERROR);
    let error: ErrorFrame<'_> = refused.unwrap().parse();
    let after = error
        .metadata
        .iter()
        .find(|(key, _)| *key == "retry_after_ms");
    assert!(after.unwrap().1.parse::<u64>().unwrap() > 0);
    error.error_code
}

/// On a connection of its own, since this one has had its handshake.
fn refused_handshake(peer: &mut Peer, protocol_version: u16) -> ErrorCode {
    let mut other = Peer::dial(peer.stream.peer_addr().unwrap());
    let greeting = Handshake {
        protocol_version,
        api_key: None,
        client_capabilities: Capabilities::default(),
    };
    let answer = other.ask(0, &greeting);
    other.wait_closed();
    let error: ErrorFrame<'_> = answer.parse();
    assert!(error.metadata.contains(&("max_version", "1")));
    error.error_code
}

fn consume(throttle: ThrottleDeclaration<'static>) -> Consume<'static> {
    Consume {
        queue: "q",
        throttles: vec![throttle],
        ..Consume::default()
    }
}

#[test]
fn every_error_code_of_a_single_node_is_met() {
    let mut met = BTreeSet::new();
    for case in &CASES {
        let dir = TempDir::new();
        let server = TestServer::start(dir.path(), &[]);
        server.connect().create_queue("q");
        assert!(server.stop());
        let server = TestServer::start(dir.path(), case.options);
        assert_eq!((case.meet)(&mut server.connect()), case.code);
        met.insert(case.code);
    }
    met.extend(CLUSTER_ONLY);
    met.extend(NEVER.map(|(code, _)| code));
    met.extend(ELSEWHERE);
    let all: BTreeSet<ErrorCode> = ErrorCode::ALL.iter().copied().collect();
    assert_eq!(met, all);
}
