//! The files of a node with snapshot, pages and log are damaged, and the node is opened and
//! drained.
//!
//! The input is a script of damages (`crate::damage::Damage`). The promises:
//!
//! - always: no panic; the node is refused, or what it delivers is what was published, each message
//!   once;
//! - one place of one file is damaged: it is refused, or no message is missing from its figures;
//! - nothing but names of log files changed: it opens, and every message is delivered.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, EngineConfig, Event, LeaseMode, MessageId,
    Millis, PublishBatch, PublishItem, PublishTarget, QueueSpec, ReplyTo, Request, SettleBatch,
    SettleItem, SettleQueue, Settlement, Span, SubId, SubscribeSpec, VhostId,
};
use tanda_node::{Node, NodeConfig};
use tanda_wal::mem_disk::MemDisk;
use tanda_wire::fila::enqueue::encode_content;

use crate::damage::{self, Harm};
use crate::script::Script;

const CONN: ConnId = ConnId(1);
const START: Millis = Millis(1_700_000_000_000);
/// The one queue.
const QUEUE: &str = "q";
/// Messages that are published.
const MESSAGES: u64 = 160;
/// Of these: left in the queue.
const LEFT: u64 = MESSAGES - ACKED;
/// Acked ones, the oldest.
const ACKED: u64 = 30;
/// Rounds of work before a node that does not come to rest is a bug.
const ROUNDS_MAX: usize = 10_000;

/// Runs one input.
///
/// # Panics
/// When the node breaks a promise.
pub fn run(input: &[u8]) {
    let disk = MemDisk::new(0);
    for (name, content) in directory() {
        disk.set_content(name, content);
    }
    let harm = damage::harm(&disk, &mut Script::new(input));
    let now = START.after_ms(3_600_000);
    let node = match Node::open(Arc::new(disk), config(), now) {
        Ok(node) => node,
        Err(error) => {
            assert!(harm > Harm::Names, "only names changed: {error}");
            return;
        }
    };
    let mut world = World::new(node, now);
    let known = world.depth();
    if harm <= Harm::OnePlace {
        assert_eq!(known, Some(LEFT), "messages after {harm:?}");
    }
    let delivered = world.drain();
    let expected = ACKED..MESSAGES;
    for number in &delivered {
        // Acks may be lost with the end of the log, never with a single place.
        let is_left = expected.contains(number) || (harm == Harm::Any && *number < MESSAGES);
        assert!(is_left, "message {number} after {harm:?}");
    }
    if harm <= Harm::Names {
        assert_eq!(delivered.len() as u64, LEFT, "messages delivered");
    }
}

fn config() -> NodeConfig {
    let log = tanda_wal::Config {
        segment_bytes: 16 << 10,
        chunk_bytes: 8 << 10,
        cache_bytes: 16 << 10,
        read_cache_bytes: 8 << 10,
        read_ahead_bytes: 8 << 10,
        reserve_segments: 0,
        spare_segments_max: 2,
        ..tanda_wal::Config::small(7, 0)
    };
    NodeConfig {
        engine: EngineConfig {
            page_messages: 8,
            lane_hot: 16,
            ..EngineConfig::default()
        },
        log,
        snapshot_bytes: 16 << 10,
        ..NodeConfig::new(7)
    }
}

/// The files, the same in every process.
fn directory() -> &'static [(String, Vec<u8>)] {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(make)
}

fn make() -> Vec<(String, Vec<u8>)> {
    let disk = MemDisk::new(1);
    let node = match Node::open(Arc::new(disk.clone()), config(), START) {
        Ok(node) => node,
        Err(error) => unreachable!("a new node: {error}"),
    };
    let mut world = World::new(node, START);
    world.create();
    for number in 0..MESSAGES {
        world.publish(number);
        if number % 16 == 0 {
            world.settle_down();
        }
        if number == 120 {
            world.subscribe(u32::try_from(ACKED).unwrap_or_default());
            world.settle_down();
            assert_eq!(world.ack().len() as u64, ACKED);
        }
        if number % 50 == 40 {
            world.node.want_snapshot();
        }
    }
    world.settle_down();
    assert!(world.node.published_snapshot().is_some(), "a snapshot");
    drop(world);
    let names = disk.names().into_iter();
    names
        .map(|name| {
            let content = disk.content(&name).unwrap_or_default();
            (name, content)
        })
        .collect()
}

/// A node and its one client.
struct World {
    node: Node<MemDisk>,
    now: Millis,
    events: Vec<(ConnId, Event)>,
    token: u32,
}

impl World {
    fn new(node: Node<MemDisk>, now: Millis) -> Self {
        let now = now.max(node.clock_floor().min(now.after_ms(3_600_000)));
        let mut world = Self {
            node,
            now,
            events: Vec::new(),
            token: 0,
        };
        let limits = ConnLimits {
            outbound_bytes_max: 64 << 20,
            subscriptions_max: 100,
        };
        world.handle(Request::Connect { conn: CONN, limits });
        world
    }

    fn handle(&mut self, request: Request) {
        self.node.handle(self.now, request);
        self.after_call();
    }

    fn after_call(&mut self) {
        self.node.drain_released(&mut self.events);
        self.node.assert_invariants();
    }

