//! Counters for operators.

use crate::engine::Engine;
use crate::queues::QueueIndex;
use crate::{KeyStats, QueueDetails, QueueNotFound, QueueStats, QueueSummary};

impl Engine {
    pub(crate) fn stats(&self, name: &str) -> Result<QueueStats, QueueNotFound> {
        let queue = self.queues.at(self.queues.find(name).ok_or(QueueNotFound)?);
        let lanes = queue.lanes.iter().filter(|lane| lane.pending > 0);
        let mut lanes: Vec<_> = lanes.collect();
        // Highest priority first within a key.
        lanes.sort_by(|a, b| a.key.cmp(&b.key).then(b.priority.cmp(&a.priority)));
        let keys = lanes
            .into_iter()
            .map(|lane| KeyStats {
                key: lane.key.to_string(),
                pending: u64::from(lane.pending),
                deficit: lane.deficit,
                weight: lane.weight,
            })
            .collect();
        Ok(QueueStats {
            counts: queue.counts(),
            keys,
            quantum: self.config.quantum,
        })
    }

    pub(crate) fn inspect(&self, name: &str) -> Result<QueueDetails, QueueNotFound> {
        let index = self.queues.find(name).ok_or(QueueNotFound)?;
        let queue = self.queues.at(index);
        let name_of = |index: QueueIndex| self.queues.at(index).identity.name.to_string();
        Ok(QueueDetails {
            id: queue.identity.id.to_string(),
            name: name.to_owned(),
            dead_letter_queue: self.dead_letters_of(index).map(name_of),
            parent: self.source_of(index).map(name_of),
            config: queue.config.clone(),
            counts: queue.counts(),
        })
    }

    pub(crate) fn list(&self) -> Vec<QueueSummary> {
        let mut queues: Vec<_> = self
            .queues
            .iter()
            .map(|(_, queue)| QueueSummary {
                name: queue.identity.name.to_string(),
                counts: queue.counts(),
            })
            .collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        queues
    }
}
