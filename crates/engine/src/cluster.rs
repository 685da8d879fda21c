//! What the one node of a cluster remembers and says of it.

use crate::engine::{Cx, Engine};
use crate::record::{Kind, begin};
use crate::{ClusterStatus, Millis, QueueId, Rebalancing};

impl Engine {
    pub(crate) fn set_rebalancing(&mut self, cx: &mut Cx<'_>, rebalancing: Rebalancing) {
        self.shard.rebalancing = rebalancing;
        self.shard.pause_ends_at = match rebalancing {
            Rebalancing::Paused { pause_ms } => cx.now.after_ms(pause_ms),
            Rebalancing::Enabled | Rebalancing::Disabled => Millis(0),
        };
        self.write_shard(cx);
    }

    /// Writes the shard's counters and switches.
    pub(crate) fn write_shard(&mut self, cx: &mut Cx<'_>) {
        begin(&mut self.record, Kind::Shard, QueueId(0), cx.now);
        self.record
            .extend_from_slice(&self.queues.next_id.to_be_bytes());
        let (mode, pause_ms) = match self.shard.rebalancing {
            Rebalancing::Enabled => (0, 0),
            Rebalancing::Paused { pause_ms } => (1, pause_ms),
            Rebalancing::Disabled => (2, 0),
        };
        self.record.push(mode);
        self.record.extend_from_slice(&pause_ms.to_be_bytes());
        self.record
            .extend_from_slice(&self.shard.pause_ends_at.0.to_be_bytes());
        cx.journal.append(&self.record);
    }

    pub(crate) fn cluster_status(&self, now: Millis) -> ClusterStatus {
        let over = self.shard.pause_ends_at <= now;
        let (rebalancing, pause_ends_at) = match self.shard.rebalancing {
            Rebalancing::Paused { .. } if over => (Rebalancing::Enabled, Millis(0)),
            mode @ (Rebalancing::Enabled | Rebalancing::Paused { .. } | Rebalancing::Disabled) => {
                (mode, self.shard.pause_ends_at)
            }
        };
        ClusterStatus {
            rebalancing,
            pause_ends_at,
            queue_leaderships: self.queues.sources(),
        }
    }
}
