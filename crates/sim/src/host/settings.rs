//! Settings of one run's broker, drawn from its seed.

use std::sync::Arc;

use tanda_node::{NodeConfig, ReclaimThresholds};
use tanda_session::amaquet::{AmaquetConfig, AmaquetLimits, NodeIdentity, ServerFacts};
use tanda_session::amqp::AmqpConfig;
use tanda_session::fila::{Authentication, SessionConfig};
use tanda_session::firemq::FireConfig;

use super::keys::SimEntropy;
use crate::random::Random;

/// See the module.
pub(super) struct Settings {
    pub(super) config: NodeConfig,
    pub(super) session: SessionConfig,
    pub(super) amqp: AmqpConfig,
    pub(super) fire: FireConfig,
    pub(super) amaquet: AmaquetConfig,
    /// Bytes that the network holds for a client that does not read.
    pub(super) window_bytes: usize,
}

/// What the keys of a run take in memory at most.
const KEYS_BYTES: u64 = 20_000;

/// What an emptied broker of small messages may take beside the caches of its log.
const EMPTY_BYTES: u64 = 80_000;

fn amqp(seed: u64) -> AmqpConfig {
    let mut random = Random::stream(seed, "amqp settings");
    AmqpConfig {
        frame_max: *random.pick(&[4096, 131_072]).unwrap_or(&4096),
        outbound_bytes_max: *random.pick(&[1, 4096, 8 << 20]).unwrap_or(&1),
        // Less than a heartbeat would keep the session from reading whenever one waits.
        reply_bytes_max: *random.pick(&[64, 2048, 4 << 20]).unwrap_or(&64),
        requests_in_flight_max: random.length(64),
        publish_bytes_in_flight_max: 16 << 10,
        entropy: Some(Arc::new(SimEntropy::new(&mut random))),
        ..AmqpConfig::default()
    }
}

fn fire(seed: u64) -> FireConfig {
    let mut random = Random::stream(seed, "fire settings");
    FireConfig {
        outbound_bytes_max: *random.pick(&[1, 4096, 8 << 20]).unwrap_or(&1),
        reply_bytes_max: *random.pick(&[64, 2048, 4 << 20]).unwrap_or(&64),
        requests_in_flight_max: random.length(64),
        publish_bytes_in_flight_max: 16 << 10,
        ..FireConfig::default()
    }
}

/// Whom nobody asks for: no client says HELLO or asks for what the server knows of itself.
#[derive(Debug)]
struct Nobody;

impl NodeIdentity for Nobody {
    fn node_id(&self) -> &str {
        "simulated"
    }

    fn public_key(&self) -> [u8; 32] {
        [0; 32]
    }

    fn sign(&self, _bytes: &[u8]) -> [u8; 64] {
        [0; 64]
    }
}

impl ServerFacts for Nobody {
    fn version(&self) -> &str {
        "simulated"
    }

    fn uptime_ms(&self) -> u64 {
        0
    }

    fn connections(&self) -> u64 {
        0
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}

fn amaquet(seed: u64) -> AmaquetConfig {
    let mut random = Random::stream(seed, "amaquet settings");
    let limits = AmaquetLimits {
        outbound_bytes_max: *random.pick(&[1, 4096, 8 << 20]).unwrap_or(&1),
        reply_bytes_max: *random.pick(&[64, 2048, 4 << 20]).unwrap_or(&64),
        active_per_connection: *random.pick(&[2, 8, 256]).unwrap_or(&2),
        ..AmaquetLimits::default()
    };
    AmaquetConfig {
        vhost: "/".to_owned(),
        authentication: Authentication::Off,
        limits,
        shared: Arc::default(),
        node: Arc::new(Nobody),
        facts: Arc::new(Nobody),
    }
}

impl Settings {
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = Random::stream(seed, "settings");
        let mut config = NodeConfig::new(u128::from(seed));
        config.log = tanda_wal::Config::small(u128::from(seed), 0);
        config.log.segment_bytes = 16 << (10 + random.below(3));
        config.log.chunk_bytes = 4096 << random.below(3);
        config.log.cache_bytes = random.index(128 << 10);
        config.log.read_cache_bytes = random.index(32 << 10);
        // Snapshots and pages come often and at other moments in every run.
        config.snapshot_bytes = config.log.segment_bytes * random.between(1, 6);
        config.snapshot_messages = random.between(50, 2000);
        config.engine.page_messages = u32::try_from(random.between(1, 12)).unwrap_or(1);
        config.engine.lane_hot = u32::try_from(random.between(1, 30)).unwrap_or(1);
        if random.one_in(2) {
            config.reclaim = ReclaimThresholds {
                dead_segments_min: random.below(4),
                dead_percent_min: random.between(1, 60),
                live_percent_max: random.between(5, 100),
            };
            config.reclaim_bytes_per_second = random.between(4 << 20, 64 << 20);
        }
        if random.one_in(4) {
            // Some are reached, all are above what an empty broker takes.
            let caches = config.log.cache_bytes + config.log.read_cache_bytes;
            config.memory_limit_bytes = caches as u64 + EMPTY_BYTES + random.below(300_000);
        }
        let mut keys = Random::stream(seed, "keys");
        let asks_for_keys = keys.one_in(3);
        if asks_for_keys && config.memory_limit_bytes > 0 {
            config.memory_limit_bytes += KEYS_BYTES;
        }
        config.engine.quantum = u32::try_from(random.between(1, 3)).unwrap_or(1);
        config.engine.has_script_host = true;
        let session = SessionConfig {
            max_frame_size: *random.pick(&[1024, 8192, 16 << 20]).unwrap_or(&0),
            outbound_bytes_max: *random.pick(&[1, 4096, 8 << 20]).unwrap_or(&0),
            reply_bytes_max: *random.pick(&[1, 2048, 4 << 20]).unwrap_or(&0),
            requests_in_flight_max: random.length(64),
            authentication: if asks_for_keys {
                Authentication::On
            } else {
                Authentication::Off
            },
            entropy: Some(Arc::new(SimEntropy::new(&mut keys))),
            ..SessionConfig::default()
        };
        Self {
            config,
            session,
            amqp: amqp(seed),
            fire: fire(seed),
            amaquet: amaquet(seed),
            window_bytes: *random.pick(&[100, 2000, 64 << 10]).unwrap_or(&1),
        }
    }
}
