//! Virtual hosts, exchanges and bindings: which queues a message goes to.
//!
//! Owns the catalog of them, its records and limits, and routing. It refuses to know queues but by
//! id and name, and who may do what: sessions ask that before.
//!
//! ```text
//!  AdminRequest ──► on_vhost, on_exchange, on_bind ──► records 22 to 24 ──► Journal
//!                                │
//!  PublishTarget::Route ──► router ──► queues
//! ```
//!
//! Routing happens where messages are stored, in the engine, not on copies in sessions
//! ([ADR 7](../../../../docs/adr/0007-routing-in-the-engine.md)).

mod args;
mod exchange;
mod headers;
mod list;
mod on_bind;
mod on_exchange;
mod on_vhost;
mod record;
mod request;
mod router;
mod topic;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::HashMap;

use crate::queues::{Name, Named};
use crate::watch::WatchId;
use crate::{QueueId, VhostId};
use exchange::{Binding, Declaration, Exchange};

pub(crate) use exchange::{ExchangeId, Target};
pub(crate) use record::{Cursor, put_exchanges, read_exchanges, vhost_gone};
pub use request::{
    BindingInfo, BindingSpec, DeclareQueue, DeclaredQueue, Destination, ExchangeInfo, ExchangeKind,
    ExchangeSpec, TopologyCode, TopologyError, VhostInfo,
};
pub(crate) use router::{LastRoute, RouteScratch};

/// The argument that names the exchange that takes what goes nowhere.
const ALTERNATE: &str = "alternate-exchange";

/// The name of the virtual host that always exists.
pub(crate) const DEFAULT_VHOST: &str = "/";

/// Exchanges that every virtual host has, in the order of their ids.
const PREDECLARED: [(&str, ExchangeKind); 6] = [
    ("", ExchangeKind::Direct),
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
];

/// The catalog.
#[derive(Debug)]
pub(crate) struct Topology {
    hasher: RandomState,
    vhosts: BTreeMap<VhostId, Arc<str>>,
    /// The next virtual host's id: ids are never used twice.
    next_vhost: u32,
    exchanges: HashMap<ExchangeId, Exchange, RandomState>,
    /// Their ids, in order.
    ids: BTreeSet<ExchangeId>,
    /// All but default exchanges.
    by_name: HashMap<Name, ExchangeId, RandomState>,
    /// The next exchange's id: ids are never used twice.
    next_exchange: u64,
    /// How many bindings each exchange has to a target; targets without any are not here.
    sources: HashMap<Target, BTreeMap<ExchangeId, usize>, RandomState>,
    /// All bindings.
    bindings: usize,
    /// Rough bytes of memory.
    bytes: usize,
    /// Watches of exchanges that are gone in this step.
    pub(crate) unwatched: Vec<WatchId>,
}

