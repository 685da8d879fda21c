//! Every frame of operators over a socket, with what its answer holds. (fila.md, "Admin Operation
//! Frames")

#![expect(clippy::panic, reason = "helpers of tests outside of a test function")]

#[path = "support/frames.rs"]
mod frames;
mod support;

use frames::nack;
use support::{Peer, TempDir, TestServer, deliveries};
use tanda_wire::fila::{
    ErrorCode, MessageId, Opcode,
    cluster::{
        DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
        GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, NodeState, RebalancingMode,
        SetRebalancing, SetRebalancingResult,
    },
    config::{
        ConfigEntry, GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig,
        SetConfigResult,
    },
    enqueue::EnqueueItem,
    queue_admin::{
        CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues,
        ListQueuesResult, UpdateQueue, UpdateQueueResult,
    },
    redrive::{Redrive, RedriveResult},
    settle::NackResult,
    stats::{GetStats, GetStatsResult},
};

fn start() -> (TempDir, TestServer, Peer) {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let peer = server.connect();
    (dir, server, peer)
}

#[test]
fn queues_are_made_listed_changed_and_deleted() {
    let (_dir, _server, mut peer) = start();
    let queue = CreateQueue {
        name: "q",
        ..CreateQueue::default()
    };
    let answer = peer.ask(1, &queue);
    let made: CreateQueueResult<'_> = answer.parse();
    assert_eq!(made.error_code, ErrorCode::Ok);
    assert!(!made.queue_id.is_empty());
    peer.enqueue("q", b"x");
    let answer = peer.ask(2, &ListQueues {});
    let list: ListQueuesResult<'_> = answer.parse();
    assert_eq!(
        (list.error_code, list.cluster_node_count),
        (ErrorCode::Ok, 0)
    );
    let found: Vec<_> = list
        .queues
        .iter()
        .map(|queue| (queue.name, queue.depth))
        .collect();
    assert_eq!(found, [("q", 1), ("q.dlq", 0)]);
    let changes = UpdateQueue {
        queue: "q",
        max_attempts: Some(1),
        ..UpdateQueue::default()
    };
    let answer = peer.ask(3, &changes);
    assert_eq!(
        answer.parse::<UpdateQueueResult>().error_code,
        ErrorCode::Ok
    );
    // One attempt is all now.
    fail(&mut peer, "q");
    assert_eq!(depth(&mut peer, "q.dlq"), 1);
    let answer = peer.ask(4, &DeleteQueue { queue: "q" });
    assert_eq!(
        answer.parse::<DeleteQueueResult>().error_code,
        ErrorCode::Ok
    );
    let answer = peer.ask(5, &ListQueues {});
    assert!(answer.parse::<ListQueuesResult<'_>>().queues.is_empty());
}

/// Takes one message and fails it.
fn fail(peer: &mut Peer, queue: &str) -> MessageId {
    peer.consume(queue, 50);
    let (id, _) = deliveries(&peer.answer()).remove(0);
    peer.send(Opcode::CancelConsume.to_wire(), 50, &[]);
    let answer = peer.ask_bytes(Opcode::Nack, 51, &nack(queue, id));
    assert_eq!(answer.parse::<NackResult>().results, [ErrorCode::Ok]);
    id
}

fn depth(peer: &mut Peer, queue: &str) -> u64 {
    let answer = peer.ask(60, &GetStats { queue });
    let stats: GetStatsResult<'_> = answer.parse();
    assert_eq!(stats.error_code, ErrorCode::Ok);
    stats.depth
}

#[test]
fn statistics_count_messages_keys_and_consumers() {
    let (_dir, _server, mut peer) = start();
    peer.create_queue("q");
    for (key, weight, delay_ms) in [
        (Some("a"), Some(3), None),
        (Some("a"), Some(5), None),
        (Some("b"), None, None),
        (None, None, Some(3_600_000)),
    ] {
        let item = EnqueueItem {
            queue: "q",
            payload: b"x",
            fairness_key: key,
            weight,
            delay_ms,
            ..EnqueueItem::default()
        };
        assert_eq!(peer.enqueue_item(&item).0, ErrorCode::Ok);
    }
    let answer = peer.ask(3, &GetStats { queue: "q" });
    let stats: GetStatsResult<'_> = answer.parse();
    assert_eq!((stats.depth, stats.in_flight, stats.delayed), (4, 0, 1));
    assert_eq!((stats.active_fairness_keys, stats.active_consumers), (3, 0));
    assert_eq!((stats.quantum, stats.leader_node_id), (1, 0));
    let mut keys: Vec<_> = stats
        .per_key_stats
        .iter()
        .map(|key| (key.key, key.pending_count, key.weight))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, [("", 1, 1), ("a", 2, 5), ("b", 1, 1)]);
    assert!(stats.active_throttles.is_empty());
    peer.consume("q", 9);
    assert_eq!(deliveries(&peer.answer()).len(), 3);
    let answer = peer.ask(4, &GetStats { queue: "q" });
    let stats: GetStatsResult<'_> = answer.parse();
    assert_eq!(
        (stats.depth, stats.in_flight, stats.active_consumers),
        (1, 3, 1)
    );
}

