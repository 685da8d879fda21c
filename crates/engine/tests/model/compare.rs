//! What operators see of engine and model: statistics and explanations.

use tanda_engine::{
    AdminReply, AdminRequest, KeyStats, MessageId, MessagePlace, QueueCounts, QueueExplanation,
    QueueStats, QueueSummary, VhostId,
};

use crate::model::{Model, Place, Queue};
use crate::world::World;

impl World {
    pub(crate) fn compare(&mut self) {
        let names: Vec<_> = self.model.queues.iter().map(|q| q.name.clone()).collect();
        for name in &names {
            let AdminReply::Stats(Ok(mut seen)) = self.admin(AdminRequest::QueueStats {
                vhost: VhostId::DEFAULT,
                name: name.clone(),
            }) else {
                panic!("statistics of {name}");
            };
            // Keys of several priorities stand there once for each.
            let order = |key: &KeyStats| (key.key.clone(), key.weight, key.pending, key.deficit);
            seen.keys.sort_by_key(order);
            let mut expected = self.model.stats(name);
            if self.model.is_throttled(name) {
                leave_turns_out(&mut seen);
                leave_turns_out(&mut expected);
            }
            expected.keys.sort_by_key(order);
            assert_eq!(seen, expected, "statistics of {name}");
            // Another message at each look.
            let count = self.known.len().max(1);
            let pick = self.next_token as usize % count;
            let message = self.known.get(pick).map(|(_, id)| *id);
            self.compare_explanation(name, message);
        }
        let AdminReply::Queues(seen) = self.admin(AdminRequest::ListQueues) else {
            panic!("a list of queues");
        };
        let mut seen = seen;
        for queue in &mut seen {
            queue.counts = without_waiting(queue.counts);
        }
        let mut expected: Vec<_> = names
            .iter()
            .map(|name| QueueSummary {
                name: name.clone(),
                counts: self.model.stats(name).counts,
            })
            .collect();
        expected.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(seen, expected);
    }

    fn compare_explanation(&mut self, name: &str, message: Option<MessageId>) {
        let request = AdminRequest::Explain {
            vhost: VhostId::DEFAULT,
            name: name.to_owned(),
            message,
        };
        let AdminReply::Explained(Ok(seen)) = self.admin(request) else {
            panic!("an explanation of {name}");
        };
        let mut expected = self.model.explain(name, message);
        if self.model.is_throttled(name) {
            // Who is in line there is not modelled; where a message is that cannot go, is.
            let is_open = |place: &Option<MessagePlace>| {
                let ready = matches!(place, Some(MessagePlace::Ready { .. }));
                ready || matches!(place, Some(MessagePlace::Behind { .. }))
            };
            if !is_open(&expected.message) {
                assert_eq!(seen.message, expected.message, "{name}: {message:?}");
            }
            return;
        }
        self.allow_page(&seen, &mut expected);
        assert_eq!(seen, expected, "{name}: {message:?}");
    }

    /// A message that came back into the middle of a page: nobody reads the page only to count how
    /// many of its messages go before it.
    fn allow_page(&self, seen: &QueueExplanation, expected: &mut QueueExplanation) {
        let page = u64::from(self.setup.page_messages);
        if self.setup.lane_hot < 100
            && let Some(MessagePlace::Ready {
                ahead_in_key: counted,
                ..
            }) = seen.message
            && let Some(MessagePlace::Ready { ahead_in_key, .. }) = &mut expected.message
            && counted <= *ahead_in_key
            && counted + page > *ahead_in_key
        {
            *ahead_in_key = counted;
        }
    }
}

/// What waits for a bucket could go otherwise.
const fn without_waiting(mut counts: QueueCounts) -> QueueCounts {
    counts.ready += counts.throttled;
    counts.throttled = 0;
    counts
}

/// The turns of a throttled queue are not modelled.
fn leave_turns_out(stats: &mut QueueStats) {
    stats.counts = without_waiting(stats.counts);
    stats.throttles.clear();
    for key in &mut stats.keys {
        key.deficit = 0;
    }
}

impl Model {
    fn named(&self, name: &str) -> &Queue {
        self.queues.iter().find(|q| q.name == name).unwrap()
    }

