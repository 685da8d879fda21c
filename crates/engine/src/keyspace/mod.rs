//! Keys: values, counters, maps, lists, sets, rankings and locks, by names of a virtual host.
//!
//! Owns what keys hold, when they end, who waits for an item or a lock, and the records of all
//! that. It refuses to know permissions (but for what a scan shows), protocols and the clock.
//!
//! ```text
//!  KeyRequest ──► serve ──► on_* decide ──► Change ──► record ──► Journal
//!                                             └──► Store::apply ◄── replay
//! ```
//!
//! - A decision is a list of changes, written as one record and applied one by one; replay applies
//!   the same changes. They name a key by an id that no other key ever has, and say what is so
//!   from then on, so that they may meet a state that is newer ([`capture`]).
//! - A key that is over is there for nobody; a write that meets it removes it first, a timer later.
//! - Who waits is served in the order of arrival by the step that brings an item or frees a lock,
//!   in the same record.

mod body;
mod capture;
mod change;
mod datum;
mod ids;
mod list;
mod on_collections;
mod on_keys;
mod on_lists;
mod on_request;
mod on_values;
mod op;
mod ranking;
mod serve;
mod space;
mod store;
mod waits;

use std::collections::BTreeMap;

use ahash::RandomState;

pub(crate) use capture::Cursor;
pub use datum::{Datum, DatumForm, KeyType};
pub use op::{
    AddedPart, Condition, KeyAnswer, KeyError, KeyOp, KeyRead, KeyRequest, KeyScan, KeyWrite,
    ListSide, Places, RankingPart, RankingSpan, RemovedPart, TakenFrom, VersionedDatum,
};

use change::Change;
use space::Keyspace;

use crate::record::Reader;
use crate::{ConnId, Lsn, Millis, ReplayError, VhostId};

/// The keys of all virtual hosts.
#[derive(Debug)]
pub(crate) struct Keyspaces {
    spaces: BTreeMap<VhostId, Keyspace>,
    hasher: RandomState,
    is_live: bool,
    /// Where the log ended when the engine started.
    start: Lsn,
}

impl Keyspaces {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            spaces: BTreeMap::new(),
            hasher: hasher.clone(),
            is_live: false,
            start: Lsn::ZERO,
        }
    }

    /// The keys of a virtual host.
    fn open(&mut self, vhost: VhostId) -> &mut Keyspace {
        let (hasher, is_live, start) = (&self.hasher, self.is_live, self.start);
        self.spaces.entry(vhost).or_insert_with(|| {
            let mut space = Keyspace::new(hasher);
            (space.gone_at, space.newest) = (start, start);
            if is_live {
                // It has no keys: none of them has the name of another.
                drop(space.store.start());
            }
            space
        })
    }

    /// Applies a record.
    pub(crate) fn apply(&mut self, reader: &mut Reader<'_>) -> Result<(), ReplayError> {
        let space = self.open(VhostId(reader.u32()?));
        while reader.has_more() {
            let (id, change) = Change::decode(reader)?;
            space.store.apply(id, change);
        }
        Ok(())
    }

    /// Replicated: a virtual host is gone, with all its keys.
    fn forget_vhost(&mut self, vhost: VhostId) -> Option<Keyspace> {
        self.spaces.remove(&vhost)
    }

    /// A record says that a virtual host is gone.
    pub(crate) fn apply_vhost_gone(&mut self, vhost: VhostId) {
        drop(self.forget_vhost(vhost));
    }

    /// Virtual hosts with keys.
    pub(crate) fn vhosts(&self) -> impl Iterator<Item = VhostId> + '_ {
        self.spaces.keys().copied()
    }

    /// Of a log with holes: what makes no sense is removed.
    pub(crate) fn mend(&mut self) {
        for space in self.spaces.values_mut() {
            space.store.mend();
        }
    }

    /// Ends recovery: from now on keys have names and timers.
    pub(crate) fn start(&mut self, end: Lsn) -> Result<(), ReplayError> {
        (self.is_live, self.start) = (true, end);
        for (vhost, space) in &mut self.spaces {
            let started = space.store.start();
            started.map_err(|problem| ReplayError {
                problem: format!("virtual host {}: {problem}", vhost.0),
            })?;
            (space.gone_at, space.newest) = (end, end);
            for key in space.store.keys.values_mut() {
                key.written = end;
            }
        }
        Ok(())
    }

    /// When something happens by itself.
    pub(crate) fn next_time(&self) -> Option<Millis> {
        let times = self.spaces.values().filter_map(Keyspace::next_time);
        times.min()
    }

    /// There is something to do at once.
    pub(crate) fn has_work(&self, now: Millis) -> bool {
        let is_due = |space: &Keyspace| space.next_time().is_some_and(|at| at <= now);
        let mut spaces = self.spaces.values();
        spaces.any(|space| space.store.has_buried() || is_due(space))
    }

    /// A connection is gone: nobody waits on it any more.
    pub(crate) fn forget_conn(&mut self, conn: ConnId) {
        for space in self.spaces.values_mut() {
            space.waits.forget(conn);
        }
    }

    /// Rough bytes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.spaces.values().map(Keyspace::memory_bytes).sum()
    }

    /// Keys of a virtual host.
    pub(crate) fn count(&self, vhost: VhostId) -> usize {
        let space = self.spaces.get(&vhost);
        space.map_or(0, |space| space.store.keys.len())
    }

    /// Panics when the state contradicts itself.
    pub(crate) fn assert_invariants(&self) {
        for space in self.spaces.values() {
            space.assert_invariants();
        }
    }
}
