//! A broker on its own, without clients and network: it is emptied, to see what it held.

use std::collections::BTreeSet;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Content, DeliveryBatch, Event, LeaseMode, Millis,
    QueueChanges, ReplyTo, Request, SettleBatch, SettleItem, SettleQueue, Settlement, Span, SubId,
    SubscribeSpec, VhostId,
};
use tanda_node::Node;

use crate::disk::SimDisk;
use crate::failure::{Check, Violation, ensure};
use crate::history::History;
use crate::invariants::{delivered_was_sent, recovers};

/// Steps until it must be empty.
const STEPS_MAX: usize = 200_000;
/// Simulated time until it must be empty: the longest lease, delay and backoff several times.
const DRAIN_MS_MAX: u64 = 300_000;

const CONN: ConnId = ConnId(1);

/// See the module.
pub(super) struct Drain<'a> {
    pub(super) history: &'a History,
    pub(super) node: Node<SimDisk>,
    pub(super) now: Millis,
    pub(super) found: BTreeSet<u128>,
}

impl Drain<'_> {
    /// Takes and acks everything, from every queue and dead-letter queue.
    pub(super) fn run(&mut self) -> Check {
        let limits = ConnLimits {
            outbound_bytes_max: u64::MAX,
            subscriptions_max: u32::MAX,
        };
        self.ask(Request::Connect { conn: CONN, limits });
        let names: Vec<String> = self.history.queues.keys().cloned().collect();
        let queues = names
            .iter()
            .flat_map(|it| [it.clone(), format!("{it}.dlq")]);
        for name in &names {
            // Nobody runs scripts here: what is not classified goes as its producer sent it.
            let changes = QueueChanges {
                on_enqueue: Some(None),
                on_failure: Some(None),
                ..QueueChanges::default()
            };
            let reply = ReplyTo {
                conn: CONN,
                token: 0,
            };
            let request = AdminRequest::UpdateQueue {
                vhost: VhostId::DEFAULT,
                name: name.clone(),
                changes: Box::new(changes),
            };
            self.ask(Request::Admin { reply, request });
        }
        for (token, queue) in (0..).zip(queues.clone()) {
            let spec = SubscribeSpec {
                queue,
                credit: None,
                lease: LeaseMode::Timed,
                throttles: Vec::new(),
                ..SubscribeSpec::default()
            };
            let sub = SubId { conn: CONN, token };
            self.ask(Request::Subscribe { sub, spec });
        }
        let until = self.now.after_ms(DRAIN_MS_MAX);
        for _ in 0..STEPS_MAX {
            if self.move_on()? {
                continue;
            }
            if self.is_empty(queues.clone())? {
                return Ok(());
            }
            let next = self.node.next_deadline();
            let next = next.filter(|at| *at > self.now);
            self.now = next.unwrap_or_else(|| self.now.after_ms(1_000));
            ensure(self.now < until, recovers::NAME, || {
                "a restored broker does not drain".to_owned()
            })?;
        }
        Err(recovers::stuck("a restored broker does not come to rest"))
    }

    fn ask(&mut self, request: Request) {
        self.node.handle(self.now, request);
    }

    /// True when something moved.
    fn move_on(&mut self) -> Result<bool, Violation> {
        let mut moved = self.node.run(self.now);
        if let Some(job) = self.node.take_flush() {
            self.node.on_flushed(self.now, job.run());
            moved = true;
        }
        if let Some(job) = self.node.take_background() {
            self.node.on_background(self.now, job.run());
            moved = true;
        }
        self.node.assert_invariants();
        let mut events = Vec::new();
        self.node.drain_released(&mut events);
        for (_, event) in events {
            moved = true;
            if let Event::Delivery { batch, .. } = event {
                self.take(&batch)?;
            }
        }
        Ok(moved)
    }

    fn take(&mut self, batch: &DeliveryBatch) -> Check {
        let mut items = Vec::new();
        let name = Bytes::copy_from_slice(batch.queue.as_bytes());
        for item in &batch.items {
            let stored = delivered_was_sent::Stored {
                id: item.id.0,
                queue: &batch.queue,
                content: Content::new(item.form, batch.content(item)).without_attributes(),
                fairness_key: batch.fairness_key(item),
                weight: item.weight,
            };
            delivered_was_sent::when_restored(self.history, &stored)?;
            let is_new = self.found.insert(item.id.0);
            ensure(is_new, delivered_was_sent::NAME, || {
                format!("{:032x} came twice out of a restored broker", item.id.0)
            })?;
            items.push(SettleItem {
                queue: SettleQueue::Name(Span {
                    start: 0,
                    len: u32::try_from(name.len()).unwrap_or(u32::MAX),
                }),
                id: item.id,
                settlement: Settlement::Ack,
            });
        }
        let reply = ReplyTo {
            conn: CONN,
            token: 0,
        };
        let batch = SettleBatch {
            data: name,
            items,
            ..SettleBatch::default()
        };
        self.ask(Request::Settle { reply, batch });
        Ok(())
    }

    /// Whether all queues say that they hold nothing.
    fn is_empty(&mut self, queues: impl Iterator<Item = String>) -> Result<bool, Violation> {
        for name in queues {
            let reply = ReplyTo {
                conn: CONN,
                token: 0,
            };
            let request = AdminRequest::QueueStats {
                vhost: VhostId::DEFAULT,
                name,
            };
            self.ask(Request::Admin { reply, request });
        }
        let mut events = Vec::new();
        let _more = self.node.run(self.now);
        if let Some(job) = self.node.take_flush() {
            self.node.on_flushed(self.now, job.run());
        }
        self.node.drain_released(&mut events);
        for (_, event) in events {
            match event {
                Event::Admin { reply, .. } => {
                    if let AdminReply::Stats(Ok(stats)) = *reply
                        && stats.counts.depth + stats.counts.in_flight > 0
                    {
                        return Ok(false);
                    }
                }
                Event::Delivery { batch, .. } => {
                    self.take(&batch)?;
                    return Ok(false);
                }
                Event::Published { .. }
                | Event::Settled { .. }
                | Event::Subscribed { .. }
                | Event::Committed { .. }
                | Event::Keys { .. }
                | Event::Watching { .. }
                | Event::Watched { .. }
                | Event::WatchEnded { .. }
                | Event::Got { .. }
                | Event::SubscribeFailed { .. }
                | Event::SubscriptionEnded { .. }
                | Event::StorageFailed { .. } => {}
            }
        }
        Ok(true)
    }
}
