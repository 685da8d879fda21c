//! Replay of records that hold state: what a snapshot or a backup says about one position of the
//! log, on which the records after that position build.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::queue::entries::Flags;
use crate::queue::{NewMessage, Unclassified, Weighs};
use crate::record::{Classified, Image, ImageContent, Reader};
use crate::replay::{ReadPage, Recovery};
use crate::{Lsn, PageSlot, QueueId, ReplayError};

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
    pub(crate) fn load_image(
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
        let flags = Flags::of(&[
            (image.dedup, Flags::DEDUP),
            (image.attributes, Flags::ATTRIBUTES),
            (image.unclassified.is_some(), Flags::UNCLASSIFIED),
            (true, Flags::of_form(image.form)),
        ]);
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
        if let Some(known) = image.unclassified {
            queue.unclassified.insert(slot, Unclassified::of(known));
        }
        if let Some(at) = image.expires {
            queue.keep_expiry(slot, at);
        }
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

    pub(crate) fn apply_pages(
        &mut self,
        rec: &mut Recovery,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let index = self.queue_or_placeholder(rec, id);
        let (of, count) = reader.paged_lane()?;
        for _ in 0..count {
            let page = reader.page()?;
            let kept = rec.queue(index);
            if kept.pages.contains_key(&page.id) {
                return Err(reader.problem(&format!("page {} is there twice", page.id)));
            }
            for (segment, needed) in &page.segments {
                self.segments.add_many(*segment, *needed);
            }
            self.paging.last_id = self.paging.last_id.max(page.id);
            let lane = self.queues.at_mut(index).hold_page(&of, &page);
            kept.pages.insert(page.id, (lane, page));
        }
        Ok(())
    }

    /// A page's messages are in memory from here on. A page that no snapshot names was made after
    /// it: replay never took its messages out of memory.
    pub(crate) fn apply_page_loaded(
        &mut self,
        rec: &mut Recovery,
        (id, page): (QueueId, u64),
        read: &mut ReadPage<'_>,
    ) -> Result<(), ReplayError> {
        self.paging.last_id = self.paging.last_id.max(page);
        let Some(index) = self.queues.index_of(id) else {
            return Ok(());
        };
        let kept = rec.queue(index);
        let Some((lane, page)) = kept.pages.remove(&page) else {
            return Ok(());
        };
        let (mut bytes, mut messages) = (Vec::new(), Vec::new());
        let problem = |what: &str| ReplayError {
            problem: format!(
                "page {} of queue {id} in slot {} {what}",
                page.id, page.slot.0
            ),
        };
        if !read(page.slot, &mut bytes) {
            return Err(problem("cannot be read"));
        }
        let segments = &self.segments;
        if !page.decode(id, &bytes, &mut messages, |at| segments.segment_of(at)) {
            return Err(problem("is damaged, or another one"));
        }
        let slots = self.queues.at_mut(index).load_held_page(lane, &messages);
        for (message, slot) in messages.iter().zip(slots) {
            if kept.by_position.insert(message.position, slot).is_some() {
                return Err(problem("holds a message that is in memory"));
            }
        }
        rec.freed.push(page.slot);
        Ok(())
    }

    /// The slots of the page file that must not be written: those of all pages, and until the
    /// start also those of pages that the snapshot names and that are not needed any more. A start
    /// gives the latter back with `free_page`.
    #[must_use]
    pub fn pages_in_use(&self) -> BTreeSet<PageSlot> {
        let mut slots: BTreeSet<_> = self.page_slots().collect();
        if let Some(rec) = &self.recovery {
            let kept = rec.queues.values().flat_map(|kept| kept.pages.values());
            slots.extend(kept.map(|(_, page)| page.slot));
            slots.extend(&rec.freed);
        }
        slots
    }

    /// Scripts said something of stored messages, or failed on them.
    pub(crate) fn apply_classified(
        &mut self,
        rec: &mut Recovery,
        at: Lsn,
        id: QueueId,
        reader: &mut Reader<'_>,
    ) -> Result<(), ReplayError> {
        let index = self.queues.index_of(id);
        for _ in 0..reader.u32()? {
            let (position, entry) = reader.classified()?;
            let Some(index) = index else { continue };
            let Some(slot) = rec.queue(index).slot_at(position) else {
                continue;
            };
            let queue = self.queues.at_mut(index);
            let done = match entry {
                Classified::Failed(failed) => {
                    queue.note_try(slot, failed.version, failed.timed_out);
                    continue;
                }
                Classified::Done(done) => done,
            };
            queue.classify(slot, done.key, done.weight, done.attributes);
            match done.group {
                Some(group) => _ = queue.group_of.insert(slot, group),
                None => _ = queue.group_of.remove(&slot),
            }
            let entry = queue.entries.at_mut(slot);
            if let Some(key) = done.dedup {
                entry.flags = entry.flags.with(Flags::DEDUP);
                let id = entry.id;
                queue.dedup.insert(key, id);
            }
            if let Some((offset, bytes)) = done.content {
                let new_at = Lsn(at.0.saturating_add(offset as u64));
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let (old_at, old_len) = queue.replace_content(slot, new_at, len);
                self.segments.add(new_at, len);
                self.segments.remove(old_at, old_len);
            }
        }
        Ok(())
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
            dedup.insert(image.key, image.id);
            if let Some(left) = image.left {
                rec.left.push((left, id, image.id));
            }
        }
        Ok(())
    }
}
