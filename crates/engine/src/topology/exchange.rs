//! An exchange: what it is, its bindings, and how it chooses among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::RandomState;
use bytes::Bytes;
use hashbrown::HashMap;
use tanda_wire::amqp::Table;

use super::headers::{MessageHeaders, Rule};
use super::topic::{TopicScratch, TopicTree};
use super::watched::Watched;
use crate::{ExchangeKind, QueueId, TopologyError, VhostId};

/// An exchange's identity in the log; never reused. Those that every virtual host has are not in
/// the log: their ids follow from their virtual host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExchangeId(pub(crate) u64);

/// Longest name of an exchange or a virtual host, and longest key: AMQP has no longer ones.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// The first id that is not in the log.
const PREDECLARED: u64 = 1 << 40;

impl ExchangeId {
    /// The `n`th exchange that a virtual host has from the beginning.
    pub(super) fn predeclared(vhost: VhostId, n: u8) -> Self {
        Self(PREDECLARED + (u64::from(vhost.0) << 8) + u64::from(n))
    }

    /// Nobody declared it.
    pub(super) const fn is_predeclared(self) -> bool {
        self.0 >= PREDECLARED
    }
}

/// Where a binding leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    Queue(QueueId),
    Exchange(ExchangeId),
}

/// A binding of one exchange; two that differ in any part are two.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Binding {
    pub(super) target: Target,
    pub(super) key: Box<str>,
    /// In the order of [`super::args::canonical`].
    pub(super) args: Box<[u8]>,
}

impl Binding {
    /// Before all bindings to a target.
    pub(super) fn first_to(target: Target) -> Self {
        Self {
            target,
            key: "".into(),
            args: [].into(),
        }
    }

    /// Rough bytes of memory: it is kept in order, and once more to be found.
    pub(super) fn memory_bytes(&self) -> usize {
        256 + 2 * (self.key.len() + self.args.len())
    }
}

/// What an exchange was declared as.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(super) id: ExchangeId,
    pub(super) vhost: VhostId,
    pub(super) name: Arc<str>,
    pub(crate) kind: ExchangeKind,
    pub(super) durable: bool,
    pub(super) auto_delete: bool,
    pub(super) internal: bool,
    /// As they came.
    pub(super) args: Bytes,
}

#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) it: Declaration,
    /// Takes what goes nowhere here.
    pub(super) alternate: Option<Arc<str>>,
    /// All of them, with whether they survive a restart.
    bindings: BTreeMap<Binding, bool>,
    found_by: FoundBy,
    /// Who watches; `None` = nobody.
    pub(crate) watched: Option<Box<Watched>>,
}

/// The bindings as routing looks for them. Of bindings that differ in their arguments only, which
/// mean nothing to all kinds but one, one is here.
#[derive(Debug)]
enum FoundBy {
    Key(HashMap<Box<str>, Vec<Target>, RandomState>),
    Everything(Vec<Target>),
    Pattern(Box<TopicTree<Target>>),
    Headers(Vec<Rule>),
}

/// What routing one message works with.
pub(super) struct Message<'a> {
    pub(super) keys: &'a [&'a str],
    pub(super) headers: &'a MessageHeaders<'a>,
}

