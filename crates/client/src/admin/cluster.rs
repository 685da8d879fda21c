//! Nodes, and where queues live.

use std::time::Duration;

use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, NodeState as WireState,
    RebalancingMode, SetRebalancing, SetRebalancingResult,
};

use super::{Admin, check, read};
use crate::error::RequestError;
use crate::message::whole_ms;
use crate::shell::handle::Repeat;

/// Whether leaderships are to be moved to balance the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetRebalancingTo {
    /// They are.
    Enabled,
    /// Not for this long.
    PausedFor(Duration),
    /// Not until enabled again.
    Disabled,
}

/// Whether leaderships are moved to balance the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rebalancing {
    /// They are.
    Enabled,
    /// Not until this time in Unix milliseconds.
    PausedUntilMs(u64),
    /// Not until enabled again.
    Disabled,
    /// A mode this version does not know.
    Unknown(u8),
}

/// What a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeState {
    /// Serving.
    Up,
    /// Not heard of.
    Unreachable,
    /// Giving its leaderships away.
    Draining,
    /// A state this version does not know.
    Unknown(u8),
}

impl NodeState {
    const fn from_wire(state: u8) -> Self {
        match WireState::from_wire(state) {
            Some(WireState::Up) => Self::Up,
            Some(WireState::Unreachable) => Self::Unreachable,
            Some(WireState::Draining) => Self::Draining,
            None => Self::Unknown(state),
        }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its ID.
    pub node_id: u64,
    /// Where clients reach it, as `host:port`.
    pub addr: String,
    /// What it is doing.
    pub state: NodeState,
    /// Queues it leads.
    pub queue_leaderships: u32,
}

/// The state of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The node that leads the meta group; 0 on a single node.
    pub meta_leader_node_id: u64,
    /// Whether leaderships are moved.
    pub rebalancing: Rebalancing,
    /// The nodes.
    pub nodes: Vec<NodeInfo>,
}

/// Where one queue lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRoute {
    /// The queue.
    pub queue: String,
    /// The node that leads it; 0 when not known, and on a single node.
    pub leader_node_id: u64,
    /// Where that is, as `host:port`; empty when not known.
    pub leader_addr: String,
    /// Its shards; none when it is not sharded.
    pub shards: Vec<ShardRoute>,
}

/// Where one shard of a queue lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRoute {
    /// Its number.
    pub shard_index: u32,
    /// The node that leads it; 0 when not known.
    pub leader_node_id: u64,
    /// Where that is, as `host:port`; empty when not known.
    pub leader_addr: String,
}

impl Admin {
    /// Where these queues live, without those that do not exist; no names ask for all queues.
    /// The answer may be slightly stale.
    ///
    /// # Errors
    /// When there is no connection, or the server refuses.
    pub async fn routes(&self, queues: &[&str]) -> Result<Vec<QueueRoute>, RequestError> {
        let request = GetRoutes {
            queues: queues.to_vec(),
        };
        let body = self.handle.call(&request, Repeat::Harmless).await?;
        let answer = read(GetRoutesResult::decode(&body))?;
        check(answer.error_code)?;
        let routes = answer.routes.iter().map(|route| QueueRoute {
            queue: route.queue.to_owned(),
            leader_node_id: route.leader_node_id,
            leader_addr: route.leader_addr.to_owned(),
            shards: route
                .shards
                .iter()
                .map(|shard| ShardRoute {
                    shard_index: shard.shard_index,
                    leader_node_id: shard.leader_node_id,
                    leader_addr: shard.leader_addr.to_owned(),
                })
                .collect(),
        });
        Ok(routes.collect())
    }

    /// The nodes and what they do.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn cluster_status(&self) -> Result<ClusterStatus, RequestError> {
        let body = self
            .handle
            .call(&GetClusterStatus {}, Repeat::Harmless)
            .await?;
        let answer = read(GetClusterStatusResult::decode(&body))?;
        check(answer.error_code)?;
        let rebalancing = match RebalancingMode::from_wire(answer.rebalancing) {
            Some(RebalancingMode::Enabled) => Rebalancing::Enabled,
            Some(RebalancingMode::Paused) => {
                Rebalancing::PausedUntilMs(answer.rebalancing_pause_ends_at_ms)
            }
            Some(RebalancingMode::Disabled) => Rebalancing::Disabled,
            None => Rebalancing::Unknown(answer.rebalancing),
        };
        let nodes = answer.nodes.iter().map(|node| NodeInfo {
            node_id: node.node_id,
            addr: node.addr.to_owned(),
            state: NodeState::from_wire(node.state),
            queue_leaderships: node.queue_leaderships,
        });
        Ok(ClusterStatus {
            meta_leader_node_id: answer.meta_leader_node_id,
            rebalancing,
            nodes: nodes.collect(),
        })
    }

    /// Turns rebalancing on, off, or pauses it.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn set_rebalancing(&self, to: SetRebalancingTo) -> Result<(), RequestError> {
        let (mode, pause_ms) = match to {
            SetRebalancingTo::Enabled => (RebalancingMode::Enabled, 0),
            SetRebalancingTo::PausedFor(pause) => (RebalancingMode::Paused, whole_ms(pause)),
            SetRebalancingTo::Disabled => (RebalancingMode::Disabled, 0),
        };
        let request = SetRebalancing {
            mode: mode.to_wire(),
            pause_ms,
        };
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        check(read(SetRebalancingResult::decode(&body))?.error_code)
    }

    /// Moves every leadership off a node, so that it can be stopped.
    ///
    /// # Errors
    /// `NodeNotFound`, `Forbidden`.
    pub async fn drain_node(&self, node_id: u64) -> Result<(), RequestError> {
        self.set_drain(DrainNode {
            node_id,
            drain: true,
        })
        .await
    }

    /// Ends a drain: the node may lead again.
    ///
    /// # Errors
    /// `NodeNotFound`, `Forbidden`.
    pub async fn cancel_drain(&self, node_id: u64) -> Result<(), RequestError> {
        self.set_drain(DrainNode {
            node_id,
            drain: false,
        })
        .await
    }

    async fn set_drain(&self, request: DrainNode) -> Result<(), RequestError> {
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        check(read(DrainNodeResult::decode(&body))?.error_code)
    }

    /// Moves the leadership of a queue to a member of its group. Rebalancing may move it again.
    ///
    /// # Errors
    /// `QueueNotFound`, `NodeNotFound`, `Forbidden`.
    pub async fn move_queue_leader(
        &self,
        queue: &str,
        target_node_id: u64,
    ) -> Result<(), RequestError> {
        let request = MoveQueueLeader {
            queue,
            target_node_id,
        };
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        check(read(MoveQueueLeaderResult::decode(&body))?.error_code)
    }
}
