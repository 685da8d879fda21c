//! Changes of the topology.

use super::link::{Ask, Link};
use super::{AmqpClient, Call, Cx};
use crate::history::amqp::{Change, Known, There, kind_of};
use crate::random::Random;

impl AmqpClient {
    /// Changes something that comes and goes, or purges a queue nobody relies on.
    pub(super) fn declare(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if random.one_in(3) {
            return self.purge(random, link, cx);
        }
        let amqp = &cx.history.amqp;
        let scratch = amqp.queues.iter().filter(|(_, it)| it.draw.is_scratch);
        let scratch = scratch.map(|(name, it)| {
            let is_there = is_there(random, it.known);
            if is_there {
                Change::Delete(name.clone())
            } else {
                Change::Queue(name.clone())
            }
        });
        let mut changes: Vec<Change> = scratch.collect();
        for (binding, known) in &amqp.bindings {
            if binding.comes_and_goes && !amqp.is_mortal(binding) {
                changes.push(if is_there(random, *known) {
                    Change::Unbind(binding.clone())
                } else {
                    Change::Bind(binding.clone())
                });
            }
        }
        if let Some(change) = random.pick(&changes).cloned() {
            self.change(link, cx, change);
        }
    }

    fn purge(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        let queues = cx.history.amqp.queues.iter();
        let names = queues.filter(|(_, it)| it.draw.is_lossy && it.known.there == There::Yes);
        let names: Vec<String> = names.map(|(name, _)| name.clone()).collect();
        let Some(name) = random.pick(&names) else {
            return;
        };
        link.ask(Ask::Purge(name));
        self.call(cx, Call::Purge);
    }

    pub(super) fn change(&mut self, link: &mut Link, cx: &mut Cx<'_>, change: Change) {
        match &change {
            Change::Exchange(name) => link.ask(Ask::Exchange(name, kind_of(name))),
            Change::Queue(name) => {
                if let Some(facts) = cx.history.amqp.queues.get(name) {
                    link.ask(Ask::Queue(name, &facts.draw));
                }
            }
            Change::Bind(binding) => link.ask(Ask::Bind(binding)),
            Change::Unbind(binding) => link.ask(Ask::Unbind(binding)),
            Change::Delete(name) => link.ask(Ask::Delete(name)),
        }
        self.call(cx, Call::Change(change.clone()));
        cx.history.amqp.on_change_sent(&change, self.channel.asked);
    }
}

fn is_there(random: &mut Random, known: Known) -> bool {
    match known.there {
        There::Yes => true,
        There::No => false,
        There::Maybe => random.one_in(2),
    }
}
