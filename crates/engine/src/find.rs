//! Looking for one message of a queue by its id, in slices.

use crate::engine::{Cx, Engine};
use crate::explain::AHEAD_MAX;
use crate::jobs::SLICE_SLOTS;
use crate::page::PagedMessage;
use crate::paging::READS_MAX;
use crate::queue::Queue;
use crate::queue::entries::Slot;
use crate::queues::QueueIndex;
use crate::{AdminReply, MessageId, MessagePlace};

/// How far a search has come.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) id: MessageId,
    among: Among,
    stage: Stage,
}

/// Where a message is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// In the queue that was asked about.
    Messages,
    /// In its dead-letter queue.
    DeadLetters,
}

/// Pages come before memory, as messages come back from pages into memory; pages made meanwhile
/// come last.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A lane and the index of one of its pages.
    Pages {
        next: (u32, usize),
        made_after: u64,
    },
    Memory {
        next: Slot,
        pages_before: u64,
    },
}

/// What one slice of a search found.
enum Found {
    Place(MessagePlace),
    /// It is not where the search has been.
    Not,
    /// The search goes on.
    More,
}

impl Search {
    pub(crate) const fn new(id: MessageId) -> Self {
        Self {
            id,
            among: Among::Messages,
            stage: Stage::START,
        }
    }
}

impl Stage {
    const START: Self = Self::Pages {
        next: (0, 0),
        made_after: 0,
    };
}

impl Engine {
    pub(crate) fn find_slice(
        &mut self,
        cx: &mut Cx<'_>,
        index: QueueIndex,
        search: &mut Search,
    ) -> Option<AdminReply> {
        let dead_letters = self.dead_letters_of(index);
        let searched = match (search.among, dead_letters) {
            (Among::DeadLetters, Some(dead_letters)) => dead_letters,
            (Among::Messages | Among::DeadLetters, _) => index,
        };
        if self.queues.at(searched).lanes.paged() == 0
            && matches!(search.stage, Stage::Pages { made_after: 0, .. })
        {
            search.stage = self.in_memory();
        }
        let found = match search.stage {
            Stage::Pages { .. } => self.find_in_pages(cx, searched, search),
            Stage::Memory { .. } => self.find_in_memory(cx, searched, search),
        };
        let place = match (found, search.among) {
            (Found::More, _) => return None,
            (Found::Place(place), Among::Messages) => place,
            (Found::Place(_), Among::DeadLetters) => MessagePlace::DeadLettered {
                queue: self.queues.at(searched).identity.name.to_string(),
            },
            (Found::Not, Among::Messages) if dead_letters.is_some() => {
                (search.among, search.stage) = (Among::DeadLetters, Stage::START);
                return None;
            }
            (Found::Not, Among::Messages | Among::DeadLetters) => MessagePlace::Unknown,
        };
        let explanation = self.explanation(index, Some(place));
        Some(AdminReply::Explained(Ok(explanation)))
    }

    /// The stage after the first pages.
    const fn in_memory(&self) -> Stage {
        Stage::Memory {
            next: 0,
            pages_before: self.paging.last_id,
        }
    }

    fn find_in_memory(&self, cx: &mut Cx<'_>, index: QueueIndex, search: &mut Search) -> Found {
        let Stage::Memory { next, pages_before } = &mut search.stage else {
            return Found::Not;
        };
        let queue = self.queues.at(index);
        let mut slots = queue.entries.live_slots(*next, SLICE_SLOTS);
        if let Some(slot) = slots.find(|slot| queue.entries.at(*slot).id == search.id) {
            return Found::Place(self.place_of(cx, index, slot));
        }
        *next = next.saturating_add(SLICE_SLOTS);
        if *next >= queue.entries.slots() {
            if *pages_before == self.paging.last_id {
                return Found::Not;
            }
            search.stage = Stage::Pages {
                next: (0, 0),
                made_after: *pages_before,
            };
        }
        Found::More
    }

    fn find_in_pages(&mut self, cx: &mut Cx<'_>, index: QueueIndex, search: &mut Search) -> Found {
        let Stage::Pages {
            mut next,
            made_after,
        } = search.stage
        else {
            return Found::Not;
        };
        let queue = self.queues.at(index).identity.id;
        let (mut looks, mut reads) = (SLICE_SLOTS, READS_MAX);
        let mut messages: Vec<PagedMessage> = Vec::new();
        while reads > 0 {
            let page = match self.queues.at(index).lanes.page_at(&mut next, &mut looks) {
                Ok(Some(page)) => page,
                Ok(None) if made_after > 0 => return Found::Not,
                Ok(None) => {
                    search.stage = self.in_memory();
                    return Found::More;
                }
                Err(_) => break,
            };
            if page.id > made_after {
                let page = page.clone();
                reads -= 1;
                let good = self.read_messages(cx, queue, &page, &mut messages);
                let at = messages.iter().position(|it| it.id == search.id);
                if let Some(at) = at.filter(|_| good) {
                    let it = messages.get(at).copied().unwrap_or_default();
                    let queue = self.queues.at(index);
                    let of = (index, next.0, None);
                    let throttled = self.throttled_place(cx, of, it.failures);
                    let ready = || place_in_page(queue, next, at as u64, &it);
                    return Found::Place(throttled.unwrap_or_else(ready));
                }
            }
            next.1 += 1;
        }
        search.stage = Stage::Pages { next, made_after };
        Found::More
    }
}

/// Where a message is that is in a page: `at` is its place there.
fn place_in_page(
    queue: &Queue,
    (lane, page): (u32, usize),
    at: u64,
    message: &PagedMessage,
) -> MessagePlace {
    let before = (at, message.position, AHEAD_MAX);
    let ahead = queue
        .lanes
        .ahead_of_paged(&queue.entries, (lane, page), before);
    MessagePlace::Ready {
        fairness_key: queue.lanes.at(lane).key.to_string(),
        ahead_in_key: ahead,
        keys_in_ring: u64::from(queue.lanes.ring_lanes(lane)),
        // Those are never in pages.
        is_unfit: false,
        attempts: message.failures,
    }
}
