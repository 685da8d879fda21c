//! A journal in memory in which every page stays where it is, as for a snapshot.

use tanda_engine::{Journal, Lsn, PageSlot};

#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) records: Vec<(Lsn, Vec<u8>)>,
    pub(crate) pages: Vec<Vec<u8>>,
    end: Lsn,
}

pub(crate) const SEGMENT_SHIFT: u32 = 12;

impl Log {
    pub(crate) const fn new() -> Self {
        Self {
            records: Vec::new(),
            pages: Vec::new(),
            end: Lsn(64),
        }
    }
}

impl Journal for Log {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let mut at = Lsn(self.end.0 + 4);
        let last = at.0 + record.len() as u64 - 1;
        if at.0 >> SEGMENT_SHIFT != last >> SEGMENT_SHIFT {
            // A record lies in one segment, as in the real log.
            at = Lsn((((at.0 >> SEGMENT_SHIFT) + 1) << SEGMENT_SHIFT) + 4);
        }
        self.records.push((at, record.to_vec()));
        self.end = Lsn(at.0 + record.len() as u64);
        at
    }

    fn end(&self) -> Lsn {
        self.end
    }

    fn write_page(&mut self, page: &[u8]) -> Option<PageSlot> {
        self.pages.push(page.to_vec());
        Some(PageSlot(u32::try_from(self.pages.len() - 1).unwrap()))
    }

    fn read_page(&mut self, slot: PageSlot, into: &mut Vec<u8>) -> bool {
        into.clear();
        into.extend_from_slice(&self.pages[slot.0 as usize]);
        true
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}
