//! The table of API keys on its way out of the node: a change counts once it is on disk.
//!
//! Otherwise a key could be used and be gone after a crash, or be refused and come back.

use std::collections::VecDeque;
use std::sync::Arc;

use tanda_engine::{KeyTable, Lsn};
use tanda_wal::Disk;

use crate::Node;

/// Tables by the log position after the record that made them.
#[derive(Debug, Default)]
pub(crate) struct PublishedKeys {
    /// Oldest first.
    waiting: VecDeque<(Lsn, Arc<KeyTable>)>,
    current: Arc<KeyTable>,
}

impl PublishedKeys {
    pub(crate) fn push(&mut self, after: Lsn, table: Arc<KeyTable>) {
        self.waiting.push_back((after, table));
    }

    pub(crate) fn on_durable(&mut self, durable: Lsn) {
        while let Some((_, table)) = self.waiting.pop_front_if(|(after, _)| *after <= durable) {
            self.current = table;
        }
    }
}

impl<D: Disk> Node<D> {
    /// The API keys that are on disk. A change is in it before the answer to who asked for it is
    /// released; another table is another `Arc`.
    #[must_use]
    pub const fn keys(&self) -> &Arc<KeyTable> {
        &self.published_keys.current
    }
}
