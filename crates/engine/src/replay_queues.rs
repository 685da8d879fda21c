//! Replay of the records that make and delete queues.

use crate::engine::Engine;
use crate::queue::{Identity, Queue, Role};
use crate::queue_record::QueueRecord;
use crate::queues::{QueueIndex, UNNAMED};
use crate::record::Reader;
use crate::replay::Recovery;
use crate::{QueueConfig, QueueId, QueueSpec, ReplayError, VhostId};

impl Engine {
    pub(crate) fn apply_queue(
        &mut self,
        rec: &mut Recovery,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let record = QueueRecord::decode(id, reader)?;
        let (source, partner) = (record.identity(), record.partner());
        for identity in [Some(&source), partner.as_ref()].into_iter().flatten() {
            if id == record.dead_letters || self.queues.is_another(identity) {
                let Identity { id, name, .. } = identity;
                return Err(reader.problem(&format!("queue {id}, {name}, is another one")));
            }
        }
        if let Some(partner) = partner {
            let next = record.dead_letters_next_position;
            self.name_queue(rec, partner, &record.config, next);
        }
        self.name_queue(rec, source, &record.config, record.next_position);
        Ok(())
    }

    pub(crate) fn name_queue(
        &mut self,
        rec: &mut Recovery,
        identity: Identity,
        config: &QueueConfig,
        next_position: u64,
    ) {
        let index = self.queue_or_placeholder(rec, identity.id);
        self.queues
            .rename(index, identity, config.clone(), next_position);
        rec.queue(index).named = true;
    }

    /// The queue of an id, unnamed when its record comes later.
    pub(crate) fn queue_or_placeholder(&mut self, rec: &mut Recovery, id: QueueId) -> QueueIndex {
        if let Some(index) = self.queues.index_of(id) {
            return index;
        }
        // A name no client can use.
        let name = format!("{UNNAMED}{id}").into();
        let identity = Identity {
            id,
            vhost: VhostId::DEFAULT,
            name,
            role: Role::Source {
                dead_letters: QueueId(0),
            },
        };
        let config = QueueSpec::default().resolve(&self.config.defaults);
        let generation = self.generation.clone();
        let queue = Queue::new(identity, config, &self.hasher, &self.config, generation);
        let index = self.queues.insert(queue);
        rec.queue(index);
        index
    }

    pub(crate) fn drop_queue(&mut self, rec: &mut Recovery, id: QueueId) {
        self.queues.next_id = self.queues.next_id.max(id.0.saturating_add(1));
        self.topology.remove_queue(id);
        let Some(index) = self.queues.index_of(id) else {
            return;
        };
        let kept = rec.queues.remove(&index);
        let Some(queue) = self.queues.remove(index) else {
            return;
        };
        for slot in queue.entries.live_slots(0, queue.entries.slots()) {
            let entry = queue.entries.at(slot);
            self.segments.remove(entry.at, entry.len);
        }
        for (_, page) in kept.into_iter().flat_map(|kept| kept.pages.into_values()) {
            rec.freed.push(page.slot);
            for (segment, needed) in &page.segments {
                self.segments.remove_many(*segment, *needed);
            }
        }
    }
}
