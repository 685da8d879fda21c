//! Contents of deliveries: from a position in the log to bytes.
//!
//! Knows how items share chunks. It refuses to know the log: a reader is passed in.

use bytes::Bytes;
use tanda_engine::{DeliveryBatch, DeliveryItem, Lsn};

/// Consecutive bytes of the log.
pub(crate) struct Chunk {
    /// The position of the first byte.
    pub(crate) base: Lsn,
    /// The bytes.
    pub(crate) bytes: Bytes,
}

/// Fills [`DeliveryBatch::chunks`] and points every item into them. `read` gives a chunk that holds
/// at least the wanted range; while the next items lie in the same chunk it is not asked again, so
/// a batch of neighbours costs one reference count.
///
/// Items that cannot be read leave the batch; they come back as a batch of their own.
pub(crate) fn resolve(
    batch: &mut DeliveryBatch,
    mut read: impl FnMut(Lsn, u32) -> Option<Chunk>,
) -> Option<DeliveryBatch> {
    let mut lost: Vec<DeliveryItem> = Vec::new();
    let mut held: Option<Held> = None;
    let chunks = &mut batch.chunks;
    batch.items.retain_mut(|item| {
        if item.at == DeliveryItem::RESOLVED {
            return true;
        }
        if let Some(held) = &held
            && let Some(start) = held.start_of(item)
        {
            item.chunk = held.index;
            item.start = start;
            return true;
        }
        let found = read(item.at, item.len).and_then(|chunk| {
            let held = Held::new(&chunk, chunks.len())?;
            let start = held.start_of(item)?;
            chunks.push(chunk.bytes);
            Some((held, start))
        });
        let Some((now_held, start)) = found else {
            lost.push(*item);
            return false;
        };
        item.chunk = now_held.index;
        item.start = start;
        held = Some(now_held);
        true
    });
    (!lost.is_empty()).then(|| DeliveryBatch {
        consumer: batch.consumer,
        queue_id: batch.queue_id,
        queue: batch.queue.clone(),
        leased_at: batch.leased_at,
        lease_expires_at: batch.lease_expires_at,
        throttled: batch.throttled,
        counts_returns: batch.counts_returns,
        items: lost,
        keys: batch.keys.clone(),
        chunks: Vec::new(),
    })
}

/// The newest chunk of a batch that came from the log.
struct Held {
    base: u64,
    len: u32,
    index: u32,
}

impl Held {
    /// `None` when it is too large to be pointed into.
    fn new(chunk: &Chunk, index: usize) -> Option<Self> {
        Some(Self {
            base: chunk.base.0,
            len: u32::try_from(chunk.bytes.len()).ok()?,
            index: u32::try_from(index).ok()?,
        })
    }

    /// Where the item's content starts in this chunk; `None` when it does not lie wholly inside.
    fn start_of(&self, item: &DeliveryItem) -> Option<u32> {
        let start = u32::try_from(item.at.0.checked_sub(self.base)?).ok()?;
        let end = start.checked_add(item.len)?;
        (end <= self.len).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(at: u64, len: u32) -> DeliveryItem {
        DeliveryItem {
            at: Lsn(at),
            len,
            ..DeliveryItem::default()
        }
    }

    /// A log of 100-byte chunks in which the byte at position p is p mod 251.
    fn chunk_at(at: Lsn) -> Chunk {
        let base = at.0 / 100 * 100;
        let bytes: Vec<u8> = (base..base + 100).map(|p| (p % 251) as u8).collect();
        Chunk {
            base: Lsn(base),
            bytes: Bytes::from(bytes),
        }
    }

    fn expected(item: &DeliveryItem) -> Vec<u8> {
        (item.at.0..item.at.0 + u64::from(item.len))
            .map(|p| (p % 251) as u8)
            .collect()
    }

    #[test]
    fn neighbours_share_a_chunk() {
        let mut batch = DeliveryBatch {
            items: vec![item(210, 10), item(220, 80), item(305, 5), item(200, 3)],
            ..DeliveryBatch::default()
        };
        let mut reads = Vec::new();
        let lost = resolve(&mut batch, |at, len| {
            reads.push((at.0, len));
            Some(chunk_at(at))
        });
        assert!(lost.is_none());
        assert_eq!(reads, [(210, 10), (305, 5), (200, 3)]);
        assert_eq!(batch.chunks.len(), 3);
        for item in &batch.items {
            assert_eq!(batch.content(item), expected(item));
        }
    }

    #[test]
    fn contents_that_came_with_the_batch_stay() {
        let mut resolved = item(DeliveryItem::RESOLVED.0, 4);
        resolved.start = 1;
        let mut batch = DeliveryBatch {
            items: vec![item(10, 5), resolved, item(20, 5)],
            chunks: vec![Bytes::from_static(b"-live-")],
            ..DeliveryBatch::default()
        };
        assert!(resolve(&mut batch, |at, _| Some(chunk_at(at))).is_none());
        assert_eq!(batch.content(&batch.items[1]), b"live");
        assert_eq!(batch.content(&batch.items[2]), expected(&item(20, 5)));
        assert_eq!(batch.chunks.len(), 2);
    }

    #[test]
    fn unreadable_items_leave_the_batch() {
        let mut batch = DeliveryBatch {
            queue: "jobs".into(),
            items: vec![item(10, 5), item(110, 5), item(210, 5), item(296, 8)],
            ..DeliveryBatch::default()
        };
        let lost = resolve(&mut batch, |at, _| (at.0 != 110).then(|| chunk_at(at))).unwrap();
        // 296..304 does not lie wholly inside the chunk that the reader gives.
        assert_eq!(lost.items, [item(110, 5), item(296, 8)]);
        assert_eq!(&*lost.queue, "jobs");
        assert_eq!(batch.items.len(), 2);
        for item in &batch.items {
            assert_eq!(batch.content(item), expected(item));
        }
    }

    #[test]
    fn positions_at_the_end_of_the_number_space_are_errors() {
        let mut batch = DeliveryBatch {
            items: vec![item(u64::MAX - 1, u32::MAX), item(5, u32::MAX)],
            ..DeliveryBatch::default()
        };
        let lost = resolve(&mut batch, |_, _| Some(chunk_at(Lsn(0)))).unwrap();
        assert_eq!(lost.items.len(), 2);
        assert!(batch.items.is_empty());
        assert!(batch.chunks.is_empty());
    }
}
