//! A line: in at its back, out at its front.

use std::collections::VecDeque;

/// Elements of a chunk.
const CHUNK: usize = 1024;

/// A first-in first-out line in chunks, whose middle can be swept a chunk at a time.
#[derive(Debug)]
pub(crate) struct Line<T> {
    chunks: VecDeque<VecDeque<T>>,
    len: usize,
    /// The chunk that is swept next.
    swept: usize,
}

impl<T> Line<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            len: 0,
            swept: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Rough bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let only = self.chunks.back().map_or(0, VecDeque::capacity);
        let elements = if self.chunks.len() > 1 {
            self.chunks.len() * CHUNK
        } else {
            only
        };
        elements * size_of::<T>()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, value: T) {
        match self.chunks.back_mut() {
            Some(last) if last.len() < CHUNK => last.push_back(value),
            last => {
                let room = if last.is_some() { CHUNK } else { 0 };
                let mut fresh = VecDeque::with_capacity(room);
                fresh.push_back(value);
                self.chunks.push_back(fresh);
            }
        }
        self.len += 1;
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.chunks.front()?.front()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<&T> {
        self.chunks.back()?.back()
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.chunks.front_mut()?;
        let value = first.pop_front()?;
        self.len -= 1;
        if first.is_empty() && self.chunks.len() > 1 {
            self.chunks.pop_front();
            self.swept = self.swept.saturating_sub(1);
        }
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.truncate(1);
        if let Some(only) = self.chunks.front_mut() {
            only.clear();
        }
        (self.len, self.swept) = (0, 0);
    }

    /// Drops what is not to be kept from the next chunk. Called again and again, it goes over the
    /// whole line, and over it again.
    pub(crate) fn sweep_some(&mut self, keep: impl FnMut(&T) -> bool) {
        if self.swept >= self.chunks.len() {
            self.swept = 0;
        }
        let is_only = self.chunks.len() == 1;
        let Some(chunk) = self.chunks.get_mut(self.swept) else {
            return;
        };
        let before = chunk.len();
        chunk.retain(keep);
        self.len -= before - chunk.len();
        if chunk.is_empty() && !is_only {
            self.chunks.remove(self.swept);
            return;
        }
        if chunk.len() < before / 2 {
            chunk.shrink_to_fit();
        }
        self.swept += 1;
    }
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Push(u16),
        Pop(u16),
        /// Drops multiples of this, a chunk after the other.
        Sweep(u32, u8),
        Clear,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (1_u16..3000).prop_map(Op::Push),
            4 => (1_u16..3000).prop_map(Op::Pop),
            3 => (1_u32..5, 1_u8..8).prop_map(|(of, chunks)| Op::Sweep(of, chunks)),
            1 => Just(Op::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_line(ops in prop::collection::vec(op(), 1..60)) {
            let (mut line, mut model, mut next) = (Line::new(), VecDeque::new(), 0_u32);
            for op in ops {
                match op {
                    Op::Push(count) => for _ in 0..count {
                        line.push_back(next);
                        model.push_back(next);
                        next += 1;
                    },
                    Op::Pop(count) => for _ in 0..count {
                        prop_assert_eq!(line.pop_front(), model.pop_front());
                    },
                    Op::Sweep(of, chunks) => {
                        let mut gone = Vec::new();
                        for _ in 0..chunks {
                            line.sweep_some(|it| {
                                let keep = it % of != 0;
                                if !keep {
                                    gone.push(*it);
                                }
                                keep
                            });
                        }
                        gone.sort_unstable();
                        model.retain(|it| gone.binary_search(it).is_err());
                    }
                    Op::Clear => {
                        line.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(line.len(), model.len());
                prop_assert_eq!(line.front(), model.front());
                prop_assert_eq!(line.back(), model.back());
                prop_assert!(line.iter().eq(model.iter()));
            }
            let chunks = line.chunks.len() + 1;
            for _ in 0..chunks {
                line.sweep_some(|it| it % 2 == 0);
            }
            prop_assert!(line.iter().all(|it| it % 2 == 0), "a pass goes over all of it");
        }
    }
}
