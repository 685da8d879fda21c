//! The engine's answers to rare requests, as result frames.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, ClusterStatus, QueueNotFound, QueueStats, QueueSummary, Rebalancing, RedriveError,
    Redriven,
};
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::cluster::{
    GetClusterStatusResult, GetRoutesResult, MoveQueueLeaderResult, NodeInfo, NodeState,
    QueueRoute, RebalancingMode, SetRebalancingResult,
};
use tanda_wire::fila::config::{ConfigEntry, GetConfigResult, ListConfigResult, SetConfigResult};
use tanda_wire::fila::queue_admin::{
    CreateQueueResult, DeleteQueueResult, ListQueuesResult, QueueInfo, UpdateQueueResult,
};
use tanda_wire::fila::redrive::RedriveResult;
use tanda_wire::fila::stats::{FairnessKeyStats, GetStatsResult};

use super::errors::{self, code_of};
use super::key_replies;
use super::link::Link;
use super::on_cluster::RouteNames;
use super::slots::{Entry, Kind};
use super::throttles;

/// Answers the request of `entry`.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of reply")]
pub(super) fn on_reply(link: &mut Link, entry: &Entry, reply: &AdminReply) {
    let id = entry.request_id;
    match reply {
        AdminReply::Created(result) => created(link, id, result),
        AdminReply::Updated(result) => {
            let error_code = code_of(result.as_ref(), errors::update_queue);
            link.outbound.body(id, &UpdateQueueResult { error_code });
        }
        AdminReply::Deleted(result) => {
            let error_code = code_of(*result, errors::delete_queue);
            link.outbound.body(id, &DeleteQueueResult { error_code });
        }
        AdminReply::Stats(result) => stats(link, id, result),
        AdminReply::Throttle(result) => throttles::stats(link, id, result),
        AdminReply::ThrottleBucket(result) => throttles::bucket(link, id, result),
        AdminReply::Queues(queues) => match &entry.kind {
            Kind::Routes(body) => routes(link, id, body, queues),
            Kind::Publish
            | Kind::Ack
            | Kind::Nack
            | Kind::Extend
            | Kind::Subscribing
            | Kind::Cancelled
            | Kind::Denied(_)
            | Kind::Subscribed
            | Kind::Admin
            | Kind::Keys(_)
            | Kind::MoveLeader => list_queues(link, id, queues),
        },
        AdminReply::Redriven(result) => redriven(link, id, *result),
        AdminReply::ConfigSet(result) => {
            let error_code = code_of(*result, errors::set_config);
            link.outbound.body(id, &SetConfigResult { error_code });
        }
        AdminReply::Config(value) => config(link, id, value.as_deref()),
        AdminReply::ConfigList(entries) => list_config(link, id, entries),
        AdminReply::RebalancingSet => {
            link.outbound.body(
                id,
                &SetRebalancingResult {
                    error_code: ErrorCode::Ok,
                },
            );
        }
        AdminReply::ClusterStatus(status) => cluster_status(link, id, *status),
        AdminReply::Inspected(result) => {
            let error_code = match result {
                // The queue's group has this node as its only member, and it has no ID.
                Ok(_) => ErrorCode::NodeNotFound,
                Err(QueueNotFound) => ErrorCode::QueueNotFound,
            };
            link.outbound
                .body(id, &MoveQueueLeaderResult { error_code });
        }
        AdminReply::ApiKeyCreated(_)
        | AdminReply::ApiKeyRevoked(_)
        | AdminReply::ApiKeys(_)
        | AdminReply::AclSet(_)
        | AdminReply::Acl(_) => key_replies::on_reply(link, entry, reply),
        AdminReply::Purged(_)
        | AdminReply::Vhost(_)
        | AdminReply::VhostChanged(_)
        | AdminReply::VhostDeleted(_)
        | AdminReply::Vhosts(_)
        | AdminReply::ExchangeDeclared(_)
        | AdminReply::ExchangeDeleted(_)
        | AdminReply::Bound(_)
        | AdminReply::Unbound(_)
        | AdminReply::Exchanges(_)
        | AdminReply::Bindings(_)
        | AdminReply::Channels(_)
        | AdminReply::VhostCounts(_)
        | AdminReply::QueuesOf(_)
        | AdminReply::QueueDeclared(_)
        | AdminReply::QueueRemoved(_)
        | AdminReply::QueuePurged(_)
        | AdminReply::User(_)
        | AdminReply::ScriptsChecked(_)
        | AdminReply::Explained(_)
        | AdminReply::Bootstrapped(_) => {
            let problem = "the broker answered a request that this protocol does not have";
            link.outbound
                .error(id, ErrorCode::InternalError, problem, &[]);
        }
    }
}

fn created(link: &mut Link, id: u32, result: &Result<String, tanda_engine::CreateQueueError>) {
    let (error_code, queue_id) = match result {
        Ok(queue_id) => (ErrorCode::Ok, queue_id.as_str()),
        Err(error) => (errors::create_queue(error), ""),
    };
    link.outbound.body(
        id,
        &CreateQueueResult {
            error_code,
            queue_id,
        },
    );
}

