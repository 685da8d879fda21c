//! Pages: consecutive ready messages of one lane as bytes, while they are not in memory.
//!
//! A page is a head and entries of fixed size, all integers big-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | `TDPG` |
//! | 4 | 2 | version, 1 |
//! | 6 | 2 | 0 |
//! | 8 | 8 | the page's id |
//! | 16 | 4 | the queue's id |
//! | 20 | 4 | number of entries |
//!
//! An entry is position (8), id (16), place of the content (8), its length (4), weight, deliveries,
//! failures (4 each), redrives (2), flags (1) and a 0. Whoever keeps pages adds a checksum; what is
//! checked here is that a page is the one that was asked for.

use crate::{Lsn, MessageId, QueueId};

const MAGIC: [u8; 4] = *b"TDPG";
const VERSION: u16 = 1;
const HEAD: usize = 24;
const ENTRY: usize = 52;

/// Bytes of a page of `messages` messages.
#[must_use]
pub const fn page_bytes(messages: u32) -> usize {
    HEAD + messages as usize * ENTRY
}

/// A page's own description of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHead {
    pub(crate) id: u64,
    pub(crate) queue: QueueId,
    pub(crate) count: u32,
}

/// One message in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagedMessage {
    pub(crate) position: u64,
    pub(crate) id: MessageId,
    pub(crate) at: Lsn,
    pub(crate) len: u32,
    pub(crate) weight: u32,
    pub(crate) deliveries: u32,
    pub(crate) failures: u32,
    pub(crate) redrives: u16,
    pub(crate) flags: u8,
}

/// Begins a page in `out`, replacing what is there; `count` messages must follow.
pub(crate) fn begin_page(out: &mut Vec<u8>, head: PageHead) {
    out.clear();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&head.id.to_be_bytes());
    out.extend_from_slice(&head.queue.0.to_be_bytes());
    out.extend_from_slice(&head.count.to_be_bytes());
}

/// Appends one message to a page.
pub(crate) fn put_paged(out: &mut Vec<u8>, it: &PagedMessage) {
    let mut bytes = [0; ENTRY];
    let mut rest = bytes.as_mut_slice();
    put(&mut rest, it.position.to_be_bytes());
    put(&mut rest, it.id.to_bytes());
    put(&mut rest, it.at.0.to_be_bytes());
    put(&mut rest, it.len.to_be_bytes());
    put(&mut rest, it.weight.to_be_bytes());
    put(&mut rest, it.deliveries.to_be_bytes());
    put(&mut rest, it.failures.to_be_bytes());
    put(&mut rest, it.redrives.to_be_bytes());
    put(&mut rest, [it.flags]);
    out.extend_from_slice(&bytes);
}

/// Fills the next `N` bytes: an entry has as many as its fields together.
fn put<const N: usize>(rest: &mut &mut [u8], field: [u8; N]) {
    if let Some((to, after)) = core::mem::take(rest).split_first_chunk_mut() {
        *to = field;
        *rest = after;
    }
}

/// The messages of a page that must be the one `head` describes; `None` when it is another, or
/// damaged.
pub(crate) fn read_page(page: &[u8], head: PageHead) -> Option<impl Iterator<Item = PagedMessage>> {
    let mut expected = Vec::with_capacity(HEAD);
    begin_page(&mut expected, head);
    let (found, entries) = page.split_at_checked(HEAD)?;
    let entries = entries.get(..(head.count as usize).checked_mul(ENTRY)?)?;
    (found == expected).then(|| entries.as_chunks::<ENTRY>().0.iter().map(paged_message))
}

fn paged_message(bytes: &[u8; ENTRY]) -> PagedMessage {
    let mut rest = bytes.as_slice();
    PagedMessage {
        position: u64::from_be_bytes(field(&mut rest)),
        id: MessageId::from_bytes(field(&mut rest)),
        at: Lsn(u64::from_be_bytes(field(&mut rest))),
        len: u32::from_be_bytes(field(&mut rest)),
        weight: u32::from_be_bytes(field(&mut rest)),
        deliveries: u32::from_be_bytes(field(&mut rest)),
        failures: u32::from_be_bytes(field(&mut rest)),
        redrives: u16::from_be_bytes(field(&mut rest)),
        flags: u8::from_be_bytes(field(&mut rest)),
    }
}

/// The next `N` bytes: an entry has as many as its fields together.
fn field<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, after) = rest.split_first_chunk().unwrap_or((&[0; N], &[]));
    *rest = after;
    *field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_and_another_does_not() {
        let head = PageHead {
            id: 77,
            queue: QueueId(3),
            count: 2,
        };
        let messages = [1, 2].map(|n| PagedMessage {
            position: n << 40,
            id: MessageId(u128::from(n) << 100 | 5),
            at: Lsn(u64::MAX - n),
            len: 0x0102_0304,
            weight: 9,
            deliveries: 8,
            failures: 7,
            redrives: 0x0506,
            flags: 3,
        });
        let mut page = Vec::new();
        begin_page(&mut page, head);
        for message in &messages {
            put_paged(&mut page, message);
        }
        assert_eq!(page.len(), page_bytes(2));
        let read: Vec<_> = read_page(&page, head).unwrap().collect();
        assert_eq!(read, messages);
        for other in [
            PageHead { id: 78, ..head },
            PageHead {
                queue: QueueId(4),
                ..head
            },
            PageHead { count: 1, ..head },
        ] {
            assert!(read_page(&page, other).is_none(), "{other:?}");
        }
        page.truncate(page.len() - 1);
        assert!(read_page(&page, head).is_none());
    }
}
