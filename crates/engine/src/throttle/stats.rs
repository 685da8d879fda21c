//! Throttles and buckets as operators see them. Buckets are counted in slices.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::buckets::{Bucket, BucketKey};
use super::history::NextRoom;
use super::registry::Throttle;
use super::{MissingThrottleKey, ThrottleLimit, values};
use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Work};
use crate::queue::throttled::Hold;
use crate::queues::QueueIndex;
use crate::{AdminReply, KeyPart, Millis, ReplyTo};

/// A throttle as it applies now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleSummary {
    /// Its name.
    pub name: String,
    /// All limits that apply, of all declarations, by window.
    pub limits: Vec<ThrottleLimit>,
    /// What messages share a bucket; no parts = all messages share one.
    pub key: Vec<KeyPart>,
    /// What happens to messages that lack a part of the key.
    pub missing: MissingThrottleKey,
    /// Subscribers that declare it.
    pub subscribers: u32,
}

/// The state of a throttle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleStats {
    /// The throttle; its subscribers are counted over all queues.
    pub summary: ThrottleSummary,
    /// The queues it applies to, by name.
    pub queues: Vec<String>,
    /// Buckets with deliveries inside a window.
    pub active_buckets: u64,
    /// Buckets without room now.
    pub buckets_at_limit: u64,
    /// Messages it holds, over all queues.
    pub waiting: u64,
    /// The buckets that most messages wait for, most first.
    pub buckets: Vec<BucketStats>,
}

/// The state of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketStats {
    /// It is the one of messages that lack a part of the key.
    pub shared: bool,
    /// The values of the key; none of an unkeyed throttle's and of a shared bucket.
    pub values: Vec<String>,
    /// Deliveries inside the window of each limit, those under way to their consumers included.
    pub counted: Vec<u64>,
    /// Messages that wait for it.
    pub waiting: u64,
    /// When one more delivery fits all limits; zero = now.
    pub next_room_at: Millis,
}

/// No subscriber declares a throttle of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleNotFound;

/// How far the statistics of a throttle have come.
#[derive(Debug)]
pub(crate) struct BucketWalk {
    name: String,
    top: usize,
    next: u32,
    active: u64,
    at_limit: u64,
    waiting: u64,
    /// The buckets that most wait for; least first.
    most: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
    /// Those of them that are still to be shown, most first, and what was said of others.
    rest: VecDeque<u32>,
    shown: Vec<BucketStats>,
}

/// Buckets that statistics show at most.
const TOP_MAX: usize = 10_000;
/// Buckets looked at in one slice.
const SLICE_BUCKETS: u32 = 4096;
/// Buckets shown in one slice.
const SLICE_SHOWN: usize = 256;

impl Engine {
    pub(crate) fn throttle_stats(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        (name, top): (String, u32),
    ) {
        let walk = BucketWalk {
            name,
            top: usize::try_from(top).unwrap_or(TOP_MAX).min(TOP_MAX),
            next: 0,
            active: 0,
            at_limit: 0,
            waiting: 0,
            most: BinaryHeap::new(),
            rest: VecDeque::new(),
            shown: Vec::new(),
        };
        let job = Job {
            reply: to,
            queue: None,
            work: Work::Buckets(Box::new(walk)),
        };
        self.start_job(cx, job);
    }

    /// Counts some buckets; the answer when it has come to the last one.
    pub(crate) fn bucket_slice(&self, now: Millis, walk: &mut BucketWalk) -> Option<AdminReply> {
        let declared = self.throttles.declared(&walk.name);
        let found = declared.and_then(|at| Some((at, self.throttles.at(at)?)));
        let Some((at, throttle)) = found else {
            return Some(AdminReply::Throttle(Err(ThrottleNotFound)));
        };
        let end = self.throttles.buckets.end();
        let to = walk.next.saturating_add(SLICE_BUCKETS).min(end);
        for number in walk.next..to {
            let live = self.throttles.buckets.live(number);
            let Some(bucket) = live.filter(|it| it.throttle == at) else {
                continue;
            };
            let limits = throttle.rules.limits().iter();
            let counted = limits.map(|limit| bucket.history.counted(*limit, now));
            let active = counted.max().unwrap_or(0) > 0;
            let waiting = self.waiting_for(number, bucket);
            walk.active += u64::from(active);
            walk.at_limit += u64::from(bucket.history.room(&throttle.rules, now) == 0);
            walk.waiting += waiting;
            if active || waiting > 0 {
                walk.most.push(Reverse((waiting, Reverse(number))));
                if walk.most.len() > walk.top {
                    walk.most.pop();
                }
            }
        }
        walk.next = to;
        if to < end {
            return None;
        }
        if !walk.most.is_empty() {
            let most = core::mem::take(&mut walk.most).into_sorted_vec();
            let most = most.into_iter().map(|Reverse((_, Reverse(at)))| at);
            walk.rest = most.collect();
        }
        let some = walk.rest.len().min(SLICE_SHOWN);
        for number in walk.rest.drain(..some) {
            let bucket = self.throttles.buckets.live(number);
            if bucket.is_some_and(|bucket| bucket.throttle == at) {
                walk.shown.push(self.bucket_stats(now, number));
            }
        }
        if !walk.rest.is_empty() {
            return None;
        }
        let names = throttle.queues.keys().filter_map(|it| self.queues.get(*it));
        let mut queues: Vec<_> = names.map(|it| it.identity.name.to_string()).collect();
        queues.sort_unstable();
        Some(AdminReply::Throttle(Ok(ThrottleStats {
            summary: throttle.summary(throttle.subscribers),
            queues,
            active_buckets: walk.active,
            buckets_at_limit: walk.at_limit,
            waiting: walk.waiting,
            buckets: core::mem::take(&mut walk.shown),
        })))
    }

