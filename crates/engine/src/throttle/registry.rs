//! All throttles of the shard: who declares them, where they apply, and their buckets.
//!
//! A throttle is a name and a key. One of a name is declared at a time; others of the name, with
//! other keys, may have histories that still bind whoever declares them again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ahash::RandomState;

use super::ThrottleSpec;
use super::buckets::Buckets;
use super::history::NextRoom;
use super::permits::Permits;
use super::rules::Rules;
use crate::queue::entries::NIL;
use crate::queues::QueueIndex;
use crate::{KeyKind, KeyPart, Millis, SubscribeError};

/// What of a message decides its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Nothing: all messages of a queue wait together.
    Queue,
    /// The fairness key: those of a lane wait together.
    Lane,
    /// Its headers or attributes: each waits by itself.
    Message,
}

/// One throttle.
#[derive(Debug)]
pub(crate) struct Throttle {
    pub(crate) name: Arc<str>,
    pub(crate) key: Arc<[KeyPart]>,
    pub(crate) scope: Scope,
    pub(crate) rules: Rules,
    /// Queues with subscribers that declare it, and how many.
    pub(crate) queues: BTreeMap<QueueIndex, u32>,
    pub(crate) subscribers: u32,
    pub(crate) buckets: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Throttles {
    slots: Vec<Option<Throttle>>,
    by_name: BTreeMap<Arc<str>, Vec<u32>>,
    pub(crate) buckets: Buckets,
    pub(crate) permits: Permits,
    /// Throttles whose limits changed, with the next bucket to look at.
    pub(crate) recheck: VecDeque<(u32, u32)>,
    /// Queues on which a throttle applies no more while messages still wait for its buckets.
    pub(crate) draining: Vec<QueueIndex>,
}

impl Throttles {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            slots: Vec::new(),
            by_name: BTreeMap::new(),
            buckets: Buckets::new(hasher),
            permits: Permits::default(),
            recheck: VecDeque::new(),
            draining: Vec::new(),
        }
    }

    pub(crate) fn at(&self, throttle: u32) -> Option<&Throttle> {
        self.slots.get(throttle as usize)?.as_ref()
    }

    pub(crate) fn at_mut(&mut self, throttle: u32) -> Option<&mut Throttle> {
        self.slots.get_mut(throttle as usize)?.as_mut()
    }

    /// All of them, with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Throttle)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(at, it)| Some((at, it.as_ref()?)))
    }

    fn of_name(&self, name: &str) -> impl Iterator<Item = u32> {
        self.by_name.get(name).into_iter().flatten().copied()
    }

    /// The one of this name that somebody declares.
    pub(crate) fn declared(&self, name: &str) -> Option<u32> {
        let is_declared = |at: &u32| self.at(*at).is_some_and(|it| it.subscribers > 0);
        self.of_name(name).find(is_declared)
    }

    pub(crate) fn find(&self, name: &str, key: &[KeyPart]) -> Option<u32> {
        self.of_name(name)
            .find(|at| self.at(*at).is_some_and(|it| *it.key == *key))
    }

    pub(crate) fn find_or_add(&mut self, name: &str, key: &[KeyPart]) -> u32 {
        if let Some(found) = self.find(name, key) {
            return found;
        }
        let name: Arc<str> = name.into();
        let fresh = Throttle {
            name: Arc::clone(&name),
            key: key.into(),
            scope: Scope::of(key),
            rules: Rules::default(),
            queues: BTreeMap::new(),
            subscribers: 0,
            buckets: 0,
        };
        let at = match self.slots.iter().position(Option::is_none) {
            Some(at) => at,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some(fresh);
        }
        let at = u32::try_from(at).unwrap_or(NIL);
        self.by_name.entry(name).or_default().push(at);
        at
    }

    /// Whether these may be declared beside what others declare.
    pub(crate) fn check(
        &self,
        throttles: &[ThrottleSpec],
        limits_max: usize,
    ) -> Result<(), SubscribeError> {
        for spec in throttles {
            let name = || spec.name.clone();
            let Some(other) = self.declared(&spec.name).and_then(|at| self.at(at)) else {
                continue;
            };
            if *other.key != *spec.key {
                return Err(SubscribeError::ThrottleConflict { name: name() });
            }
            let count = other.rules.with(spec);
            if count > limits_max {
                return Err(SubscribeError::InvalidThrottle {
                    name: name(),
                    problem: format!(
                        "all subscribers together declare {count} limits: {limits_max} are allowed"
                    ),
                });
            }
        }
        Ok(())
    }

    /// One more subscriber of a queue declares this; returns the throttle's number.
    pub(crate) fn declare(&mut self, spec: &ThrottleSpec, queue: QueueIndex, now: Millis) -> u32 {
        let at = self.find_or_add(&spec.name, &spec.key);
        if let Some(it) = self.at_mut(at) {
            it.subscribers += 1;
            *it.queues.entry(queue).or_default() += 1;
            it.rules.declare(spec, now);
            if it.buckets > 0 {
                self.recheck.push_back((at, 0));
            }
        }
        at
    }

    /// A subscriber of a queue that declared this is gone.
    pub(crate) fn withdraw(&mut self, spec: &ThrottleSpec, queue: QueueIndex, now: Millis) {
        let Some(at) = self.find(&spec.name, &spec.key) else {
            return;
        };
        if let Some(it) = self.at_mut(at) {
            it.subscribers -= 1;
            if let Some(count) = it.queues.get_mut(&queue) {
                *count -= 1;
                if *count == 0 {
                    it.queues.remove(&queue);
                }
            }
            it.rules.withdraw(spec, now);
            if it.buckets > 0 {
                self.recheck.push_back((at, 0));
            }
        }
        self.drop_idle(at);
    }

    /// A throttle that nobody declares and that has no bucket left is forgotten.
    pub(crate) fn drop_idle(&mut self, at: u32) {
        let Some(it) = self.at(at) else { return };
        if it.subscribers > 0 || it.buckets > 0 {
            return;
        }
        let name = Arc::clone(&it.name);
        if let Some(slot) = self.slots.get_mut(at as usize) {
            *slot = None;
        }
        if let Some(all) = self.by_name.get_mut(&name) {
            all.retain(|other| *other != at);
            if all.is_empty() {
                self.by_name.remove(&name);
            }
        }
        self.recheck.retain(|(other, _)| *other != at);
    }

    /// The throttle of a bucket.
    pub(crate) fn of_bucket(&self, bucket: u32) -> Option<&Throttle> {
        self.at(self.buckets.at(bucket).throttle)
    }

    pub(crate) fn room(&self, bucket: u32, now: Millis) -> u64 {
        let it = self.buckets.at(bucket);
        let rules = self.at(it.throttle).map(|throttle| &throttle.rules);
        rules.map_or(u64::MAX, |rules| it.history.room(rules, now))
    }

    pub(crate) fn next_room(&self, bucket: u32, now: Millis) -> NextRoom {
        let it = self.buckets.at(bucket);
        let rules = self.at(it.throttle).map(|throttle| &throttle.rules);
        rules.map_or(NextRoom::Now, |rules| it.history.next_room(rules, now))
    }

    /// The bucket of a key, made if it is not there.
    pub(crate) fn bucket(&mut self, key: super::buckets::BucketKey<'_>) -> u32 {
        let before = self.buckets.len();
        let bucket = self.buckets.find_or_add(key);
        if self.buckets.len() > before
            && let Some(it) = self.at_mut(key.throttle)
        {
            it.buckets += 1;
        }
        bucket
    }

    /// Call after anything that may have changed what a bucket waits for.
    pub(crate) fn follow(&mut self, bucket: u32, now: Millis) {
        let Some(throttle) = self.buckets.live(bucket).map(|it| it.throttle) else {
            return;
        };
        let slot = self.slots.get_mut(throttle as usize);
        let Some(it) = slot.and_then(Option::as_mut) else {
            return;
        };
        if self.buckets.follow(bucket, &it.rules, now) {
            it.buckets -= 1;
            self.drop_idle(throttle);
        }
    }

    /// Grants one delivery from a bucket.
    pub(crate) fn reserve(&mut self, bucket: u32, now: Millis) {
        let throttle = self.buckets.at(bucket).throttle;
        let slot = self.slots.get(throttle as usize);
        if let Some(it) = slot.and_then(Option::as_ref) {
            let rules = &it.rules;
            self.buckets
                .change(bucket, |history| history.reserve(rules, now));
        }
    }

    /// A granted delivery left now.
    pub(crate) fn release(&mut self, bucket: u32, now: Millis) {
        let throttle = self.buckets.at(bucket).throttle;
        let slot = self.slots.get(throttle as usize);
        if let Some(it) = slot.and_then(Option::as_ref) {
            let rules = &it.rules;
            self.buckets
                .change(bucket, |history| history.release(rules, now));
        }
    }

    /// In replay: deliveries that left then.
    pub(crate) fn add(&mut self, bucket: u32, at: Millis, count: u64) {
        let throttle = self.buckets.at(bucket).throttle;
        let slot = self.slots.get(throttle as usize);
        if let Some(it) = slot.and_then(Option::as_ref) {
            let rules = &it.rules;
            self.buckets
                .change(bucket, |history| history.add(rules, at, count));
        }
    }

    /// After recovery: throttles that turned out to have no history are forgotten.
    pub(crate) fn drop_all_idle(&mut self) {
        for at in 0..self.slots.len() {
            self.drop_idle(u32::try_from(at).unwrap_or(NIL));
        }
    }

    /// A bucket woke all that it can for now: it waits until something changes.
    pub(crate) fn rest(&mut self, bucket: u32, now: Millis) {
        let Some(throttle) = self.buckets.live(bucket).map(|it| it.throttle) else {
            return;
        };
        let rules = self.slots.get(throttle as usize).and_then(Option::as_ref);
        let Some(rules) = rules.map(|it| &it.rules) else {
            return;
        };
        if self.buckets.at(bucket).units.is_empty() {
            self.follow(bucket, now);
        } else {
            self.buckets.rest(bucket, rules, now);
        }
    }

    /// When something happens to a throttle by itself.
    pub(crate) fn next_time(&self) -> Option<Millis> {
        let note = self.permits.note_at();
        let bucket = self.buckets.next_time();
        [note, bucket].into_iter().flatten().min()
    }

    /// There is something to do at once.
    pub(crate) fn has_work(&self, now: Millis) -> bool {
        self.buckets.has_open()
            || !self.recheck.is_empty()
            || !self.draining.is_empty()
            || self.next_time().is_some_and(|at| at <= now)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.permits.memory_bytes()
    }

    /// Panics when the structures contradict each other.
    pub(crate) fn assert_invariants(&self) {
        self.buckets.assert_invariants();
        let mut reserved = vec![0_u64; self.buckets.end() as usize];
        for bucket in self.permits.charged() {
            if let Some(count) = reserved.get_mut(bucket as usize) {
                *count += 1;
            }
        }
        let mut buckets = BTreeMap::<u32, u32>::new();
        for (at, reserved) in (0..).zip(reserved) {
            let Some(it) = self.buckets.live(at) else {
                assert_eq!(reserved, 0, "permits of bucket {at}, which is gone");
                continue;
            };
            assert_eq!(reserved, it.history.reserved(), "permits of bucket {at}");
            *buckets.entry(it.throttle).or_default() += 1;
        }
        for (at, it) in self.iter() {
            let name = &it.name;
            assert_eq!(
                buckets.remove(&at).unwrap_or(0),
                it.buckets,
                "buckets of {name}"
            );
            assert_eq!(
                it.queues.values().sum::<u32>(),
                it.subscribers,
                "subscribers of {name}"
            );
            assert!(
                it.subscribers > 0 || it.buckets > 0,
                "{name} should be forgotten"
            );
        }
        assert!(buckets.is_empty(), "buckets without a throttle");
    }
}

impl Scope {
    fn of(key: &[KeyPart]) -> Self {
        let by_lane = |part: &KeyPart| part.kind == KeyKind::FairnessKey;
        if key.is_empty() {
            Self::Queue
        } else if key.iter().all(by_lane) {
            Self::Lane
        } else {
            Self::Message
        }
    }
}
