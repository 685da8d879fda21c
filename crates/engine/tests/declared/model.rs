//! A declared queue as simply as it can be said: a list of messages.

use std::collections::BTreeMap;

use tanda_engine::Millis;

/// How a queue was declared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Declared {
    pub(crate) max_priority: Option<u8>,
    pub(crate) max_length: Option<usize>,
    /// Over its length it refuses, instead of dropping its oldest.
    pub(crate) rejects: bool,
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) delivery_limit: Option<u32>,
    /// Its dead letters go elsewhere, and do not vanish.
    pub(crate) has_graveyard: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) name: String,
    /// The lower, the earlier it came.
    pub(crate) position: u64,
    pub(crate) priority: u8,
    pub(crate) expires: Option<Millis>,
    pub(crate) transient: bool,
    pub(crate) deliveries: u32,
    /// The client that has it.
    pub(crate) held_by: Option<u64>,
}

/// Who takes messages as they come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer {
    pub(crate) priority: i32,
    pub(crate) credit: u32,
}

/// A message that was delivered: its name, and whether it was out before.
pub(crate) type Delivery = (String, bool);

#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) declared: Declared,
    pub(crate) messages: Vec<Message>,
    pub(crate) consumers: BTreeMap<u64, Consumer>,
    next_position: u64,
    /// What died since it was last asked: name and reason.
    deaths: Vec<(String, &'static str)>,
    /// What was delivered since it was last asked, in this order.
    deliveries: Vec<Delivery>,
}

impl Queue {
    pub(crate) fn new(declared: Declared) -> Self {
        Self {
            declared,
            ..Self::default()
        }
    }

    pub(crate) fn ready(&self) -> usize {
        let ready = self.messages.iter().filter(|it| it.held_by.is_none());
        ready.count()
    }

    /// False when it refuses the message.
    pub(crate) fn publish(&mut self, now: Millis, message: Message, ttl_ms: Option<u64>) -> bool {
        let Declared {
            rejects,
            max_length,
            ..
        } = self.declared;
        if rejects && max_length.is_some_and(|max| self.ready() >= max) {
            return false;
        }
        let ttl = [ttl_ms, self.declared.ttl_ms].into_iter().flatten().min();
        self.next_position += 1;
        self.messages.push(Message {
            position: self.next_position,
            priority: message
                .priority
                .min(self.declared.max_priority.unwrap_or(0)),
            expires: ttl.map(|ms| now.after_ms(ms)),
            ..message
        });
        self.settle_down(now);
        true
    }

    /// The next message goes to a client that asked once; with how many are left.
    pub(crate) fn get(&mut self, client: u64) -> (Option<Delivery>, usize) {
        let next = self.next().map(|at| self.hand_over(at, client));
        (next, self.ready())
    }

    pub(crate) fn ack(&mut self, name: &str) {
        self.take(name);
    }

    pub(crate) fn reject(&mut self, name: &str) {
        self.take(name);
        self.die(name.to_owned(), "rejected");
    }

    pub(crate) fn requeue(&mut self, now: Millis, name: &str) {
        let found = self.messages.iter_mut().find(|it| it.name == name);
        let message = found.unwrap();
        message.held_by = None;
        let spent = |limit| message.deliveries > limit;
        if self.declared.delivery_limit.is_some_and(spent) {
            self.take(name);
            self.die(name.to_owned(), "delivery_limit");
        }
        self.settle_down(now);
    }

    /// A client is gone, and what it had comes back.
    pub(crate) fn leave(&mut self, now: Millis, client: u64) {
        self.consumers.remove(&client);
        let held = self.messages.iter().filter(|it| it.held_by == Some(client));
        let mut held: Vec<_> = held.map(|it| (it.position, it.name.clone())).collect();
        held.sort_unstable();
        for (_, name) in &held {
            let spent = self.declared.delivery_limit;
            let message = self.messages.iter_mut().find(|it| it.name == *name);
            let message = message.unwrap();
            message.held_by = None;
            if spent.is_some_and(|limit| message.deliveries > limit) {
                self.take(name);
                self.die(name.clone(), "delivery_limit");
            }
        }
        self.settle_down(now);
    }

