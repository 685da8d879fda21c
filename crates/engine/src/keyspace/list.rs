//! Items in a row, each with its position, so that one that was taken can go back to its place.
//!
//! They lie in parts of at most a thousand, so that a long list grows, and is cut, in small steps.

use std::collections::VecDeque;

use super::datum::Datum;

/// Items of a part; one more splits it.
const PART: usize = 1024;

/// A list. Positions rise from front to back, with gaps where items left.
#[derive(Debug)]
pub(super) struct List {
    /// None is empty.
    parts: VecDeque<Part>,
    len: usize,
    /// No item was ever at this position or before it.
    low: i64,
    /// No item was ever at this position or behind it.
    high: i64,
    bytes: usize,
}

/// Items that follow each other.
#[derive(Debug, Default)]
struct Part {
    items: VecDeque<(i64, Datum)>,
    bytes: usize,
}

/// What one item takes beside its payload.
const ITEM: usize = size_of::<i64>();

fn bytes_of(datum: &Datum) -> usize {
    datum.memory_bytes() + ITEM
}

impl Part {
    fn of(items: VecDeque<(i64, Datum)>) -> Self {
        let bytes = items.iter().map(|(_, it)| bytes_of(it)).sum();
        Self { items, bytes }
    }

    fn find(&self, position: i64) -> Result<usize, usize> {
        self.items.binary_search_by_key(&position, |(at, _)| *at)
    }

    fn last(&self) -> i64 {
        self.items.back().map_or(i64::MIN, |(at, _)| *at)
    }

    /// Takes the items from this one on out.
    fn split_off(&mut self, at: usize) -> Self {
        let behind = Self::of(self.items.split_off(at));
        self.bytes -= behind.bytes;
        behind
    }
}

