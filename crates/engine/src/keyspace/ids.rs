//! A map whose keys are ids that count up: ordered, and found by few steps.
//!
//! Ids that follow each other share a page, so the tree has one entry for [`PAGE_SLOTS`] of them
//! and stays in the processor's caches when the entries do not: a command looks for its key half a
//! dozen times. A page is freed with its last entry.

use core::ops::{Bound, RangeBounds};
use std::collections::BTreeMap;

/// Ids of one page.
const PAGE_IDS: u64 = 64;
/// Places of one page.
const PAGE_SLOTS: usize = 64;
const _: () = assert!(PAGE_IDS == PAGE_SLOTS as u64, "a place for each id");

/// See the module.
#[derive(Debug)]
pub(super) struct IdMap<T> {
    pages: BTreeMap<u64, Box<Page<T>>>,
    len: usize,
}

#[derive(Debug)]
struct Page<T> {
    slots: [Option<Box<T>>; PAGE_SLOTS],
    used: u32,
}

impl<T> Page<T> {
    fn new() -> Self {
        Self {
            slots: [const { None }; PAGE_SLOTS],
            used: 0,
        }
    }
}

/// The page of an id, and its place there.
const fn place(id: u64) -> (u64, usize) {
    (id / PAGE_IDS, (id % PAGE_IDS) as usize)
}

impl<T> IdMap<T> {
    pub(super) const fn new() -> Self {
        Self {
            pages: BTreeMap::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, id: u64) -> Option<&T> {
        let (page, slot) = place(id);
        self.pages.get(&page)?.slots.get(slot)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        let (page, slot) = place(id);
        self.pages
            .get_mut(&page)?
            .slots
            .get_mut(slot)?
            .as_deref_mut()
    }

    /// Puts an entry in the place of what was there.
    pub(super) fn insert(&mut self, id: u64, entry: T) {
        let (page, slot) = place(id);
        let page = self.pages.entry(page);
        let page = page.or_insert_with(|| Box::new(Page::new()));
        if let Some(slot) = page.slots.get_mut(slot)
            && slot.replace(Box::new(entry)).is_none()
        {
            page.used += 1;
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let (number, slot) = place(id);
        let page = self.pages.get_mut(&number)?;
        let entry = page.slots.get_mut(slot)?.take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
        Some(*entry)
    }

    /// Entries in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.range(..)
    }

    /// Those whose ids lie in a range that is not empty.
    pub(super) fn range(&self, ids: impl RangeBounds<u64>) -> impl Iterator<Item = (u64, &T)> {
        let page_of = |bound: Bound<&u64>| match bound {
            Bound::Included(id) | Bound::Excluded(id) => Bound::Included(id / PAGE_IDS),
            Bound::Unbounded => Bound::Unbounded,
        };
        let pages = (page_of(ids.start_bound()), page_of(ids.end_bound()));
        let entries = self.pages.range(pages).flat_map(|(page, entries)| {
            let slots = (0..).zip(&entries.slots);
            slots.filter_map(move |(slot, entry): (u64, _)| {
                Some((page * PAGE_IDS + slot, entry.as_deref()?))
            })
        });
        entries.filter(move |(id, _)| ids.contains(id))
    }

    /// Entries in the order of their ids, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let pages = self.pages.values_mut();
        pages.flat_map(|page| page.slots.iter_mut().filter_map(Option::as_deref_mut))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Ids near the edges of pages, and far away.
    fn id() -> impl Strategy<Value = u64> {
        prop_oneof![0..300_u64, Just(u64::MAX), u64::MAX - 130..u64::MAX]
    }

    proptest! {
        #[test]
        fn is_a_map(
            steps in prop::collection::vec((id(), any::<Option<u8>>()), 0..200),
            from in id(),
            to in id(),
        ) {
            let (mut map, mut model) = (IdMap::new(), BTreeMap::new());
            for (id, entry) in steps {
                if let Some(entry) = entry {
                    map.insert(id, entry);
                    model.insert(id, entry);
                } else {
                    prop_assert_eq!(map.remove(id), model.remove(&id));
                }
                prop_assert_eq!(map.get(id), model.get(&id));
                prop_assert_eq!(map.len(), model.len());
            }
            let (from, to) = (from.min(to), from.max(to));
            let of_model = model.range(from..=to).map(|(id, entry)| (*id, entry));
            prop_assert!(map.range(from..=to).eq(of_model));
            prop_assert!(map.range(from..).eq(model.range(from..).map(|(id, entry)| (*id, entry))));
            for (entry, other) in map.values_mut().zip(model.values_mut()) {
                prop_assert_eq!(&*entry, &*other);
                *entry = entry.wrapping_add(1);
                *other = other.wrapping_add(1);
            }
            prop_assert!(map.iter().eq(model.iter().map(|(id, entry)| (*id, entry))));
            for id in model.into_keys() {
                prop_assert!(map.remove(id).is_some());
            }
            prop_assert!(map.pages.is_empty());
        }
    }
}
