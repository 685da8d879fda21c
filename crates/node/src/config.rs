//! The settings of a node.

use tanda_engine::EngineConfig;

/// Settings of one node. They are values: nothing is read from files or the environment.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The engine's. Its `segment_shift` is replaced by the log's.
    pub engine: EngineConfig,
    /// The log's.
    pub log: tanda_wal::Config,
}

impl NodeConfig {
    /// Defaults for a log of this identity; see [`tanda_wal::Config::log_id`].
    #[must_use]
    pub fn new(log_id: u128) -> Self {
        Self {
            engine: EngineConfig::default(),
            log: tanda_wal::Config::new(log_id, 0),
        }
    }
}
