//! Why a queue, or one of its messages, is not being delivered now.

use crate::engine::{Cx, Engine};
use crate::find::Search;
use crate::jobs::{Job, Work};
use crate::queue::Queue;
use crate::queue::entries::{Place, Slot};
use crate::queue::leases::NEVER;
use crate::queue::parking::NextTry;
use crate::queues::QueueIndex;
use crate::{
    AdminReply, FrameLimit, MessageId, MessagePlace, Millis, QueueExplanation, QueueNotFound,
    ReplyTo, VhostId,
};

/// Messages counted at most when asked how many go before one.
pub(crate) const AHEAD_MAX: u64 = 10_000;

impl Engine {
    pub(crate) fn explain(
        &mut self,
        cx: &mut Cx<'_>,
        reply: ReplyTo,
        (vhost, name): (VhostId, &str),
        message: Option<MessageId>,
    ) {
        let Some(index) = self.queues.find_in(vhost, name) else {
            return self.answer(cx, reply, AdminReply::Explained(Err(QueueNotFound)));
        };
        let queue = self.queues.at(index);
        let leased = message.and_then(|id| queue.leases.find(id));
        if let (Some(id), None) = (message, leased) {
            // Messages are looked up by id only while they are leased: the others are searched.
            let work = Work::Find(Search::new(id));
            self.jobs.push_back(Job {
                reply,
                queue: Some(queue.identity.id),
                work,
            });
            return;
        }
        let place = leased.map(|lease| self.place_of(cx, index, lease.slot));
        let explanation = self.explanation(index, place);
        self.answer(cx, reply, AdminReply::Explained(Ok(explanation)));
    }

    /// The explanation of a queue, and of a message that was looked for.
    pub(crate) fn explanation(
        &self,
        index: QueueIndex,
        message: Option<MessagePlace>,
    ) -> QueueExplanation {
        let queue = self.queues.at(index);
        let (unfit, first_unfit) = self.unfit(index);
        let (mut ready, mut without_credit, mut full) = (0, 0, 0);
        for consumer in queue
            .consumers
            .iter()
            .filter_map(|index| self.consumers.at(*index))
        {
            let has_room = self
                .consumers
                .conn(consumer.sub.conn)
                .is_some_and(|c| c.has_room());
            match (consumer.credit, has_room) {
                (Some(0), _) => without_credit += 1,
                (_, false) => full += 1,
                _ => ready += 1,
            }
        }
        QueueExplanation {
            name: queue.identity.name.to_string(),
            counts: queue.counts(),
            consumers_ready: ready,
            consumers_without_credit: without_credit,
            consumers_with_full_buffer: full,
            next_due_at: queue.delayed.first().map(|(due, _)| *due),
            next_lease_end_at: queue.leases.next_end(),
            groups_held: queue.groups.held(),
            last_script_error: queue.last_script_error(),
            unfit,
            first_unfit: first_unfit.map(|slot| queue.entries.at(slot).id),
            throttles: self.queue_throttles(index),
            message,
        }
    }

    /// Where a message of the queue is.
    pub(crate) fn place_of(&self, cx: &mut Cx<'_>, index: QueueIndex, slot: Slot) -> MessagePlace {
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        match entry.place {
            Place::Ready | Place::Throttled => {
                let of = (index, entry.lane, Some(slot));
                self.throttled_place(cx, of, entry.failures)
                    .unwrap_or_else(|| self.ready_place(index, slot))
            }
            Place::Behind => {
                let head = queue.groups.head(entry.group);
                MessagePlace::Behind {
                    head: queue.entries.at(head).id,
                    head_place: Box::new(self.place_of(cx, index, head)),
                }
            }
            Place::Delayed => delayed_place(queue, slot),
            Place::Leased => leased_place(queue, slot),
            Place::Parked => parked_place(queue, slot),
            Place::Stopped => match queue.parking.first() {
                Some(first) => MessagePlace::Stopped {
                    first_unclassified: queue.entries.at(first).id,
                    place: Box::new(parked_place(queue, first)),
                },
                // Its turn comes with the next step.
                None => MessagePlace::Unknown,
            },
            Place::Deciding => MessagePlace::Deciding {
                attempts: entry.failures.saturating_add(1),
            },
            Place::Departing => MessagePlace::Departing {
                reason: queue.departures.reason_of(slot).unwrap_or_default(),
            },
            Place::Aside => MessagePlace::Redriving,
            Place::Free | Place::New => MessagePlace::Unknown,
        }
    }