impl Topology {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        let mut topology = Self {
            hasher: hasher.clone(),
            vhosts: BTreeMap::new(),
            next_vhost: 1,
            exchanges: HashMap::with_hasher(hasher.clone()),
            ids: BTreeSet::new(),
            by_name: HashMap::with_hasher(hasher.clone()),
            next_exchange: 1,
            sources: HashMap::with_hasher(hasher.clone()),
            bindings: 0,
            bytes: 0,
            unwatched: Vec::new(),
        };
        topology.add_vhost(VhostId::DEFAULT, DEFAULT_VHOST.into());
        topology
    }

    pub(crate) fn vhost_name(&self, vhost: VhostId) -> Option<&Arc<str>> {
        self.vhosts.get(&vhost)
    }

    pub(crate) fn find_vhost(&self, name: &str) -> Option<VhostId> {
        // There are few, and a connection asks once.
        let mut all = self.vhosts.iter();
        all.find(|(_, known)| &***known == name).map(|(id, _)| *id)
    }

    /// Replicated: a virtual host exists, with the exchanges that all have. Of two of one name the
    /// older was deleted before the newer was made; its name is returned.
    fn add_vhost(&mut self, id: VhostId, name: Arc<str>) -> Option<Arc<str>> {
        self.next_vhost = self.next_vhost.max(id.0.saturating_add(1));
        if self.vhosts.contains_key(&id) {
            return None;
        }
        let older = match self.find_vhost(&name) {
            Some(other) if other > id => return None,
            Some(other) => self.remove_vhost(other),
            None => None,
        };
        self.bytes += 256 + name.len();
        self.vhosts.insert(id, name);
        for (n, (name, kind)) in (0..).zip(PREDECLARED) {
            if name.is_empty() {
                continue;
            }
            self.add_exchange(Declaration {
                id: ExchangeId::predeclared(id, n),
                vhost: id,
                name: name.into(),
                kind,
                durable: true,
                auto_delete: false,
                internal: false,
                args: bytes::Bytes::new(),
            });
        }
        older
    }

    /// At the end of recovery, when a part of the log was lost: a virtual host that has queues gets
    /// a name.
    pub(crate) fn name_lost_vhost(&mut self, id: VhostId) {
        if self.vhosts.contains_key(&id) {
            return;
        }
        let mut name = format!("lost-{}", id.0);
        while self.find_vhost(&name).is_some() {
            name.push('x');
        }
        self.add_vhost(id, name.into());
    }

    /// Replicated: a virtual host is gone with its exchanges and bindings. Returns its name.
    fn remove_vhost(&mut self, vhost: VhostId) -> Option<Arc<str>> {
        self.next_vhost = self.next_vhost.max(vhost.0.saturating_add(1));
        let name = self.vhosts.remove(&vhost)?;
        self.bytes = self.bytes.saturating_sub(256 + name.len());
        for id in self.exchanges_of(vhost) {
            self.remove_exchange(id);
        }
        Some(name)
    }

    fn exchanges_of(&self, vhost: VhostId) -> Vec<ExchangeId> {
        let all = self.ids.iter().copied();
        all.filter(|id| self.at(*id).is_some_and(|it| it.it.vhost == vhost))
            .collect()
    }

    fn at(&self, id: ExchangeId) -> Option<&Exchange> {
        self.exchanges.get(&id)
    }

    /// An exchange by name; the default exchange is none of these.
    pub(crate) fn find(&self, vhost: VhostId, name: &str) -> Option<&Exchange> {
        let id = self.by_name.get(&Named(vhost, name))?;
        self.at(*id)
    }

    /// Replicated: an exchange exists. Of two of one name the older was deleted before the newer
    /// was made.
    fn add_exchange(&mut self, it: Declaration) {
        let id = it.id;
        if !id.is_predeclared() {
            self.next_exchange = self.next_exchange.max(id.0.saturating_add(1));
        }
        if self.exchanges.contains_key(&id) || !self.vhosts.contains_key(&it.vhost) {
            return;
        }
        match self.find(it.vhost, &it.name).map(|other| other.it.id) {
            Some(other) if other > id => return,
            Some(other) => self.remove_exchange(other),
            None => {}
        }
        self.bytes += memory_of(&it);
        self.by_name.insert(name_of(&it), id);
        self.ids.insert(id);
        let exchange = Exchange::new(it, &self.hasher);
        self.exchanges.insert(id, exchange);
    }

    /// Replicated: an exchange is gone with all bindings from and to it.
    fn remove_exchange(&mut self, id: ExchangeId) {
        if !id.is_predeclared() {
            self.next_exchange = self.next_exchange.max(id.0.saturating_add(1));
        }
        self.remove_bindings_to(Target::Exchange(id));
        let Some(mut gone) = self.exchanges.remove(&id) else {
            return;
        };
        self.note_unwatched(gone.watched.take());
        self.ids.remove(&id);
        self.bytes = self.bytes.saturating_sub(memory_of(&gone.it));
        let name = name_of(&gone.it);
        if self.by_name.get(&name) == Some(&id) {
            self.by_name.remove(&name);
        }
        for (binding, _) in gone.bindings() {
            self.uncount(id, binding);
        }
    }

    /// Replicated: all bindings to a target are gone.
    fn remove_bindings_to(&mut self, target: Target) {
        let Some(sources) = self.sources.get(&target) else {
            return;
        };
        let sources: Vec<_> = sources.keys().copied().collect();
        for source in sources {
            let bindings = self.at(source).map(|it| it.bindings_to(target));
            for binding in bindings.into_iter().flatten() {
                self.remove_binding(source, &binding);
            }
        }
    }

    /// Replicated: a queue is gone.
    pub(crate) fn remove_queue(&mut self, queue: QueueId) {
        self.remove_bindings_to(Target::Queue(queue));
    }

    /// Replicated: exchanges are gone.
    pub(crate) fn remove_exchanges(&mut self, gone: &[ExchangeId]) {
        for id in gone {
            self.remove_exchange(*id);
        }
    }

    /// Replicated: a binding exists. One whose arguments make no sense, or whose exchange is not
    /// there, does not.
    fn add_binding(&mut self, source: ExchangeId, binding: Binding, durable: bool) {
        if let Target::Exchange(to) = binding.target
            && !self.exchanges.contains_key(&to)
        {
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&source) else {
            return;
        };
        let (target, bytes) = (binding.target, binding.memory_bytes());
        if exchange.bind(binding, durable) == Ok(true) {
            *self
                .sources
                .entry(target)
                .or_default()
                .entry(source)
                .or_default() += 1;
            self.bindings += 1;
            self.bytes += bytes;
        }
    }

    /// Replicated: a binding is gone.
    fn remove_binding(&mut self, source: ExchangeId, binding: &Binding) {
        let exchange = self.exchanges.get_mut(&source);
        if exchange.is_some_and(|exchange| exchange.unbind(binding)) {
            self.uncount(source, binding);
        }
    }

    fn uncount(&mut self, source: ExchangeId, binding: &Binding) {
        self.bindings -= 1;
        self.bytes = self.bytes.saturating_sub(binding.memory_bytes());
        let Some(sources) = self.sources.get_mut(&binding.target) else {
            return;
        };
        if let Some(count) = sources.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                sources.remove(&source);
            }
        }
        if sources.is_empty() {
            self.sources.remove(&binding.target);
        }
    }

    /// The exchanges that go when these bindings go: auto-deleted ones that have no other, and so
    /// on along what leads to them. `lost` are bindings from an exchange that go, by their number;
    /// `gone` exchanges go anyway, and are returned first.
    fn cascade(&self, lost: BTreeMap<ExchangeId, usize>, gone: Vec<ExchangeId>) -> Vec<ExchangeId> {
        let mut lost = lost;
        let mut all = gone;
        let mut at = 0;
        let mut empty: Vec<_> = lost.keys().copied().collect();
        loop {
            for id in empty.drain(..) {
                let Some(exchange) = self.at(id) else {
                    continue;
                };
                let left = exchange.len() - lost.get(&id).copied().unwrap_or(0);
                if exchange.it.auto_delete && left == 0 && !all.contains(&id) {
                    all.push(id);
                }
            }
            let Some(id) = all.get(at).copied() else {
                return all;
            };
            at += 1;
            for (source, count) in self
                .sources
                .get(&Target::Exchange(id))
                .into_iter()
                .flatten()
            {
                *lost.entry(*source).or_default() += count;
                empty.push(*source);
            }
        }
    }

    /// The exchanges that go with a queue.
    pub(crate) fn cascade_of_queue(&self, queue: QueueId) -> Vec<ExchangeId> {
        match self.sources.get(&Target::Queue(queue)) {
            Some(sources) => self.cascade(sources.clone(), Vec::new()),
            None => Vec::new(),
        }
    }

    /// Whether the log knows one of these.
    fn is_written(&self, exchanges: &[ExchangeId]) -> bool {
        let mut all = exchanges.iter();
        all.any(|id| self.at(*id).is_some_and(|it| it.it.durable))
    }

    /// Rough bytes of memory. Cheap.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Panics when the catalog contradicts itself. `is_live` says which queues there are.
    pub(crate) fn assert_invariants(&self, is_live: impl Fn(QueueId, VhostId) -> bool) {
        assert_eq!(self.ids.len(), self.exchanges.len(), "ids of exchanges");
        assert_eq!(
            self.by_name.len(),
            self.exchanges.len(),
            "names of exchanges"
        );
        let mut counted: BTreeMap<Target, BTreeMap<ExchangeId, usize>> = BTreeMap::new();
        let (mut bindings, mut bytes) = (0, 0);
        for id in &self.ids {
            let Some(exchange) = self.at(*id) else {
                assert!(self.exchanges.contains_key(id), "{id:?} is not there");
                continue;
            };
            exchange.assert_invariants();
            let it = &exchange.it;
            assert!(self.vhosts.contains_key(&it.vhost), "vhost of {}", it.name);
            assert_eq!(
                self.by_name.get(&name_of(it)),
                Some(id),
                "name of {}",
                it.name
            );
            bytes += memory_of(it);
            for (binding, _) in exchange.bindings() {
                bindings += 1;
                bytes += binding.memory_bytes();
                *counted
                    .entry(binding.target)
                    .or_default()
                    .entry(*id)
                    .or_default() += 1;
                match binding.target {
                    Target::Queue(queue) => {
                        assert!(is_live(queue, it.vhost), "{} leads to {queue}", it.name);
                    }
                    Target::Exchange(to) => {
                        let to = self.at(to).map(|to| to.it.vhost);
                        assert_eq!(to, Some(it.vhost), "{} leads to an exchange", it.name);
                    }
                }
            }
        }
        bytes += self
            .vhosts
            .values()
            .map(|name| 256 + name.len())
            .sum::<usize>();
        assert_eq!((bindings, bytes), (self.bindings, self.bytes), "bindings");
        assert_eq!(counted.len(), self.sources.len(), "targets of bindings");
        for (target, sources) in &counted {
            assert_eq!(
                self.sources.get(target),
                Some(sources),
                "bindings to {target:?}"
            );
        }
    }
}

fn name_of(it: &Declaration) -> Name {
    Name {
        vhost: it.vhost,
        name: Arc::clone(&it.name),
    }
}

fn memory_of(it: &Declaration) -> usize {
    512 + 2 * it.name.len() + it.args.len()
}