impl List {
    pub(super) const fn new() -> Self {
        Self {
            parts: VecDeque::new(),
            len: 0,
            low: -1,
            high: 0,
            bytes: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
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

    /// The first part that ends at a position or behind it.
    fn part_at(&self, position: i64) -> usize {
        self.parts.partition_point(|part| part.last() < position)
    }

    /// Puts an item at a position; in place of the one there.
    pub(super) fn put(&mut self, position: i64, datum: Datum) {
        self.widen((position.saturating_sub(1), position.saturating_add(1)));
        let number = self.part_for(position);
        let Some(part) = self.parts.get_mut(number) else {
            return;
        };
        let bytes = bytes_of(&datum);
        (part.bytes, self.bytes) = (part.bytes + bytes, self.bytes + bytes);
        match part.find(position) {
            Ok(at) => {
                if let Some((_, before)) = part.items.get_mut(at) {
                    let bytes = bytes_of(before);
                    (part.bytes, self.bytes) = (part.bytes - bytes, self.bytes - bytes);
                    *before = datum;
                }
                return;
            }
            Err(at) if at == part.items.len() => part.items.push_back((position, datum)),
            Err(at) => part.items.insert(at, (position, datum)),
        }
        self.len += 1;
        if part.items.len() > PART {
            let behind = part.split_off(PART / 2);
            self.parts.insert(number + 1, behind);
        }
    }

    /// The part that an item goes into. At both ends a new one begins when the last one is full.
    fn part_for(&mut self, position: i64) -> usize {
        let number = self.part_at(position);
        let is_full = |part: &Part| part.items.len() >= PART;
        if number == self.parts.len() {
            if self.parts.back().is_none_or(is_full) {
                self.parts.push_back(Part::default());
            }
            return self.parts.len() - 1;
        }
        let front = self.parts.front();
        let is_before = front.and_then(|part| part.items.front());
        if is_before.is_some_and(|(at, _)| position < *at) && front.is_some_and(is_full) {
            self.parts.push_front(Part::default());
            return 0;
        }
        number
    }

    pub(super) fn has(&self, position: i64) -> bool {
        let part = self.parts.get(self.part_at(position));
        part.is_some_and(|part| part.find(position).is_ok())
    }

    /// Takes the item at a position out.
    pub(super) fn take(&mut self, position: i64) -> Option<Datum> {
        let number = self.part_at(position);
        let part = self.parts.get_mut(number)?;
        let at = part.find(position).ok()?;
        let (_, datum) = part.items.remove(at)?;
        let bytes = bytes_of(&datum);
        (part.bytes, self.bytes) = (part.bytes - bytes, self.bytes - bytes);
        self.len -= 1;
        if part.items.is_empty() {
            self.parts.remove(number);
        }
        Some(datum)
    }

    pub(super) fn front(&self) -> Option<&(i64, Datum)> {
        self.parts.front()?.items.front()
    }

    pub(super) fn back(&self) -> Option<&(i64, Datum)> {
        self.parts.back()?.items.back()
    }

    pub(super) fn at(&self, index: usize) -> Option<&(i64, Datum)> {
        self.skip_to(index).next()
    }

    /// Items from this number on.
    pub(super) fn skip_to(&self, index: usize) -> impl Iterator<Item = &(i64, Datum)> {
        let (mut number, mut skip) = (0, index);
        while let Some(part) = self.parts.get(number)
            && skip >= part.items.len()
        {
            skip -= part.items.len();
            number += 1;
        }
        self.items_from(number, skip)
    }

    /// Items from this position on.
    pub(super) fn from(&self, position: i64) -> impl Iterator<Item = &(i64, Datum)> {
        let number = self.part_at(position);
        let part = self.parts.get(number);
        let skip = part.map_or(0, |part| match part.find(position) {
            Ok(at) | Err(at) => at,
        });
        self.items_from(number, skip)
    }

    fn items_from(&self, number: usize, skip: usize) -> impl Iterator<Item = &(i64, Datum)> {
        let mut parts = self.parts.range(number.min(self.parts.len())..);
        let first = parts.next().map(|part| part.items.range(skip..));
        first
            .into_iter()
            .flatten()
            .chain(parts.flat_map(|part| &part.items))
    }

    /// Keeps positions from `low` to `high` only; returns what left.
    pub(super) fn keep(&mut self, low: i64, high: i64) -> Self {
        let behind = self.cut(high.saturating_add(1));
        let kept = self.cut(low);
        let mut left = Self::new();
        let before = core::mem::replace(&mut self.parts, kept);
        for part in before.into_iter().chain(behind) {
            (left.len, left.bytes) = (left.len + part.items.len(), left.bytes + part.bytes);
            left.parts.push_back(part);
        }
        (self.len, self.bytes) = (self.len - left.len, self.bytes - left.bytes);
        left
    }

    /// Takes the parts from this position on out.
    fn cut(&mut self, position: i64) -> VecDeque<Part> {
        let number = self.part_at(position);
        let mut behind = self.parts.split_off(number);
        if let Some(part) = behind.front_mut() {
            let (Ok(at) | Err(at)) = part.find(position);
            if at > 0 {
                let rest = part.split_off(at);
                let before = core::mem::replace(part, rest);
                self.parts.push_back(before);
            }
        }
        behind
    }

    /// Removes some item; for taking a list apart. False when there is none.
    pub(super) fn shrink(&mut self) -> bool {
        if let Some(part) = self.parts.back_mut() {
            part.items.pop_back();
            if part.items.is_empty() {
                self.parts.pop_back();
            }
        }
        !self.parts.is_empty()
    }

    pub(super) fn assert_invariants(&self) {
        let (mut before, mut len, mut all) = (self.low, 0, 0);
        for part in &self.parts {
            assert!(!part.items.is_empty(), "a part is empty");
            assert!(part.items.len() <= PART, "{} items", part.items.len());
            for (position, _) in &part.items {
                assert!(*position > before, "positions rise");
                before = *position;
            }
            let bytes = part.items.iter().map(|(_, it)| bytes_of(it));
            assert_eq!(bytes.sum::<usize>(), part.bytes, "bytes of a part");
            (len, all) = (len + part.items.len(), all + part.bytes);
        }
        assert!(before < self.high, "{before} below {}", self.high);
        assert_eq!((len, all), (self.len, self.bytes), "items and their bytes");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::datum::DatumForm;
    use super::*;

    fn datum(n: i64) -> Datum {
        Datum::new(DatumForm::Text, n.to_string().as_bytes())
    }

    /// What is told of a list, and of what it is to be.
    fn compare(list: &List, model: &BTreeMap<i64, Datum>) {
        list.assert_invariants();
        assert_eq!(list.len(), model.len());
        let of = |(at, datum): (&i64, &Datum)| (*at, datum.clone());
        let all: Vec<_> = model.iter().map(of).collect();
        assert!(list.from(i64::MIN).eq(&all));
        assert_eq!((list.front(), list.back()), (all.first(), all.last()));
        for index in [0, 1, 1023, 1024, 1500, 3000] {
            assert_eq!(list.at(index), all.get(index));
            assert!(list.skip_to(index).eq(all.iter().skip(index)));
        }
        for position in [-1500, -1, 0, 700, 5000] {
            assert_eq!(list.has(position), model.contains_key(&position));
            let behind = all.iter().filter(|(at, _)| *at >= position);
            assert!(list.from(position).eq(behind));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_sorted_map(
            ops in prop::collection::vec((0_u8..8, -2000_i64..4000, 1_i64..2500), 1..12),
        ) {
            let (mut list, mut model) = (List::new(), BTreeMap::new());
            for (op, from, count) in ops {
                match op {
                    0..=2 => {
                        for at in from..from + count {
                            list.put(at, datum(at));
                            model.insert(at, datum(at));
                        }
                    }
                    3 | 4 => {
                        // From the back to the front, as items pushed there come.
                        for at in (from..from + count).rev() {
                            list.put(at, datum(at * 10));
                            model.insert(at, datum(at * 10));
                        }
                    }
                    5 | 6 => {
                        for at in (from..from + count).step_by(usize::from(op) - 3) {
                            prop_assert_eq!(list.take(at), model.remove(&at));
                        }
                    }
                    _ => {
                        let mut left = list.keep(from, from + count);
                        let mut gone = model.split_off(&(from + count + 1));
                        let kept = model.split_off(&from);
                        gone.append(&mut core::mem::replace(&mut model, kept));
                        left.widen((-3000, 8000));
                        let of = |(at, datum): (&i64, &Datum)| (*at, datum.clone());
                        let all: Vec<_> = gone.iter().map(of).collect();
                        let mut found: Vec<_> = left.skip_to(0).cloned().collect();
                        found.sort_by_key(|(at, _)| *at);
                        prop_assert_eq!(found, all);
                        prop_assert_eq!(left.len(), gone.len());
                        while left.shrink() {}
                    }
                }
                compare(&list, &model);
            }
        }
    }

    #[test]
    fn no_step_of_a_long_list_touches_more_than_a_part() {
        let mut list = List::new();
        for at in 0..100_000 {
            list.put(at, datum(at));
            list.put(-at, datum(at));
        }
        list.assert_invariants();
        assert!(list.parts.len() < 300, "{} parts", list.parts.len());
        assert!(list.parts.iter().all(|part| part.items.len() <= PART));
    }
}
