//! Cluster requests on a single node.

use tanda_engine::{
    AdminReply, AdminRequest, ClusterStatus, Millis, QueueCounts, QueueNotFound, QueueSummary,
    Rebalancing, VhostId,
};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, NodeInfo, SetRebalancing,
    SetRebalancingResult,
};

use super::Peer;
use super::admin::{answer, asked, at_once};

fn queues(names: &[&str]) -> AdminReply {
    let summary = |name: &&str| QueueSummary {
        name: (*name).to_owned(),
        counts: QueueCounts::default(),
    };
    AdminReply::Queues(names.iter().map(summary).collect())
}

#[test]
fn routes_name_this_node() {
    let seen = answer(&GetRoutes::default(), queues(&["a", "b"]));
    let result: GetRoutesResult<'_> = seen.decode();
    assert_eq!(result.error_code, ErrorCode::Ok);
    let names: Vec<_> = result.routes.iter().map(|route| route.queue).collect();
    assert_eq!(names, ["a", "b"]);
    for route in &result.routes {
        assert_eq!(
            (route.leader_node_id, route.leader_addr),
            (0, "node.test:5555")
        );
        assert!(route.shards.is_empty());
    }
}

#[test]
fn routes_leave_out_what_does_not_exist() {
    let frame = GetRoutes {
        queues: vec!["c", "nope", "a", "", "c"],
    };
    let seen = answer(&frame, queues(&["a", "b", "c"]));
    let result: GetRoutesResult<'_> = seen.decode();
    let names: Vec<_> = result.routes.iter().map(|route| route.queue).collect();
    assert_eq!(names, ["c", "a", "c"]);
    let seen = answer(
        &GetRoutes {
            queues: vec!["nope"],
        },
        queues(&["a"]),
    );
    assert!(seen.decode::<GetRoutesResult<'_>>().routes.is_empty());
}

#[test]
fn no_node_can_be_drained_or_moved_to() {
    let seen = at_once(&DrainNode {
        node_id: 0,
        drain: true,
    });
    let error_code = ErrorCode::NodeNotFound;
    assert_eq!(
        seen.decode::<DrainNodeResult>(),
        DrainNodeResult { error_code }
    );

    let frame = MoveQueueLeader {
        queue: "q",
        target_node_id: 2,
    };
    let mut peer = Peer::open();
    let (_, request) = asked(&mut peer, &frame);
    let AdminRequest::InspectQueue { vhost, name } = request else {
        panic!("{request:?}");
    };
    assert_eq!((vhost, name.as_str()), (VhostId::DEFAULT, "q"));
    let seen = answer(&frame, AdminReply::Inspected(Err(QueueNotFound)));
    let error_code = ErrorCode::QueueNotFound;
    assert_eq!(
        seen.decode::<MoveQueueLeaderResult>(),
        MoveQueueLeaderResult { error_code }
    );
    let details = tanda_engine::QueueDetails {
        id: "q1".to_owned(),
        name: "q".to_owned(),
        dead_letter_queue: None,
        parent: None,
        config: tanda_engine::QueueSpec::default().resolve(&tanda_engine::Defaults::default()),
        counts: QueueCounts::default(),
    };
    let seen = answer(&frame, AdminReply::Inspected(Ok(details)));
    let error_code = ErrorCode::NodeNotFound;
    assert_eq!(
        seen.decode::<MoveQueueLeaderResult>(),
        MoveQueueLeaderResult { error_code }
    );
}

#[test]
fn rebalancing_is_remembered() {
    let mut peer = Peer::open();
    for (mode, expected) in [
        (0, Rebalancing::Enabled),
        (1, Rebalancing::Paused { pause_ms: 50 }),
        (2, Rebalancing::Disabled),
    ] {
        let (_, request) = asked(&mut peer, &SetRebalancing { mode, pause_ms: 50 });
        let AdminRequest::SetRebalancing(found) = request else {
            panic!("{request:?}")
        };
        assert_eq!(found, expected);
    }
    let frame = SetRebalancing {
        mode: 3,
        pause_ms: 0,
    };
    let error_code = ErrorCode::InvalidConfigValue;
    assert_eq!(
        at_once(&frame).decode::<SetRebalancingResult>(),
        SetRebalancingResult { error_code }
    );
    let frame = SetRebalancing {
        mode: 0,
        pause_ms: 0,
    };
    let seen = answer(&frame, AdminReply::RebalancingSet);
    let error_code = ErrorCode::Ok;
    assert_eq!(
        seen.decode::<SetRebalancingResult>(),
        SetRebalancingResult { error_code }
    );
}

#[test]
fn the_cluster_is_one_node_that_is_up() {
    for (rebalancing, number, ends_at) in [
        (Rebalancing::Enabled, 0, 0),
        (Rebalancing::Paused { pause_ms: 5 }, 1, 77),
        (Rebalancing::Disabled, 2, 0),
    ] {
        let status = ClusterStatus {
            rebalancing,
            pause_ends_at: Millis(ends_at),
            queue_leaderships: 3,
        };
        let seen = answer(&GetClusterStatus {}, AdminReply::ClusterStatus(status));
        let node = NodeInfo {
            node_id: 0,
            addr: "node.test:5555",
            state: 0,
            queue_leaderships: 3,
        };
        let expected = GetClusterStatusResult {
            error_code: ErrorCode::Ok,
            meta_leader_node_id: 0,
            rebalancing: number,
            rebalancing_pause_ends_at_ms: ends_at,
            nodes: vec![node],
        };
        assert_eq!(seen.decode::<GetClusterStatusResult<'_>>(), expected);
    }
}
