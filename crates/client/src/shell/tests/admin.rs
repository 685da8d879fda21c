//! Administration: what is asked, and what comes of the answers.

use std::future::Future;
use std::time::Duration;

use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatusResult, GetRoutes, GetRoutesResult,
    MoveQueueLeader, MoveQueueLeaderResult, NodeInfo, QueueRoute, SetRebalancing,
    SetRebalancingResult, ShardRoute,
};
use tanda_wire::fila::config::{
    ConfigEntry, GetConfigResult, ListConfig, ListConfigResult, SetConfig, SetConfigResult,
};
use tanda_wire::fila::consume::ThrottleLimit;
use tanda_wire::fila::keys::{
    ApiKeyInfo, CreateApiKey, CreateApiKeyResult, GetAclResult, ListApiKeysResult, Permission,
    RevokeApiKeyResult, SetAcl, SetAclResult,
};
use tanda_wire::fila::property_key::{KeyPart as WirePart, PropertyKey as WireKey};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueuesResult, QueueInfo,
    UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::stats::{FairnessKeyStats, GetStatsResult, ThrottleSummary};
use tanda_wire::fila::throttle::{
    BucketLimit, BucketStats, GetThrottleBucket, GetThrottleBucketResult, GetThrottleStats,
    GetThrottleStatsResult,
};
use tanda_wire::fila::{Body, ErrorCode};

use super::{Peer, connect};
use crate::admin::{self, Admin, QueueChanges, QueueSettings};
use crate::{KeyPart, PropertyKey, RequestError};

/// Makes a request and answers it; returns the body that was sent and the result.
async fn exchange<'a, T, F, B>(
    (admin, peer): (&Admin, &mut Peer),
    call: impl FnOnce(Admin) -> F,
    answer: B,
) -> (Vec<u8>, T)
where
    F: Future<Output = T>,
    B: Body<'a>,
{
    let answering = async {
        let sent = peer.next().await.unwrap();
        assert_eq!(sent.header.opcode.answer(), Some(B::OPCODE));
        peer.send(sent.id(), &answer).await;
        sent.body
    };
    tokio::join!(answering, call(admin.clone()))
}

#[tokio::test]
async fn queues_are_made() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let settings = QueueSettings::new("orders")
        .on_enqueue("function on_enqueue() end")
        .visibility_timeout(Duration::from_secs(30))
        .ordering(admin::Ordering::ByKeyIfPresent(PropertyKey::header(
            "customer",
        )))
        .dedup_key(PropertyKey::of([KeyPart::PayloadHash]))
        .dedup_window(Duration::from_secs(60))
        .script_failure(admin::ScriptFailure::Park)
        .park_dead_letter_after(7)
        .max_attempts(5)
        .backoff(admin::Backoff::Fixed)
        .backoff_initial(Duration::from_millis(10))
        .backoff_max(Duration::from_millis(20))
        .delivery_durability(admin::DeliveryDurability::Fast)
        .reclaim_grace(Duration::from_secs(2));
    let answer = CreateQueueResult {
        error_code: ErrorCode::Ok,
        queue_id: "id-1",
    };
    let create = async |admin: Admin| admin.create_queue(&settings).await;
    let (body, result) = exchange((admin, &mut peer), create, answer).await;
    assert_eq!(result.as_deref(), Ok("id-1"));
    let key = |kind, name| WireKey {
        parts: vec![WirePart { kind, name }],
    };
    let expected = CreateQueue {
        name: "orders",
        on_enqueue_script: Some("function on_enqueue() end"),
        on_failure_script: None,
        visibility_timeout_ms: 30_000,
        ordering: 2,
        ordering_key: key(0, "customer"),
        when_ordering_key_missing: 1,
        dedup_key: key(4, ""),
        dedup_window_ms: 60_000,
        script_failure: 1,
        park_dead_letter_after: 7,
        max_attempts: 5,
        backoff: 2,
        backoff_initial_ms: 10,
        backoff_max_ms: 20,
        delivery_durability: 1,
        reclaim_grace_ms: 2_000,
    };
    assert_eq!(CreateQueue::decode(&body), Ok(expected));

    let answer = CreateQueueResult {
        error_code: ErrorCode::QueueAlreadyExists,
        queue_id: "",
    };
    let (_, result) = exchange((admin, &mut peer), create, answer).await;
    assert_eq!(
        result.unwrap_err().code(),
        Some(ErrorCode::QueueAlreadyExists)
    );
}

