//! The log as the engine sees it.

use tanda_engine::{Journal, Lsn, PageSlot};
use tanda_wal::{Disk, Log};

/// Lends the log to the engine for one call. The engine never sees an error: it gets the position
/// that the record would have had, `refused` says why it is not there, and the node then releases
/// nothing of that call.
pub(crate) struct LogJournal<'a, D: Disk> {
    pub(crate) log: &'a mut Log<D>,
    /// Why the log took no record, once it did not.
    pub(crate) refused: &'a mut Option<String>,
    pub(crate) pages: &'a mut MemPages,
}

/// Pages in memory.
#[derive(Debug, Default)]
pub(crate) struct MemPages {
    pages: Vec<Vec<u8>>,
    free: Vec<PageSlot>,
}

impl<D: Disk> Journal for LogJournal<'_, D> {
    fn append(&mut self, record: &[u8]) -> Lsn {
        match self.log.append(record) {
            Ok(at) => Lsn(at.0),
            Err(error) => {
                self.refused.get_or_insert_with(|| error.to_string());
                self.end()
            }
        }
    }

    fn end(&self) -> Lsn {
        Lsn(self.log.end().0)
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        let it = &mut *self.pages;
        if let Some(slot) = it.free.pop() {
            page.clone_into(it.pages.get_mut(slot.0 as usize)?);
            return Some(slot);
        }
        let slot = PageSlot(u32::try_from(it.pages.len()).ok()?);
        it.pages.push(page.to_vec());
        Some(slot)
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        let page = self.pages.pages.get(slot.0 as usize);
        page.inspect(|page| page.as_slice().clone_into(into))
            .is_some()
    }

    fn free_page(&mut self, slot: PageSlot) {
        if let Some(page) = self.pages.pages.get_mut(slot.0 as usize) {
            *page = Vec::new();
            self.pages.free.push(slot);
        }
    }
}
