//! How much of each segment of the log is still needed.

use std::collections::BTreeMap;

use crate::Lsn;

/// What messages in queues still need of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentUse {
    /// Messages whose content lies there; a content shared by several queues counts in each.
    pub messages: u64,
    /// Bytes of their contents.
    pub bytes: u64,
}

/// Counts, per segment, the messages stored there that are still in a queue.
///
/// Segment numbers may be anything (copies lie in segments far above the log's own), so counts are
/// found by number. Those last added to and taken from are remembered: a steady flow of messages
/// finds its two segments without looking.
#[derive(Debug)]
pub(crate) struct SegmentRefs {
    shift: u32,
    index: BTreeMap<u64, u32>,
    counts: Vec<Counted>,
    free: Vec<u32>,
    /// Where the newest message was added, and where one was taken last.
    added: u32,
    taken: u32,
    /// Counts that fell to 0 since the last look; some may have risen again.
    emptied: Vec<u32>,
    total: u64,
}

#[derive(Debug)]
struct Counted {
    segment: u64,
    needed: SegmentUse,
    /// It is among the emptied ones.
    listed: bool,
}

/// No segment: numbers are positions shifted right.
const NONE: u64 = u64::MAX;

impl SegmentRefs {
    pub(crate) const fn new(shift: u32) -> Self {
        Self {
            shift,
            index: BTreeMap::new(),
            counts: Vec::new(),
            free: Vec::new(),
            added: 0,
            taken: 0,
            emptied: Vec::new(),
            total: 0,
        }
    }

    /// The segment of a position.
    pub(crate) const fn segment_of(&self, at: Lsn) -> u64 {
        at.0 >> self.shift
    }

    /// A message of `len` bytes lies at `at`.
    pub(crate) fn add(&mut self, at: Lsn, len: u32) {
        let one = SegmentUse {
            messages: 1,
            bytes: u64::from(len),
        };
        self.add_many(self.segment_of(at), one);
    }

    /// Several messages lie in `segment`.
    pub(crate) fn add_many(&mut self, segment: u64, more: SegmentUse) {
        if more.messages == 0 {
            return;
        }
        let slot = match self.find(segment, self.added) {
            Some(slot) => slot,
            None => self.insert(segment),
        };
        self.added = slot;
        self.total += more.messages;
        if let Some(it) = self.counts.get_mut(slot as usize) {
            it.needed.messages += more.messages;
            it.needed.bytes += more.bytes;
        }
    }

    /// A message of `len` bytes at `at` is gone, or moved elsewhere.
    pub(crate) fn remove(&mut self, at: Lsn, len: u32) {
        let one = SegmentUse {
            messages: 1,
            bytes: u64::from(len),
        };
        self.remove_many(self.segment_of(at), one);
    }

    /// Several messages that lay in `segment` are gone.
    pub(crate) fn remove_many(&mut self, segment: u64, less: SegmentUse) {
        if less.messages == 0 {
            return;
        }
        let slot = self.find(segment, self.taken);
        let it = slot.and_then(|slot| Some((slot, self.counts.get_mut(slot as usize)?)));
        let Some((slot, it)) = it
            .filter(|(_, it)| it.needed.messages >= less.messages && it.needed.bytes >= less.bytes)
        else {
            panic_unused(segment, less)
        };
        self.taken = slot;
        self.total -= less.messages;
        it.needed.messages -= less.messages;
        it.needed.bytes -= less.bytes;
        if it.needed.messages == 0 && !it.listed {
            it.listed = true;
            self.emptied.push(slot);
        }
    }

    fn find(&self, segment: u64, remembered: u32) -> Option<u32> {
        let it = self.counts.get(remembered as usize);
        if it.is_some_and(|it| it.segment == segment) {
            return Some(remembered);
        }
        self.index.get(&segment).copied()
    }

    fn insert(&mut self, segment: u64) -> u32 {
        let fresh = Counted {
            segment,
            needed: SegmentUse::default(),
            listed: false,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a disk holds far fewer than 2^32 segments"
            )]
            let slot = self.counts.len() as u32;
            slot
        });
        match self.counts.get_mut(slot as usize) {
            Some(it) => *it = fresh,
            None => self.counts.push(fresh),
        }
        self.index.insert(segment, slot);
        slot
    }

    /// Segments that were needed and are not needed any more, each told once; they are forgotten.
    pub(crate) fn take_unreferenced(&mut self, out: &mut Vec<u64>) {
        for slot in self.emptied.drain(..) {
            let Some(it) = self.counts.get_mut(slot as usize) else {
                continue;
            };
            it.listed = false;
            if it.needed.messages == 0 {
                out.push(it.segment);
                self.index.remove(&it.segment);
                it.segment = NONE;
                self.free.push(slot);
            }
        }
    }

    /// What is needed of a segment.
    pub(crate) fn needed_of(&self, segment: u64) -> SegmentUse {
        let slot = self.index.get(&segment);
        let it = slot.and_then(|slot| self.counts.get(*slot as usize));
        it.map_or_else(SegmentUse::default, |it| it.needed)
    }

    /// All segments that are needed, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, SegmentUse)> {
        self.index.iter().filter_map(|(segment, slot)| {
            let needed = self.counts.get(*slot as usize)?.needed;
            (needed.messages > 0).then_some((*segment, needed))
        })
    }

    /// Messages counted in all segments.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

/// Our own accounting is wrong: going on would free what is needed.
#[expect(
    clippy::panic,
    reason = "a wrong count would let the disk lose messages"
)]
fn panic_unused(segment: u64, less: SegmentUse) -> ! {
    panic!("segment {segment} holds less than {less:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIFT: u32 = 12;

    fn at(segment: u64) -> Lsn {
        Lsn((segment << SHIFT) + 5)
    }

    #[test]
    fn segments_are_told_once_when_nothing_needs_them() {
        let mut refs = SegmentRefs::new(SHIFT);
        let cold = 1 << 37;
        for segment in [3, 3, cold, 4, 3] {
            refs.add(at(segment), 10);
        }
        let needed = |messages| SegmentUse {
            messages,
            bytes: messages * 10,
        };
        let all: Vec<_> = refs.iter().collect();
        assert_eq!(all, [(3, needed(3)), (4, needed(1)), (cold, needed(1))]);
        refs.remove(at(cold), 10);
        refs.remove_many(3, needed(2));
        let mut free = Vec::new();
        refs.take_unreferenced(&mut free);
        assert_eq!(free, [cold]);
        // Empty and needed again between two looks: not free.
        refs.remove(at(3), 10);
        refs.add(at(3), 7);
        refs.remove(at(4), 10);
        refs.add_many(4, needed(5));
        refs.remove_many(4, needed(5));
        refs.take_unreferenced(&mut free);
        assert_eq!(free, [cold, 4]);
        assert_eq!((refs.total(), refs.needed_of(3).bytes), (1, 7));
        refs.remove(at(3), 7);
        refs.take_unreferenced(&mut free);
        assert_eq!(free, [cold, 4, 3]);
        refs.add(at(cold), 1);
        assert_eq!(refs.iter().count(), 1);
    }

    #[test]
    #[should_panic(expected = "segment 9 holds less than")]
    fn more_cannot_leave_than_came() {
        let mut refs = SegmentRefs::new(SHIFT);
        refs.add(at(9), 4);
        refs.remove(at(9), 5);
    }
}