#[tokio::test]
async fn queues_are_changed_and_removed() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let changes = QueueChanges::new()
        .remove_on_enqueue()
        .on_failure("function on_failure() end")
        .max_attempts(0)
        .backoff(admin::Backoff::None);
    let update = async |admin: Admin| admin.update_queue("orders", &changes).await;
    let answer = UpdateQueueResult {
        error_code: ErrorCode::Ok,
    };
    let (body, result) = exchange((admin, &mut peer), update, answer).await;
    assert_eq!(result, Ok(()));
    let expected = UpdateQueue {
        queue: "orders",
        on_enqueue_change: 2,
        on_failure_change: 1,
        on_failure_script: "function on_failure() end",
        max_attempts: Some(0),
        backoff: Some(1),
        ..UpdateQueue::default()
    };
    assert_eq!(UpdateQueue::decode(&body), Ok(expected));

    let delete = async |admin: Admin| admin.delete_queue("orders").await;
    let answer = DeleteQueueResult {
        error_code: ErrorCode::QueueNotFound,
    };
    let (body, result) = exchange((admin, &mut peer), delete, answer).await;
    assert_eq!(result.unwrap_err().code(), Some(ErrorCode::QueueNotFound));
    assert_eq!(
        DeleteQueue::decode(&body),
        Ok(DeleteQueue { queue: "orders" })
    );
}

#[tokio::test]
async fn queues_are_listed() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let info = QueueInfo {
        name: "orders",
        depth: 1,
        in_flight: 2,
        active_consumers: 3,
        leader_node_id: 0,
    };
    let answer = ListQueuesResult {
        error_code: ErrorCode::Ok,
        cluster_node_count: 0,
        queues: vec![info],
    };
    let list = async |admin: Admin| admin.list_queues().await;
    let (_, result) = exchange((admin, &mut peer), list, answer).await;
    let [queue] = result.unwrap().try_into().unwrap();
    assert_eq!(
        (queue.name.as_str(), queue.depth, queue.in_flight),
        ("orders", 1, 2)
    );
}

#[tokio::test]
async fn queues_are_counted() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let summary = ThrottleSummary {
        name: "t",
        limits: vec![ThrottleLimit {
            max_deliveries: 5,
            window_ms: 1_000,
        }],
        key: WireKey {
            parts: vec![WirePart { kind: 1, name: "" }],
        },
        when_key_missing: 1,
        declaring_subscribers: 2,
    };
    let answer = GetStatsResult {
        error_code: ErrorCode::Ok,
        depth: 10,
        oldest_unclassified_at_ms: 0,
        throttled: 4,
        quantum: 1,
        per_key_stats: vec![FairnessKeyStats {
            key: "tenant",
            pending_count: 6,
            current_deficit: -1,
            weight: 2,
        }],
        active_throttles: vec![summary],
        ..GetStatsResult::default()
    };
    let stats = async |admin: Admin| admin.queue_stats("orders").await;
    let (_, result) = exchange((admin, &mut peer), stats, answer).await;
    let stats = result.unwrap();
    assert_eq!(
        (
            stats.depth,
            stats.throttled,
            stats.oldest_unclassified_at_ms
        ),
        (10, 4, None)
    );
    let key = &stats.fairness_keys[0];
    assert_eq!(
        (key.key.as_str(), key.pending, key.deficit, key.weight),
        ("tenant", 6, -1, 2)
    );
    let throttle = &stats.throttles[0];
    assert_eq!(throttle.key, PropertyKey::fairness_key());
    assert!(throttle.unthrottled_without_key);
}

