//! Between the structs of the codec and the JSON of the published frames.

use serde_json::{Map, Value, json};
use tanda_wire::fila::Headers;
use tanda_wire::fila::cluster::{
    DrainNode, DrainNodeResult, GetClusterStatus, GetClusterStatusResult, GetRoutes,
    GetRoutesResult, MoveQueueLeader, MoveQueueLeaderResult, NodeInfo, QueueRoute, SetRebalancing,
    SetRebalancingResult, ShardRoute,
};
use tanda_wire::fila::config::{
    ConfigEntry, GetConfig, GetConfigResult, ListConfig, ListConfigResult, SetConfig,
    SetConfigResult,
};
use tanda_wire::fila::consume::{
    CancelConsume, Consume, ConsumeOk, Credit, ThrottleDeclaration, ThrottleLimit,
};
use tanda_wire::fila::control::{Disconnect, Handshake, HandshakeOk, Ping, Pong};
use tanda_wire::fila::delivery::{DeliveryItem, DeliveryMessage, DeliveryMeta, DeliveryWriter};
use tanda_wire::fila::enqueue::{EnqueueItem, EnqueueMessage, EnqueueWriter, encode_content};
use tanda_wire::fila::enqueue::{EnqueueItemResult, EnqueueResult, RouteHint};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::keys::{
    ApiKeyInfo, CreateApiKey, CreateApiKeyResult, GetAcl, GetAclResult, ListApiKeys,
    ListApiKeysResult, Permission, RevokeApiKey, RevokeApiKeyResult, SetAcl, SetAclResult,
};
use tanda_wire::fila::property_key::{KeyPart, PropertyKey};
use tanda_wire::fila::queue_admin::{
    CreateQueue, CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues, ListQueuesResult,
    QueueInfo, UpdateQueue, UpdateQueueResult,
};
use tanda_wire::fila::redrive::{Redrive, RedriveResult};
use tanda_wire::fila::settle::{
    AckItem, AckWriter, ExtendItem, ExtendWriter, NackItem, NackWriter,
};
use tanda_wire::fila::settle::{AckResult, ExtendItemResult, ExtendLeaseResult, NackResult};
use tanda_wire::fila::stats::{FairnessKeyStats, GetStats, GetStatsResult, ThrottleSummary};
use tanda_wire::fila::throttle::{
    BucketLimit, BucketStats, GetThrottleBucket, GetThrottleBucketResult, GetThrottleStats,
    GetThrottleStatsResult,
};
use tanda_wire::fila::{Capabilities, ErrorCode, MessageId};

/// A value that the JSON of the published frames can hold.
pub(crate) trait Json<'v>: Sized {
    fn to_json(&self) -> Value;
    fn from_json(value: &'v Value) -> Self;
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0, "{text} is not hex");
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

macro_rules! integers {
    ($($ty:ty => $as:ident),*) => {$(
        impl Json<'_> for $ty {
            fn to_json(&self) -> Value {
                json!(self)
            }

            fn from_json(value: &Value) -> Self {
                Self::try_from(value.$as().unwrap()).unwrap()
            }
        }
    )*};
}

integers!(u8 => as_u64, u16 => as_u64, u32 => as_u64, u64 => as_u64, i64 => as_i64);

impl Json<'_> for bool {
    fn to_json(&self) -> Value {
        json!(self)
    }

    fn from_json(value: &Value) -> Self {
        value.as_bool().unwrap()
    }
}

impl<'v> Json<'v> for &'v str {
    fn to_json(&self) -> Value {
        json!(self)
    }

    fn from_json(value: &'v Value) -> Self {
        value.as_str().unwrap()
    }
}

impl Json<'_> for MessageId {
    fn to_json(&self) -> Value {
        json!(hex(self))
    }

    fn from_json(value: &Value) -> Self {
        Self::try_from(unhex(value.as_str().unwrap())).unwrap()
    }
}

