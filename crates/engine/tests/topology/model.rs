//! The topology as simply as it can be said: lists that are searched.

use std::collections::BTreeSet;

/// A binding: source, destination (a queue or an exchange), key, number of its arguments.
pub(crate) type Binding = (String, String, String, u8);

#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) alternate: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) bindings: BTreeSet<Binding>,
    pub(crate) queues: BTreeSet<String>,
    pub(crate) watches: Vec<Watch>,
}

/// Who watches an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) token: u32,
    pub(crate) exchange: String,
    pub(crate) pattern: String,
    pub(crate) buffer: u32,
    pub(crate) under_way: u32,
    pub(crate) dropped: u64,
}

impl Model {
    pub(crate) fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.iter().find(|it| it.name == name)
    }

    fn is_there(&self, name: &str) -> bool {
        self.queues.contains(name) || self.exchange(name).is_some()
    }

    /// True when it could be made.
    pub(crate) fn bind(&mut self, binding: Binding) -> bool {
        let can = self.exchange(&binding.0).is_some() && self.is_there(&binding.1);
        if can {
            self.bindings.insert(binding);
        }
        can
    }

    pub(crate) fn unbind(&mut self, binding: &Binding) {
        if self.bindings.remove(binding) {
            self.lost_one(&binding.0);
        }
    }

    pub(crate) fn delete_exchange(&mut self, name: &str) {
        self.exchanges.retain(|it| it.name != name);
        self.bindings.retain(|it| it.0 != name);
        self.watches.retain(|it| it.exchange != name);
        self.forget(name);
    }

    pub(crate) fn delete_queue(&mut self, name: &str) {
        self.queues.remove(name);
        self.forget(name);
    }

    /// What led there leads nowhere.
    fn forget(&mut self, destination: &str) {
        let led = self.bindings.iter().filter(|it| it.1 == destination);
        let sources: BTreeSet<_> = led.map(|it| it.0.clone()).collect();
        self.bindings.retain(|it| it.1 != destination);
        for source in sources {
            self.lost_one(&source);
        }
    }

    /// An exchange lost a binding.
    fn lost_one(&mut self, name: &str) {
        let goes = self.exchange(name).is_some_and(|it| it.auto_delete);
        if goes && !self.bindings.iter().any(|it| it.0 == name) {
            self.delete_exchange(name);
        }
    }

    /// The process was killed.
    pub(crate) fn restart(&mut self) {
        let exchanges = self.exchanges.clone();
        let is_kept = |name: &str| {
            let exchange = exchanges.iter().find(|it| it.name == name);
            exchange.is_none_or(|it| it.durable)
        };
        self.bindings.retain(|it| is_kept(&it.0) && is_kept(&it.1));
        self.exchanges.retain(|it| it.durable);
        self.watches.clear();
    }

    /// Watches that a message comes to take it, or lose it: those that take it with what they lost
    /// before, by their tokens.
    pub(crate) fn tell(&mut self, seen: &BTreeSet<u32>) -> Vec<(u32, u64)> {
        let mut told = Vec::new();
        self.watches.sort_by_key(|it| it.token);
        for watch in self
            .watches
            .iter_mut()
            .filter(|it| seen.contains(&it.token))
        {
            if watch.under_way < watch.buffer {
                watch.under_way += 1;
                told.push((watch.token, core::mem::take(&mut watch.dropped)));
            } else {
                watch.dropped += 1;
            }
        }
        told
    }

    /// The queues that a message goes to, and the watches it comes to. Headers are `("h", n)` for
    /// each of `headers`.
    pub(crate) fn route(
        &self,
        exchange: &str,
        key: &str,
        headers: &[u8],
    ) -> (BTreeSet<String>, BTreeSet<u32>) {
        let (mut found, mut watched) = (BTreeSet::new(), BTreeSet::new());
        let mut seen: Vec<String> = vec![exchange.to_owned()];
        let mut at = 0;
        while let Some(name) = seen.get(at).cloned() {
            at += 1;
            let Some(exchange) = self.exchange(&name) else {
                continue;
            };
            let from_here = self.bindings.iter().filter(|it| it.0 == name);
            let to: Vec<_> = from_here
                .filter(|it| match exchange.kind {
                    "direct" => it.2 == key,
                    "fanout" => true,
                    "topic" => topic(&words(&it.2), &words(key)),
                    _ => it.3 == 0 || headers.contains(&it.3),
                })
                .map(|it| it.1.clone())
                .collect();
            let here = self.watches.iter().filter(|it| it.exchange == name);
            let here = here.filter(|it| topic(&words(&it.pattern), &words(key)));
            let here: Vec<_> = here.map(|it| it.token).collect();
            watched.extend(&here);
            if to.is_empty() && here.is_empty() {
                seen.extend(exchange.alternate.clone().filter(|it| !seen.contains(it)));
            }
            for to in to {
                if self.queues.contains(&to) {
                    found.insert(to);
                } else if !seen.contains(&to) {
                    seen.push(to);
                }
            }
        }
        (found, watched)
    }
}

fn words(key: &str) -> Vec<&str> {
    if key.is_empty() {
        return Vec::new();
    }
    key.split('.').collect()
}

fn topic(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern.split_first(), key.split_first()) {
        (None, None) => true,
        (Some((&"#", rest)), _) => (0..=key.len()).any(|n| topic(rest, &key[n..])),
        (Some((&word, rest)), Some((&first, key))) => {
            (word == "*" || word == first) && topic(rest, key)
        }
        _ => false,
    }
}
