//! The tables of API keys and of users on their way out of the node: a change counts once it is on
//! disk.
//!
//! Otherwise a key could be used and be gone after a crash, or be refused and come back.

use std::collections::VecDeque;
use std::sync::Arc;

use tanda_engine::{Engine, KeyTable, Lsn, UserTable};
use tanda_wal::Disk;

use crate::Node;

/// Tables by the log position after the record that made them.
#[derive(Debug)]
struct Published<T> {
    /// Oldest first.
    waiting: VecDeque<(Lsn, Arc<T>)>,
    current: Arc<T>,
}

impl<T: Default> Default for Published<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            current: Arc::default(),
        }
    }
}

impl<T> Published<T> {
    fn push(&mut self, after: Lsn, table: Arc<T>) {
        self.waiting.push_back((after, table));
    }

    fn on_durable(&mut self, durable: Lsn) {
        while let Some((_, table)) = self.waiting.pop_front_if(|(after, _)| *after <= durable) {
            self.current = table;
        }
    }
}

/// What doors decide on.
#[derive(Debug, Default)]
pub(crate) struct PublishedTables {
    keys: Published<KeyTable>,
    users: Published<UserTable>,
}

impl PublishedTables {
    /// What the engine changed may be used once the log is durable up to `end`.
    pub(crate) fn take_from(&mut self, engine: &mut Engine, (end, durable): (Lsn, Lsn)) {
        let (keys, users) = (engine.take_keys(), engine.take_users());
        if keys.is_none() && users.is_none() {
            return;
        }
        if let Some(table) = keys {
            self.keys.push(end, table);
        }
        if let Some(table) = users {
            self.users.push(end, table);
        }
        self.on_durable(durable);
    }

    pub(crate) fn on_durable(&mut self, durable: Lsn) {
        self.keys.on_durable(durable);
        self.users.on_durable(durable);
    }
}

impl<D: Disk> Node<D> {
    /// What was recovered is on disk; what the start itself writes is not yet.
    pub(crate) fn publish_recovered_tables(&mut self) {
        let durable = self.durable();
        self.tables.take_from(&mut self.engine, (durable, durable));
    }

    /// The API keys that are on disk. A change is in it before the answer to who asked for it is
    /// released; another table is another `Arc`.
    #[must_use]
    pub const fn keys(&self) -> &Arc<KeyTable> {
        &self.tables.keys.current
    }

    /// The users that are on disk, as [`Node::keys`] has the keys.
    #[must_use]
    pub const fn users(&self) -> &Arc<UserTable> {
        &self.tables.users.current
    }
}