impl Json<'_> for Capabilities {
    fn to_json(&self) -> Value {
        json!(self.bits())
    }

    fn from_json(value: &Value) -> Self {
        Self::from_bits(Json::from_json(value))
    }
}

impl Json<'_> for ErrorCode {
    fn to_json(&self) -> Value {
        json!(self.name())
    }

    fn from_json(value: &Value) -> Self {
        let named = |code: &&Self| value.as_str() == Some(code.name());
        *Self::ALL.iter().find(named).unwrap()
    }
}

impl<'v, T: Json<'v>> Json<'v> for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, Json::to_json)
    }

    fn from_json(value: &'v Value) -> Self {
        if value.is_null() {
            None
        } else {
            Some(T::from_json(value))
        }
    }
}

impl<'v, T: Json<'v>> Json<'v> for Vec<T> {
    fn to_json(&self) -> Value {
        self.iter().map(Json::to_json).collect()
    }

    fn from_json(value: &'v Value) -> Self {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(Json::from_json)
            .collect()
    }
}

impl<'v> Json<'v> for (&'v str, &'v str) {
    fn to_json(&self) -> Value {
        json!([self.0, self.1])
    }

    fn from_json(value: &'v Value) -> Self {
        (Json::from_json(&value[0]), Json::from_json(&value[1]))
    }
}

impl<'v> Json<'v> for PropertyKey<'v> {
    fn to_json(&self) -> Value {
        self.parts.to_json()
    }

    fn from_json(value: &'v Value) -> Self {
        Self {
            parts: Json::from_json(value),
        }
    }
}

macro_rules! json_structs {
    ($( $Name:ident $(<$lt:lifetime>)? { $( $field:ident ),* } )*) => {$(
        impl<'v> Json<'v> for $Name $(<$lt>)? {
            fn to_json(&self) -> Value {
                let Self { $( $field ),* } = self;
                let entries = [$( (stringify!($field).to_owned(), $field.to_json()) ),*];
                Value::Object(entries.into_iter().collect())
            }

            fn from_json(value: &'v Value) -> Self {
                let _fields = value.as_object().unwrap();
                Self { $( $field: Json::from_json(&value[stringify!($field)]) ),* }
            }
        }
    )*};
}

