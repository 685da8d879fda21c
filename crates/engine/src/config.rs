//! What the engine is told once, at start.

use crate::{Backoff, RetryPolicy};

/// Settings of one engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Defaults of new queues.
    pub defaults: Defaults,
    /// Bounds on what peers may ask for.
    pub limits: Limits,
    /// Messages per weight unit that a fairness key may take in one turn.
    pub quantum: u32,
    /// Whether somebody runs scripts: takes the jobs of [`crate::Engine::take_script_jobs`] and
    /// answers each. Otherwise queues with scripts are refused.
    pub has_script_host: bool,
    /// The log's segment of position `p` is `p >> segment_shift`.
    pub segment_shift: u32,
    /// Messages of one page.
    pub page_messages: u32,
    /// Messages of one fairness key that stay in memory before pages are made of those behind.
    pub lane_hot: u32,
    /// Messages of one queue that wait for throttles by header or attribute each by itself; when
    /// there are so many, no more are brought in from pages to look whether they could go.
    pub throttled_hot: u32,
    /// Ready messages of one queue in memory from which on a page of each fairness key stays, and
    /// no more: what is in memory does not grow with the number of keys times `lane_hot`.
    pub queue_hot: u64,
    /// Messages that one slice of long work handles, such as a purge: meanwhile nobody else is
    /// served.
    pub slice_messages: u32,
    /// Seeds hash tables and message ids.
    pub seed: [u64; 4],
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            defaults: Defaults::default(),
            limits: Limits::default(),
            quantum: 1,
            has_script_host: false,
            segment_shift: 26,
            page_messages: 512,
            lane_hot: 8192,
            throttled_hot: 1 << 20,
            queue_hot: 4 << 20,
            slice_messages: 1024,
            seed: [1, 2, 3, 4],
        }
    }
}

impl EngineConfig {
    /// Messages of one slice; at least one.
    pub(crate) fn slice(&self) -> usize {
        usize::try_from(self.slice_messages).unwrap_or(1).max(1)
    }
}

/// Defaults of new queues (`queue.*` in the configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Length of a lease.
    pub lease_ms: u64,
    /// How long a deduplication key is remembered after its message left.
    pub dedup_window_ms: u64,
    /// What follows a failed delivery.
    pub retry: RetryPolicy,
    /// Grace for reclaiming leases after a restart of a fast queue.
    pub reclaim_grace_ms: u64,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            lease_ms: 30_000,
            dedup_window_ms: 600_000,
            retry: RetryPolicy {
                max_attempts: 3,
                backoff: Backoff::Exponential,
                initial_ms: 1_000,
                max_ms: 60_000,
            },
            reclaim_grace_ms: 5_000,
        }
    }
}

/// Bounds on what peers may ask for (`limits.*` in the configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queues, dead-letter queues not counted.
    pub queues_max: u32,
    /// A message's headers and body.
    pub message_bytes_max: u32,
    /// A fairness key's weight counts as this when it is larger. It bounds how long others wait for
    /// their turn.
    pub weight_max: u32,
    /// Parts of one ordering or deduplication key.
    pub key_parts_max: usize,
    /// Throttles of one subscription.
    pub throttles_max: usize,
    /// Limits of one throttle in one declaration; four times as many of all declarations.
    pub throttle_limits_max: usize,
    /// One script, in bytes.
    pub script_bytes_max: usize,
    /// Messages that may wait for one queue's script.
    pub script_waiting_max: usize,
    /// Bytes of them.
    pub script_waiting_bytes_max: usize,
    /// Buckets of all throttles.
    pub throttle_buckets_max: usize,
    /// Memory of all buckets; messages that would need more wait.
    pub throttle_bytes_max: usize,
    /// Runtime configuration: entries.
    pub config_entries_max: usize,
    /// Runtime configuration: bytes of a key.
    pub config_key_bytes_max: usize,
    /// API keys.
    pub api_keys_max: u32,
    /// Permissions of one API key.
    pub permissions_max: usize,
    /// Bytes of one permission's pattern.
    pub pattern_bytes_max: usize,
    /// Bytes of the patterns of all API keys.
    pub pattern_total_bytes_max: usize,
    /// Users.
    pub users_max: u32,
    /// Bytes of one regular expression of a user's permissions.
    pub regex_bytes_max: usize,
    /// Bytes of the permissions of all users, names included.
    pub regex_total_bytes_max: usize,
    /// Exchanges for which one user has topic permissions.
    pub topic_permissions_max: usize,
    /// Virtual hosts.
    pub vhosts_max: u32,
    /// Exchanges of all virtual hosts, with those that each has from the beginning.
    pub exchanges_max: u32,
    /// Bindings of all exchanges.
    pub bindings_max: u32,
    /// Keys of a virtual host.
    pub keys_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queues_max: 100_000,
            message_bytes_max: 128 << 20,
            weight_max: 1_000_000,
            key_parts_max: 16,
            throttles_max: 16,
            throttle_limits_max: 8,
            script_bytes_max: 1 << 20,
            script_waiting_max: 16_384,
            script_waiting_bytes_max: 64 << 20,
            throttle_buckets_max: 1 << 20,
            throttle_bytes_max: 256 << 20,
            config_entries_max: 100_000,
            config_key_bytes_max: 1024,
            api_keys_max: 10_000,
            permissions_max: 256,
            pattern_bytes_max: 255,
            pattern_total_bytes_max: 32 << 20,
            users_max: 10_000,
            regex_bytes_max: 4_096,
            regex_total_bytes_max: 32 << 20,
            topic_permissions_max: 1_000,
            vhosts_max: 1_000,
            exchanges_max: 100_000,
            bindings_max: 1_000_000,
            keys_max: 100_000_000,
        }
    }
}
