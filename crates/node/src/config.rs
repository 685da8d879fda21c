//! The settings of a node.

use tanda_engine::EngineConfig;

/// Settings of one node. They are values: nothing is read from files or the environment.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The engine's. Its `segment_shift` is replaced by the log's.
    pub engine: EngineConfig,
    /// The log's.
    pub log: tanda_wal::Config,
    /// Log between two snapshots, and so about the most that a start replays.
    pub snapshot_bytes: u64,
    /// Messages stored between two snapshots: a start keeps those in memory until it is done.
    pub snapshot_messages: u64,
    /// How fast old contents are copied out of mostly dead segments.
    pub reclaim_bytes_per_second: u64,
    /// What copying them out needs.
    pub reclaim: ReclaimThresholds,
    /// Memory for the index and the log's caches; over it publishes are refused. 0 = no limit.
    pub memory_limit_bytes: u64,
}

/// When contents are copied out of segments, so that these can go.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimThresholds {
    /// Nothing is copied while less than this many segments' worth is dead.
    pub dead_segments_min: u64,
    /// .. or less than this many percent of all that is kept, 1 to 100.
    pub dead_percent_min: u64,
    /// Segments with a larger share of live bytes than this, in percent, stay as they are.
    pub live_percent_max: u64,
}

impl Default for ReclaimThresholds {
    fn default() -> Self {
        Self {
            dead_segments_min: 2,
            dead_percent_min: 25,
            live_percent_max: 50,
        }
    }
}

impl NodeConfig {
    /// Defaults for a log of this identity; see [`tanda_wal::Config::log_id`].
    #[must_use]
    pub fn new(log_id: u128) -> Self {
        Self {
            engine: EngineConfig::default(),
            log: tanda_wal::Config::new(log_id, 0),
            snapshot_bytes: 256 << 20,
            snapshot_messages: 4_000_000,
            reclaim_bytes_per_second: 32 << 20,
            reclaim: ReclaimThresholds::default(),
            memory_limit_bytes: 0,
        }
    }
}