json_structs! {
    GetRoutes<'v> { queues }
    GetRoutesResult<'v> { error_code, routes }
    QueueRoute<'v> { queue, leader_node_id, leader_addr, shards }
    ShardRoute<'v> { shard_index, leader_node_id, leader_addr }
    DrainNode { node_id, drain }
    DrainNodeResult { error_code }
    MoveQueueLeader<'v> { queue, target_node_id }
    MoveQueueLeaderResult { error_code }
    SetRebalancing { mode, pause_ms }
    SetRebalancingResult { error_code }
    GetClusterStatus {}
    GetClusterStatusResult<'v> {
        error_code, meta_leader_node_id, rebalancing, rebalancing_pause_ends_at_ms, nodes
    }
    NodeInfo<'v> { node_id, addr, state, queue_leaderships }
    SetConfig<'v> { key, value }
    SetConfigResult { error_code }
    GetConfig<'v> { key }
    GetConfigResult<'v> { error_code, value }
    ListConfig<'v> { prefix }
    ListConfigResult<'v> { error_code, entries }
    ConfigEntry<'v> { key, value }
    Consume<'v> { queue, credit, throttles }
    ThrottleDeclaration<'v> { name, limits, key, when_key_missing }
    ThrottleLimit { max_deliveries, window_ms }
    ConsumeOk<'v> { consumer_id }
    Credit { additional_credit }
    CancelConsume {}
    Handshake<'v> { protocol_version, api_key, client_capabilities }
    HandshakeOk { negotiated_version, node_id, max_frame_size, server_capabilities }
    Ping {}
    Pong {}
    Disconnect {}
    EnqueueResult<'v> { results, route_hints }
    EnqueueItemResult { error_code, message_id, duplicate }
    RouteHint<'v> { queue, leader_node_id, leader_addr }
    ErrorFrame<'v> { error_code, message, metadata }
    CreateApiKey<'v> { name, expires_at_ms, is_superadmin }
    CreateApiKeyResult<'v> { error_code, key_id, key, is_superadmin }
    RevokeApiKey<'v> { key_id }
    RevokeApiKeyResult { error_code }
    ListApiKeys {}
    ListApiKeysResult<'v> { error_code, keys }
    ApiKeyInfo<'v> { key_id, name, created_at_ms, expires_at_ms, is_superadmin }
    SetAcl<'v> { key_id, permissions }
    Permission<'v> { kind, pattern }
    SetAclResult { error_code }
    GetAcl<'v> { key_id }
    GetAclResult<'v> { error_code, key_id, is_superadmin, permissions }
    KeyPart<'v> { kind, name }
    CreateQueue<'v> {
        name, on_enqueue_script, on_failure_script, visibility_timeout_ms, ordering, ordering_key,
        when_ordering_key_missing, dedup_key, dedup_window_ms, script_failure,
        park_dead_letter_after, max_attempts, backoff, backoff_initial_ms, backoff_max_ms,
        delivery_durability, reclaim_grace_ms
    }
    CreateQueueResult<'v> { error_code, queue_id }
    UpdateQueue<'v> {
        queue, on_enqueue_change, on_enqueue_script, on_failure_change, on_failure_script,
        visibility_timeout_ms, dedup_window_ms, max_attempts, backoff, backoff_initial_ms,
        backoff_max_ms, delivery_durability, reclaim_grace_ms, park_dead_letter_after
    }
    UpdateQueueResult { error_code }
    DeleteQueue<'v> { queue }
    DeleteQueueResult { error_code }
    ListQueues {}
    ListQueuesResult<'v> { error_code, cluster_node_count, queues }
    QueueInfo<'v> { name, depth, in_flight, active_consumers, leader_node_id }
    Redrive<'v> { dlq_queue, count, reclassify }
    RedriveResult { error_code, redriven, left_unclassified, rejected_by_script }
    AckResult { results }
    NackResult { results }
    ExtendLeaseResult { results }
    ExtendItemResult { error_code, lease_expires_at_ms }
    GetStats<'v> { queue }
    GetStatsResult<'v> {
        error_code, depth, in_flight, delayed, unclassified, oldest_unclassified_at_ms, throttled,
        active_fairness_keys, active_consumers, quantum, leader_node_id, replication_count,
        per_key_stats, active_throttles
    }
    FairnessKeyStats<'v> { key, pending_count, current_deficit, weight }
    ThrottleSummary<'v> { name, limits, key, when_key_missing, declaring_subscribers }
    GetThrottleStats<'v> { name, top_buckets }
    GetThrottleStatsResult<'v> {
        error_code, summary, queues, active_buckets, buckets_at_limit, waiting, buckets
    }
    BucketStats<'v> { bucket_kind, values, limits, waiting, next_room_at_ms }
    BucketLimit { counted }
    GetThrottleBucket<'v> { name, bucket_kind, values }
    GetThrottleBucketResult<'v> { error_code, bucket }
}

fn list<'v>(fields: &'v Value, name: &str) -> &'v [Value] {
    fields[name].as_array().unwrap()
}

fn pairs(value: &Value) -> Vec<(&str, &str)> {
    Json::from_json(value)
}

fn headers_json(headers: Headers<'_>) -> Value {
    headers.iter().map(|pair| pair.to_json()).collect()
}

impl<'v> Json<'v> for EnqueueMessage<'v> {
    fn to_json(&self) -> Value {
        json!({
            "queue": self.queue,
            "headers": headers_json(self.headers),
            "payload": hex(self.payload),
            "fairness_key": self.fairness_key,
            "weight": self.weight,
            "delay_ms": self.delay_ms,
            "idempotency_key": self.idempotency_key,
        })
    }

    fn from_json(_: &'v Value) -> Self {
        unreachable!("enqueue_from_json writes from JSON")
    }
}

