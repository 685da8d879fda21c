//! A map in parts.

use core::hash::Hash;

use ahash::RandomState;

use super::SteadyTable;

/// Parts that an empty map keeps.
const PARTS_KEPT: usize = 4;

/// A hash map that grows a part at a time. Empty, it gives most of its memory back.
#[derive(Debug)]
pub(crate) struct SteadyMap<K, V> {
    table: SteadyTable<(K, V)>,
    hasher: RandomState,
}

impl<K: Hash + Eq, V> SteadyMap<K, V> {
    pub(crate) const fn new(hasher: RandomState) -> Self {
        Self {
            table: SteadyTable::new(),
            hasher,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Rough bytes of memory.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.table.capacity() * (size_of::<(K, V)>() + 1)
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        if self.is_empty() {
            // As it mostly is: that saves a hash.
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let found = self.table.find(hash, |it| it.0 == *key);
        found.map(|it| &it.1)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Adds or replaces; returns what was there.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hasher = &self.hasher;
        let hash = hasher.hash_one(&key);
        if let Some(known) = self.table.find_mut(hash, |it| it.0 == key) {
            return Some(core::mem::replace(&mut known.1, value));
        }
        let of = |it: &(K, V)| hasher.hash_one(&it.0);
        self.table.insert_unique(hash, (key, value), of);
        None
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let gone = self.table.remove(hash, |it| it.0 == *key)?;
        self.table.give_back(PARTS_KEPT);
        Some(gone.1)
    }

    pub(crate) fn clear(&mut self) {
        self.table = SteadyTable::new();
    }

    /// In no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.table.iter().map(|it| (&it.0, &it.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let mut map = SteadyMap::new(RandomState::with_seeds(1, 2, 3, 4));
        assert_eq!((map.remove(&1), map.memory_bytes()), (None, 0));
        assert_eq!(map.get(&1), None);
        for key in 0..10_000_u32 {
            assert_eq!(map.insert(key, key), None);
            assert_eq!(map.insert(key, key + 1), Some(key));
        }
        map.insert(7, 70);
        assert!(map.contains_key(&7) && !map.contains_key(&10_000));
        assert_eq!(
            (map.get(&7), map.get(&8), map.len()),
            (Some(&70), Some(&9), 10_000)
        );
        assert_eq!(
            map.iter().map(|it| u64::from(*it.0)).sum::<u64>(),
            49_995_000
        );
        for key in 0..10_000 {
            assert!(map.remove(&key).is_some());
        }
        assert_eq!((map.len(), map.memory_bytes()), (0, 0));
    }
}