    fn settle_down(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let more = self.node.run(self.now);
            self.after_call();
            let flush = self.node.take_flush();
            let flushed = flush.is_some();
            if let Some(job) = flush {
                self.node.on_flushed(self.now, job.run());
                self.after_call();
            }
            let background = self.node.take_background();
            let worked = background.is_some();
            if let Some(job) = background {
                self.node.on_background(self.now, job.run());
                self.after_call();
            }
            if !more && !flushed && !worked {
                return;
            }
        }
        unreachable!("the node does not come to rest");
    }

    fn reply(&mut self) -> ReplyTo {
        self.token += 1;
        ReplyTo {
            conn: CONN,
            token: self.token,
        }
    }

    fn create(&mut self) {
        let spec = QueueSpec {
            name: QUEUE.to_owned(),
            ..QueueSpec::default()
        };
        let (reply, request) = (self.reply(), AdminRequest::CreateQueue(Box::new(spec)));
        self.handle(Request::Admin { reply, request });
    }

    /// A message that tells its number, and has some weight.
    fn publish(&mut self, number: u64) {
        let mut data = QUEUE.as_bytes().to_vec();
        let payload = number.to_be_bytes().repeat(40);
        let written = encode_content(&mut data, [("n", "v")], &payload);
        assert_eq!(written, Ok(()));
        let len = u32::try_from(data.len() - QUEUE.len()).unwrap_or_default();
        let item = PublishItem {
            target: PublishTarget::Name(Span { start: 0, len: 1 }),
            content: Span { start: 1, len },
            fairness_key: Span::default(),
            weight: 1,
            delay_ms: 0,
            idempotency_key: None,
            priority: 0,
            transient: false,
            ..PublishItem::default()
        };
        let batch = PublishBatch {
            data: Bytes::from(data),
            items: vec![item],
            ..PublishBatch::default()
        };
        let reply = self.reply();
        self.handle(Request::Publish { reply, batch });
    }

    fn subscribe(&mut self, credit: u32) {
        let token = self.reply().token;
        let spec = SubscribeSpec {
            queue: QUEUE.to_owned(),
            credit: Some(credit),
            lease: LeaseMode::Timed,
            throttles: Vec::new(),
            ..SubscribeSpec::default()
        };
        let sub = SubId { conn: CONN, token };
        self.handle(Request::Subscribe { sub, spec });
    }

    /// Acks what was delivered; the numbers of the messages.
    fn ack(&mut self) -> Vec<u64> {
        let (mut numbers, mut ids) = (Vec::new(), Vec::<MessageId>::new());
        for (_, event) in core::mem::take(&mut self.events) {
            let Event::Delivery { batch, .. } = event else {
                continue;
            };
            for item in &batch.items {
                numbers.push(number_of(batch.content(item)));
                ids.push(item.id);
            }
        }
        let queue = SettleQueue::Name(Span { start: 0, len: 1 });
        let items = ids.into_iter().map(|id| SettleItem {
            queue,
            id,
            settlement: Settlement::Ack,
        });
        let batch = SettleBatch {
            data: Bytes::from_static(QUEUE.as_bytes()),
            items: items.collect(),
            ..SettleBatch::default()
        };
        let reply = self.reply();
        self.handle(Request::Settle { reply, batch });
        self.settle_down();
        numbers
    }

    /// Messages in the queue; `None` when there is no such queue.
    fn depth(&mut self) -> Option<u64> {
        let name = QUEUE.to_owned();
        let (reply, request) = (
            self.reply(),
            AdminRequest::QueueStats {
                vhost: VhostId::DEFAULT,
                name,
            },
        );
        self.handle(Request::Admin { reply, request });
        self.settle_down();
        let replies = core::mem::take(&mut self.events).into_iter();
        let mut stats = replies.filter_map(|(_, event)| match event {
            Event::Admin { reply, .. } => Some(*reply),
            Event::Committed { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. }
            | Event::Got { .. }
            | Event::Published { .. }
            | Event::Settled { .. }
            | Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::Delivery { .. }
            | Event::SubscriptionEnded { .. }
            | Event::StorageFailed { .. } => None,
        });
        match stats.next() {
            Some(AdminReply::Stats(Ok(stats))) => Some(stats.counts.depth + stats.counts.in_flight),
            _ => None,
        }
    }

    /// Takes and acks all that comes; each message comes once.
    fn drain(&mut self) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        self.subscribe(u32::MAX);
        self.settle_down();
        for _ in 0..ROUNDS_MAX {
            let numbers = self.ack();
            if numbers.is_empty() {
                break;
            }
            for number in numbers {
                assert!(all.insert(number), "message {number} came twice");
            }
        }
        all
    }
}

/// The number of a message, every byte of which must be as it was published.
fn number_of(content: &[u8]) -> u64 {
    let tail = content.len().saturating_sub(8);
    let number = content.get(tail..).and_then(<[u8]>::first_chunk);
    let number = u64::from_be_bytes(number.copied().unwrap_or_default());
    let mut expected = Vec::new();
    let payload = number.to_be_bytes().repeat(40);
    let written = encode_content(&mut expected, [("n", "v")], &payload);
    assert_eq!(written, Ok(()));
    assert!(content == expected, "a content that was never published");
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_has_a_snapshot_pages_and_log() {
        let names: Vec<&str> = directory().iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.iter().any(|name| name.ends_with(".seg")), "{names:?}");
        for needed in ["index.pages", "snapshot-a", "snapshot-b"] {
            assert!(names.contains(&needed), "{names:?}");
        }
    }
}
