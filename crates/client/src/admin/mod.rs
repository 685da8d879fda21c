//! Managing a broker: queues, dead letters, runtime configuration, keys, throttles, the cluster.
//!
//! Owns: turning administration requests and their answers into plain values.
//! Refuses to know: connections.
//!
//! What only reads is sent again when the connection is lost before the answer; what changes
//! something fails then, with an outcome that is not known.

mod cluster;
mod config;
mod keys;
mod queue_settings;
mod queues;
mod stats;
mod throttles;

use tanda_wire::cursor::DecodeError;
use tanda_wire::fila::ErrorCode;

use crate::error::RequestError;
use crate::shell::Handle;

pub use cluster::{
    ClusterStatus, NodeInfo, NodeState, QueueRoute, Rebalancing, SetRebalancingTo, ShardRoute,
};
pub use keys::{ApiKeyExpiry, ApiKeyInfo, CreatedApiKey, KeyAcl, Permission, PermissionKind};
pub use queue_settings::{
    Backoff, DeliveryDurability, Ordering, QueueChanges, QueueSettings, ScriptFailure,
};
pub use queues::{QueueInfo, Reclassify, Redriven};
pub use stats::{FairnessKeyStats, QueueStats, ThrottleLimit, ThrottleSummary};
pub use throttles::{BucketId, BucketStats, ThrottleStats};

/// Manages a broker. Cheap to clone; clones share the connection.
///
/// ```no_run
/// use std::time::Duration;
/// use tanda_client::admin::QueueSettings;
/// use tanda_client::Client;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let admin = Client::connect("127.0.0.1:5555").await?.admin();
/// let settings = QueueSettings::new("orders")
///     .visibility_timeout(Duration::from_secs(60))
///     .max_attempts(5);
/// admin.create_queue(&settings).await?;
/// println!("{} waiting", admin.queue_stats("orders").await?.depth);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Admin {
    handle: Handle,
}

impl Admin {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

/// The result of an answer that starts with a code.
fn check(code: ErrorCode) -> Result<(), RequestError> {
    if code == ErrorCode::Ok {
        Ok(())
    } else {
        Err(RequestError::from_code(code))
    }
}

/// An answer that this client must be able to read.
fn read<T>(decoded: Result<T, DecodeError>) -> Result<T, RequestError> {
    decoded.map_err(RequestError::invalid_reply)
}
