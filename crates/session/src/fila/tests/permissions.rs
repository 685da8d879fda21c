//! What each request needs (fila-semantics: Permissions).

use tanda_engine::{
    AdminReply, Event, MessageId, Millis, Permission, PublishError, PublishResult, PublishTarget,
    QueueCounts, QueueSummary, Request, SettleError, Settlement,
};
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, SetRebalancing, SetRebalancingResult,
};
use tanda_wire::fila::config::{
    GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig, SetConfigResult,
};
use tanda_wire::fila::consume::Consume;
use tanda_wire::fila::keys::{
    CreateApiKey, CreateApiKeyResult, GetAcl, GetAclResult, ListApiKeys, ListApiKeysResult,
    RevokeApiKey, RevokeApiKeyResult, SetAcl, SetAclResult,
};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues, ListQueuesResult,
    UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::stats::{GetStats, GetStatsResult};
use tanda_wire::fila::throttle::{
    GetThrottleBucket, GetThrottleBucketResult, GetThrottleStats, GetThrottleStatsResult,
};
use tanda_wire::fila::{Body, ErrorCode};

use super::authentication::{Keys, open_as};
use super::{Peer, frame_of, raw_frame};
use crate::audit::AuditOutcome;

/// A peer that may do these things.
fn peer_with(grants: &[(Permission, &str)]) -> Peer {
    let mut keys = Keys::new();
    let id = keys.create("worker", None);
    keys.set_acl(&id, grants);
    open_as("worker", &keys.table())
}

fn superadmin() -> Peer {
    let mut keys = Keys::new();
    keys.create("root", None);
    open_as("root", &keys.table())
}

/// Everything but what is asked for: `admin` on `?*` is not `admin` on `*`.
const ALL_QUEUES: [(Permission, &str); 3] = [
    (Permission::Produce, "*"),
    (Permission::Consume, "*"),
    (Permission::Admin, "?*"),
];

/// The request is refused, in its own result where it has one, and noted.
fn refused<'a, 'b, B: Body<'a>, R: Body<'b>>(peer: &mut Peer, body: &B, expected: &R) {
    peer.session.take_audit();
    peer.call(5, body);
    assert!(peer.requests().is_empty(), "{:?}", B::OPCODE);
    assert_eq!(peer.bytes(), frame_of(5, expected), "{:?}", B::OPCODE);
    let audit = peer.session.take_audit();
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0].outcome, AuditOutcome::Forbidden);
    assert_eq!(audit[0].action, B::OPCODE.name());
    assert_eq!(audit[0].by.as_ref().map(|key| &*key.name), Some("worker"));
}

/// The request goes to the engine, or is answered with anything but that.
fn passes<'a, 'b, B: Body<'a>, R: Body<'b>>(peer: &mut Peer, body: &B, refusal: &R) {
    peer.call(5, body);
    let answer = peer.bytes();
    let asked = peer.requests().len();
    assert_ne!((answer.len(), asked), (0, 0), "{:?}", B::OPCODE);
    assert_ne!(answer, frame_of(5, refusal), "{:?}", B::OPCODE);
    assert!(peer.session.take_audit().is_empty());
}

fn forbid(code: &mut ErrorCode) {
    *code = ErrorCode::Forbidden;
}

/// `$request` is refused to `$without`, with every field of `$result` that is not its code empty,
/// and passes for `$with` and for a superadmin.
macro_rules! needs {
    ($without:expr, $with:expr, $request:expr, $result:ident) => {
        let mut refusal = $result::default();
        forbid(&mut refusal.error_code);
        refused(&mut peer_with($without), &$request, &refusal);
        passes(&mut peer_with($with), &$request, &refusal);
        passes(&mut superadmin(), &$request, &refusal);
    };
}

#[test]
fn requests_about_one_queue_need_admin_on_its_name() {
    let without = &[
        (Permission::Produce, "*"),
        (Permission::Consume, "*"),
        (Permission::Admin, "q2"),
        (Permission::Admin, "q.*"),
    ];
    let with = &[(Permission::Admin, "q")];
    needs!(
        without,
        with,
        CreateQueue {
            name: "q",
            ..CreateQueue::default()
        },
        CreateQueueResult
    );
    needs!(
        without,
        with,
        UpdateQueue {
            queue: "q",
            ..UpdateQueue::default()
        },
        UpdateQueueResult
    );
    needs!(without, with, DeleteQueue { queue: "q" }, DeleteQueueResult);
    needs!(without, with, GetStats { queue: "q" }, GetStatsResult);
    let redrive = Redrive {
        dlq_queue: "q",
        ..Redrive::default()
    };
    needs!(without, with, redrive, RedriveResult);
    let to = MoveQueueLeader {
        queue: "q",
        target_node_id: 1,
    };
    needs!(without, with, to, MoveQueueLeaderResult);
}