    fn ready_place(&self, index: QueueIndex, slot: Slot) -> MessagePlace {
        let queue = self.queues.at(index);
        let entry = queue.entries.at(slot);
        let limits = self.frame_limits(index);
        let fits = limits.is_empty() || queue.lanes.fits_any(entry.lane, &limits);
        MessagePlace::Ready {
            fairness_key: queue.lanes.at(entry.lane).key.to_string(),
            ahead_in_key: queue.lanes.ahead(&queue.entries, slot, AHEAD_MAX),
            keys_in_ring: u64::from(queue.lanes.ring_lanes(entry.lane)),
            is_unfit: !fits,
            attempts: entry.failures,
        }
    }

    /// How many messages fit no frame of any consumer, and the first ready one.
    fn unfit(&self, index: QueueIndex) -> (u64, Option<Slot>) {
        let limits = self.frame_limits(index);
        if limits.is_empty() {
            return (0, None);
        }
        let queue = self.queues.at(index);
        queue.lanes.unfit(&queue.entries, &limits)
    }

    /// The sizes of the frames of a queue's consumers, each once.
    fn frame_limits(&self, index: QueueIndex) -> Vec<FrameLimit> {
        let mut limits = Vec::new();
        let consumers = self.queues.at(index).consumers.iter();
        for it in consumers.filter_map(|consumer| self.consumers.at(*consumer)) {
            if !limits.contains(&it.terms.frame_limit) {
                limits.push(it.terms.frame_limit);
            }
        }
        limits
    }

    /// The bucket that a message waits for, if it waits for one.
    pub(crate) fn throttled_place(
        &self,
        cx: &mut Cx<'_>,
        (index, lane, slot): (QueueIndex, u32, Option<Slot>),
        attempts: u32,
    ) -> Option<MessagePlace> {
        let queue = self.queues.at(index);
        if !queue.throttled.is_any() {
            return None;
        }
        let bucket = self.waits_for(cx, (index, lane, slot))?;
        Some(MessagePlace::Throttled {
            throttle: self.throttles.of_bucket(bucket)?.name.to_string(),
            bucket: Box::new(self.bucket_stats(cx.now, bucket)),
            attempts,
        })
    }
}

fn delayed_place(queue: &Queue, slot: Slot) -> MessagePlace {
    let due = queue.delayed.iter().find(|(_, other)| *other == slot);
    MessagePlace::Delayed {
        due_at: due.map(|(due, _)| *due).unwrap_or_default(),
        attempts: queue.entries.at(slot).failures,
    }
}

fn leased_place(queue: &Queue, slot: Slot) -> MessagePlace {
    let entry = queue.entries.at(slot);
    let lease = queue.leases.find(entry.id);
    MessagePlace::Leased {
        expires_at: lease
            .map(|lease| lease.expires_at)
            .filter(|end| *end != NEVER),
        attempts: entry.failures.saturating_add(1),
        consumer: lease
            .map(|lease| lease.consumer)
            .filter(|number| *number != 0),
    }
}

fn parked_place(queue: &Queue, slot: Slot) -> MessagePlace {
    let entry = queue.entries.at(slot);
    let parked = queue.parking.get(entry.position);
    let error = parked.map(|it| it.error.to_string());
    MessagePlace::Parked {
        enqueued_at: entry.id.enqueued_at(),
        tries: queue.unclassified(slot).tries,
        error: error.filter(|error| !error.is_empty()),
        next_try_at: match queue.parking.next_try(entry.position) {
            Some(NextTry::At(at)) => Some(at),
            Some(NextTry::Soon | NextTry::Running) => Some(Millis(0)),
            Some(NextTry::OnChange) | None => None,
        },
    }
}

impl Queue {
    fn last_script_error(&self) -> Option<String> {
        let error = self.hooks.as_ref()?.last_error.as_ref()?;
        Some(error.to_string())
    }
}
