//! Replay of records that hold state: what a snapshot or a backup says about one position of the
//! log, on which the records after that position build.

use crate::engine::Engine;
use crate::queue::entries::Flags;
use crate::queue::{NewMessage, Weighs};
use crate::record::{Image, ImageContent, Reader};
use crate::replay::Recovery;
use crate::{Lsn, QueueId, ReplayError};

impl Engine {
    pub(crate) fn apply_images(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        for _ in 0..reader.u32()? {
            let image = reader.image()?;
            let (at, len) = match image.content {
                ImageContent::At { at, len } => (at, len),
                ImageContent::Here { offset, bytes } => {
                    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    (Lsn(at.0.saturating_add(offset as u64)), len)
                }
            };
            if !self.load_image(rec, id, &image, (at, len)) {
                let problem = format!("position {} is stored twice", image.position);
                return Err(reader.problem(&problem));
            }
        }
        Ok(())
    }

    /// A message as it was. False when there is one at its position.
    fn load_image(
        &mut self,
        rec: &mut Recovery,
        id: QueueId,
        image: &Image<'_>,
        (at, len): (Lsn, u32),
    ) -> bool {
        let index = self.queue_or_placeholder(rec, id);
        self.newest_time = self.newest_time.max(image.id.enqueued_at());
        let kept = rec.queue(index);
        if kept.by_position.contains_key(&image.position) {
            return false;
        }
        let queue = self.queues.at_mut(index);
        let mut flags = Flags::default();
        if image.dedup {
            flags = flags.with(Flags::DEDUP);
        }
        let next = queue.next_position;
        queue.next_position = image.position;
        let slot = queue.store(NewMessage {
            id: image.id,
            at,
            len,
            key: image.key,
            priority: image.priority,
            weight: image.weight,
            weighs: Weighs::NewKey,
            redrives: image.redrives,
            flags,
        });
        // Images come in no order.
        queue.next_position = queue.next_position.max(next);
        let entry = queue.entries.at_mut(slot);
        (entry.deliveries, entry.failures) = (image.deliveries, image.failures);
        queue.lanes.set_weight(entry.lane, image.key_weight);
        self.segments.add(at, len);
        kept.by_position.insert(image.position, slot);
        if let Some(due) = image.due {
            kept.due.insert(slot, due);
        }
        if let Some(end) = image.lease {
            kept.leases.insert(slot, end);
        }
        if let Some(group) = image.group {
            queue.group_of.insert(slot, group);
        }
        true
    }

    pub(crate) fn apply_remembered(
        &mut self,
        rec: &mut Recovery,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let index = self.queue_or_placeholder(rec, id);
        for _ in 0..reader.u32()? {
            let image = reader.key_image()?;
            self.newest_time = self.newest_time.max(image.id.enqueued_at());
            let dedup = &mut self.queues.at_mut(index).dedup;
            dedup.insert(image.key, image.id, Lsn::ZERO);
            if let Some(left) = image.left {
                rec.left.push((left, id, image.id));
            }
        }
        Ok(())
    }
}