#[test]
fn requests_about_the_whole_broker_need_admin_on_everything() {
    let with = &[(Permission::Admin, "*")];
    let set = SetConfig {
        key: "k",
        value: "v",
    };
    needs!(&ALL_QUEUES, with, set, SetConfigResult);
    needs!(&ALL_QUEUES, with, GetConfig { key: "k" }, GetConfigResult);
    needs!(
        &ALL_QUEUES,
        with,
        ListConfig { prefix: "" },
        ListConfigResult
    );
    let throttle = GetThrottleStats {
        name: "t",
        ..GetThrottleStats::default()
    };
    needs!(&ALL_QUEUES, with, throttle, GetThrottleStatsResult);
    let bucket = GetThrottleBucket {
        name: "t",
        ..GetThrottleBucket::default()
    };
    needs!(&ALL_QUEUES, with, bucket, GetThrottleBucketResult);
    needs!(&ALL_QUEUES, with, DrainNode::default(), DrainNodeResult);
    needs!(
        &ALL_QUEUES,
        with,
        SetRebalancing::default(),
        SetRebalancingResult
    );
    needs!(
        &ALL_QUEUES,
        with,
        GetClusterStatus {},
        GetClusterStatusResult
    );
}

#[test]
fn keys_and_permissions_are_for_superadmins_only() {
    let mut peer = peer_with(&[
        (Permission::Produce, "*"),
        (Permission::Consume, "*"),
        (Permission::Admin, "*"),
    ]);
    let mut root = superadmin();
    macro_rules! superadmins_only {
        ($request:expr, $result:ident) => {
            let mut refusal = $result::default();
            forbid(&mut refusal.error_code);
            refused(&mut peer, &$request, &refusal);
            passes(&mut root, &$request, &refusal);
        };
    }
    superadmins_only!(CreateApiKey::default(), CreateApiKeyResult);
    superadmins_only!(RevokeApiKey { key_id: "k1" }, RevokeApiKeyResult);
    superadmins_only!(ListApiKeys {}, ListApiKeysResult);
    superadmins_only!(
        SetAcl {
            key_id: "k1",
            ..SetAcl::default()
        },
        SetAclResult
    );
    superadmins_only!(GetAcl { key_id: "k1" }, GetAclResult);
}

#[test]
fn consume_needs_consume_and_says_so_in_an_error() {
    let consume = Consume {
        queue: "q",
        ..Consume::default()
    };
    let mut peer = peer_with(&[(Permission::Produce, "*"), (Permission::Consume, "q?")]);
    peer.call(5, &consume);
    peer.refusal(5, ErrorCode::Forbidden);
    assert!(peer.requests().is_empty());
    let audit = peer.session.take_audit();
    assert_eq!((&*audit[0].action, &*audit[0].object), ("Consume", "q"));
    let mut peer = peer_with(&[(Permission::Consume, "q")]);
    peer.call(5, &consume);
    assert!(matches!(peer.request(), Request::Subscribe { .. }));
}

#[test]
fn a_body_that_cannot_be_read_is_still_invalid() {
    let mut peer = superadmin();
    peer.expect_invalid(&raw_frame(0xFD, 0, 5, &[0]), 5);
    // One that begins with a name of no permission gets no further.
    let mut peer = peer_with(&[]);
    peer.send(&raw_frame(0xFB, 0, 5, &[0]));
    assert_eq!(peer.frame().body, [ErrorCode::Forbidden.to_wire()]);
}

/// An `Enqueue` of one empty message to each queue.
fn enqueue(queues: &[&str]) -> Vec<u8> {
    let mut body = u32::try_from(queues.len()).unwrap().to_be_bytes().to_vec();
    for queue in queues {
        body.extend(u16::try_from(queue.len()).unwrap().to_be_bytes());
        body.extend(queue.bytes());
        body.extend([0; 2 + 4 + 4]);
    }
    raw_frame(0x10, 0, 5, &body)
}

