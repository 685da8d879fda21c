//! The log as the engine sees it.

use tanda_engine::{Journal, Lsn};
use tanda_wal::{Disk, Log};

/// A position that no log reaches: an effect after it is never released.
const NEVER: Lsn = Lsn(u64::MAX);

/// Lends the log to the engine for one call. The engine never sees an error: a record that the log
/// did not take gets a position that never becomes durable, and `refused` says why.
pub(crate) struct LogJournal<'a, D: Disk> {
    pub(crate) log: &'a mut Log<D>,
    /// Why the log took no record, once it did not.
    pub(crate) refused: &'a mut Option<String>,
}

impl<D: Disk> Journal for LogJournal<'_, D> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        match self.log.append(record) {
            Ok(at) => Lsn(at.0),
            Err(error) => {
                self.refused.get_or_insert_with(|| error.to_string());
                NEVER
            }
        }
    }

    fn end(&self) -> Lsn {
        if self.refused.is_some() {
            return NEVER;
        }
        Lsn(self.log.end().0)
    }
}