#[test]
fn dead_letters_are_redriven() {
    let (_dir, _server, mut peer) = start();
    peer.create(&CreateQueue {
        name: "q",
        max_attempts: 1,
        ..CreateQueue::default()
    });
    for payload in [b"a", b"b", b"c"] {
        peer.enqueue("q", payload);
        fail(&mut peer, "q");
    }
    for (count, redriven) in [(2, 2), (0, 1), (0, 0)] {
        let redrive = Redrive {
            dlq_queue: "q.dlq",
            count,
            ..Redrive::default()
        };
        let answer = peer.ask(7, &redrive);
        let result: RedriveResult = answer.parse();
        assert_eq!(
            (result.error_code, result.redriven),
            (ErrorCode::Ok, redriven)
        );
        assert_eq!(
            (result.left_unclassified, result.rejected_by_script),
            (0, 0)
        );
    }
    assert_eq!((depth(&mut peer, "q"), depth(&mut peer, "q.dlq")), (3, 0));
}

#[test]
fn runtime_configuration_is_set_read_and_listed() {
    let (_dir, _server, mut peer) = start();
    for (key, value) in [("b.x", "2"), ("a.y", "1"), ("a.x", ""), ("a.y", "3")] {
        let answer = peer.ask(1, &SetConfig { key, value });
        assert_eq!(answer.parse::<SetConfigResult>().error_code, ErrorCode::Ok);
    }
    let answer = peer.ask(2, &GetConfig { key: "a.y" });
    let value: GetConfigResult<'_> = answer.parse();
    assert_eq!((value.error_code, value.value), (ErrorCode::Ok, "3"));
    let answer = peer.ask(3, &GetConfig { key: "none" });
    let value: GetConfigResult<'_> = answer.parse();
    assert_eq!(
        (value.error_code, value.value),
        (ErrorCode::InvalidConfigValue, "")
    );
    let answer = peer.ask(4, &ListConfig { prefix: "a." });
    let list: ListConfigResult<'_> = answer.parse();
    let entry = |key, value| ConfigEntry { key, value };
    assert_eq!(list.entries, [entry("a.x", ""), entry("a.y", "3")]);
    let answer = peer.ask(5, &ListConfig { prefix: "" });
    assert_eq!(answer.parse::<ListConfigResult<'_>>().entries.len(), 3);
}

#[test]
fn routes_lead_here_and_leave_out_what_does_not_exist() {
    let (_dir, server, mut peer) = start();
    peer.create_queue("q");
    let here = server.address("fila").to_string();
    for (asked, found) in [(vec![], vec!["q", "q.dlq"]), (vec!["none", "q"], vec!["q"])] {
        let answer = peer.ask(1, &GetRoutes { queues: asked });
        let result: GetRoutesResult<'_> = answer.parse();
        assert_eq!(result.error_code, ErrorCode::Ok);
        let routes: Vec<_> = result.routes.iter().map(|route| route.queue).collect();
        assert_eq!(routes, found);
        for route in result.routes {
            assert_eq!(
                (route.leader_node_id, route.leader_addr),
                (0, here.as_str())
            );
            assert!(route.shards.is_empty());
        }
    }
}

#[test]
fn a_single_node_has_no_other_to_lead() {
    let (_dir, _server, mut peer) = start();
    peer.create_queue("q");
    for node_id in [0, 1] {
        let drain = DrainNode {
            node_id,
            drain: true,
        };
        let answer = peer.ask(1, &drain);
        let result: DrainNodeResult = answer.parse();
        assert_eq!(result.error_code, ErrorCode::NodeNotFound);
    }
    for (queue, code) in [
        ("q", ErrorCode::NodeNotFound),
        ("none", ErrorCode::QueueNotFound),
    ] {
        let leader = MoveQueueLeader {
            queue,
            target_node_id: 1,
        };
        let answer = peer.ask(2, &leader);
        assert_eq!(answer.parse::<MoveQueueLeaderResult>().error_code, code);
    }
}

#[test]
fn rebalancing_is_remembered_and_the_status_shows_one_node() {
    let (dir, server, mut peer) = start();
    let mode = |mode: RebalancingMode, pause_ms| SetRebalancing {
        mode: mode.to_wire(),
        pause_ms,
    };
    for (asked, shown) in [
        (
            mode(RebalancingMode::Paused, 3_600_000),
            RebalancingMode::Paused,
        ),
        (mode(RebalancingMode::Enabled, 0), RebalancingMode::Enabled),
        (
            mode(RebalancingMode::Disabled, 0),
            RebalancingMode::Disabled,
        ),
    ] {
        let answer = peer.ask(1, &asked);
        assert_eq!(
            answer.parse::<SetRebalancingResult>().error_code,
            ErrorCode::Ok
        );
        assert_status(&mut peer, shown);
    }
    drop(peer);
    assert!(server.stop());
    let server = TestServer::start(dir.path(), &[]);
    assert_status(&mut server.connect(), RebalancingMode::Disabled);
}

fn assert_status(peer: &mut Peer, rebalancing: RebalancingMode) {
    let answer = peer.ask(2, &GetClusterStatus {});
    let status: GetClusterStatusResult<'_> = answer.parse();
    assert_eq!(
        (status.error_code, status.meta_leader_node_id),
        (ErrorCode::Ok, 0)
    );
    assert_eq!(status.rebalancing, rebalancing.to_wire());
    let pauses = rebalancing == RebalancingMode::Paused;
    assert_eq!(status.rebalancing_pause_ends_at_ms > 0, pauses);
    let [node] = &status.nodes[..] else {
        panic!("{status:?}")
    };
    assert_eq!((node.node_id, node.state), (0, NodeState::Up.to_wire()));
}