    /// The state of the bucket with these values; one that is not there is empty.
    pub(crate) fn throttle_bucket(
        &self,
        now: Millis,
        (name, shared, texts): (&str, bool, &[String]),
    ) -> Result<BucketStats, ThrottleNotFound> {
        let at = self.throttles.declared(name).ok_or(ThrottleNotFound)?;
        let throttle = self.throttles.at(at).ok_or(ThrottleNotFound)?;
        let mut bytes = Vec::new();
        for text in texts.iter().filter(|_| !shared) {
            values::push(&mut bytes, text.as_bytes());
        }
        let key = BucketKey {
            throttle: at,
            shared,
            values: &bytes,
        };
        Ok(match self.throttles.buckets.find(key) {
            Some(bucket) => self.bucket_stats(now, bucket),
            None => BucketStats {
                shared,
                values: values::texts(&bytes),
                counted: vec![0; throttle.rules.limits().len()],
                waiting: 0,
                next_room_at: Millis(0),
            },
        })
    }

    pub(crate) fn bucket_stats(&self, now: Millis, number: u32) -> BucketStats {
        let bucket = self.throttles.buckets.at(number);
        let rules = self.throttles.at(bucket.throttle).map(|it| &it.rules);
        let limits = rules.map_or(&[][..], |rules| rules.limits());
        let counted = limits.iter().map(|it| bucket.history.counted(*it, now));
        let next = rules.map_or(NextRoom::Now, |rules| {
            let next = bucket.history.next_room(rules, now);
            if next != NextRoom::OnRelease {
                return next;
            }
            // As if all that is under way left now.
            let mut history = bucket.history.clone();
            for _ in 0..history.reserved() {
                history.release(rules, now);
            }
            history.next_room(rules, now)
        });
        BucketStats {
            shared: bucket.shared,
            values: values::texts(&bucket.values),
            counted: counted.collect(),
            waiting: self.waiting_for(number, bucket),
            next_room_at: match next {
                NextRoom::At(at) => at,
                NextRoom::Now | NextRoom::OnRelease => Millis(0),
            },
        }
    }

    fn waiting_for(&self, number: u32, bucket: &Bucket) -> u64 {
        let hold = Hold {
            throttle: bucket.throttle,
            bucket: number,
        };
        let waiting = bucket.units.iter().filter_map(|(index, priority)| {
            let queue = self.queues.get(*index)?;
            Some(queue.waiting_for(hold, *priority))
        });
        waiting.sum()
    }

    /// Throttles that apply to a queue, by name.
    pub(crate) fn queue_throttles(&self, index: QueueIndex) -> Vec<ThrottleSummary> {
        let applying = self.queues.at(index).throttled.applying();
        let mut summaries: Vec<_> = applying
            .filter_map(|(at, _)| {
                let it = self.throttles.at(at)?;
                let subscribers = it.queues.get(&index).copied();
                Some(it.summary(subscribers.unwrap_or(0)))
            })
            .collect();
        summaries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        summaries
    }
}

impl Throttle {
    fn summary(&self, subscribers: u32) -> ThrottleSummary {
        ThrottleSummary {
            name: self.name.to_string(),
            limits: self.rules.limits().to_vec(),
            key: self.key.to_vec(),
            missing: self.rules.missing(),
            subscribers,
        }
    }
}
