//! Publishes that the server has not confirmed (`confirm`).
//!
//! Owns: sequence numbers, and what each of them waits with. Refuses to know: frames.

use std::collections::VecDeque;

use super::received::Returned;

/// A publish under way.
#[derive(Debug)]
struct Entry<C> {
    /// `None`: rejected already, which a later `upto` covers once more.
    context: Option<C>,
    returned: Option<Box<Returned>>,
}

/// All publishes of a connection from the oldest that is not confirmed on.
#[derive(Debug)]
pub(super) struct Outstanding<C> {
    /// In the order of their numbers, without a gap.
    entries: VecDeque<Entry<C>>,
    /// The number of the first entry; the next number to give when there is none.
    first_seq: u64,
}

impl<C> Outstanding<C> {
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            first_seq: 1,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of the next publish.
    pub(super) fn next_seq(&self) -> u64 {
        self.first_seq + self.entries.len() as u64
    }

    /// Records the publish with [`next_seq`](Self::next_seq).
    pub(super) fn push(&mut self, context: C) {
        self.entries.push_back(Entry {
            context: Some(context),
            returned: None,
        });
    }

    /// Keeps what came back until its confirm. `false`: no such publish is under way.
    pub(super) fn on_returned(&mut self, seq: u64, returned: Box<Returned>) -> bool {
        let Some(entry) = self.entry(seq) else {
            return false;
        };
        entry.returned = Some(returned);
        true
    }

    /// Takes a rejected publish.
    pub(super) fn reject(&mut self, seq: u64) -> Option<C> {
        let context = self.entry(seq)?.context.take();
        self.drop_settled();
        context
    }

    /// Whether a number was given.
    pub(super) fn was_given(&self, seq: u64) -> bool {
        seq < self.next_seq()
    }

    /// Takes the oldest publish if its number is at most `seq`; one that was rejected is passed.
    pub(super) fn confirm_next(&mut self, seq: u64) -> Option<(C, Option<Box<Returned>>)> {
        while self.first_seq <= seq {
            let entry = self.entries.pop_front()?;
            self.first_seq += 1;
            if let Some(context) = entry.context {
                return Some((context, entry.returned));
            }
        }
        None
    }

    /// All that have no outcome, oldest first.
    pub(super) fn into_contexts(self) -> impl Iterator<Item = C> {
        self.entries.into_iter().filter_map(|entry| entry.context)
    }

    fn entry(&mut self, seq: u64) -> Option<&mut Entry<C>> {
        let at = seq.checked_sub(self.first_seq)?;
        self.entries.get_mut(usize::try_from(at).ok()?)
    }

    /// Forgets rejected publishes at the front, for which no `upto` need come.
    fn drop_settled(&mut self) {
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.context.is_none())
        {
            self.entries.pop_front();
            self.first_seq += 1;
        }
    }
}
