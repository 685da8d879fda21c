//! Who waits for a key: in the order of arrival, each with an end.

use std::collections::{BTreeMap, BTreeSet};

use super::op::ListSide;
use crate::{ConnId, Millis, ReplyTo};

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An item of a list.
    Item { side: ListSide },
    /// A lock, for so long.
    Lock { ttl_ms: u64 },
}

/// Of what kind a line is: one key may have one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Line {
    Items,
    Locks,
}

/// Somebody who waits.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub(super) reply: ReplyTo,
    pub(super) key: Box<str>,
    pub(super) wanted: Wanted,
    ends_at: Millis,
}

impl Wanted {
    const fn line(self) -> Line {
        match self {
            Self::Item { .. } => Line::Items,
            Self::Lock { .. } => Line::Locks,
        }
    }
}

/// All who wait.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By the numbers of their arrival.
    all: BTreeMap<u64, Wait>,
    lines: BTreeMap<(Line, Box<str>), BTreeSet<u64>>,
    by_reply: BTreeMap<ReplyTo, u64>,
    ends: BTreeSet<(Millis, u64)>,
    arrived: u64,
}

impl Waits {
    /// Somebody waits from now on, behind all others.
    pub(super) fn add(&mut self, reply: ReplyTo, key: Box<str>, wanted: Wanted, ends_at: Millis) {
        self.arrived += 1;
        let number = self.arrived;
        let line = (wanted.line(), key.clone());
        self.lines.entry(line).or_default().insert(number);
        self.by_reply.insert(reply, number);
        self.ends.insert((ends_at, number));
        let wait = Wait {
            reply,
            key,
            wanted,
            ends_at,
        };
        self.all.insert(number, wait);
    }

    /// Whether anybody waits in such a line.
    pub(super) fn has(&self, line: Line, key: &str) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(&(line, key.into()))
    }

    /// Takes the first one out of a line.
    pub(super) fn take_first(&mut self, line: Line, key: &str) -> Option<Wait> {
        if self.lines.is_empty() {
            return None;
        }
        let line = self.lines.get(&(line, key.into()))?;
        let number = line.first().copied()?;
        self.remove(number)
    }

    /// Takes out who waits for this answer.
    pub(super) fn take(&mut self, reply: ReplyTo) -> Option<Wait> {
        let number = self.by_reply.get(&reply).copied()?;
        self.remove(number)
    }

    /// Takes out somebody whose time is over.
    pub(super) fn take_over(&mut self, now: Millis) -> Option<Wait> {
        let (ends_at, number) = self.ends.first().copied()?;
        if ends_at > now {
            return None;
        }
        self.remove(number)
    }

    /// A connection is gone, and with it all who waited on it.
    pub(super) fn forget(&mut self, conn: ConnId) {
        let reply = |token| ReplyTo { conn, token };
        let gone = self.by_reply.range(reply(0)..=reply(u32::MAX));
        let gone: Vec<u64> = gone.map(|(_, number)| *number).collect();
        for number in gone {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Wait> {
        let wait = self.all.remove(&number)?;
        self.by_reply.remove(&wait.reply);
        self.ends.remove(&(wait.ends_at, number));
        let line = (wait.wanted.line(), wait.key.clone());
        if let Some(numbers) = self.lines.get_mut(&line) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.lines.remove(&line);
            }
        }
        Some(wait)
    }

    pub(super) fn first_end(&self) -> Option<Millis> {
        self.ends.first().map(|(at, _)| *at)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        const WAIT: usize = 512;
        self.all.len() * WAIT
    }

    pub(super) fn assert_invariants(&self) {
        assert_eq!(self.all.len(), self.by_reply.len());
        assert_eq!(self.all.len(), self.ends.len());
        let in_lines = self.lines.values().map(BTreeSet::len);
        assert_eq!(self.all.len(), in_lines.sum::<usize>());
        assert!(self.lines.values().all(|line| !line.is_empty()));
    }
}
