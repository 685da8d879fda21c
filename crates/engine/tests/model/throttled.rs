//! Throttles of the model: the instants of all deliveries by bucket, counted again each time.
//!
//! Of a throttled queue the model does not say whose turn it is. It says that each delivery had
//! room, that a key's messages go in their order where a throttle leaves them in their lanes, and
//! that nothing waits that could go.

use tanda_engine::{
    KeyKind, KeyPart, MessageId, Millis, MissingThrottleKey, ThrottleLimit, ThrottleSpec,
};

use crate::model::{Model, Place};
use crate::ops::{ThrottleDraw, ThrottleKey};
use crate::schedule::SeenBy;

/// One delivery in its bucket.
#[derive(Debug)]
struct Charge {
    name: String,
    bucket: String,
    id: MessageId,
    at: Millis,
    /// A restart may count it as late as that: it was down while that was to be written.
    latest: Millis,
}

#[derive(Debug)]
pub(crate) struct Throttle {
    draw: ThrottleDraw,
    /// Oldest first.
    charges: Vec<Charge>,
}

impl Throttle {
    pub(crate) const fn new(draw: ThrottleDraw) -> Self {
        Self {
            draw,
            charges: Vec::new(),
        }
    }

    fn name(&self, queue: &str) -> String {
        if self.draw.is_shared {
            "shared".to_owned()
        } else {
            format!("of {queue}")
        }
    }

    pub(crate) fn declaration(&self, queue: &str) -> ThrottleSpec {
        let (kind, name) = match self.draw.key {
            ThrottleKey::None => (None, ""),
            ThrottleKey::FairnessKey => (Some(KeyKind::FairnessKey), ""),
            ThrottleKey::Header => (Some(KeyKind::Header), "g"),
        };
        let name = name.to_owned();
        ThrottleSpec {
            name: self.name(queue),
            limits: vec![ThrottleLimit {
                window_ms: self.draw.window_ms,
                max_deliveries: self.draw.deliveries,
            }],
            key: kind
                .map(|kind| KeyPart { kind, name })
                .into_iter()
                .collect(),
            missing: MissingThrottleKey::SharedBucket,
        }
    }

    /// Whether one more delivery fits, when those of before count at these times.
    fn has_room(&self, queue: &str, bucket: &str, now: Millis, at: fn(&Charge) -> Millis) -> bool {
        let name = self.name(queue);
        let of = self.charges.iter();
        let of = of.filter(|it| it.name == name && it.bucket == bucket);
        let inside = of.filter(|it| at(it).after_ms(self.draw.window_ms) > now);
        (inside.count() as u64) < self.draw.deliveries
    }

    pub(crate) fn restart(&mut self, now: Millis) {
        for charge in &mut self.charges {
            charge.latest = now;
        }
    }
}

impl Model {
    pub(crate) fn is_throttled(&self, queue: &str) -> bool {
        self.throttle.is_some() && !queue.ends_with(".dlq")
    }

    /// Takes what consumers of this queue saw, in an order in which all of it was allowed.
    pub(crate) fn deliver_throttled(&mut self, name: &str, seen: &mut SeenBy) -> bool {
        let of = self.subs.iter().filter(|sub| sub.queue == name);
        let subs: Vec<_> = of.cloned().collect();
        let mut delivered = false;
        loop {
            let next = subs.iter().find(|sub| {
                let item = seen.get(&sub.number).and_then(|items| items.front());
                item.is_some_and(|item| self.may_be_next(name, item.id))
            });
            let Some(sub) = next else {
                return delivered;
            };
            let item = seen
                .get_mut(&sub.number)
                .and_then(|items| items.pop_front());
            let item = item.unwrap();
            let now = self.sub(sub.number).unwrap().clone();
            assert_ne!(now.credit, Some(0), "{name}: credit for {item:?}");
            assert!(
                self.conn(now.id.conn).has_room(),
                "{name}: room for {item:?}"
            );
            self.lease(name, sub.number, sub.is_connection, &item);
            self.charge(&now, &item);
            self.charge_bucket(name, item.id);
            delivered = true;
        }
    }

    /// It is ready, and nothing of its key goes before it.
    fn may_be_next(&self, name: &str, id: MessageId) -> bool {
        let queue = self.queues.iter().find(|queue| queue.name == name).unwrap();
        let Some(message) = queue.find(id).map(|at| &queue.messages[at]) else {
            return false;
        };
        let keeps_order = self
            .throttle
            .as_ref()
            .is_some_and(|throttle| throttle.draw.key != ThrottleKey::Header);
        let of_key = queue.ready_of(&message.key, message.priority);
        let is_first = of_key.first().is_some_and(|first| first.id == id);
        message.place == Place::Ready && (is_first || !keeps_order)
    }

    fn charge_bucket(&mut self, name: &str, id: MessageId) {
        let now = self.now;
        let bucket = self.queue(name).unwrap().get(id).bucket.clone();
        let throttle = self.throttle.as_mut().unwrap();
        let has_room = throttle.has_room(name, &bucket, now, |charge| charge.at);
        assert!(
            has_room,
            "{name}: {id} at {now:?} in {bucket:?}: {throttle:?}"
        );
        let name = throttle.name(name);
        throttle.charges.push(Charge {
            name,
            bucket,
            id,
            at: now,
            latest: now,
        });
    }

    /// A delivery has not left.
    pub(crate) fn uncharge(&mut self, queue: &str, id: MessageId) {
        if !self.is_throttled(queue) {
            return;
        }
        let charges = &mut self.throttle.as_mut().unwrap().charges;
        if let Some(at) = charges.iter().rposition(|charge| charge.id == id) {
            charges.remove(at);
        }
    }

    /// Where somebody could take a message, none has surely room.
    pub(crate) fn assert_nothing_waits_without_reason(&self) {
        let Some(throttle) = &self.throttle else {
            return;
        };
        for queue in self.queues.iter().filter(|it| self.is_throttled(&it.name)) {
            let is_able = self.subs.iter().any(|sub| {
                let conn = self.conns.iter().find(|conn| conn.id == sub.id.conn);
                let has_room = conn.is_some_and(|conn| conn.has_room());
                sub.queue == queue.name && sub.credit != Some(0) && has_room
            });
            let ready = queue.messages.iter().filter(|it| it.place == Place::Ready);
            for message in ready.filter(|_| is_able) {
                let (name, bucket) = (&queue.name, &message.bucket);
                let has_room = throttle.has_room(name, bucket, self.now, |it| it.latest);
                assert!(
                    !has_room,
                    "{name}: {message:?} could go at {:?}: {throttle:?}",
                    self.now
                );
            }
        }
    }
}