    /// The process ends and starts again: everybody is gone.
    pub(crate) fn restart(&mut self, now: Millis) {
        self.consumers.clear();
        self.messages.retain(|it| !it.transient);
        for message in &mut self.messages {
            message.held_by = None;
        }
        self.settle_down(now);
    }

    /// How many were ready, and are gone now.
    pub(crate) fn purge(&mut self) -> usize {
        let before = self.messages.len();
        self.messages.retain(|it| it.held_by.is_some());
        before - self.messages.len()
    }

    /// The next moment at which a message expires.
    pub(crate) fn next_expiry(&self) -> Option<Millis> {
        let ready = self.messages.iter().filter(|it| it.held_by.is_none());
        ready.filter_map(|it| it.expires).min()
    }

    /// What follows by itself: what has expired leaves, consumers take what they can, and what is
    /// over the length leaves.
    pub(crate) fn settle_down(&mut self, now: Millis) {
        while let Some(at) = self
            .messages
            .iter()
            .position(|it| it.held_by.is_none() && it.expires.is_some_and(|expires| expires <= now))
        {
            let name = self.messages.remove(at).name;
            self.die(name, "expired");
        }
        while let Some(best) = self.takers().map(|(_, it)| it.priority).max()
            && let Some(at) = self.next()
        {
            // Who of equals takes it does not matter here; the history checks what does.
            let taker = self.takers().find(|(_, it)| it.priority == best);
            let (client, _) = taker.unwrap();
            let delivery = self.hand_over(at, client);
            self.deliveries.push(delivery);
            self.consumers.get_mut(&client).unwrap().credit -= 1;
        }
        let drops = self.declared.max_length.filter(|_| !self.declared.rejects);
        while drops.is_some_and(|max| self.ready() > max) {
            let ready = self.messages.iter().filter(|it| it.held_by.is_none());
            let oldest = ready.min_by_key(|it| it.position).unwrap();
            let name = oldest.name.clone();
            self.take(&name);
            self.die(name, "maxlen");
        }
    }

    /// Deaths and deliveries since it was last asked.
    pub(crate) fn told(&mut self) -> (Vec<(String, &'static str)>, Vec<Delivery>) {
        let deaths = core::mem::take(&mut self.deaths);
        (deaths, core::mem::take(&mut self.deliveries))
    }

    /// Who took these: equals may take turns in any way, within what they may take.
    pub(crate) fn assign(&mut self, takers: &[(String, u64)]) {
        let levels = self.consumers.clone();
        for (name, client) in takers {
            let message = self.messages.iter_mut().find(|it| it.name == *name);
            let told = message.unwrap().held_by.replace(*client).unwrap();
            assert_eq!(
                levels[&told].priority, levels[client].priority,
                "{client} took {name} before others of higher priority"
            );
            self.consumers.get_mut(&told).unwrap().credit += 1;
        }
        for (name, client) in takers {
            let consumer = self.consumers.get_mut(client).unwrap();
            let left = consumer.credit.checked_sub(1);
            consumer.credit = left.unwrap_or_else(|| panic!("{client} took {name} uncalled"));
        }
    }

    fn takers(&self) -> impl Iterator<Item = (u64, Consumer)> {
        let consumers = self.consumers.iter().map(|(client, it)| (*client, *it));
        consumers.filter(|(_, it)| it.credit > 0)
    }

    /// Of the ready messages the oldest of the highest priority.
    fn next(&self) -> Option<usize> {
        let ready = self.messages.iter().enumerate();
        let ready = ready.filter(|(_, it)| it.held_by.is_none());
        let next = ready.min_by_key(|(_, it)| (u8::MAX - it.priority, it.position));
        next.map(|(at, _)| at)
    }

    fn hand_over(&mut self, at: usize, client: u64) -> Delivery {
        let message = &mut self.messages[at];
        message.held_by = Some(client);
        message.deliveries += 1;
        (message.name.clone(), message.deliveries > 1)
    }

    fn take(&mut self, name: &str) -> Message {
        let at = self.messages.iter().position(|it| it.name == name);
        self.messages.remove(at.unwrap())
    }

    fn die(&mut self, name: String, reason: &'static str) {
        if self.declared.has_graveyard {
            self.deaths.push((name, reason));
        }
    }
}
