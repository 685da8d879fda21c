//! Bytes of a snapshot that wait to be written, cut into pieces of one size.
//!
//! Owns the cutting. It refuses to know what the bytes are.

use std::collections::VecDeque;

/// Bytes of a piece. Small, because whatever the disk is told at once holds up the log; blocks of
/// the disk, so that a piece can go past the page cache.
pub(crate) const PIECE_BYTES: usize = 128 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    whole: VecDeque<Vec<u8>>,
    /// What comes after them, less than a piece between calls.
    rest: Vec<u8>,
}

impl Pieces {
    /// Adds what `write` appends.
    pub(crate) fn extend(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.rest);
        let whole = self.rest.chunks_exact(PIECE_BYTES).map(<[u8]>::to_vec);
        self.whole.extend(whole);
        let rest = self.rest.len() % PIECE_BYTES;
        self.rest.drain(..self.rest.len() - rest);
    }

    /// The next whole piece.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.whole.pop_front()
    }

    /// What is left when there are no more whole pieces.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        debug_assert!(self.whole.is_empty(), "whole pieces come first");
        core::mem::take(&mut self.rest)
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.whole.len() * PIECE_BYTES + self.rest.len()
    }
}
