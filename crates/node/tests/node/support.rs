//! A node on a memory disk, driven step by step. Nothing happens by itself: a test decides when a
//! pass runs and when a flush is written.

use std::sync::Arc;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeliveryBatch, Event, LeaseMode, MessageId,
    Millis, PublishBatch, PublishItem, PublishResult, PublishTarget, QueueSpec, QueueStats,
    ReplyTo, Request, SettleBatch, SettleItem, SettleQueue, SettleResult, Settlement, Span, SubId,
    SubscribeSpec, VhostId,
};
use tanda_node::{Node, NodeConfig};
use tanda_wal::mem_disk::MemDisk;

pub(crate) const PRODUCER: ConnId = ConnId(1);
pub(crate) const CONSUMER: ConnId = ConnId(2);
pub(crate) const OTHER: ConnId = ConnId(3);

/// When the first node starts.
pub(crate) const START: Millis = Millis(1_700_000_000_000);

pub(crate) struct World {
    pub(crate) disk: MemDisk,
    pub(crate) node: Node<MemDisk>,
    pub(crate) now: Millis,
    pub(crate) events: Vec<(ConnId, Event)>,
    next_token: u32,
}

pub(crate) fn config() -> NodeConfig {
    NodeConfig {
        log: tanda_wal::Config::small(7, 0),
        snapshot_bytes: 256 << 10,
        ..NodeConfig::new(7)
    }
}

impl World {
    /// A new node with its three connections.
    pub(crate) fn new() -> Self {
        Self::reopened(MemDisk::new(1), START, config())
    }

    /// The node that `disk` holds.
    pub(crate) fn reopened(disk: MemDisk, now: Millis, config: NodeConfig) -> Self {
        let node = Node::open(Arc::new(disk.clone()), config, now).unwrap();
        Self::of(node, disk, now)
    }

    /// That node, with its three connections.
    pub(crate) fn of(node: Node<MemDisk>, disk: MemDisk, now: Millis) -> Self {
        let now = now.max(node.clock_floor());
        let mut world = Self {
            disk,
            node,
            now,
            events: Vec::new(),
            next_token: 1,
        };
        for conn in [PRODUCER, CONSUMER, OTHER] {
            world.connect(conn);
        }
        world
    }

