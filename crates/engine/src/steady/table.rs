//! A hash table in parts: extendible hashing over small tables.

use hashbrown::HashTable;

/// Elements of a part: as many as a table of 1024 places takes.
const PART: usize = 896;
/// Parts are not split further than this many bits tell apart.
const DEPTH_MAX: u32 = 24;

/// A hash table of which one part is split at a time.
#[derive(Debug)]
pub(crate) struct SteadyTable<T> {
    parts: Vec<Part<T>>,
    /// The part of a hash by some of its bits; empty while there is one part at most.
    directory: Vec<u32>,
    /// How many bits those are.
    depth: u32,
    len: usize,
    capacity: usize,
}

#[derive(Debug)]
struct Part<T> {
    table: HashTable<T>,
    /// Its elements have so many bits in common.
    depth: u32,
}

/// The bits that tell parts apart: within a part, tables use the lowest ones and the highest seven.
const fn bits(hash: u64) -> usize {
    (hash >> 32) as usize & ((1 << DEPTH_MAX) - 1)
}

impl<T> SteadyTable<T> {
    pub(crate) const fn new() -> Self {
        Self {
            parts: Vec::new(),
            directory: Vec::new(),
            depth: 0,
            len: 0,
            capacity: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements there is memory for.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    fn part_of(&self, hash: u64) -> usize {
        let number = bits(hash) & self.directory.len().wrapping_sub(1);
        self.directory.get(number).map_or(0, |part| *part as usize)
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        self.parts.get(self.part_of(hash))?.table.find(hash, eq)
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let part = self.part_of(hash);
        self.parts.get_mut(part)?.table.find_mut(hash, eq)
    }

    /// Adds an element that is not there.
    pub(crate) fn insert_unique(&mut self, hash: u64, value: T, hasher: impl Fn(&T) -> u64) {
        if self.parts.is_empty() {
            self.parts.push(Part {
                table: HashTable::new(),
                depth: 0,
            });
        }
        let mut number = self.part_of(hash);
        // Seldom more than once: half of a part's elements go to each side.
        while let Some(part) = self.parts.get(number)
            && part.table.len() >= PART
            && part.depth < DEPTH_MAX
        {
            self.split(number, hash, &hasher);
            number = self.part_of(hash);
        }
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        let before = part.table.capacity();
        part.table.insert_unique(hash, value, hasher);
        self.capacity += part.table.capacity() - before;
        self.len += 1;
    }

    /// Splits the part of a hash.
    fn split(&mut self, number: usize, hash: u64, hasher: impl Fn(&T) -> u64) {
        let fresh_number = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        let depth = part.depth;
        part.depth += 1;
        let mut fresh = Part {
            table: HashTable::with_capacity(PART),
            depth: depth + 1,
        };
        let old = core::mem::replace(&mut part.table, HashTable::with_capacity(PART));
        self.capacity = self.capacity - old.capacity() + 2 * part.table.capacity();
        for value in old {
            let of = hasher(&value);
            let side = if bits(of) >> depth & 1 == 0 {
                &mut part.table
            } else {
                &mut fresh.table
            };
            side.insert_unique(of, value, &hasher);
        }
        self.parts.push(fresh);
        if depth == self.depth {
            if self.directory.is_empty() {
                self.directory.push(0);
            }
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let in_common = bits(hash) & ((1 << depth) - 1);
        let upper = self.directory.get_mut(in_common | 1 << depth..);
        for it in upper.into_iter().flatten().step_by(2 << depth) {
            *it = fresh_number;
        }
    }

    /// Takes an element out.
    pub(crate) fn remove(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<T> {
        let number = self.part_of(hash);
        let part = self.parts.get_mut(number)?;
        let found = part.table.find_entry(hash, eq).ok()?;
        let (value, _) = found.remove();
        self.len -= 1;
        Some(value)
    }

    /// An empty table gives back its memory if it has more than so many parts.
    pub(crate) fn give_back(&mut self, parts_kept: usize) {
        if self.is_empty() && self.parts.len() > parts_kept {
            *self = Self::new();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().flat_map(|part| &part.table)
    }
}

impl<T> Default for SteadyTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ahash::RandomState;
    use proptest::prelude::*;

    use super::*;

    /// Few hashes are alike, or very many.
    fn hash_of(key: u32, coarse: bool) -> u64 {
        let hash = RandomState::with_seeds(1, 2, 3, 4).hash_one(key);
        if coarse { hash & 0xff_0000_00ff } else { hash }
    }

    proptest! {
        #[test]
        fn it_is_a_table(
            ops in prop::collection::vec((0_u8..8, 0_u32..6000, 1_u32..2000), 1..40),
            coarse: bool,
        ) {
            let mut table = SteadyTable::new();
            let mut model = BTreeMap::new();
            let hash = |key: u32| hash_of(key, coarse);
            for (op, from, count) in ops {
                for key in from..from + count {
                    if op < 5 {
                        if let Some(known) = model.get_mut(&key) {
                            let found = table.find_mut(hash(key), |it: &(u32, u8)| it.0 == key);
                            *known = op;
                            found.unwrap().1 = op;
                        } else {
                            table.insert_unique(hash(key), (key, op), |it| hash(it.0));
                            model.insert(key, op);
                        }
                    } else {
                        let gone = table.remove(hash(key), |it| it.0 == key);
                        prop_assert_eq!(gone.map(|it| it.1), model.remove(&key));
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert!(table.capacity() >= table.len());
                for key in 0..8000 {
                    let found = table.find(hash(key), |it| it.0 == key);
                    prop_assert_eq!(found.map(|it| &it.1), model.get(&key));
                }
            }
            let mut all: Vec<_> = table.iter().copied().collect();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(model));
        }
    }

    #[test]
    fn no_part_is_large_and_no_step_touches_another_one() {
        let mut table = SteadyTable::new();
        let hash = |key: &u32| hash_of(*key, false);
        let mut parts = 0;
        for key in 0..200_000 {
            table.insert_unique(hash(&key), key, hash);
            assert!(table.parts.len() <= parts + 2, "two parts more at most");
            parts = table.parts.len();
        }
        assert!(table.parts.iter().all(|part| part.table.len() <= PART));
        assert!(table.capacity() < 2 * 200_000, "{}", table.capacity());
        let capacity = table.parts.iter().map(|part| part.table.capacity());
        assert_eq!(capacity.sum::<usize>(), table.capacity());
        for key in 0..200_000 {
            assert_eq!(table.remove(hash(&key), |it| *it == key), Some(key));
        }
        table.give_back(1000);
        assert!(table.capacity() > 0);
        table.give_back(8);
        assert_eq!(table.capacity(), 0);
    }
}
