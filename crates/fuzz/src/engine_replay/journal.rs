//! A journal that keeps its records and pages in memory.

use tanda_engine::{ContentRead, Journal, Lsn, PageSlot};

/// See the module.
pub(crate) struct MemJournal {
    pub(crate) records: Vec<Vec<u8>>,
    end: Lsn,
    pages: Vec<Option<Vec<u8>>>,
}

impl MemJournal {
    /// A journal that goes on at this position.
    pub(crate) const fn new(end: Lsn) -> Self {
        Self {
            records: Vec::new(),
            end,
            pages: Vec::new(),
        }
    }
}

impl Journal for MemJournal {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = Lsn(self.end.0 + 4);
        self.records.push(record.to_vec());
        self.end = Lsn(at.0 + record.len() as u64);
        at
    }

    fn end(&self) -> Lsn {
        self.end
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        let slot = u32::try_from(self.pages.len()).ok()?;
        self.pages.push(Some(page.to_vec()));
        Some(PageSlot(slot))
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        into.clear();
        let page = self.pages.get(slot.0 as usize).and_then(Option::as_ref);
        page.inspect(|page| into.extend_from_slice(page)).is_some()
    }

    /// A page that a made-up record names may not be there; one that is there goes once.
    fn free_page(&mut self, slot: PageSlot) {
        if let Some(page) = self.pages.get_mut(slot.0 as usize) {
            assert!(page.take().is_some(), "{slot:?} is freed twice");
        }
    }
}
