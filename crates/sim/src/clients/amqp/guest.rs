//! Clients of queues that go by themselves: they make them, use their own and those of others, and
//! leave them behind.

use super::link::{Ask, Link};
use super::{AmqpClient, Call, Cx, Taking};
use crate::history::amqp::{Change, Door, There};
use crate::random::Random;

impl AmqpClient {
    pub(super) fn visit(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        taking: Taking,
    ) {
        if self.door == Door::Amqp && !self.channel.has_qos {
            return self.consume(random, link, cx, taking);
        }
        match random.below(16) {
            0..=1 => self.make(random, link, cx),
            2 if random.one_in(3) => self.make_unnamed(random, link, cx),
            3 => self.look(random, link, cx),
            4..=5 if self.channel.consumers.len() < 3 => self.take_from_mortal(random, link, cx),
            6 => self.get_from_mortal(random, link, cx),
            7 => self.cancel(random, link, cx),
            8 => self.rebind(random, link, cx),
            9 if random.one_in(10) => self.remove(random, link, cx),
            10 if random.one_in(8) => self.leave(link, cx),
            11 => self.barrier(link, cx),
            _ => self.consume_what_is_held(random, link, cx, taking),
        }
    }

    fn make(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        let names = cx.history.amqp.mortals(self.conn);
        let named = names.iter().filter(|(name, _)| !name.starts_with("amq."));
        let named: Vec<String> = named.map(|(name, _)| (*name).clone()).collect();
        if let Some(name) = random.pick(&named) {
            self.change(link, cx, Change::Queue(name.clone()));
        }
    }

    fn make_unnamed(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some(draw) = cx.history.amqp.draw_unnamed(random) {
            link.ask(Ask::Queue("", &draw));
            self.call(cx, Call::Name(Box::new(draw)));
        }
    }

    /// One that may be there and be used, mostly.
    fn pick_mortal(&self, random: &mut Random, cx: &Cx<'_>) -> Option<String> {
        let is_any = random.one_in(10);
        let names = cx.history.amqp.mortals(self.conn);
        let names = names.into_iter().filter(|(_, is_open)| is_any || *is_open);
        let names: Vec<&String> = names.map(|(name, _)| name).collect();
        random.pick(&names).map(|name| (*name).clone())
    }

    fn look(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some(name) = self.pick_mortal(random, cx) {
            link.ask(Ask::Check(&name));
            self.call(cx, Call::Look(name));
        }
    }

    fn take_from_mortal(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some(name) = self.pick_mortal(random, cx) {
            let credit = random.below(6);
            self.consume_from(link, cx, (name, false), credit);
        }
    }

    fn get_from_mortal(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some(name) = self.pick_mortal(random, cx) {
            self.get_from(link, cx, name);
        }
    }

    /// Makes or removes a binding to one of them.
    fn rebind(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        let Some(name) = self.pick_mortal(random, cx) else {
            return;
        };
        let bindings = cx.history.amqp.bindings_to(&name);
        let Some((binding, known)) = random.pick(&bindings).cloned() else {
            return;
        };
        let change = match known.there {
            There::Yes => Change::Unbind(binding),
            There::Maybe if random.one_in(4) => Change::Unbind(binding),
            There::Maybe | There::No => Change::Bind(binding),
        };
        self.change(link, cx, change);
    }

    fn remove(&mut self, random: &mut Random, link: &mut Link, cx: &mut Cx<'_>) {
        if let Some(name) = self.pick_mortal(random, cx) {
            self.change(link, cx, Change::Delete(name));
        }
    }

    /// Settles, or takes more on credit.
    fn consume_what_is_held(
        &mut self,
        random: &mut Random,
        link: &mut Link,
        cx: &mut Cx<'_>,
        taking: Taking,
    ) {
        if self.door == Door::Fire && random.one_in(3) {
            return self.grant(random, link, taking);
        }
        self.settle(random, link, cx, taking);
    }
}