#[tokio::test]
async fn dead_letters_are_redriven() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let redrive = async |admin: Admin| {
        admin
            .redrive("orders.dlq", 9, admin::Reclassify::UnclassifiedOnly)
            .await
    };
    let answer = RedriveResult {
        error_code: ErrorCode::Ok,
        redriven: 7,
        left_unclassified: 1,
        rejected_by_script: 2,
    };
    let (body, result) = exchange((admin, &mut peer), redrive, answer).await;
    let expected = Redrive {
        dlq_queue: "orders.dlq",
        count: 9,
        reclassify: 1,
    };
    assert_eq!(Redrive::decode(&body), Ok(expected));
    let redriven = admin::Redriven {
        redriven: 7,
        left_unclassified: 1,
        rejected_by_script: 2,
    };
    assert_eq!(result, Ok(redriven));
}

#[tokio::test]
async fn configuration_is_set_and_read() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let set = async |admin: Admin| admin.set_config("k", "v").await;
    let answer = SetConfigResult {
        error_code: ErrorCode::Ok,
    };
    let (body, result) = exchange((admin, &mut peer), set, answer).await;
    assert_eq!(result, Ok(()));
    assert_eq!(
        SetConfig::decode(&body),
        Ok(SetConfig {
            key: "k",
            value: "v"
        })
    );

    let read = async |admin: Admin| admin.config("k").await;
    let answer = GetConfigResult {
        error_code: ErrorCode::Ok,
        value: "v",
    };
    let (_, result) = exchange((admin, &mut peer), read, answer).await;
    assert_eq!(result, Ok(Some("v".to_owned())));
    let answer = GetConfigResult {
        error_code: ErrorCode::InvalidConfigValue,
        value: "",
    };
    let (_, result) = exchange((admin, &mut peer), read, answer).await;
    assert_eq!(result, Ok(None));
    let answer = GetConfigResult {
        error_code: ErrorCode::Forbidden,
        value: "",
    };
    let (_, result) = exchange((admin, &mut peer), read, answer).await;
    assert_eq!(result.unwrap_err().code(), Some(ErrorCode::Forbidden));

    let list = async |admin: Admin| admin.list_config("p").await;
    let entries = vec![ConfigEntry {
        key: "p1",
        value: "a",
    }];
    let answer = ListConfigResult {
        error_code: ErrorCode::Ok,
        entries,
    };
    let (body, result) = exchange((admin, &mut peer), list, answer).await;
    assert_eq!(result, Ok(vec![("p1".to_owned(), "a".to_owned())]));
    assert_eq!(ListConfig::decode(&body), Ok(ListConfig { prefix: "p" }));
}

#[tokio::test]
async fn keys_are_made_and_granted() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let create = async |admin: Admin| {
        admin
            .create_api_key("ci", admin::ApiKeyExpiry::AtMs(99), false)
            .await
    };
    let answer = CreateApiKeyResult {
        error_code: ErrorCode::Ok,
        key_id: "k1",
        key: "secret",
        is_superadmin: false,
    };
    let (body, result) = exchange((admin, &mut peer), create, answer).await;
    let expected = CreateApiKey {
        name: "ci",
        expires_at_ms: 99,
        is_superadmin: false,
    };
    assert_eq!(CreateApiKey::decode(&body), Ok(expected));
    let created = result.unwrap();
    assert_eq!(
        (created.key_id.as_str(), created.key.as_str()),
        ("k1", "secret")
    );
    assert!(
        !format!("{created:?}").contains("secret"),
        "credentials stay out of logs"
    );

    let permissions = [admin::Permission::new(
        admin::PermissionKind::Produce,
        "orders.*",
    )];
    let set = async |admin: Admin| admin.set_acl("k1", &permissions).await;
    let answer = SetAclResult {
        error_code: ErrorCode::Ok,
    };
    let (body, result) = exchange((admin, &mut peer), set, answer).await;
    assert_eq!(result, Ok(()));
    let grant = Permission {
        kind: "produce",
        pattern: "orders.*",
    };
    let expected = SetAcl {
        key_id: "k1",
        permissions: vec![grant.clone()],
    };
    assert_eq!(SetAcl::decode(&body), Ok(expected));

    let acl = async |admin: Admin| admin.acl("k1").await;
    let other = Permission {
        kind: "later",
        pattern: "*",
    };
    let answer = GetAclResult {
        error_code: ErrorCode::Ok,
        key_id: "k1",
        is_superadmin: false,
        permissions: vec![grant, other],
    };
    let (_, result) = exchange((admin, &mut peer), acl, answer).await;
    let acl = result.unwrap();
    assert_eq!(acl.permissions[0], permissions[0]);
    assert_eq!(
        acl.permissions[1].kind,
        admin::PermissionKind::Other("later".to_owned())
    );
}

