//! What was done to the data directories.

use tanda_engine::{
    AdminRequest, Backoff, DeliveryDurability, KeyKind, KeyPart, MaxLength, MissingOrderingKey,
    Ordering, Overflow, PublishBatch, PublishItem, PublishTarget, QueueId, QueueSpec, Rebalancing,
    ReplyTo, Request, Settlement, Span, VhostId,
};
use tanda_wal::mem_disk::MemDisk;

use crate::config;
use crate::support::{CONSUMER, PRODUCER, START, World, named, span, stored, sub};

/// A message to be published.
#[derive(Clone, Default)]
pub(crate) struct Message<'a> {
    pub(crate) key: &'a str,
    pub(crate) weight: u32,
    pub(crate) delay_ms: u64,
    pub(crate) once: Option<&'a str>,
    pub(crate) priority: u8,
    pub(crate) payload: Vec<u8>,
}

/// Every kind of queue and every place a message can be in.
pub(crate) fn queues() -> MemDisk {
    let mut world = World::reopened(MemDisk::new(1), START, config());
    for spec in specs() {
        world.create(spec);
    }
    for (key, value) in [("rate.eu", "17"), ("rate.us", "größer"), ("empty", "")] {
        let (key, value) = (key.to_owned(), value.to_owned());
        world.admin(AdminRequest::SetConfig { key, value });
    }
    let pause = Rebalancing::Paused {
        pause_ms: 7_200_000,
    };
    world.admin(AdminRequest::SetRebalancing(pause));
    for queue in [
        "orders", "seq", "bykey", "once", "fast", "bounded", "emptied", "gone",
    ] {
        for number in 0..8_u8 {
            let message = Message {
                key: ["", "a", "b"][usize::from(number % 3)],
                weight: u32::from(number % 3),
                delay_ms: u64::from(number / 6) * 5_400_000,
                priority: number % 2,
                once: None,
                payload: payload(queue, number),
            };
            send(&mut world, queue, &[message]);
        }
    }
    world.settle_down();
    for once in ["x", "y", "x", "z"] {
        let message = Message {
            once: Some(once),
            payload: payload(once, 0),
            ..Message::default()
        };
        send(&mut world, "once", &[message]);
        world.settle_down();
    }
    fan_out(&mut world);
    settle_some(&mut world);
    let name = "emptied".to_owned();
    world.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    let name = "gone".to_owned();
    world.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    world.settle_down();
    world.pass(2_000, 100);
    world.disk.kill()
}

fn specs() -> Vec<QueueSpec> {
    let part = |kind| {
        let name = String::new();
        vec![KeyPart { kind, name }]
    };
    let key = part(KeyKind::FairnessKey);
    let missing = MissingOrderingKey::Unordered;
    vec![
        QueueSpec {
            max_attempts: 2,
            backoff: Some(Backoff::Fixed),
            backoff_initial_ms: 1,
            lease_ms: 600_000,
            ..named("orders")
        },
        QueueSpec {
            ordering: Ordering::Queue,
            ..named("seq")
        },
        QueueSpec {
            ordering: Ordering::Key { key, missing },
            ..named("bykey")
        },
        QueueSpec {
            dedup_key: Some(part(KeyKind::IdempotencyKey)),
            dedup_window_ms: 86_400_000,
            ..named("once")
        },
        QueueSpec {
            durability: DeliveryDurability::Fast,
            ..named("fast")
        },
        QueueSpec {
            max_length: Some(MaxLength {
                messages: 5,
                overflow: Overflow::DropHead,
            }),
            ..named("bounded")
        },
        named("emptied"),
        named("gone"),
    ]
}