    pub(crate) fn stats(&self, name: &str) -> QueueStats {
        let queue = self.named(name);
        let count = |wanted: fn(&Place) -> bool| {
            queue.messages.iter().filter(|m| wanted(&m.place)).count() as u64
        };
        let in_flight = count(|place| matches!(place, Place::Leased(_)));
        let mut lanes: Vec<(String, u8)> = Vec::new();
        for message in queue.messages.iter().filter(|m| m.lease().is_none()) {
            let lane = (message.key.clone(), message.priority);
            if !lanes.contains(&lane) {
                lanes.push(lane);
            }
        }
        let keys: Vec<_> = lanes
            .iter()
            .map(|(key, priority)| {
                let of = queue.messages.iter().filter(|m| m.key == *key);
                let of = of.filter(|m| m.priority == *priority && m.lease().is_none());
                let turn = queue
                    .turns
                    .iter()
                    .find(|t| t.key == *key && t.priority == *priority);
                KeyStats {
                    key: key.clone(),
                    pending: of.count() as u64,
                    deficit: turn.map_or(0, |turn| turn.deficit),
                    weight: queue.weight_of(key, *priority),
                }
            })
            .collect();
        let consumers = self.subs.iter().filter(|s| s.queue == name).count();
        QueueStats {
            counts: QueueCounts {
                depth: queue.depth(),
                in_flight,
                delayed: count(|place| matches!(place, Place::Delayed(_))),
                behind: count(|place| matches!(place, Place::Behind(_))),
                throttled: 0,
                ready: count(|place| matches!(place, Place::Ready)),
                active_fairness_keys: keys.len() as u64,
                active_consumers: u32::try_from(consumers).unwrap(),
                bytes: queue.messages.iter().map(|m| m.bytes).sum(),
                remembered_keys: queue.remembered.len() as u64,
                ..QueueCounts::default()
            },
            keys,
            quantum: self.quantum,
            throttles: Vec::new(),
        }
    }

    fn explain(&self, name: &str, message: Option<MessageId>) -> QueueExplanation {
        let queue = self.named(name);
        let mut groups = Vec::new();
        for message in &queue.messages {
            if matches!(message.place, Place::Behind(_)) && !groups.contains(&&message.group) {
                groups.push(&message.group);
            }
        }
        let (mut ready, mut without_credit, mut full) = (0, 0, 0);
        for sub in self.subs.iter().filter(|s| s.queue == name) {
            let conn = self.conns.iter().find(|c| c.id == sub.id.conn).unwrap();
            if sub.credit == Some(0) {
                without_credit += 1;
            } else if conn.has_room() {
                ready += 1;
            } else {
                full += 1;
            }
        }
        let dues = queue.messages.iter().filter_map(|m| match m.place {
            Place::Delayed(due) => Some(due),
            Place::Ready | Place::Behind(_) | Place::Leased(_) | Place::Leaving => None,
        });
        QueueExplanation {
            name: name.to_owned(),
            counts: self.stats(name).counts,
            consumers_ready: ready,
            consumers_without_credit: without_credit,
            consumers_with_full_buffer: full,
            next_due_at: dues.min(),
            next_lease_end_at: queue.messages.iter().filter_map(|m| m.lease()?.end).min(),
            groups_held: groups.len() as u64,
            last_script_error: None,
            unfit: 0,
            first_unfit: None,
            throttles: Vec::new(),
            message: message.map(|id| self.place(queue, id)),
        }
    }

    fn place(&self, queue: &Queue, id: MessageId) -> MessagePlace {
        let Some(at) = queue.find(id) else {
            let dead_letters = format!("{}.dlq", queue.name);
            let dead = self.queues.iter().find(|q| q.name == dead_letters);
            return match dead.filter(|q| q.find(id).is_some()) {
                Some(dead) => MessagePlace::DeadLettered {
                    queue: dead.name.clone(),
                },
                None => MessagePlace::Unknown,
            };
        };
        let message = &queue.messages[at];
        match message.place {
            Place::Ready => {
                let ahead = queue.ready_of(&message.key, message.priority);
                let ahead = ahead.iter().filter(|m| m.position < message.position);
                let keys = queue
                    .turns
                    .iter()
                    .filter(|t| t.priority == message.priority);
                MessagePlace::Ready {
                    fairness_key: message.key.clone(),
                    ahead_in_key: ahead.count() as u64,
                    keys_in_ring: keys.count() as u64,
                    is_unfit: false,
                    attempts: message.failures,
                }
            }
            Place::Delayed(due_at) => MessagePlace::Delayed {
                due_at,
                attempts: message.failures,
            },
            Place::Behind(_) => {
                let head = queue.head_of_group(id).unwrap();
                MessagePlace::Behind {
                    head,
                    head_place: Box::new(self.place(queue, head)),
                }
            }
            Place::Leased(lease) => MessagePlace::Leased {
                expires_at: lease.end,
                attempts: message.failures + 1,
                consumer: (lease.consumer != 0).then_some(lease.consumer),
            },
            Place::Leaving => MessagePlace::Unknown,
        }
    }
}