fn redriven(link: &mut Link, id: u32, result: Result<Redriven, RedriveError>) {
    let error_code = code_of(result, errors::redrive);
    let done = result.unwrap_or_default();
    let result = RedriveResult {
        error_code,
        redriven: done.redriven,
        left_unclassified: done.left_unclassified,
        rejected_by_script: done.rejected_by_script,
    };
    link.outbound.body(id, &result);
}

fn stats(link: &mut Link, id: u32, result: &Result<QueueStats, QueueNotFound>) {
    let stats = match result {
        Ok(stats) => stats,
        Err(QueueNotFound) => {
            let error_code = ErrorCode::QueueNotFound;
            let result = GetStatsResult {
                error_code,
                ..GetStatsResult::default()
            };
            return link.outbound.body(id, &result);
        }
    };
    let counts = &stats.counts;
    let per_key_stats = stats
        .keys
        .iter()
        .map(|key| FairnessKeyStats {
            key: &key.key,
            pending_count: key.pending,
            current_deficit: key.deficit,
            weight: key.weight,
        })
        .collect();
    let result = GetStatsResult {
        error_code: ErrorCode::Ok,
        depth: counts.depth,
        in_flight: counts.in_flight,
        delayed: counts.delayed,
        unclassified: counts.unclassified,
        oldest_unclassified_at_ms: counts.oldest_unclassified_at.map_or(0, |at| at.0),
        throttled: counts.throttled,
        active_fairness_keys: counts.active_fairness_keys,
        active_consumers: counts.active_consumers,
        quantum: stats.quantum,
        leader_node_id: 0,
        replication_count: 0,
        per_key_stats,
        active_throttles: stats.throttles.iter().map(throttles::summary).collect(),
    };
    link.outbound.body(id, &result);
}

fn list_queues(link: &mut Link, id: u32, queues: &[QueueSummary]) {
    let caller = &link.authority.caller;
    let queues = queues
        .iter()
        .filter(|queue| caller.may_touch(&queue.name))
        .map(|queue| QueueInfo {
            name: &queue.name,
            depth: queue.counts.depth,
            in_flight: queue.counts.in_flight,
            active_consumers: queue.counts.active_consumers,
            leader_node_id: 0,
        })
        .collect();
    let error_code = ErrorCode::Ok;
    link.outbound.body(
        id,
        &ListQueuesResult {
            error_code,
            cluster_node_count: 0,
            queues,
        },
    );
}

/// `body` is the frame's, checked before. Queues that do not exist are left out, and those that the
/// peer may not touch.
fn routes(link: &mut Link, id: u32, body: &Bytes, queues: &[QueueSummary]) {
    let addr = link.config.advertised_addr.clone();
    let route = |queue| QueueRoute {
        queue,
        leader_node_id: 0,
        leader_addr: &addr,
        shards: Vec::new(),
    };
    let names = RouteNames::new(body);
    let caller = &link.authority.caller;
    let routes = if names.is_all() {
        let names = queues.iter().map(|queue| &*queue.name);
        names
            .filter(|name| caller.may_touch(name))
            .map(route)
            .collect()
    } else {
        names
            .filter_map(Result::ok)
            .filter(|name| {
                queues
                    .binary_search_by(|queue| (*queue.name).cmp(name))
                    .is_ok()
            })
            .filter(|name| caller.may_touch(name))
            .map(route)
            .collect()
    };
    let result = GetRoutesResult {
        error_code: ErrorCode::Ok,
        routes,
    };
    link.outbound.body(id, &result);
}

fn config(link: &mut Link, id: u32, value: Option<&str>) {
    let error_code = match value {
        Some(_) => ErrorCode::Ok,
        None => ErrorCode::InvalidConfigValue,
    };
    let value = value.unwrap_or_default();
    link.outbound
        .body(id, &GetConfigResult { error_code, value });
}

fn list_config(link: &mut Link, id: u32, entries: &[(String, String)]) {
    let entries = entries
        .iter()
        .map(|(key, value)| ConfigEntry { key, value })
        .collect();
    link.outbound.body(
        id,
        &ListConfigResult {
            error_code: ErrorCode::Ok,
            entries,
        },
    );
}

fn cluster_status(link: &mut Link, id: u32, status: ClusterStatus) {
    let rebalancing = match status.rebalancing {
        Rebalancing::Enabled => RebalancingMode::Enabled,
        Rebalancing::Paused { .. } => RebalancingMode::Paused,
        Rebalancing::Disabled => RebalancingMode::Disabled,
    };
    let addr = link.config.advertised_addr.clone();
    let node = NodeInfo {
        node_id: 0,
        addr: &addr,
        state: NodeState::Up.to_wire(),
        queue_leaderships: status.queue_leaderships,
    };
    let result = GetClusterStatusResult {
        error_code: ErrorCode::Ok,
        meta_leader_node_id: 0,
        rebalancing: rebalancing.to_wire(),
        rebalancing_pause_ends_at_ms: status.pause_ends_at.0,
        nodes: vec![node],
    };
    link.outbound.body(id, &result);
}
