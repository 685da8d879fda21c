//! What a copy of the disk holds of AMQP's queues: a broker on its own opens it and gives all of
//! it away.

use std::collections::BTreeMap;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Content, DeliveryBatch, Event, LeaseMode, Millis,
    ReplyTo, Request, SettleBatch, SettleItem, SettleQueue, Settlement, SubId, SubscribeSpec,
    VhostId,
};
use tanda_node::Node;

use crate::disk::SimDisk;
use crate::failure::{Check, Violation, ensure};
use crate::invariants::amqp::topology::Found;
use crate::invariants::recovers;

use super::topology::find;

/// Steps until it must be empty.
const STEPS_MAX: usize = 200_000;
/// Simulated time until it must be empty: the longest time to live many times.
const DRAIN_MS_MAX: u64 = 120_000;

const CONN: ConnId = ConnId(1);

/// A message that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) body: Vec<u8>,
    /// Times it was delivered, this one included.
    pub(crate) deliveries: u32,
}

/// Exchanges, queues and bindings, and what came out of each queue, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    pub(crate) found: Found,
    pub(crate) taken: BTreeMap<String, Vec<Taken>>,
}

/// Takes everything from every queue that AMQP declared, and acknowledges it.
pub(super) fn empty(node: &mut Node<SimDisk>, now: Millis) -> Result<Emptied, Violation> {
    node.assert_invariants();
    let found = find(node, now)?;
    let mut emptying = Emptying {
        node,
        now,
        emptied: Emptied {
            found,
            taken: BTreeMap::new(),
        },
    };
    emptying.run()?;
    Ok(emptying.emptied)
}

struct Emptying<'a> {
    node: &'a mut Node<SimDisk>,
    now: Millis,
    emptied: Emptied,
}

impl Emptying<'_> {
    fn run(&mut self) -> Check {
        let limits = ConnLimits {
            outbound_bytes_max: u64::MAX,
            subscriptions_max: u32::MAX,
        };
        let conn = CONN;
        self.node
            .handle(self.now, Request::Connect { conn, limits });
        let queues = self.emptied.found.queues.iter();
        let names: Vec<String> = queues.map(|(name, ..)| name.clone()).collect();
        for (token, queue) in (0..).zip(names.iter().cloned()) {
            let spec = SubscribeSpec {
                queue,
                credit: None,
                lease: LeaseMode::Connection,
                ..SubscribeSpec::default()
            };
            let sub = SubId { conn, token };
            self.node.handle(self.now, Request::Subscribe { sub, spec });
        }
        let until = self.now.after_ms(DRAIN_MS_MAX);
        for _ in 0..STEPS_MAX {
            if self.move_on() {
                continue;
            }
            if self.is_empty(&names) {
                return Ok(());
            }
            let next = self.node.next_deadline().filter(|at| *at > self.now);
            self.now = next.unwrap_or_else(|| self.now.after_ms(1_000));
            ensure(self.now < until, recovers::NAME, || {
                "AMQP's queues on a copy of the disk do not drain".to_owned()
            })?;
        }
        Err(recovers::stuck("a copy of the disk does not come to rest"))
    }

    /// True when something moved.
    fn move_on(&mut self) -> bool {
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
                self.take(&batch);
            }
        }
        moved
    }

    fn take(&mut self, batch: &DeliveryBatch) {
        let queue = batch.queue.as_ref().to_owned();
        let taken = self.emptied.taken.entry(queue).or_default();
        let mut items = Vec::new();
        for item in &batch.items {
            let content = Content::new(item.form, batch.content(item));
            taken.push(Taken {
                body: content.payload().unwrap_or_default().to_vec(),
                deliveries: item.deliveries,
            });
            items.push(SettleItem {
                queue: SettleQueue::Id(batch.queue_id),
                id: item.id,
                settlement: Settlement::Ack,
            });
        }
        let reply = ReplyTo {
            conn: CONN,
            token: 0,
        };
        let batch = SettleBatch {
            data: Bytes::new(),
            items,
            ..SettleBatch::default()
        };
        self.node.handle(self.now, Request::Settle { reply, batch });
    }

    /// Whether all queues say that they hold nothing, and nothing has come meanwhile.
    fn is_empty(&mut self, names: &[String]) -> bool {
        for name in names {
            let reply = ReplyTo {
                conn: CONN,
                token: 0,
            };
            let name = name.clone();
            let request = AdminRequest::QueueStats {
                vhost: VhostId::DEFAULT,
                name,
            };
            self.node
                .handle(self.now, Request::Admin { reply, request });
        }
        let _more = self.node.run(self.now);
        if let Some(job) = self.node.take_flush() {
            self.node.on_flushed(self.now, job.run());
        }
        let mut events = Vec::new();
        self.node.drain_released(&mut events);
        let mut is_empty = true;
        for (_, event) in events {
            if let Event::Delivery { batch, .. } = &event {
                self.take(batch);
                is_empty = false;
            }
            if let Event::Admin { reply, .. } = event
                && let AdminReply::Stats(Ok(stats)) = *reply
            {
                let counts = stats.counts;
                is_empty &= counts.depth + counts.in_flight + counts.departing == 0;
            }
        }
        is_empty
    }
}
