//! Queues, exchanges and bindings: changes of them, and so where messages go.

use std::collections::BTreeSet;

use super::{
    Amqp, Asked, BindingDraw, Known, Published, QueueDraw, There, alternate_of, headers_of,
    kind_of, routes,
};

/// A change of the topology, or a declaration of what may be there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Exchange(&'static str),
    Queue(String),
    Bind(BindingDraw),
    Unbind(BindingDraw),
    Delete(String),
}

impl Change {
    const fn makes(&self) -> bool {
        matches!(self, Self::Exchange(_) | Self::Queue(_) | Self::Bind(_))
    }
}

impl Amqp {
    fn known(&mut self, change: &Change) -> Option<&mut Known> {
        match change {
            Change::Exchange(name) => self.exchanges.get_mut(name),
            Change::Queue(name) | Change::Delete(name) => {
                self.queues.get_mut(name).map(|queue| &mut queue.known)
            }
            Change::Bind(binding) | Change::Unbind(binding) => self.bindings.get_mut(binding),
        }
    }

    /// A change was sent.
    pub(crate) fn on_change_sent(&mut self, change: &Change, asked: Asked) {
        self.know(change, |known| known.on_sent(change.makes()));
        self.note_sent(change, asked);
        self.route_again();
    }

    /// A change was answered.
    pub(crate) fn on_changed(&mut self, change: &Change, asked: Asked) {
        self.know(change, |known| known.on_answered(change.makes()));
        self.note_changed(change, asked);
        self.route_again();
    }

    /// A change was refused.
    pub(crate) fn on_change_refused(&mut self, change: &Change) {
        self.know(change, |known| known.on_refused(change.makes()));
    }

    /// The answer to a change that was sent in this epoch will not come.
    pub(crate) fn on_change_lost(&mut self, change: &Change, epoch: u64) {
        // Who may have made an exclusive queue is known, and it goes with its connection.
        let is_owned = |name: &String| self.queues.get(name).is_some_and(|it| it.draw.exclusive);
        let is_owned = matches!(change, Change::Queue(name) if is_owned(name));
        let may_come = epoch == self.epoch && !is_owned;
        self.know(change, |known| known.on_lost(change.makes(), may_come));
    }

    /// Something is known of what a change is about; what depends on it follows.
    fn know(&mut self, change: &Change, change_known: impl FnOnce(&mut Known)) {
        let Some(known) = self.known(change) else {
            return;
        };
        let before = known.there;
        change_known(known);
        if let Change::Queue(name) | Change::Delete(name) = change {
            self.follow(name, before);
        }
    }

    /// The broker has started again.
    pub(super) fn on_start(&mut self) {
        let Self {
            queues,
            exchanges,
            bindings,
            ..
        } = self;
        for (binding, known) in bindings {
            let queue = queues.get(&binding.queue);
            let is_durable = queue.is_some_and(|it| it.draw.durable);
            known.on_crash(binding.to_exchange || is_durable);
        }
        for queue in queues.values_mut() {
            queue.known.on_crash(queue.draw.durable);
        }
        for known in exchanges.values_mut() {
            known.on_crash(true);
        }
    }

    /// The next thing that is to be declared before anybody publishes.
    pub(crate) fn missing(&self) -> Option<Change> {
        let is_missing = |known: &Known| known.there != There::Yes;
        let exchange = self.exchanges.iter().find(|(_, known)| is_missing(known));
        if let Some((name, _)) = exchange {
            return Some(Change::Exchange(name));
        }
        let mut queues = self.queues.iter();
        let queue = queues.find(|(_, it)| !it.draw.comes_and_goes() && is_missing(&it.known));
        if let Some((name, _)) = queue {
            return Some(Change::Queue(name.clone()));
        }
        let mut bindings = self.bindings.iter();
        let binding = bindings.find(|(it, known)| {
            let queue = self.queues.get(&it.queue).map(|queue| &queue.draw);
            let is_transient = queue.is_some_and(|draw| !draw.durable);
            let is_mortal = queue.is_some_and(QueueDraw::has_life);
            (!it.comes_and_goes || is_transient) && !is_mortal && is_missing(known)
        });
        binding.map(|(binding, _)| Change::Bind(binding.clone()))
    }

    /// Where a message goes for sure, and where it may go, as things are now.
    pub(super) fn routes(
        &self,
        tag: usize,
        message: &Published,
    ) -> (BTreeSet<String>, BTreeSet<String>) {
        let keys: Vec<&str> = message
            .cc
            .iter()
            .copied()
            .chain([message.key.as_str()])
            .collect();
        if message.exchange.is_empty() {
            let there = |name: &str| self.queues.get(name).map(|it| it.known.there);
            let of = |least: There| {
                let keys = keys.iter().filter(|key| there(key) >= Some(least));
                keys.map(|key| (*key).to_owned()).collect()
            };
            return (of(There::Yes), of(There::Maybe));
        }
        let headers: Vec<_> = headers_of(tag).filter(|_| self.has_more).collect();
        let sure = self.reached(message.exchange, (&keys, &headers), There::Yes);
        let maybe = self.reached(message.exchange, (&keys, &headers), There::Maybe);
        (sure, maybe)
    }

    /// The queues that a message comes to, if bindings count that are `least` there. An alternate
    /// exchange is surely asked when none can take the message, and maybe when none surely does.
    fn reached(
        &self,
        first: &'static str,
        (keys, headers): (&[&str], &[(&'static str, &'static str)]),
        least: There,
    ) -> BTreeSet<String> {
        let mut queues = BTreeSet::new();
        let mut seen: Vec<&str> = vec![first];
        let mut at = 0;
        while let Some(exchange) = seen.get(at).copied() {
            at += 1;
            let kind = kind_of(exchange);
            let mut is_taken = false;
            for (binding, known) in &self.bindings {
                let takes = match binding.asks {
                    Some(asks) => routes::takes_headers(asks, headers),
                    None => keys.iter().any(|key| routes::takes(kind, binding.key, key)),
                };
                if binding.exchange != exchange || !takes {
                    continue;
                }
                let target = self.queues.get(&binding.queue).map(|it| it.known.there);
                let target = if binding.to_exchange {
                    There::Yes
                } else {
                    target.unwrap_or_default()
                };
                let there = known.there.min(target);
                let against = if least == There::Yes {
                    There::Maybe
                } else {
                    There::Yes
                };
                is_taken |= there >= against;
                if there < least {
                    continue;
                }
                if !binding.to_exchange {
                    queues.insert(binding.queue.clone());
                } else if !seen.contains(&binding.queue.as_str()) {
                    seen.push(&binding.queue);
                }
            }
            if let Some(alternate) = alternate_of(exchange).filter(|_| !is_taken)
                && !seen.contains(&alternate)
            {
                seen.push(alternate);
            }
        }
        queues
    }

    /// Something has changed: what is on its way may meet it as it was or as it is.
    pub(super) fn route_again(&mut self) {
        let open = self.sent.iter().enumerate().filter(|(_, message)| {
            use super::Outcome::{Open, Unknown};
            matches!(message.outcome, Open | Unknown) && message.epoch == self.epoch
        });
        let routed: Vec<_> = open.map(|(tag, it)| (tag, self.routes(tag, it))).collect();
        for (tag, (must, may)) in routed {
            if let Some(message) = self.sent.get_mut(tag) {
                message.must.retain(|queue| must.contains(queue));
                message.may.extend(may);
            }
        }
    }
}
