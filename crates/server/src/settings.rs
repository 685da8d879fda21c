//! What the crates below are told of the configuration.

use std::{sync::Arc, time::Duration};

use tanda_engine::{Backoff, Defaults, EngineConfig, Limits, RetryPolicy};
use tanda_node::NodeConfig;
use tanda_session::amaquet::{AmaquetConfig, AmaquetLimits, NodeIdentity, ServerFacts};
use tanda_session::amqp::AmqpConfig;
use tanda_session::fila::{Authentication, SessionConfig};
use tanda_session::firemq::FireConfig;
use tanda_wire::firemq::frame::MAX_FRAME_BEFORE_WELCOME;

use crate::{
    config::{Authenticate, BackoffShape, ByteSize, Config},
    listen::MessageLimits,
    process, random,
    shard::InboxLimits,
    users::Rules,
};

/// Share of the machine's memory that may be used when `memory.limit` says nothing.
const DEFAULT_MEMORY_PERCENT: u64 = 60;

/// Ready messages of one queue that are not in pages take about one part in this many of it.
const HOT_OF_LIMIT: u64 = 4;

/// What the index keeps of a message.
const MESSAGE_BYTES: u64 = 64;

/// The disk runs short so long before it counts as full, when `disk.alarm` says nothing: four
/// segments.
const DISK_ALARM_MARGIN: u64 = 256 << 20;
/// The log's cache takes at most one part in this many of the memory limit.
const CACHE_OF_LIMIT: u64 = 8;

/// States of scripts of each of two threads take at most this much memory together, and at most one
/// part in so many of the memory limit.
const STATES_BYTES_MAX: usize = 64 << 20;
const STATES_OF_LIMIT: u64 = 16;

/// Above this much memory publishes are refused; 0 = there is no limit.
fn memory_limit(config: &Config) -> u64 {
    match config.memory_limit.0 {
        0 => process::memory_bytes().map_or(0, |bytes| bytes / 100 * DEFAULT_MEMORY_PERCENT),
        bytes => bytes,
    }
}

/// What a message takes that waits for a throttle by itself, in a bucket of its own: its entry, its
/// line and the bucket.
const THROTTLED_BYTES: u64 = 512;

/// The node's settings.
pub(crate) fn node(config: &Config, log_id: u128) -> NodeConfig {
    let mut node = NodeConfig::new(log_id);
    node.engine = EngineConfig {
        defaults: defaults(config),
        limits: Limits {
            queues_max: config.limits_queues_max,
            vhosts_max: config.limits_vhosts_max,
            exchanges_max: config.limits_exchanges_max,
            bindings_max: config.limits_bindings_max,
            message_bytes_max: u32_of(config.limits_max_message),
            weight_max: config.limits_weight_max,
            api_keys_max: config.limits_api_keys_max,
            users_max: config.limits_users_max,
            ..Limits::default()
        },
        quantum: config.queue_quantum,
        seed: random::seed(),
        has_script_host: true,
        ..EngineConfig::default()
    };
    let limit = memory_limit(config);
    node.memory_limit_bytes = limit;
    if limit > 0 {
        node.engine.queue_hot = limit / HOT_OF_LIMIT / MESSAGE_BYTES;
        let throttled = limit / HOT_OF_LIMIT / THROTTLED_BYTES;
        let throttled = u32::try_from(throttled).unwrap_or(u32::MAX);
        node.engine.throttled_hot = node.engine.throttled_hot.min(throttled);
    }
    node.snapshot_bytes = config.snapshot_bytes.0;
    node.reclaim_bytes_per_second = config.reclaim_rate.0;
    let cache = if limit == 0 {
        config.memory_log_cache.0
    } else {
        config.memory_log_cache.0.min(limit / CACHE_OF_LIMIT)
    };
    node.log.cache_bytes = usize_of(ByteSize(cache));
    node.log.keep_free_bytes = config.disk_reserve.0;
    node
}

/// Free bytes below which the disk runs short.
pub(crate) const fn disk_alarm(config: &Config) -> u64 {
    match config.disk_alarm.0 {
        0 => config.disk_reserve.0.saturating_add(DISK_ALARM_MARGIN),
        bytes => bytes,
    }
}

fn defaults(config: &Config) -> Defaults {
    Defaults {
        lease_ms: ms(config.queue_visibility_timeout),
        dedup_window_ms: ms(config.queue_dedup_window),
        retry: RetryPolicy {
            max_attempts: config.queue_max_attempts,
            backoff: match config.queue_backoff {
                BackoffShape::None => Backoff::None,
                BackoffShape::Fixed => Backoff::Fixed,
                BackoffShape::Exponential => Backoff::Exponential,
            },
            initial_ms: ms(config.queue_backoff_initial),
            max_ms: ms(config.queue_backoff_max),
        },
        reclaim_grace_ms: ms(config.queue_reclaim_grace),
    }
}

/// The settings of Fila connections. `advertised_addr` is used when none is configured.
pub(crate) fn session(
    config: &Config,
    advertised_addr: String,
    authentication: Authentication,
) -> SessionConfig {
    SessionConfig {
        max_frame_size: u32_of(config.limits_max_frame),
        max_body_bytes: usize_of(config.limits_max_body),
        unfinished_max: count(config.limits_unfinished_max),
        max_message_bytes: u32_of(config.limits_max_message),
        outbound_bytes_max: config.limits_outbound.0,
        reply_bytes_max: config.limits_replies.0,
        subscriptions_max: config.limits_subscriptions_max,
        requests_in_flight_max: count(config.limits_requests_max),
        handshake_timeout_ms: ms(config.limits_handshake_timeout),
        ping_idle_ms: ms(config.limits_ping_idle),
        pong_timeout_ms: ms(config.limits_pong_timeout),
        retry_after_ms: ms(config.limits_retry_after),
        advertised_addr: if config.advertised_addr.is_empty() {
            advertised_addr
        } else {
            config.advertised_addr.clone()
        },
        authentication,
        entropy: Some(Arc::new(random::SystemEntropy)),
        ..SessionConfig::default()
    }
}

