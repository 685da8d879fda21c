//! A vector in chunks.

/// Elements of a chunk.
const CHUNK: usize = 1024;

/// A vector whose elements never move, but for the first few.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    /// All but the last are full, and all but the first have room for `CHUNK` elements.
    chunks: Vec<Vec<T>>,
    len: usize,
    capacity: usize,
}

impl<T> Chunks<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
            capacity: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Elements there is memory for.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len == self.chunks.len() * CHUNK {
            // Most of these stay small.
            let room = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(room));
            self.capacity += room;
        }
        let Some(last) = self.chunks.last_mut() else {
            return;
        };
        let before = last.capacity();
        last.push(value);
        self.capacity += last.capacity() - before;
        self.len += 1;
    }

    /// Takes the last element out.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let value = last.pop();
        self.len -= usize::from(value.is_some());
        if last.is_empty()
            && let Some(gone) = self.chunks.pop()
        {
            self.capacity -= gone.capacity();
        }
        value
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> core::ops::Index<usize> for Chunks<T> {
    type Output = T;

    #[inline]
    #[expect(clippy::indexing_slicing, reason = "this is indexing")]
    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }
}

impl<T> core::ops::IndexMut<usize> for Chunks<T> {
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "this is indexing")]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_where_they_were_put() {
        let mut chunks = Chunks::new();
        assert_eq!((chunks.get(0), chunks.capacity()), (None, 0));
        for n in 0..10 * CHUNK {
            chunks.push(n);
            assert!(chunks.capacity() <= 2 * chunks.len() + 8 || chunks.len() > CHUNK);
        }
        assert_eq!((chunks.len(), chunks.capacity()), (10 * CHUNK, 10 * CHUNK));
        for n in 0..10 * CHUNK {
            assert_eq!((chunks[n], chunks.get(n)), (n, Some(&n)));
        }
        chunks[5000] = 7;
        *chunks.get_mut(5001).unwrap() = 8;
        let changed: Vec<_> = chunks.iter().skip(4999).take(4).copied().collect();
        assert_eq!(changed, [4999, 7, 8, 5002]);
        assert_eq!(chunks.iter().next_back(), Some(&(10 * CHUNK - 1)));
        assert_eq!(chunks.get(10 * CHUNK), None);
        for n in (5002..10 * CHUNK).rev() {
            assert_eq!((chunks.pop(), chunks.len()), (Some(n), n));
        }
        assert_eq!(chunks.capacity(), 5 * CHUNK);
        assert_eq!((chunks.pop(), chunks.pop()), (Some(8), Some(7)));
        while chunks.pop().is_some() {}
        chunks.push(1);
        assert_eq!((chunks.len(), chunks.get(0)), (1, Some(&1)));
    }
}
