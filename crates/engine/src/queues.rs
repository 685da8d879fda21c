//! All queues of the shard, by index, id and name.

use core::hash::{Hash, Hasher};
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::{Equivalent, HashMap};

use crate::queue::{Identity, Queue};
use crate::{Lsn, QueueConfig, QueueId, VhostId};

/// Begins the name of a queue whose record was not read yet; no client can use it.
pub(crate) const UNNAMED: char = '\0';

/// A queue's index: valid until the queue is deleted, then used again.
pub(crate) type QueueIndex = u32;

/// The name of a queue or an exchange in its virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) vhost: VhostId,
    pub(crate) name: Arc<str>,
}

/// A name that is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a>(pub(crate) VhostId, pub(crate) &'a str);

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Named(self.vhost, &self.name).hash(state);
    }
}

impl Hash for Named<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        self.1.hash(state);
    }
}

impl Equivalent<Name> for Named<'_> {
    fn equivalent(&self, key: &Name) -> bool {
        self.0 == key.vhost && self.1 == &*key.name
    }
}

/// The queues. Indices are for the hot path, ids are for the log.
#[derive(Debug)]
pub(crate) struct Queues {
    slots: Vec<Option<Box<Queue>>>,
    free: Vec<QueueIndex>,
    by_id: HashMap<QueueId, QueueIndex, RandomState>,
    by_name: HashMap<Name, QueueIndex, RandomState>,
    /// The next queue's id: ids are never used twice.
    pub(crate) next_id: u32,
    /// Position after the newest record that created, changed or deleted a queue.
    pub(crate) last_lsn: Lsn,
    sources: u32,
}

impl Queues {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::with_hasher(hasher.clone()),
            by_name: HashMap::with_hasher(hasher.clone()),
            next_id: 1,
            last_lsn: Lsn::ZERO,
            sources: 0,
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "an index of a deleted queue is our own bug"
    )]
    pub(crate) fn at(&self, index: QueueIndex) -> &Queue {
        self.slots
            .get(index as usize)
            .and_then(Option::as_deref)
            .expect("no queue at this index")
    }

    #[expect(
        clippy::expect_used,
        reason = "an index of a deleted queue is our own bug"
    )]
    pub(crate) fn at_mut(&mut self, index: QueueIndex) -> &mut Queue {
        let slot = self.slots.get_mut(index as usize);
        slot.and_then(Option::as_deref_mut)
            .expect("no queue at this index")
    }

    /// The queue at an index, if it is there.
    pub(crate) fn get(&self, index: QueueIndex) -> Option<&Queue> {
        self.slots.get(index as usize)?.as_deref()
    }

    /// The queue at an index, if it is there.
    pub(crate) fn get_mut(&mut self, index: QueueIndex) -> Option<&mut Queue> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }

    /// All indices are below.
    pub(crate) fn end(&self) -> QueueIndex {
        u32::try_from(self.slots.len()).unwrap_or(QueueIndex::MAX)
    }

    /// The queue of this name in the default virtual host.
    pub(crate) fn find(&self, name: &str) -> Option<QueueIndex> {
        self.find_in(VhostId::DEFAULT, name)
    }

    /// The queue of this name.
    pub(crate) fn find_in(&self, vhost: VhostId, name: &str) -> Option<QueueIndex> {
        self.by_name.get(&Named(vhost, name)).copied()
    }

    pub(crate) fn index_of(&self, id: QueueId) -> Option<QueueIndex> {
        self.by_id.get(&id).copied()
    }

    /// Whether this id or name belongs to a queue that is not this one: ids are never used again,
    /// and what identifies a queue never changes.
    pub(crate) fn is_another(&self, identity: &Identity) -> bool {
        let by_name = self.find_in(identity.vhost, &identity.name);
        let index = self.index_of(identity.id);
        if by_name.is_some() && by_name != index {
            return true;
        }
        index.is_some_and(|index| {
            let known = &self.at(index).identity;
            let is_named = !known.name.starts_with(UNNAMED);
            let same = known.name == identity.name && known.vhost == identity.vhost;
            is_named && (!same || known.role != identity.role)
        })
    }

    /// Queues, dead-letter queues included.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Queues of a virtual host, dead-letter queues included.
    pub(crate) fn count_in(&self, vhost: VhostId) -> usize {
        let names = self.by_name.keys();
        names.filter(|name| name.vhost == vhost).count()
    }

    /// Queues that are not dead-letter queues.
    pub(crate) const fn sources(&self) -> u32 {
        self.sources
    }

    pub(crate) fn insert(&mut self, queue: Queue) -> QueueIndex {
        let id = queue.identity.id;
        self.next_id = self.next_id.max(id.0.saturating_add(1));
        let name = queue.identity.key();
        self.sources += u32::from(!queue.is_dead_letter());
        let index = if let Some(index) = self.free.pop() {
            if let Some(slot) = self.slots.get_mut(index as usize) {
                *slot = Some(Box::new(queue));
            }
            index
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "ids are u32 and never reused"
            )]
            let index = self.slots.len() as u32;
            self.slots.push(Some(Box::new(queue)));
            index
        };
        self.by_id.insert(id, index);
        self.by_name.insert(name, index);
        index
    }

    /// In replay: gives a queue that was known by its id only its name and role.
    pub(crate) fn rename(
        &mut self,
        index: QueueIndex,
        identity: Identity,
        config: QueueConfig,
        next: u64,
    ) {
        let was_source = !self.at(index).is_dead_letter();
        let old = self.at(index).identity.key();
        if self.by_name.get(&old) == Some(&index) {
            self.by_name.remove(&old);
        }
        self.by_name.insert(identity.key(), index);
        self.at_mut(index).describe(identity, config, next);
        let is_source = !self.at(index).is_dead_letter();
        self.sources = self.sources + u32::from(is_source) - u32::from(was_source);
    }

    pub(crate) fn remove(&mut self, index: QueueIndex) -> Option<Box<Queue>> {
        let queue = self.take(index)?;
        self.free_index(index);
        Some(queue)
    }

    /// Another queue may have the index of one that was taken out.
    pub(crate) fn free_index(&mut self, index: QueueIndex) {
        self.free.push(index);
    }

    /// Takes a queue out; its index stays its own until [`Self::free_index`].
    pub(crate) fn take(&mut self, index: QueueIndex) -> Option<Box<Queue>> {
        let queue = self.slots.get_mut(index as usize)?.take()?;
        self.by_id.remove(&queue.identity.id);
        let name = queue.identity.key();
        if self.by_name.get(&name) == Some(&index) {
            self.by_name.remove(&name);
        }
        self.sources -= u32::from(!queue.is_dead_letter());
        Some(queue)
    }

    /// Live queues in index order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (QueueIndex, &Queue)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(i, queue)| Some((i, queue.as_deref()?)))
    }
}

impl Identity {
    fn key(&self) -> Name {
        Name {
            vhost: self.vhost,
            name: Arc::clone(&self.name),
        }
    }
}
