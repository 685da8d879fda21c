//! What would come next, without taking it.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::iter::Peekable;

use super::entries::{Entries, NIL, Slot};
use super::lanes::Lanes;

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The messages found are the first ones.
    Done,
    /// The first messages of this lane are in its first page, which is to be read before.
    InPage(u32),
}

/// How far a look has come in one lane.
struct Reader<'a> {
    /// The next message of the lane's chain in memory.
    chain: Slot,
    /// The chain of its back, when nothing lies between.
    back: Slot,
    returned: Option<Peekable<btree_map::Iter<'a, u64, Slot>>>,
    /// What is left of its turn.
    deficit: i64,
    /// Its next lane on the ring.
    next: u32,
    /// Messages in memory have all been seen.
    is_over: bool,
}

impl Lanes {
    /// Finds the ready messages that would be picked next, by priority, turn and position, `most`
    /// at most. A lane whose messages in memory have all been seen is passed over from then on,
    /// whatever pages it has.
    pub(crate) fn look(&self, entries: &Entries, most: u32, found: &mut Vec<Slot>) -> Look {
        for ring in &self.rings {
            if ring.lanes == 0 {
                continue;
            }
            let mut readers = BTreeMap::new();
            let (mut lane, mut over) = (ring.current, 0);
            while over < ring.lanes {
                if found.len() >= most as usize {
                    return Look::Done;
                }
                let reader = readers.entry(lane).or_insert_with(|| self.reader(lane));
                if reader.chain == NIL && self.first(entries, lane).is_some_and(|it| it.1.is_none())
                {
                    return Look::InPage(lane);
                }
                if reader.is_over {
                    lane = reader.next;
                    continue;
                }
                if reader.deficit <= 0 {
                    let weight = self.at(lane).weight.min(self.weight_max).max(1);
                    reader.deficit += i64::from(weight).saturating_mul(self.quantum);
                }
                let Some(slot) = reader.next(entries) else {
                    (reader.is_over, over) = (true, over + 1);
                    lane = reader.next;
                    continue;
                };
                found.push(slot);
                reader.deficit -= 1;
                if reader.deficit <= 0 {
                    lane = reader.next;
                }
            }
        }
        Look::Done
    }

    fn reader(&self, lane: u32) -> Reader<'_> {
        let it = self.at(lane);
        let behind = it.behind.as_ref().filter(|it| it.pages.is_empty());
        Reader {
            chain: it.front.head,
            back: behind.map_or(NIL, |it| it.back.head),
            returned: it.returned.as_ref().map(|set| set.iter().peekable()),
            deficit: it.deficit,
            next: it.next,
            is_over: false,
        }
    }
}

impl Reader<'_> {
    /// The next message of the lane, by position.
    fn next(&mut self, entries: &Entries) -> Option<Slot> {
        if self.chain == NIL {
            self.chain = core::mem::replace(&mut self.back, NIL);
        }
        let returned = self.returned.as_mut();
        let returned = returned.and_then(|set| set.peek().map(|(at, slot)| (**at, **slot)));
        let chain = (self.chain != NIL).then(|| (entries.at(self.chain).position, self.chain));
        match (chain, returned) {
            (Some(chain), Some(returned)) if returned.0 < chain.0 => self.take_returned(),
            (Some((_, slot)), _) => {
                self.chain = entries.at(slot).next;
                Some(slot)
            }
            (None, Some(_)) => self.take_returned(),
            (None, None) => None,
        }
    }

    fn take_returned(&mut self) -> Option<Slot> {
        let (_, slot) = self.returned.as_mut()?.next()?;
        Some(*slot)
    }
}
