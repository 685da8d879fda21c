//! The watches of a topic exchange, as routing looks for them.

use std::collections::{BTreeMap, BTreeSet};

use ahash::RandomState;

use super::Topology;
use super::exchange::ExchangeId;
use super::topic::{TopicScratch, TopicTree};
use crate::engine::{Cx, Engine};
use crate::watch::{Seen, WatchId};
use crate::{ExchangeKind, ExchangeSpec, PublishError, TopologyCode, TopologyError, VhostId};

/// They have a tree of their own: bindings are found as if nobody watched.
#[derive(Debug)]
pub(crate) struct Watched {
    tree: TopicTree<WatchId>,
    /// With how many watches each has.
    patterns: BTreeMap<Box<str>, u32>,
    ids: BTreeSet<WatchId>,
}

impl Watched {
    fn new(hasher: &RandomState) -> Self {
        Self {
            tree: TopicTree::new(hasher),
            patterns: BTreeMap::new(),
            ids: BTreeSet::new(),
        }
    }

    fn add(&mut self, pattern: &str, id: WatchId) {
        if self.ids.insert(id) {
            self.tree.insert(pattern.as_bytes(), id);
            *self.patterns.entry(pattern.into()).or_default() += 1;
        }
    }

    fn remove(&mut self, pattern: &str, id: WatchId) {
        if !self.ids.remove(&id) {
            return;
        }
        self.tree.remove(pattern.as_bytes(), id);
        if let Some(count) = self.patterns.get_mut(pattern) {
            *count -= 1;
            if *count == 0 {
                self.patterns.remove(pattern);
            }
        }
    }

    /// Appends the watches that a message with these keys comes to, each once, with the first key
    /// that matches. True when there is any.
    pub(super) fn find(
        &self,
        keys: &[&str],
        (topic, found): (&mut TopicScratch, &mut Vec<WatchId>),
        out: &mut Vec<Seen>,
    ) -> bool {
        let start = out.len();
        for (key, text) in (0..).zip(keys) {
            found.clear();
            self.tree.matches(text.as_bytes(), topic, found);
            out.extend(found.iter().map(|watch| Seen { watch: *watch, key }));
        }
        if keys.len() > 1
            && let Some(mine) = out.get_mut(start..)
        {
            mine.sort_unstable();
            let mut mine = out.split_off(start);
            mine.dedup_by_key(|seen| seen.watch);
            out.append(&mut mine);
        }
        out.len() > start
    }

    /// What is watched, in order.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.patterns.keys().map(|pattern| &**pattern)
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    fn knows(&self, pattern: &str, id: WatchId) -> bool {
        self.ids.contains(&id) && self.patterns.contains_key(pattern)
    }

    /// Panics when its views of its watches differ.
    pub(super) fn assert_invariants(&self) {
        let counted = self.patterns.values().map(|count| *count as usize);
        assert_eq!(counted.sum::<usize>(), self.ids.len(), "watched patterns");
        assert_eq!(self.tree.len(), self.ids.len(), "tree of watches");
        assert!(!self.ids.is_empty(), "nobody watches");
    }
}

impl Topology {
    pub(crate) fn add_watch(&mut self, exchange: ExchangeId, pattern: &str, id: WatchId) {
        let hasher = &self.hasher;
        if let Some(exchange) = self.exchanges.get_mut(&exchange) {
            let watched = &mut exchange.watched;
            let watched = watched.get_or_insert_with(|| Box::new(Watched::new(hasher)));
            watched.add(pattern, id);
        }
    }

    pub(crate) fn remove_watch(&mut self, exchange: ExchangeId, pattern: &str, id: WatchId) {
        let Some(exchange) = self.exchanges.get_mut(&exchange) else {
            return;
        };
        if let Some(watched) = &mut exchange.watched {
            watched.remove(pattern, id);
            if watched.ids.is_empty() {
                exchange.watched = None;
            }
        }
    }

    /// An exchange is gone: its watches are to be told.
    pub(super) fn note_unwatched(&mut self, gone: Option<Box<Watched>>) {
        self.unwatched
            .extend(gone.into_iter().flat_map(|it| it.ids));
    }

    pub(crate) const fn bindings_len(&self) -> usize {
        self.bindings
    }

    /// All watches of all exchanges.
    pub(crate) fn watches_len(&self) -> usize {
        let all = self.ids.iter().filter_map(|id| self.at(*id));
        all.map(|it| it.watched.as_ref().map_or(0, |it| it.len()))
            .sum()
    }

    pub(crate) fn knows_watch(&self, exchange: ExchangeId, pattern: &str, id: WatchId) -> bool {
        let watched = self.at(exchange).and_then(|it| it.watched.as_ref());
        watched.is_some_and(|it| it.knows(pattern, id))
    }
}

impl Engine {
    /// A topic exchange; a durable one is made when there is none.
    pub(crate) fn open_topic(
        &mut self,
        cx: &mut Cx<'_>,
        (vhost, name): (VhostId, &str),
    ) -> Result<ExchangeId, TopologyError> {
        match self.topology.find(vhost, name) {
            Some(found) if found.it.kind == ExchangeKind::Topic => return Ok(found.it.id),
            Some(_) => return Err(self.not_topic(vhost, name)),
            None if name.is_empty() => return Err(self.not_topic(vhost, name)),
            None => {}
        }
        let spec = ExchangeSpec {
            vhost,
            name: name.to_owned(),
            kind: ExchangeKind::Topic.name().to_owned(),
            durable: true,
            ..ExchangeSpec::default()
        };
        self.declare_exchange(cx, &spec)?;
        let made = self.topology.find(vhost, name);
        made.map(|it| it.it.id)
            .ok_or_else(|| self.no_exchange(vhost, name))
    }

    pub(crate) fn not_topic(&self, vhost: VhostId, name: &str) -> TopologyError {
        let text = format!("{} is no topic exchange", self.exchange_text(vhost, name));
        TopologyError::new(TopologyCode::WrongType, text)
    }

    /// The exchange of a message to a topic is there.
    ///
    /// # Errors
    /// When it is of another kind, or cannot be made.
    pub(crate) fn open_published_topic(
        &mut self,
        cx: &mut Cx<'_>,
        (vhost, name): (VhostId, &str),
    ) -> Result<(), PublishError> {
        let opened = self.open_topic(cx, (vhost, name));
        opened.map(|_| ()).map_err(|error| match error.code {
            TopologyCode::WrongType => PublishError::ExchangeNotTopic,
            TopologyCode::AccessRefused => PublishError::Forbidden,
            TopologyCode::Storage => PublishError::Storage,
            TopologyCode::NotFound => PublishError::ExchangeNotFound,
            TopologyCode::ResourceLocked
            | TopologyCode::PreconditionFailed
            | TopologyCode::NotAllowed
            | TopologyCode::NotImplemented
            | TopologyCode::ResourceError
            | TopologyCode::Internal
            | TopologyCode::CommandInvalid => PublishError::TooManyExchanges,
        })
    }
}
