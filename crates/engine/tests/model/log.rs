//! A journal in memory in which every page stays where it is, as for a snapshot.

use tanda_engine::{ContentRead, Journal, Lsn, PageSlot};

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

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        let after = self.records.partition_point(|(start, _)| *start <= at);
        let record = after.checked_sub(1).and_then(|it| self.records.get(it));
        let found = record.and_then(|(start, record)| {
            let from = usize::try_from(at.0 - start.0).ok()?;
            record.get(from..from + len as usize)
        });
        let Some(found) = found else {
            return ContentRead::Unavailable;
        };
        into.extend_from_slice(found);
        ContentRead::FromDisk
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