/// Acks, failures, dead letters, a redrive, and leases that are still held.
fn settle_some(world: &mut World) {
    let consumer = sub(CONSUMER, 1);
    world.subscribe(consumer, "orders", Some(5));
    world.settle_down();
    let received = world.received(consumer);
    let ids: Vec<_> = received.iter().map(|it| it.id).collect();
    assert_eq!(ids.len(), 5);
    let failed = Settlement::Fail {
        error: Span::default(),
        retry_after_ms: None,
    };
    world.settle("orders", &ids[..1], Settlement::Ack);
    world.settle("orders", &ids[1..2], Settlement::Reject);
    world.settle("orders", &ids[2..3], failed);
    world.settle("orders", &ids[3..4], Settlement::Requeue);
    world.settle("orders", &ids[4..], Settlement::Reject);
    world.settle_down();
    let name = "orders.dlq".to_owned();
    world.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 1,
        reclassify: tanda_engine::Reclassify::All,
    });
    world.settle_down();
    world.handle(Request::Grant {
        sub: consumer,
        credit: 2,
    });
    world.settle_down();
    let held = world.received(consumer);
    assert_eq!(held.len(), 2);
    world.settle(
        "orders",
        &[held[1].id],
        Settlement::Extend { by_ms: 7_000_000 },
    );
    world.handle(Request::Unsubscribe {
        sub: consumer,
        held: tanda_engine::Held::Requeue,
    });
    for queue in ["seq", "fast"] {
        let consumer = sub(CONSUMER, 2);
        world.subscribe(consumer, queue, Some(2));
        world.settle_down();
        let received = world.received(consumer);
        world.settle(queue, &[received[0].id], Settlement::Ack);
        world.settle_down();
        world.handle(Request::Unsubscribe {
            sub: consumer,
            held: tanda_engine::Held::Requeue,
        });
    }
    world.settle_down();
}

/// One message in two queues.
fn fan_out(world: &mut World) {
    let ids: Vec<QueueId> = ["fast", "seq"].map(|name| id_of(world, name)).to_vec();
    let (mut batch, start) = (PublishBatch::default(), 0);
    let mut data = Vec::new();
    put_content(&mut data, b"in two queues");
    let content = span(start, data.len());
    batch
        .items
        .push(item(PublishTarget::Queues(span(0, ids.len())), content));
    batch.routes = ids;
    batch.data = data.into();
    let reply = ReplyTo {
        conn: PRODUCER,
        token: 77_777,
    };
    world.handle(Request::Publish { reply, batch });
    world.settle_down();
    stored(&world.published(77_777).unwrap());
}