#[tokio::test]
async fn keys_are_listed_and_revoked() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let list = async |admin: Admin| admin.list_api_keys().await;
    let info = ApiKeyInfo {
        key_id: "k1",
        name: "ci",
        created_at_ms: 1,
        expires_at_ms: 0,
        is_superadmin: true,
    };
    let answer = ListApiKeysResult {
        error_code: ErrorCode::Ok,
        keys: vec![info],
    };
    let (_, result) = exchange((admin, &mut peer), list, answer).await;
    assert_eq!(result.unwrap()[0].expiry, admin::ApiKeyExpiry::Never);

    let revoke = async |admin: Admin| admin.revoke_api_key("k1").await;
    let answer = RevokeApiKeyResult {
        error_code: ErrorCode::ApiKeyNotFound,
    };
    let (_, result) = exchange((admin, &mut peer), revoke, answer).await;
    assert_eq!(result.unwrap_err().code(), Some(ErrorCode::ApiKeyNotFound));
}

#[tokio::test]
async fn throttles_are_looked_into() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let bucket = |kind| BucketStats {
        bucket_kind: kind,
        values: vec!["a"],
        limits: vec![BucketLimit { counted: 3 }],
        waiting: 4,
        next_room_at_ms: 5,
    };
    let stats = async |admin: Admin| admin.throttle_stats("t", 10).await;
    let answer = GetThrottleStatsResult {
        error_code: ErrorCode::Ok,
        queues: vec!["orders"],
        waiting: 8,
        buckets: vec![bucket(0), bucket(1), bucket(9)],
        ..GetThrottleStatsResult::default()
    };
    let (body, result) = exchange((admin, &mut peer), stats, answer).await;
    let expected = GetThrottleStats {
        name: "t",
        top_buckets: 10,
    };
    assert_eq!(GetThrottleStats::decode(&body), Ok(expected));
    let stats = result.unwrap();
    assert_eq!((stats.queues[0].as_str(), stats.waiting), ("orders", 8));
    let ids: Vec<admin::BucketId> = stats.buckets.into_iter().map(|bucket| bucket.id).collect();
    let values = vec!["a".to_owned()];
    let expected = [
        admin::BucketId::Values(values.clone()),
        admin::BucketId::Shared,
        admin::BucketId::Unknown {
            kind: 9,
            values: values.clone(),
        },
    ];
    assert_eq!(ids, expected);

    let id = admin::BucketId::Values(values);
    let look = async |admin: Admin| admin.throttle_bucket("t", &id).await;
    let answer = GetThrottleBucketResult {
        error_code: ErrorCode::Ok,
        bucket: bucket(0),
    };
    let (body, result) = exchange((admin, &mut peer), look, answer).await;
    let expected = GetThrottleBucket {
        name: "t",
        bucket_kind: 0,
        values: vec!["a"],
    };
    assert_eq!(GetThrottleBucket::decode(&body), Ok(expected));
    let bucket = result.unwrap();
    assert_eq!(
        (bucket.counted.as_slice(), bucket.waiting),
        ([3].as_slice(), 4)
    );
}