/// The settings of AMQP connections.
pub(crate) fn amqp(config: &Config) -> AmqpConfig {
    let heartbeat_s = config.limits_heartbeat.as_secs();
    let ack_timeout_ms = ms(config.limits_ack_timeout);
    AmqpConfig {
        channel_max: u16::try_from(config.limits_channels_max).unwrap_or(u16::MAX),
        frame_max: u32_of(config.limits_amqp_max_frame),
        heartbeat_s: u16::try_from(heartbeat_s).unwrap_or(u16::MAX),
        handshake_timeout_ms: ms(config.limits_handshake_timeout),
        max_message_bytes: config.limits_max_message.0,
        outbound_bytes_max: config.limits_outbound.0,
        reply_bytes_max: config.limits_replies.0,
        unacked_max: config.limits_unacked_max,
        ack_timeout_ms: (ack_timeout_ms > 0).then_some(ack_timeout_ms),
        requests_in_flight_max: count(config.limits_requests_max),
        external: config.tls_client_ca.is_some(),
        entropy: Some(Arc::new(random::SystemEntropy)),
        ..AmqpConfig::default()
    }
}

/// The settings of FireMQ connections.
pub(crate) fn fire(config: &Config) -> FireConfig {
    let heartbeat_s = u16::try_from(config.limits_heartbeat.as_secs()).unwrap_or(u16::MAX);
    let ack_timeout_ms = ms(config.limits_ack_timeout);
    FireConfig {
        max_frame: u32_of(config.limits_firemq_max_frame),
        heartbeat_s,
        handshake_timeout_ms: ms(config.limits_handshake_timeout),
        max_message_bytes: config.limits_max_message.0,
        outbound_bytes_max: config.limits_outbound.0,
        reply_bytes_max: config.limits_replies.0,
        subscriptions_max: config.limits_subscriptions_max,
        unacked_max: config.limits_unacked_max,
        ack_timeout_ms: (ack_timeout_ms > 0).then_some(ack_timeout_ms),
        requests_in_flight_max: count(config.limits_requests_max),
        external: config.tls_client_ca.is_some(),
        ..FireConfig::default()
    }
}

/// The settings of Amaquet connections.
pub(crate) fn amaquet(
    config: &Config,
    authentication: Authentication,
    (node, facts): (Arc<dyn NodeIdentity>, Arc<dyn ServerFacts>),
) -> AmaquetConfig {
    AmaquetConfig {
        vhost: config.amaquet_vhost.clone(),
        authentication,
        limits: amaquet_limits(config),
        shared: Arc::default(),
        node,
        facts,
    }
}

fn amaquet_limits(config: &Config) -> AmaquetLimits {
    AmaquetLimits {
        max_payload: u32_of(config.amaquet_max_payload),
        partial_frame_timeout_ms: ms(config.amaquet_partial_frame_timeout),
        active_per_connection: count(config.amaquet_active_per_connection),
        active_total: count(config.amaquet_active_total),
        payload_reservation: config.amaquet_payload_reservation.0,
        max_wait_ms: ms(config.amaquet_max_wait),
        max_message_bytes: config.limits_max_message.0,
        outbound_bytes_max: config.limits_outbound.0,
        reply_bytes_max: config.limits_replies.0,
        subscriptions_max: config.limits_subscriptions_max,
        retry_after_ms: ms(config.limits_retry_after),
        ..AmaquetLimits::default()
    }
}

/// Time without progress after which an Amaquet connection is closed without a word: only after its
/// session has had the time to say so.
pub(crate) fn amaquet_frame_timeout(config: &Config) -> Duration {
    let session = config.amaquet_partial_frame_timeout;
    config
        .limits_frame_timeout
        .max(session + Duration::from_secs(1))
}

/// How large messages of a WebSocket may be: each is a frame of FireMQ.
pub(crate) fn web_messages(config: &Config) -> MessageLimits {
    MessageLimits {
        stranger_bytes_max: count(MAX_FRAME_BEFORE_WELCOME),
        bytes_max: usize_of(config.limits_firemq_max_frame),
    }
}

/// Who may log in beside what the catalog says.
pub(crate) fn logins(config: &Config, authentication: Authentication) -> Rules {
    Rules {
        default_password: match config.auth_guest {
            Authenticate::True => true,
            Authenticate::False => false,
            Authenticate::Auto => authentication == Authentication::Off,
        },
        loopback_users: config.auth_loopback_users.clone(),
    }
}

pub(crate) fn inbox(config: &Config) -> InboxLimits {
    InboxLimits {
        requests_max: count(config.limits_waiting_max),
        bytes_max: usize_of(config.limits_waiting),
    }
}

/// Limits of scripts.
pub(crate) fn scripts(config: &Config) -> tanda_script::Limits {
    tanda_script::Limits {
        time: config.script_time_limit,
        memory_bytes: usize_of(config.script_memory_limit),
        states_bytes_max: match memory_limit(config) {
            0 => STATES_BYTES_MAX,
            limit => usize::try_from(limit / STATES_OF_LIMIT).unwrap_or(usize::MAX),
        }
        .min(STATES_BYTES_MAX),
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn u32_of(size: ByteSize) -> u32 {
    u32::try_from(size.0).unwrap_or(u32::MAX)
}

pub(crate) fn usize_of(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

/// Every target has at least 32 bits.
pub(crate) fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
