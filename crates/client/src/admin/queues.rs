//! Making, changing, removing and listing queues, and moving dead letters back.

use tanda_wire::fila::queue_admin::{
    CreateQueueResult, DeleteQueue, DeleteQueueResult, ListQueues, ListQueuesResult,
    UpdateQueueResult,
};
pub use tanda_wire::fila::redrive::Reclassify;
use tanda_wire::fila::redrive::{Redrive, RedriveResult};

use super::{Admin, QueueChanges, QueueSettings, check, read};
use crate::error::RequestError;
use crate::shell::handle::Repeat;

/// One queue of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// Messages waiting, for whatever reason; leased ones are not counted.
    pub depth: u64,
    /// Messages leased.
    pub in_flight: u64,
    /// Subscriptions.
    pub active_consumers: u32,
    /// The node that leads it; 0 on a single node.
    pub leader_node_id: u64,
}

/// What a redrive did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Redriven {
    /// Messages moved back.
    pub redriven: u64,
    /// Messages that stayed because no script ever classified them and none was to run.
    pub left_unclassified: u64,
    /// Messages that stayed because the script failed on them.
    pub rejected_by_script: u64,
}

impl Admin {
    /// Makes a queue and its dead-letter queue, and returns the queue's ID.
    ///
    /// # Errors
    /// `QueueAlreadyExists`, `ReservedQueueName`, `LuaCompilationError`, `InvalidConfigValue`,
    /// `Forbidden`.
    pub async fn create_queue(&self, settings: &QueueSettings) -> Result<String, RequestError> {
        let body = self
            .handle
            .call(&settings.to_wire(), Repeat::Harmful)
            .await?;
        let answer = read(CreateQueueResult::decode(&body))?;
        check(answer.error_code)?;
        Ok(answer.queue_id.to_owned())
    }

    /// Changes settings of a queue.
    ///
    /// # Errors
    /// `QueueNotFound`, `LuaCompilationError`, `InvalidConfigValue`, `Forbidden`.
    pub async fn update_queue(
        &self,
        queue: &str,
        changes: &QueueChanges,
    ) -> Result<(), RequestError> {
        let body = self
            .handle
            .call(&changes.to_wire(queue), Repeat::Harmful)
            .await?;
        check(read(UpdateQueueResult::decode(&body))?.error_code)
    }

    /// Removes a queue, its dead-letter queue, and all their messages.
    ///
    /// # Errors
    /// `QueueNotFound`, `ReservedQueueName`, `Forbidden`.
    pub async fn delete_queue(&self, queue: &str) -> Result<(), RequestError> {
        let body = self
            .handle
            .call(&DeleteQueue { queue }, Repeat::Harmful)
            .await?;
        check(read(DeleteQueueResult::decode(&body))?.error_code)
    }

    /// The queues this client may touch.
    ///
    /// # Errors
    /// When there is no connection, or the server refuses.
    pub async fn list_queues(&self) -> Result<Vec<QueueInfo>, RequestError> {
        let body = self.handle.call(&ListQueues {}, Repeat::Harmless).await?;
        let answer = read(ListQueuesResult::decode(&body))?;
        check(answer.error_code)?;
        let queues = answer.queues.iter().map(|queue| QueueInfo {
            name: queue.name.to_owned(),
            depth: queue.depth,
            in_flight: queue.in_flight,
            active_consumers: queue.active_consumers,
            leader_node_id: queue.leader_node_id,
        });
        Ok(queues.collect())
    }

    /// Moves messages from a dead-letter queue back to its parent: at most `count`, 0 = all that
    /// are there now. `reclassify` says which of them meet the parent's `on_enqueue` script again.
    ///
    /// # Errors
    /// `QueueNotFound`, `NotADLQ`, `ParentQueueNotFound`, `Forbidden`.
    pub async fn redrive(
        &self,
        dlq_queue: &str,
        count: u64,
        reclassify: Reclassify,
    ) -> Result<Redriven, RequestError> {
        let request = Redrive {
            dlq_queue,
            count,
            reclassify: reclassify.to_wire(),
        };
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        let answer = read(RedriveResult::decode(&body))?;
        check(answer.error_code)?;
        Ok(Redriven {
            redriven: answer.redriven,
            left_unclassified: answer.left_unclassified,
            rejected_by_script: answer.rejected_by_script,
        })
    }
}
