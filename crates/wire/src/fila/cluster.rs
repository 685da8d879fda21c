//! Where queues live and which node does what.

use super::error_code::ErrorCode;
use super::table::named_values;
use super::wire_struct::wire_struct;

named_values! {
    /// Whether leaders are moved to balance the nodes.
    pub enum RebalancingMode {
        /// They are.
        Enabled = 0,
        /// Not for a while.
        Paused = 1,
        /// Not until enabled again.
        Disabled = 2,
    }
}

named_values! {
    /// What a node is doing.
    pub enum NodeState {
        /// Serving.
        Up = 0,
        /// Not heard of.
        Unreachable = 1,
        /// Giving its leaderships away.
        Draining = 2,
    }
}

wire_struct! {
    /// Asks which node leads which queue.
    pub struct GetRoutes<'a>: GetRoutes {
        /// The queues of interest; none = every queue.
        queues: Vec<&'a str>,
    }

    /// Answers `GetRoutes`; may be slightly stale.
    pub struct GetRoutesResult<'a>: GetRoutesResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// One entry per queue found.
        routes: Vec<QueueRoute<'a>>,
    }

    /// Where one queue lives.
    pub struct QueueRoute<'a> {
        /// The queue.
        queue: &'a str,
        /// 0 when not known.
        leader_node_id: u64,
        /// `host:port`; empty when not known.
        leader_addr: &'a str,
        /// Empty when the queue is not sharded.
        shards: Vec<ShardRoute<'a>>,
    }

    /// Where one shard of a queue lives.
    pub struct ShardRoute<'a> {
        /// Its number.
        shard_index: u32,
        /// 0 when not known.
        leader_node_id: u64,
        /// `host:port`; empty when not known.
        leader_addr: &'a str,
    }

    /// Moves every leadership off a node, or stops doing so.
    pub struct DrainNode: DrainNode {
        /// The node.
        node_id: u64,
        /// `false` ends a drain.
        drain: bool,
    }

    /// Answers `DrainNode`.
    pub struct DrainNodeResult: DrainNodeResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Moves the leadership of one queue.
    pub struct MoveQueueLeader<'a>: MoveQueueLeader {
        /// The queue.
        queue: &'a str,
        /// A member of the queue's group.
        target_node_id: u64,
    }

    /// Answers `MoveQueueLeader`.
    pub struct MoveQueueLeaderResult: MoveQueueLeaderResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Turns rebalancing on, off, or pauses it.
    pub struct SetRebalancing: SetRebalancing {
        /// A [`RebalancingMode`].
        mode: u8,
        /// Length of a pause; counts only in mode 1.
        pause_ms: u64,
    }

    /// Answers `SetRebalancing`.
    pub struct SetRebalancingResult: SetRebalancingResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Asks for the state of the cluster.
    pub struct GetClusterStatus: GetClusterStatus {}

    /// Answers `GetClusterStatus`.
    pub struct GetClusterStatusResult<'a>: GetClusterStatusResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The node that leads the meta group.
        meta_leader_node_id: u64,
        /// A [`RebalancingMode`].
        rebalancing: u8,
        /// Unix time in milliseconds; 0 unless paused.
        rebalancing_pause_ends_at_ms: u64,
        /// The nodes.
        nodes: Vec<NodeInfo<'a>>,
    }

    /// One node of the cluster.
    pub struct NodeInfo<'a> {
        /// Its ID.
        node_id: u64,
        /// `host:port` for clients.
        addr: &'a str,
        /// A [`NodeState`].
        state: u8,
        /// Queues it leads.
        queue_leaderships: u32,
    }
}
