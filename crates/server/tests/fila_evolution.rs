//! Every request may be longer than this version knows it. (fila.md, "Schema Evolution")

#[path = "support/frames.rs"]
mod frames;
mod support;

use frames::{ack, bytes, enqueue, extend, nack};
use support::{Frame, PING, Peer, TempDir, TestServer};
use tanda_wire::fila::{
    Body, Capabilities, Direction, ErrorCode, Opcode,
    cluster::{DrainNode, GetClusterStatus, GetRoutes, MoveQueueLeader, SetRebalancing},
    config::{GetConfig, ListConfig, SetConfig},
    consume::{Consume, Credit},
    control::{Disconnect, Handshake, Ping, Pong},
    enqueue::EnqueueItem,
    keys::{CreateApiKey, GetAcl, ListApiKeys, RevokeApiKey, SetAcl},
    queue_admin::{CreateQueue, DeleteQueue, ListQueues, UpdateQueue},
    redrive::Redrive,
    stats::GetStats,
    throttle::{GetThrottleBucket, GetThrottleStats},
};

/// A request, its answer, and where in the body of the answer its code is.
struct Exchange {
    opcode: Opcode,
    body: Vec<u8>,
    answer: Option<(Opcode, Option<(usize, ErrorCode)>)>,
}

fn exchange<'a, B: Body<'a>>(body: &B, answer: Opcode, code: ErrorCode) -> Exchange {
    raw(B::OPCODE, bytes(body), answer, 0, code)
}

fn raw(opcode: Opcode, body: Vec<u8>, answer: Opcode, at: usize, code: ErrorCode) -> Exchange {
    Exchange {
        opcode,
        body,
        answer: Some((answer, Some((at, code)))),
    }
}

fn without_code<'a, B: Body<'a>>(body: &B, answer: Option<Opcode>) -> Exchange {
    Exchange {
        opcode: B::OPCODE,
        body: bytes(body),
        answer: answer.map(|answer| (answer, None)),
    }
}

/// Behind the number of results.
const FIRST_RESULT: usize = 4;

/// One of each request about queues, in an order in which each finds what it needs.
fn about_queues() -> Vec<Exchange> {
    let (ok, unknown) = (ErrorCode::Ok, ErrorCode::MessageNotFound);
    let queue = CreateQueue {
        name: "q",
        ..CreateQueue::default()
    };
    let changes = UpdateQueue {
        queue: "q",
        max_attempts: Some(7),
        ..UpdateQueue::default()
    };
    let message = EnqueueItem {
        queue: "q",
        payload: b"x",
        ..EnqueueItem::default()
    };
    let consume = Consume {
        queue: "empty",
        ..Consume::default()
    };
    let redrive = Redrive {
        dlq_queue: "q.dlq",
        ..Redrive::default()
    };
    let nobody = [7; 16];
    vec![
        exchange(&queue, Opcode::CreateQueueResult, ok),
        exchange(&changes, Opcode::UpdateQueueResult, ok),
        raw(
            Opcode::Enqueue,
            enqueue(&[message]),
            Opcode::EnqueueResult,
            FIRST_RESULT,
            ok,
        ),
        raw(
            Opcode::Ack,
            ack("q", nobody),
            Opcode::AckResult,
            FIRST_RESULT,
            unknown,
        ),
        raw(
            Opcode::Nack,
            nack("q", nobody),
            Opcode::NackResult,
            FIRST_RESULT,
            unknown,
        ),
        raw(
            Opcode::ExtendLease,
            extend("q", nobody),
            Opcode::ExtendLeaseResult,
            FIRST_RESULT,
            unknown,
        ),
        without_code(&consume, Some(Opcode::ConsumeOk)),
        exchange(&GetStats { queue: "q" }, Opcode::GetStatsResult, ok),
        exchange(&ListQueues {}, Opcode::ListQueuesResult, ok),
        exchange(&redrive, Opcode::RedriveResult, ok),
        exchange(&DeleteQueue { queue: "q" }, Opcode::DeleteQueueResult, ok),
    ]
}