#[test]
fn a_batch_is_refused_item_by_item() {
    let mut peer = peer_with(&[(Permission::Produce, "a*"), (Permission::Consume, "b")]);
    peer.send(&enqueue(&["a", "b", "b", "a2", "c"]));
    let request = peer.request();
    let Request::Publish { reply, batch } = &request else {
        panic!("{request:?}")
    };
    let refused: Vec<bool> = batch
        .items
        .iter()
        .map(|item| item.target == PublishTarget::Refused(PublishError::Forbidden))
        .collect();
    assert_eq!(refused, [false, true, true, false, true]);
    let stored = PublishResult::Stored(MessageId(1));
    let no = PublishResult::Refused(PublishError::Forbidden);
    peer.event(Event::Published {
        token: reply.token,
        results: vec![stored, no, no, stored, no],
    });
    let frame = peer.frame();
    let codes: Vec<u8> = frame.body[4..94].chunks(18).map(|item| item[0]).collect();
    assert_eq!(codes, [0, 0x0B, 0x0B, 0, 0x0B]);
    // One line for the batch, with the first queue.
    let audit = peer.session.take_audit();
    assert_eq!(audit.len(), 1);
    assert_eq!((&*audit[0].action, &*audit[0].object), ("Enqueue", "b"));
}

#[test]
fn settlements_are_refused_item_by_item() {
    for opcode in [0x17, 0x19, 0x1B] {
        let mut peer = peer_with(&[(Permission::Consume, "a"), (Permission::Produce, "*")]);
        let mut body = 3_u32.to_be_bytes().to_vec();
        for queue in [b"a", b"b", b"a"] {
            body.extend([0, 1]);
            body.extend(queue);
            body.extend([7; 16]);
            match opcode {
                // An empty error, no delay.
                0x19 => body.extend([0; 3]),
                0x1B => body.extend([0; 8]),
                _ => {}
            }
        }
        peer.send(&raw_frame(opcode, 0, 5, &body));
        let request = peer.request();
        let Request::Settle { reply, batch } = &request else {
            panic!("{request:?}")
        };
        let refused = Settlement::Refused(SettleError::Forbidden);
        let which: Vec<bool> = batch
            .items
            .iter()
            .map(|item| item.settlement == refused)
            .collect();
        assert_eq!(which, [false, true, false]);
        peer.event(Event::Settled {
            token: reply.token,
            results: vec![Ok(Millis(0)), Err(SettleError::Forbidden), Ok(Millis(0))],
        });
        let frame = peer.frame();
        let size = if opcode == 0x1B { 9 } else { 1 };
        let codes: Vec<u8> = frame.body[4..].chunks(size).map(|item| item[0]).collect();
        assert_eq!(codes, [0, 0x0B, 0]);
    }
}

#[test]
fn lists_show_what_the_peer_may_touch() {
    let summary = |name: &str| QueueSummary {
        name: name.to_owned(),
        counts: QueueCounts::default(),
    };
    let all: Vec<_> = ["a", "a.dlq", "b", "c"].map(summary).into();
    let grants = &[(Permission::Produce, "a*"), (Permission::Admin, "c")];
    let mut peer = peer_with(grants);
    let mut ask = |bytes: &[u8]| {
        peer.send(bytes);
        let token = super::token(&peer.request());
        let reply = Box::new(AdminReply::Queues(all.clone()));
        peer.event(Event::Admin { token, reply });
        peer.frame()
    };
    let frame = ask(&frame_of(5, &ListQueues {}));
    let listed: ListQueuesResult<'_> = frame.decode();
    let names: Vec<_> = listed.queues.iter().map(|queue| queue.name).collect();
    assert_eq!(names, ["a", "a.dlq", "c"]);
    for (asked, expected) in [
        (vec![], vec!["a", "a.dlq", "c"]),
        (vec!["c", "b", "x", "a"], vec!["c", "a"]),
    ] {
        let frame = ask(&frame_of(5, &GetRoutes { queues: asked }));
        let routes: GetRoutesResult<'_> = frame.decode();
        let names: Vec<_> = routes.routes.iter().map(|route| route.queue).collect();
        assert_eq!(names, expected);
    }
}