    pub(crate) fn connect(&mut self, conn: ConnId) {
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 20,
            subscriptions_max: 100,
        };
        self.handle(Request::Connect { conn, limits });
    }

    pub(crate) fn handle(&mut self, request: Request) {
        self.node.handle(self.now, request);
        self.after_call();
    }

    /// Passes until nothing is left to do without the disk.
    pub(crate) fn run(&mut self) {
        for _ in 0..10_000 {
            let more = self.node.run(self.now);
            self.after_call();
            if !more {
                return;
            }
        }
        panic!("the node never comes to rest");
    }

    /// Writes what is pending, if anything is.
    pub(crate) fn flush(&mut self) -> bool {
        let Some(job) = self.node.take_flush() else {
            return false;
        };
        let outcome = job.run();
        self.node.on_flushed(self.now, outcome);
        self.after_call();
        true
    }

    /// Does what waits in the background, if anything does.
    pub(crate) fn background(&mut self) -> bool {
        let Some(job) = self.node.take_background() else {
            return false;
        };
        let outcome = job.run();
        self.node.on_background(self.now, outcome);
        self.after_call();
        true
    }

    /// Runs, flushes and works in the background until there is nothing to do.
    pub(crate) fn settle_down(&mut self) {
        for _ in 0..10_000 {
            self.run();
            let flushed = self.flush();
            if !self.background() && !flushed {
                return;
            }
        }
        panic!("the node never comes to rest");
    }

    /// Lets time pass in steps of at most `step_ms`, doing what is due.
    pub(crate) fn pass(&mut self, total_ms: u64, step_ms: u64) {
        let end = self.now.after_ms(total_ms);
        while self.now < end {
            self.now = self.now.after_ms(step_ms.min(self.now.until(end)));
            self.settle_down();
        }
    }

    fn after_call(&mut self) {
        self.node.drain_released(&mut self.events);
        self.node.assert_invariants();
    }

    pub(crate) fn take(&mut self) -> Vec<(ConnId, Event)> {
        std::mem::take(&mut self.events)
    }

    fn token(&mut self) -> u32 {
        self.next_token += 1;
        self.next_token
    }

    pub(crate) fn admin(&mut self, request: AdminRequest) -> u32 {
        let token = self.token();
        let reply = ReplyTo {
            conn: PRODUCER,
            token,
        };
        self.handle(Request::Admin { reply, request });
        token
    }

    /// Creates a queue and waits for it.
    pub(crate) fn create(&mut self, spec: QueueSpec) {
        let token = self.admin(AdminRequest::CreateQueue(Box::new(spec)));
        self.settle_down();
        match self.admin_reply(token) {
            Some(AdminReply::Created(Ok(_))) => {}
            other => panic!("not created: {other:?}"),
        }
    }

    pub(crate) fn stats(&mut self, queue: &str) -> QueueStats {
        let name = queue.to_owned();
        let token = self.admin(AdminRequest::QueueStats {
            vhost: VhostId::DEFAULT,
            name,
        });
        self.settle_down();
        match self.admin_reply(token) {
            Some(AdminReply::Stats(Ok(stats))) => stats,
            other => panic!("no statistics: {other:?}"),
        }
    }

    pub(crate) fn admin_reply(&mut self, wanted: u32) -> Option<AdminReply> {
        let at = self
            .events
            .iter()
            .position(|(_, e)| matches!(e, Event::Admin { token, .. } if *token == wanted))?;
        match self.events.remove(at).1 {
            Event::Admin { reply, .. } => Some(*reply),
            _ => None,
        }
    }

    /// Sends one batch; the answer comes by `published(token)`.
    pub(crate) fn publish(&mut self, queue: &str, payloads: &[Vec<u8>]) -> u32 {
        let token = self.token();
        let reply = ReplyTo {
            conn: PRODUCER,
            token,
        };
        let batch = publish_batch(queue, payloads);
        self.handle(Request::Publish { reply, batch });
        token
    }

    pub(crate) fn published(&mut self, wanted: u32) -> Option<Vec<PublishResult>> {
        let at = self
            .events
            .iter()
            .position(|(_, e)| matches!(e, Event::Published { token, .. } if *token == wanted))?;
        match self.events.remove(at).1 {
            Event::Published { results, .. } => Some(results),
            _ => None,
        }
    }

    pub(crate) fn settle(&mut self, queue: &str, ids: &[MessageId], settlement: Settlement) -> u32 {
        let token = self.token();
        let reply = ReplyTo {
            conn: CONSUMER,
            token,
        };
        let batch = SettleBatch {
            data: Bytes::copy_from_slice(queue.as_bytes()),
            items: ids
                .iter()
                .map(|id| SettleItem {
                    queue: SettleQueue::Name(span(0, queue.len())),
                    id: *id,
                    settlement,
                })
                .collect(),
            ..SettleBatch::default()
        };
        self.handle(Request::Settle { reply, batch });
        token
    }

    pub(crate) fn settled(&mut self, wanted: u32) -> Option<Vec<SettleResult>> {
        let at = self
            .events
            .iter()
            .position(|(_, e)| matches!(e, Event::Settled { token, .. } if *token == wanted))?;
        match self.events.remove(at).1 {
            Event::Settled { results, .. } => Some(results),
            _ => None,
        }
    }

    pub(crate) fn subscribe(&mut self, sub: SubId, queue: &str, credit: Option<u32>) {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit,
            lease: LeaseMode::Timed,
            throttles: Vec::new(),
            ..SubscribeSpec::default()
        };
        self.handle(Request::Subscribe { sub, spec });
    }

    /// Deliveries released so far to `sub`, which are taken and leave for the peer.
    pub(crate) fn deliveries(&mut self, sub: SubId) -> Vec<DeliveryBatch> {
        let mut found = Vec::new();
        for (conn, event) in std::mem::take(&mut self.events) {
            match event {
                Event::Delivery { token, batch } if conn == sub.conn && token == sub.token => {
                    found.push(batch);
                }
                other => self.events.push((conn, other)),
            }
        }
        let bytes = found.iter().map(DeliveryBatch::budget_bytes).sum();
        if bytes > 0 {
            let conn = sub.conn;
            self.handle(Request::Drained { conn, bytes });
        }
        found
    }

    /// The messages of those deliveries.
    pub(crate) fn received(&mut self, sub: SubId) -> Vec<Received> {
        let mut found = Vec::new();
        for batch in self.deliveries(sub) {
            for item in &batch.items {
                let content = batch.content(item);
                found.push(Received {
                    id: item.id,
                    attempts: item.attempts,
                    payload: content.get(6..).unwrap().to_vec(),
                });
            }
        }
        found
    }

    pub(crate) fn failed_tokens(&self) -> Vec<u32> {
        self.events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::StorageFailed { token } => Some(*token),
                _ => None,
            })
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) id: MessageId,
    pub(crate) attempts: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn sub(conn: ConnId, token: u32) -> SubId {
    SubId { conn, token }
}

pub(crate) fn named(name: &str) -> QueueSpec {
    QueueSpec {
        name: name.to_owned(),
        ..QueueSpec::default()
    }
}

pub(crate) fn stored(results: &[PublishResult]) -> Vec<MessageId> {
    results
        .iter()
        .map(|result| match result {
            PublishResult::Stored(id) => *id,
            other => panic!("not stored: {other:?}"),
        })
        .collect()
}

pub(crate) fn publish_batch(queue: &str, payloads: &[Vec<u8>]) -> PublishBatch {
    let mut data = queue.as_bytes().to_vec();
    let items = payloads
        .iter()
        .map(|payload| {
            let start = data.len();
            data.extend_from_slice(&0u16.to_be_bytes());
            data.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
            data.extend_from_slice(payload);
            PublishItem {
                target: PublishTarget::Name(span(0, queue.len())),
                content: span(start, data.len() - start),
                fairness_key: Span::default(),
                weight: 0,
                delay_ms: 0,
                idempotency_key: None,
                priority: 0,
                transient: false,
                ..PublishItem::default()
            }
        })
        .collect();
    PublishBatch {
        data: data.into(),
        items,
        ..PublishBatch::default()
    }
}

pub(crate) fn span(start: usize, len: usize) -> Span {
    Span {
        start: u32::try_from(start).unwrap(),
        len: u32::try_from(len).unwrap(),
    }
}

/// Power is lost; the node is opened again `later_ms` after.
pub(crate) fn crash_and_reopen(world: World, later_ms: u64) -> World {
    crash_and_reopen_with(world, later_ms, config())
}

pub(crate) fn crash_and_reopen_with(world: World, later_ms: u64, config: NodeConfig) -> World {
    let now = world.now.after_ms(later_ms);
    let disk = world.disk.crash();
    drop(world);
    World::reopened(disk, now, config)
}