#[tokio::test]
async fn the_cluster_is_looked_at() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let routes = async |admin: Admin| admin.routes(&["orders"]).await;
    let route = QueueRoute {
        queue: "orders",
        leader_node_id: 1,
        leader_addr: "a:1",
        shards: vec![ShardRoute {
            shard_index: 2,
            leader_node_id: 3,
            leader_addr: "b:2",
        }],
    };
    let answer = GetRoutesResult {
        error_code: ErrorCode::Ok,
        routes: vec![route],
    };
    let (body, result) = exchange((admin, &mut peer), routes, answer).await;
    assert_eq!(
        GetRoutes::decode(&body),
        Ok(GetRoutes {
            queues: vec!["orders"]
        })
    );
    let routes = result.unwrap();
    assert_eq!(
        (
            routes[0].leader_addr.as_str(),
            routes[0].shards[0].shard_index
        ),
        ("a:1", 2)
    );

    let status = async |admin: Admin| admin.cluster_status().await;
    let node = NodeInfo {
        node_id: 1,
        addr: "a:1",
        state: 2,
        queue_leaderships: 5,
    };
    let answer = GetClusterStatusResult {
        error_code: ErrorCode::Ok,
        meta_leader_node_id: 1,
        rebalancing: 1,
        rebalancing_pause_ends_at_ms: 77,
        nodes: vec![node],
    };
    let (_, result) = exchange((admin, &mut peer), status, answer).await;
    let status = result.unwrap();
    assert_eq!(status.rebalancing, admin::Rebalancing::PausedUntilMs(77));
    assert_eq!(status.nodes[0].state, admin::NodeState::Draining);
}

#[tokio::test]
async fn rebalancing_is_set_and_nodes_are_drained() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let pause = admin::SetRebalancingTo::PausedFor(Duration::from_secs(5));
    let set = async |admin: Admin| admin.set_rebalancing(pause).await;
    let answer = SetRebalancingResult {
        error_code: ErrorCode::Ok,
    };
    let (body, result) = exchange((admin, &mut peer), set, answer).await;
    assert_eq!(result, Ok(()));
    assert_eq!(
        SetRebalancing::decode(&body),
        Ok(SetRebalancing {
            mode: 1,
            pause_ms: 5_000
        })
    );

    let drain = async |admin: Admin| admin.drain_node(4).await;
    let answer = DrainNodeResult {
        error_code: ErrorCode::NodeNotFound,
    };
    let (body, result) = exchange((admin, &mut peer), drain, answer).await;
    assert_eq!(result.unwrap_err().code(), Some(ErrorCode::NodeNotFound));
    assert_eq!(
        DrainNode::decode(&body),
        Ok(DrainNode {
            node_id: 4,
            drain: true
        })
    );
    let undrain = async |admin: Admin| admin.cancel_drain(4).await;
    let answer = DrainNodeResult {
        error_code: ErrorCode::Ok,
    };
    let (body, _) = exchange((admin, &mut peer), undrain, answer).await;
    assert_eq!(
        DrainNode::decode(&body),
        Ok(DrainNode {
            node_id: 4,
            drain: false
        })
    );
}

#[tokio::test]
async fn leaders_are_moved() {
    let (client, mut peer, _network) = connect().await;
    let admin = &client.admin();
    let move_leader = async |admin: Admin| admin.move_queue_leader("orders", 4).await;
    let answer = MoveQueueLeaderResult {
        error_code: ErrorCode::Ok,
    };
    let (body, result) = exchange((admin, &mut peer), move_leader, answer).await;
    assert_eq!(result, Ok(()));
    let expected = MoveQueueLeader {
        queue: "orders",
        target_node_id: 4,
    };
    assert_eq!(MoveQueueLeader::decode(&body), Ok(expected));
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_leaves_the_outcome_open() {
    let (client, mut peer, _network) = connect().await;
    let admin = client.admin();
    let answering = async {
        let sent = peer.next().await.unwrap();
        let mut out = Vec::new();
        let answer = sent.header.opcode.answer().unwrap();
        tanda_wire::fila::frame::write_frame(&mut out, answer, sent.id(), |_| Ok(())).unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &out)
            .await
            .unwrap();
    };
    let ((), result) = tokio::join!(answering, admin.delete_queue("q"));
    let error = result.unwrap_err();
    assert!(
        matches!(error, RequestError::InvalidReply { .. }),
        "{error}"
    );
    assert_eq!(error.code(), Some(ErrorCode::InvalidFrame));
    assert!(error.outcome_unknown());
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_not_sent() {
    let (client, _peer, _network) = connect().await;
    let error = client
        .admin()
        .delete_queue(&"q".repeat(65_536))
        .await
        .unwrap_err();
    assert!(matches!(error, RequestError::Unencodable(_)), "{error}");
    assert!(!error.outcome_unknown());
}