pub(crate) fn enqueue_from_json(fields: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = EnqueueWriter::new(&mut out);
    for message in list(fields, "messages") {
        let payload = unhex(message["payload"].as_str().unwrap());
        let item = EnqueueItem {
            queue: Json::from_json(&message["queue"]),
            payload: &payload,
            fairness_key: Json::from_json(&message["fairness_key"]),
            weight: Json::from_json(&message["weight"]),
            delay_ms: Json::from_json(&message["delay_ms"]),
            idempotency_key: Json::from_json(&message["idempotency_key"]),
        };
        writer.push(&item, pairs(&message["headers"])).unwrap();
    }
    writer.finish();
    out
}

impl<'v> Json<'v> for DeliveryMessage<'v> {
    fn to_json(&self) -> Value {
        json!({
            "message_id": hex(&self.meta.message_id),
            "queue": self.queue,
            "headers": headers_json(self.headers),
            "payload": hex(self.payload),
            "fairness_key": self.fairness_key,
            "weight": self.meta.weight,
            "attempt_count": self.meta.attempt_count,
            "redrive_count": self.meta.redrive_count,
            "enqueued_at_ms": self.meta.enqueued_at_ms,
            "leased_at_ms": self.meta.leased_at_ms,
            "lease_expires_at_ms": self.meta.lease_expires_at_ms,
        })
    }

    fn from_json(_: &'v Value) -> Self {
        unreachable!("delivery_from_json writes from JSON")
    }
}

pub(crate) fn delivery_from_json(fields: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = DeliveryWriter::new(&mut out);
    for message in list(fields, "messages") {
        let payload = unhex(message["payload"].as_str().unwrap());
        let mut content = Vec::new();
        encode_content(&mut content, pairs(&message["headers"]), &payload).unwrap();
        let meta = DeliveryMeta {
            message_id: Json::from_json(&message["message_id"]),
            weight: Json::from_json(&message["weight"]),
            attempt_count: Json::from_json(&message["attempt_count"]),
            redrive_count: Json::from_json(&message["redrive_count"]),
            enqueued_at_ms: Json::from_json(&message["enqueued_at_ms"]),
            leased_at_ms: Json::from_json(&message["leased_at_ms"]),
            lease_expires_at_ms: Json::from_json(&message["lease_expires_at_ms"]),
        };
        let queue = Json::from_json(&message["queue"]);
        let fairness_key = Json::from_json(&message["fairness_key"]);
        writer
            .push(&DeliveryItem {
                meta,
                queue,
                fairness_key,
                content: &content,
            })
            .unwrap();
    }
    writer.finish();
    out
}

macro_rules! settle_items {
    ($from_json:ident, $Writer:ident, $Item:ident { $( $field:ident ),* }) => {
        impl<'v> Json<'v> for $Item<'v> {
            fn to_json(&self) -> Value {
                let mut map = Map::new();
                $( map.insert(stringify!($field).into(), self.$field.to_json()); )*
                Value::Object(map)
            }

            fn from_json(value: &'v Value) -> Self {
                $Item {
                    $( $field: Json::from_json(&value[stringify!($field)]), )*
                    ..$Item::default()
                }
            }
        }

        pub(crate) fn $from_json(fields: &Value) -> Vec<u8> {
            let mut out = Vec::new();
            let mut writer = $Writer::new(&mut out);
            for item in list(fields, "items") {
                writer.push(&Json::from_json(item)).unwrap();
            }
            writer.finish();
            out
        }
    };
}

settle_items!(ack_from_json, AckWriter, AckItem { queue, message_id });
settle_items!(
    nack_from_json,
    NackWriter,
    NackItem {
        queue,
        message_id,
        error,
        retry_after_ms
    }
);
settle_items!(
    extend_from_json,
    ExtendWriter,
    ExtendItem {
        queue,
        message_id,
        extend_by_ms
    }
);