impl Exchange {
    pub(super) fn new(it: Declaration, hasher: &RandomState) -> Self {
        let found_by = match it.kind {
            ExchangeKind::Direct => FoundBy::Key(HashMap::with_hasher(hasher.clone())),
            ExchangeKind::Fanout => FoundBy::Everything(Vec::new()),
            ExchangeKind::Topic => FoundBy::Pattern(Box::new(TopicTree::new(hasher))),
            ExchangeKind::Headers => FoundBy::Headers(Vec::new()),
        };
        let args = Table::new(&it.args).unwrap_or_default();
        let alternate = args.find(super::ALTERNATE.as_bytes()).ok().flatten();
        let alternate = alternate.as_ref().and_then(|name| name.as_long_string());
        let alternate = alternate.and_then(|name| core::str::from_utf8(name).ok());
        Self {
            alternate: alternate.map(Into::into),
            it,
            bindings: BTreeMap::new(),
            found_by,
            watched: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// All bindings with whether they survive a restart.
    pub(super) fn bindings(&self) -> impl Iterator<Item = (&Binding, bool)> {
        self.bindings
            .iter()
            .map(|(binding, durable)| (binding, *durable))
    }

    /// The bindings after `after`.
    pub(super) fn bindings_after(
        &self,
        after: Option<&Binding>,
    ) -> impl Iterator<Item = (&Binding, bool)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let bindings = self.bindings.range::<Binding, _>((from, Unbounded));
        bindings.map(|(binding, durable)| (binding, *durable))
    }

    /// Whether a binding survives a restart, if it is there.
    pub(super) fn find(&self, binding: &Binding) -> Option<bool> {
        self.bindings.get(binding).copied()
    }

    pub(super) fn has(&self, binding: &Binding) -> bool {
        self.bindings.contains_key(binding)
    }

    /// The bindings to one target.
    pub(super) fn bindings_to(&self, target: Target) -> Vec<Binding> {
        let from = self.bindings.range(Binding::first_to(target)..);
        let to = from.take_while(|(binding, _)| binding.target == target);
        to.map(|(binding, _)| binding.clone()).collect()
    }

    /// True when it was not there.
    ///
    /// # Errors
    /// When the arguments make no sense to this kind of exchange.
    pub(super) fn bind(&mut self, binding: Binding, durable: bool) -> Result<bool, TopologyError> {
        if self.has(&binding) {
            return Ok(false);
        }
        let is_first = self.found_here(&binding) == 0;
        let target = binding.target;
        match &mut self.found_by {
            FoundBy::Key(keys) if is_first => {
                keys.entry_ref(&*binding.key).or_default().push(target);
            }
            FoundBy::Everything(targets) if is_first => targets.push(target),
            FoundBy::Pattern(tree) if is_first => tree.insert(binding.key.as_bytes(), target),
            FoundBy::Headers(rules) => {
                let rule = Rule::new(target, binding.key.clone(), binding.args.clone())?;
                rules.push(rule);
            }
            FoundBy::Key(_) | FoundBy::Everything(_) | FoundBy::Pattern(_) => {}
        }
        self.bindings.insert(binding, durable);
        Ok(true)
    }

    /// True when it was there.
    pub(super) fn unbind(&mut self, binding: &Binding) -> bool {
        if self.bindings.remove(binding).is_none() {
            return false;
        }
        let was_last = self.found_here(binding) == 0;
        let target = binding.target;
        match &mut self.found_by {
            FoundBy::Key(keys) if was_last => {
                if let Some(targets) = keys.get_mut(&*binding.key) {
                    forget(targets, target);
                    if targets.is_empty() {
                        keys.remove(&*binding.key);
                    }
                }
            }
            FoundBy::Everything(targets) if was_last => forget(targets, target),
            FoundBy::Pattern(tree) if was_last => tree.remove(binding.key.as_bytes(), target),
            FoundBy::Headers(rules) => {
                let is_it = |rule: &Rule| {
                    (rule.target, &rule.key, &rule.args) == (target, &binding.key, &binding.args)
                };
                if let Some(at) = rules.iter().position(is_it) {
                    rules.swap_remove(at);
                }
            }
            FoundBy::Key(_) | FoundBy::Everything(_) | FoundBy::Pattern(_) => {}
        }
        true
    }

    /// Whether bindings are there (0 = none) that this kind of exchange finds as it finds this one.
    fn found_here(&self, binding: &Binding) -> usize {
        let mut from = Binding::first_to(binding.target);
        let by_key = !matches!(self.found_by, FoundBy::Everything(_));
        if by_key {
            from.key.clone_from(&binding.key);
        }
        let next = self.bindings.range(from..).next();
        let is_like = next.is_some_and(|(next, _)| {
            next.target == binding.target && (!by_key || next.key == binding.key)
        });
        usize::from(is_like)
    }

    /// Appends where the message goes from here; a target may come more than once.
    pub(super) fn route(
        &self,
        message: &Message<'_>,
        scratch: &mut TopicScratch,
        out: &mut Vec<Target>,
    ) {
        match &self.found_by {
            FoundBy::Key(keys) => {
                for key in message.keys {
                    out.extend(keys.get(*key).into_iter().flatten());
                }
            }
            FoundBy::Everything(targets) => out.extend_from_slice(targets),
            FoundBy::Pattern(tree) => {
                for key in message.keys {
                    tree.matches(key.as_bytes(), scratch, out);
                }
            }
            FoundBy::Headers(rules) => {
                if rules.is_empty() {
                    return;
                }
                let headers = message.headers.entries();
                let matching = rules.iter().filter(|rule| rule.matches(&headers));
                out.extend(matching.map(|rule| rule.target));
            }
        }
    }

    /// Whether a message's headers matter.
    pub(super) const fn reads_headers(&self) -> bool {
        matches!(self.found_by, FoundBy::Headers(_))
    }

    /// Panics when its two views of its bindings differ.
    pub(super) fn assert_invariants(&self) {
        let name = &self.it.name;
        if let Some(watched) = &self.watched {
            watched.assert_invariants();
        }
        let targets = |by_key: bool| {
            let mut all: Vec<_> = self
                .bindings
                .keys()
                .map(|it| (it.target, if by_key { &*it.key } else { "" }))
                .collect();
            all.dedup();
            all
        };
        match &self.found_by {
            FoundBy::Key(keys) => {
                let found: usize = keys.values().map(Vec::len).sum();
                assert_eq!(found, targets(true).len(), "keys of exchange {name}");
            }
            FoundBy::Everything(found) => {
                let mut found = found.clone();
                found.sort_unstable();
                let expected: Vec<_> = targets(false).into_iter().map(|(it, _)| it).collect();
                assert_eq!(found, expected, "targets of exchange {name}");
            }
            FoundBy::Pattern(tree) => {
                assert_eq!(
                    tree.len(),
                    targets(true).len(),
                    "patterns of exchange {name}"
                );
            }
            FoundBy::Headers(rules) => {
                assert_eq!(rules.len(), self.bindings.len(), "rules of exchange {name}");
            }
        }
    }
}

fn forget(targets: &mut Vec<Target>, target: Target) {
    if let Some(at) = targets.iter().position(|it| *it == target) {
        targets.swap_remove(at);
    }
}