fn about_the_node() -> Vec<Exchange> {
    let ok = ErrorCode::Ok;
    let setting = SetConfig {
        key: "k",
        value: "v",
    };
    let stats = GetThrottleStats {
        name: "t",
        ..GetThrottleStats::default()
    };
    let bucket = GetThrottleBucket {
        name: "t",
        ..GetThrottleBucket::default()
    };
    let drain = DrainNode {
        node_id: 9,
        drain: true,
    };
    let leader = MoveQueueLeader {
        queue: "empty",
        target_node_id: 9,
    };
    let (no_throttle, no_node) = (ErrorCode::ThrottleNotFound, ErrorCode::NodeNotFound);
    vec![
        exchange(&setting, Opcode::SetConfigResult, ok),
        exchange(&GetConfig { key: "k" }, Opcode::GetConfigResult, ok),
        exchange(&ListConfig { prefix: "" }, Opcode::ListConfigResult, ok),
        exchange(&stats, Opcode::GetThrottleStatsResult, no_throttle),
        exchange(&bucket, Opcode::GetThrottleBucketResult, no_throttle),
        exchange(
            &GetRoutes { queues: Vec::new() },
            Opcode::GetRoutesResult,
            ok,
        ),
        exchange(&drain, Opcode::DrainNodeResult, no_node),
        exchange(&leader, Opcode::MoveQueueLeaderResult, no_node),
        exchange(&SetRebalancing::default(), Opcode::SetRebalancingResult, ok),
        exchange(&GetClusterStatus {}, Opcode::GetClusterStatusResult, ok),
        without_code(&Ping {}, Some(Opcode::Pong)),
    ]
}

fn about_keys() -> Vec<Exchange> {
    let (ok, unknown) = (ErrorCode::Ok, ErrorCode::ApiKeyNotFound);
    let key = CreateApiKey {
        name: "n",
        ..CreateApiKey::default()
    };
    let grants = SetAcl {
        key_id: "none",
        ..SetAcl::default()
    };
    vec![
        exchange(&key, Opcode::CreateApiKeyResult, ok),
        exchange(&ListApiKeys {}, Opcode::ListApiKeysResult, ok),
        exchange(&grants, Opcode::SetAclResult, unknown),
        exchange(&GetAcl { key_id: "none" }, Opcode::GetAclResult, unknown),
        exchange(
            &RevokeApiKey { key_id: "none" },
            Opcode::RevokeApiKeyResult,
            unknown,
        ),
    ]
}

/// What has no answer of its own; a ping behind it shows that it did no harm.
fn silent() -> Vec<Exchange> {
    let credit = Credit {
        additional_credit: 1,
    };
    let cancel = Exchange {
        opcode: Opcode::CancelConsume,
        body: Vec::new(),
        answer: None,
    };
    vec![
        without_code(&credit, None),
        cancel,
        without_code(&Pong {}, None),
    ]
}

impl Exchange {
    fn run(&self, peer: &mut Peer, id: u32, tail: &[u8]) {
        let body = [&self.body[..], tail].concat();
        peer.send(self.opcode.to_wire(), id, &body);
        let Some((answer, code)) = self.answer else {
            peer.send(PING, id, &[]);
            assert_eq!(
                peer.answer().opcode,
                Opcode::Pong.to_wire(),
                "{}",
                self.opcode
            );
            return;
        };
        let frame: Frame = peer.answer();
        let context = format!("{} + {} bytes: {frame:?}", self.opcode, tail.len());
        assert_eq!(Opcode::from_wire(frame.opcode), answer, "{context}");
        if let Some((at, code)) = code {
            let found = frame.body.get(at).copied().map(ErrorCode::from_wire);
            assert_eq!(found, Some(code), "{context}");
        }
    }
}

#[test]
fn trailing_bytes_change_no_answer() {
    let all: Vec<Exchange> = [about_queues(), about_the_node(), about_keys(), silent()]
        .into_iter()
        .flatten()
        .collect();
    let greeting = bytes(&Handshake {
        protocol_version: 1,
        api_key: None,
        client_capabilities: Capabilities::default(),
    });
    for tail in [&[][..], &[0], &[0xFF; 9], &[1; 5000]] {
        let dir = TempDir::new();
        let server = TestServer::start(dir.path(), &[]);
        let mut peer = server.dial();
        let hello = [&greeting[..], tail].concat();
        peer.send(Opcode::Handshake.to_wire(), 0, &hello);
        assert_eq!(peer.receive().opcode, Opcode::HandshakeOk.to_wire());
        peer.create_queue("empty");
        for (id, exchange) in (100..).zip(&all) {
            exchange.run(&mut peer, id, tail);
        }
        peer.send(Opcode::Disconnect.to_wire(), 9, tail);
        assert!(peer.try_receive().is_none());
    }
    // No request is missing.
    let apart = [Opcode::Handshake, <Disconnect as Body<'_>>::OPCODE];
    for opcode in Opcode::ALL {
        let is_request = matches!(opcode.direction(), Direction::ToServer | Direction::Either);
        let is_tried = apart.contains(opcode) || all.iter().any(|it| it.opcode == *opcode);
        assert_eq!(is_request, is_tried, "{opcode}");
    }
}
