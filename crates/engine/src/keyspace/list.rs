//! Items in a row, each with its position, so that one that was taken can go back to its place.

use std::collections::VecDeque;

use super::datum::Datum;

/// A list. Positions rise from front to back, with gaps where items left.
#[derive(Clone, Debug)]
pub(super) struct List {
    items: VecDeque<(i64, Datum)>,
    /// No item was ever at this position or before it.
    low: i64,
    /// No item was ever at this position or behind it.
    high: i64,
    bytes: usize,
}

/// What one item takes beside its payload.
const ITEM: usize = size_of::<i64>();

impl List {
    pub(super) const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            low: -1,
            high: 0,
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The positions that no item ever had: the highest one before all, the lowest one behind all.
    pub(super) const fn bounds(&self) -> (i64, i64) {
        (self.low, self.high)
    }

    /// Widens what items had.
    pub(super) fn widen(&mut self, (low, high): (i64, i64)) {
        self.low = self.low.min(low);
        self.high = self.high.max(high);
    }

    /// Puts an item at a position; in place of the one there.
    pub(super) fn put(&mut self, position: i64, datum: Datum) {
        self.widen((position.saturating_sub(1), position.saturating_add(1)));
        self.bytes += datum.memory_bytes() + ITEM;
        match self.items.binary_search_by_key(&position, |(at, _)| *at) {
            Ok(at) => {
                if let Some((_, before)) = self.items.get_mut(at) {
                    self.bytes -= before.memory_bytes() + ITEM;
                    *before = datum;
                }
            }
            Err(at) if at == self.items.len() => self.items.push_back((position, datum)),
            Err(at) => self.items.insert(at, (position, datum)),
        }
    }

    pub(super) fn has(&self, position: i64) -> bool {
        let found = self.items.binary_search_by_key(&position, |(at, _)| *at);
        found.is_ok()
    }

    /// Takes the item at a position out.
    pub(super) fn take(&mut self, position: i64) -> Option<Datum> {
        let found = self.items.binary_search_by_key(&position, |(at, _)| *at);
        let (_, datum) = self.items.remove(found.ok()?)?;
        self.bytes -= datum.memory_bytes() + ITEM;
        Some(datum)
    }

    pub(super) fn front(&self) -> Option<&(i64, Datum)> {
        self.items.front()
    }

    pub(super) fn back(&self) -> Option<&(i64, Datum)> {
        self.items.back()
    }

    pub(super) fn at(&self, index: usize) -> Option<&(i64, Datum)> {
        self.items.get(index)
    }

    /// Items from this position on.
    pub(super) fn from(&self, position: i64) -> impl Iterator<Item = &(i64, Datum)> {
        let start = self.items.partition_point(|(at, _)| *at < position);
        self.items.range(start..)
    }

    /// Keeps positions from `low` to `high` only; returns what left.
    pub(super) fn keep(&mut self, low: i64, high: i64) -> Self {
        let end = self.items.partition_point(|(at, _)| *at <= high);
        let behind = self.items.split_off(end);
        let start = self.items.partition_point(|(at, _)| *at < low);
        let kept = self.items.split_off(start);
        let mut left = Self::new();
        left.items = core::mem::replace(&mut self.items, kept);
        left.items.extend(behind);
        let bytes = left.items.iter().map(|(_, it)| it.memory_bytes() + ITEM);
        left.bytes = bytes.sum();
        self.bytes -= left.bytes;
        left
    }

    /// Removes some item; for taking a list apart. False when there is none.
    pub(super) fn shrink(&mut self) -> bool {
        self.items.pop_back();
        !self.items.is_empty()
    }

    pub(super) fn assert_invariants(&self) {
        let mut before = self.low;
        for (position, _) in &self.items {
            assert!(*position > before, "positions rise");
            before = *position;
        }
        assert!(before < self.high, "{before} below {}", self.high);
        let bytes = self.items.iter().map(|(_, it)| it.memory_bytes() + ITEM);
        assert_eq!(bytes.sum::<usize>(), self.bytes, "bytes of items");
    }
}
