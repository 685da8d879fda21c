//! The log as the engine sees it.

use tanda_engine::{ContentRead, Journal, Lsn, PageSlot};
use tanda_wal::{Disk, Log};

use crate::delivery_notes::DeliveryNotes;
use crate::pages::PageFile;

/// Lends the log to the engine for one call. The engine never sees an error: it gets the position
/// that the record would have had, `refused` says why it is not there, and the node then releases
/// nothing of that call.
pub(crate) struct LogJournal<'a, D: Disk> {
    pub(crate) log: &'a mut Log<D>,
    /// Why the log took no record, once it did not.
    pub(crate) refused: &'a mut Option<String>,
    pub(crate) pages: &'a mut PageFile<D>,
    pub(crate) notes: &'a mut DeliveryNotes<D>,
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

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        let at = tanda_wal::Lsn(at.0);
        if let Some(bytes) = self.log.read_cached(at, len) {
            into.extend_from_slice(&bytes);
            return ContentRead::Cached;
        }
        match self.log.read(at, len) {
            Ok(bytes) => {
                into.extend_from_slice(&bytes);
                ContentRead::FromDisk
            }
            Err(tanda_wal::ReadError::Corrupt(_)) => ContentRead::Damaged,
            Err(_) => ContentRead::Unavailable,
        }
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        self.pages.write(page)
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        self.pages.read(slot, into).is_ok()
    }

    fn note_deliveries(&mut self, record: &[u8]) {
        self.notes.add(record);
    }

    fn free_page(&mut self, slot: PageSlot) {
        self.pages.free(slot);
    }
}