fn id_of(world: &mut World, queue: &str) -> QueueId {
    let name = queue.to_owned();
    let token = world.admin(AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    world.settle_down();
    match world.admin_reply(token) {
        Some(tanda_engine::AdminReply::Inspected(Ok(details))) => {
            QueueId(details.id.trim_start_matches('q').parse().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

/// A log whose beginning is gone, written by several runs.
pub(crate) fn truncated() -> MemDisk {
    let mut world = World::reopened(MemDisk::new(2), START, config());
    world.create(named("stays"));
    world.create(named("passes"));
    let (key, value) = ("kept".to_owned(), "from the first segment".to_owned());
    world.admin(AdminRequest::SetConfig { key, value });
    for round in 0..4_u8 {
        for number in 0..8 {
            let payload = [payload("passes", number), vec![round; 1500]].concat();
            send(
                &mut world,
                "passes",
                &[Message {
                    payload,
                    ..Message::default()
                }],
            );
        }
        world.settle_down();
        drain(&mut world, "passes", 8);
        world.pass(20_000, 1_000);
        let (disk, now) = (world.disk.kill(), world.now.after_ms(1));
        drop(world.node);
        world = World::reopened(disk, now, config());
    }
    for number in 0..5 {
        let message = Message {
            payload: payload("stays", number),
            ..Message::default()
        };
        send(&mut world, "stays", &[message]);
    }
    world.pass(5_000, 100);
    let disk = world.disk.kill();
    assert!(claimed_start(&disk) > 4 * (16 << 10), "not truncated");
    disk
}

/// The start in the newest segment's header (docs/formats/log.md).
fn claimed_start(disk: &MemDisk) -> u64 {
    let contents = disk
        .names()
        .into_iter()
        .map(|name| disk.content(&name).unwrap());
    let segments = contents.filter(|content| content[10] == 2);
    let number =
        |content: &[u8], at: usize| u64::from_le_bytes(content[at..at + 8].try_into().unwrap());
    let newest = segments.max_by_key(|content| number(content, 48)).unwrap();
    number(&newest, 72)
}

/// A log whose last batch was torn: its message is not among those expected.
pub(crate) fn torn() -> MemDisk {
    let mut world = World::reopened(MemDisk::new(3), START, config());
    world.create(named("tail"));
    for number in 0..4 {
        let message = Message {
            key: "k",
            payload: payload("tail", number),
            ..Message::default()
        };
        send(&mut world, "tail", &[message]);
        world.settle_down();
    }
    let before: Vec<_> = world
        .disk
        .names()
        .into_iter()
        .map(|name| {
            let content = world.disk.content(&name).unwrap();
            (name, content)
        })
        .collect();
    let message = Message {
        payload: vec![b'!'; 6_000],
        ..Message::default()
    };
    send(&mut world, "tail", &[message]);
    world.settle_down();
    let disk = world.disk.kill();
    // The first block of the batch reached the disk, the second did not.
    for (name, old) in before {
        let mut content = disk.content(&name).unwrap();
        if let Some(at) = content.iter().zip(&old).position(|(new, old)| new != old) {
            let second = at.next_multiple_of(4096).max(at + 1).next_multiple_of(4096);
            let second = if at % 4096 == 0 { at + 4096 } else { second };
            content[second..].copy_from_slice(&old[second..]);
            disk.set_content(&name, &content);
        }
    }
    disk
}

fn drain(world: &mut World, queue: &str, count: usize) {
    let consumer = sub(CONSUMER, 3);
    world.subscribe(consumer, queue, None);
    world.settle_down();
    let ids: Vec<_> = world.received(consumer).iter().map(|it| it.id).collect();
    assert_eq!(ids.len(), count);
    world.settle(queue, &ids, Settlement::Ack);
    world.handle(Request::Unsubscribe {
        sub: consumer,
        held: tanda_engine::Held::Requeue,
    });
    world.settle_down();
}

fn payload(queue: &str, number: u8) -> Vec<u8> {
    format!("{queue} {number}").into_bytes()
}

/// Publishes messages one by one; the answer stays among the events.
pub(crate) fn send(world: &mut World, queue: &str, messages: &[Message<'_>]) {
    for message in messages {
        let mut data = queue.as_bytes().to_vec();
        let key = put(&mut data, message.key.as_bytes());
        let once = message.once.map(|text| put(&mut data, text.as_bytes()));
        let start = data.len();
        put_content(&mut data, &message.payload);
        let content = span(start, data.len() - start);
        let batch = PublishBatch {
            items: vec![PublishItem {
                fairness_key: key,
                weight: message.weight,
                delay_ms: message.delay_ms,
                idempotency_key: once,
                priority: message.priority,
                ..item(PublishTarget::Name(span(0, queue.len())), content)
            }],
            data: data.into(),
            ..PublishBatch::default()
        };
        let reply = ReplyTo {
            conn: PRODUCER,
            token: 99_999,
        };
        world.handle(Request::Publish { reply, batch });
    }
}

fn item(target: PublishTarget, content: Span) -> PublishItem {
    PublishItem {
        target,
        content,
        fairness_key: Span::default(),
        weight: 0,
        delay_ms: 0,
        idempotency_key: None,
        priority: 0,
        transient: false,
        ..PublishItem::default()
    }
}

fn put(data: &mut Vec<u8>, bytes: &[u8]) -> Span {
    let start = data.len();
    data.extend_from_slice(bytes);
    span(start, bytes.len())
}

/// A content with one header.
fn put_content(data: &mut Vec<u8>, payload: &[u8]) {
    data.extend_from_slice(&1_u16.to_be_bytes());
    for text in ["trace", "t1"] {
        data.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        data.extend_from_slice(text.as_bytes());
    }
    data.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    data.extend_from_slice(payload);
}
