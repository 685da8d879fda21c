//! Walks over the pages of lanes, in steps that are bounded.
//!
//! Owns how far a walk has come. It refuses to change what a lane holds; marks are all it leaves.

use std::collections::VecDeque;

use super::entries::{Entries, NIL};
use super::lanes::Lanes;
use super::page_ref::PageRef;

/// How far a walk over all pages of a queue has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageCursor {
    pub(crate) lane: u32,
    /// The first position of the lane's next page is not below.
    pub(crate) from: u64,
}

/// A step has done what it may do at once; it goes on in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

impl Lanes {
    /// The pages of a lane from the cursor on that do not carry this mark, `most` at most, copied;
    /// they carry it now. `None` when there is no such lane.
    pub(super) fn mark_pages(
        &mut self,
        cursor: &mut PageCursor,
        is_odd: bool,
        most: usize,
    ) -> Option<Vec<PageRef>> {
        let it = self.lanes.get_mut(cursor.lane as usize)?;
        let mut marked = Vec::new();
        let Some(behind) = it.behind.as_deref_mut() else {
            return Some(marked);
        };
        let start = behind.pages.partition_point(|it| it.first < cursor.from);
        for page in behind.pages.range_mut(start..) {
            if marked.len() == most {
                break;
            }
            cursor.from = page.first + 1;
            if page.is_odd != is_odd {
                page.is_odd = is_odd;
                marked.push(page.clone());
            }
        }
        Some(marked)
    }

    /// The next page from the cursor on that needs a segment that is asked for, copied. At most
    /// `looks` lanes and pages are looked at; when some are left there is none.
    pub(crate) fn page_with(
        &self,
        cursor: &mut PageCursor,
        looks: &mut u32,
        asked: impl Fn(u64) -> bool,
    ) -> Option<PageRef> {
        while let Some(it) = self.lane(cursor.lane) {
            let pages = it.behind.as_ref().map(|behind| &behind.pages);
            let start = pages.map_or(0, |pages| {
                pages.partition_point(|page| page.first < cursor.from)
            });
            for page in pages.into_iter().flat_map(|pages| pages.range(start..)) {
                if *looks == 0 {
                    return None;
                }
                *looks -= 1;
                cursor.from = page.first + 1;
                if page.segments.iter().any(|(segment, _)| asked(*segment)) {
                    return Some(page.clone());
                }
            }
            if *looks == 0 {
                return None;
            }
            *looks -= 1;
            *cursor = PageCursor {
                lane: cursor.lane + 1,
                from: 0,
            };
        }
        // Nothing is left to look at, whatever the budget was.
        *looks = (*looks).max(1);
        None
    }

    /// The page of this number and first position, if it is still there.
    pub(crate) fn page_of(&self, lane: u32, id: u64, first: u64) -> Option<&PageRef> {
        let pages = &self.lane(lane)?.behind.as_ref()?.pages;
        let index = pages.partition_point(|page| page.first < first);
        pages.get(index).filter(|page| page.id == id)
    }

    /// The last page of a lane.
    pub(crate) fn last_page(&self, lane: u32) -> Option<&PageRef> {
        self.lane(lane)?.behind.as_ref()?.pages.back()
    }

    /// The first page of a lane.
    pub(crate) fn first_page(&self, lane: u32) -> Option<&PageRef> {
        self.lane(lane)?.behind.as_ref()?.pages.front()
    }

    /// Lanes that have pages, with their numbers.
    pub(crate) fn with_pages(&self) -> impl Iterator<Item = (u32, &VecDeque<PageRef>)> {
        (0..).zip(self.lanes.iter()).filter_map(|(lane, it)| {
            let pages = &it.behind.as_ref()?.pages;
            (!pages.is_empty()).then_some((lane, pages))
        })
    }

    /// The page at `cursor` or after it, which is a lane and the index of one of its pages; moves
    /// the cursor to it. At most `budget` lanes are looked at: `Err` when it is used up.
    pub(crate) fn page_at(
        &self,
        cursor: &mut (u32, usize),
        budget: &mut u32,
    ) -> Result<Option<&PageRef>, OutOfBudget> {
        while let Some(it) = self.lane(cursor.0) {
            if *budget == 0 {
                return Err(OutOfBudget);
            }
            *budget -= 1;
            let pages = it.behind.as_ref().map(|behind| &behind.pages);
            if let Some(page) = pages.and_then(|pages| pages.get(cursor.1)) {
                return Ok(Some(page));
            }
            *cursor = (cursor.0 + 1, 0);
        }
        Ok(None)
    }

    /// Ready messages of a lane before the one at `index` of its page `page`.
    pub(crate) fn ahead_of_paged(
        &self,
        entries: &Entries,
        (lane, page): (u32, usize),
        (index, position, most): (u64, u64, u64),
    ) -> u64 {
        let it = self.at(lane);
        let mut ahead = index + it.returned_before(position);
        let pages = it.behind.iter().flat_map(|behind| &behind.pages);
        ahead += pages.take(page).map(|it| u64::from(it.count)).sum::<u64>();
        let mut walk = it.front.head;
        while walk != NIL && ahead < most {
            ahead += 1;
            walk = entries.at(walk).next;
        }
        ahead.min(most)
    }
}
