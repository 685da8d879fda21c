//! What belongs together is there as a whole after a crash at any disk call, or not at all.

use std::collections::BTreeMap;

use crate::support::{CONSUMER, PRODUCER, START, World, config, named, publish_batch, span, sub};
use tanda_engine::{
    AdminReply, AdminRequest, Backoff, DeclareQueue, Event, Form, LeaseMode, PublishBatch,
    PublishItem, PublishResult, PublishTarget, QueueId, QueueSpec, ReplyTo, Request, SettleBatch,
    SettleItem, SettleQueue, Settlement, SubscribeSpec,
};
use tanda_wal::mem_disk::MemDisk;

const QUEUES: [&str; 3] = ["in", "out1", "out2"];
const MOVED: usize = 6;

/// What a run knows at its end.
struct Run {
    world: World,
    /// Transactions whose answer came.
    committed: usize,
}

fn payload(n: usize) -> Vec<u8> {
    // Each does not fit into what is left of a batch.
    vec![b'a' + n as u8; 3_000]
}

/// Both messages to both queues.
fn to_both(payloads: &[Vec<u8>]) -> PublishBatch {
    let mut batch = publish_batch("out1", payloads);
    let second = publish_batch("out2", payloads);
    let mut data = batch.data.to_vec();
    let shift = u32::try_from(data.len()).unwrap();
    data.extend_from_slice(&second.data);
    batch.data = data.into();
    batch.items.extend(second.items.into_iter().map(|mut item| {
        item.content.start += shift;
        if let PublishTarget::Name(name) = &mut item.target {
            name.start += shift;
        }
        item
    }));
    batch
}

/// Six messages come in; three transactions move two of them each to two other queues. The disk
/// stops at its `crash_after`-th operation from there on.
fn run(crash_after: u64) -> Run {
    let mut world = World::reopened(MemDisk::new(crash_after + 1), START, config());
    for name in QUEUES {
        world.create(QueueSpec {
            lease_ms: 1_000,
            max_attempts: 1_000_000,
            backoff: Some(Backoff::None),
            ..named(name)
        });
    }
    let payloads: Vec<_> = (0..MOVED).map(payload).collect();
    let token = world.publish("in", &payloads);
    world.subscribe(sub(CONSUMER, 9), "in", None);
    world.settle_down();
    assert_eq!(world.published(token).unwrap().len(), MOVED);
    let received = world.received(sub(CONSUMER, 9));
    assert_eq!(received.len(), MOVED);
    world.disk.crash_after(crash_after);
    let mut committed = 0;
    for pair in received.chunks(2) {
        let payloads: Vec<_> = pair.iter().map(|it| it.payload.clone()).collect();
        let items = pair.iter().map(|it| SettleItem {
            queue: SettleQueue::Name(span(0, 2)),
            id: it.id,
            settlement: Settlement::Ack,
        });
        let settle = SettleBatch {
            data: "in".into(),
            items: items.collect(),
            ..SettleBatch::default()
        };
        let reply = ReplyTo {
            conn: PRODUCER,
            token: 1_000,
        };
        let publish = to_both(&payloads);
        world.handle(Request::Transaction {
            reply,
            publish,
            settle,
        });
        world.settle_down();
        committed += take_committed(&mut world);
        if world.node.failed().is_some() {
            break;
        }
    }
    Run { world, committed }
}

fn take_committed(world: &mut World) -> usize {
    let events = world.take();
    let committed = events.iter().filter(|(_, event)| match event {
        Event::Committed { published, .. } => published
            .iter()
            .all(|it| matches!(it, PublishResult::Stored(_))),
        _ => false,
    });
    committed.count()
}

/// How often each payload is in each queue.
fn contents(world: &mut World) -> BTreeMap<(usize, &'static str), usize> {
    let mut found = BTreeMap::new();
    for (token, name) in (20..).zip(QUEUES) {
        world.subscribe(sub(CONSUMER, token), name, None);
    }
    // Leases of before the crash end.
    world.pass(1_500, 100);
    for (token, name) in (20..).zip(QUEUES) {
        let mut ids = std::collections::BTreeSet::new();
        for message in world.received(sub(CONSUMER, token)) {
            let n = usize::from(message.payload[0] - b'a');
            assert_eq!(message.payload, payload(n), "{name}");
            if ids.insert(message.id) {
                *found.entry((n, name)).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn a_transaction_is_whole_after_a_crash_at_any_disk_call() {
    let (mut halves, mut none) = (0, 0);
    for crash_after in 0.. {
        let Run { world, committed } = run(crash_after);
        let disk = world.disk.restart();
        let now = world.now;
        let mut world = World::reopened(disk, now, config());
        let found = contents(&mut world);
        let mut moved = 0;
        for n in 0..MOVED {
            let counts = QUEUES.map(|name| found.get(&(n, name)).copied().unwrap_or(0));
            assert!(
                counts == [1, 0, 0] || counts == [0, 1, 1],
                "message {n} after {crash_after} operations: {counts:?}"
            );
            moved += counts[1];
        }
        assert_eq!(moved % 2, 0, "half a transaction after {crash_after}");
        assert!(
            moved / 2 >= committed,
            "a commit is lost after {crash_after}"
        );
        halves += usize::from(moved > 0 && moved < MOVED);
        none += usize::from(moved == 0);
        if committed == 3 {
            break;
        }
    }
    assert!(
        halves > 0 && none > 0,
        "{halves} and {none} crashes in between"
    );
}

/// A declared queue; arguments are names and texts.
fn declare(world: &mut World, name: &str, args: &[(&str, &str)]) {
    let mut table = Vec::new();
    for (key, value) in args {
        table.push(key.len() as u8);
        table.extend_from_slice(key.as_bytes());
        table.push(b'S');
        table.extend_from_slice(&(value.len() as u32).to_be_bytes());
        table.extend_from_slice(value.as_bytes());
    }
    let queue = DeclareQueue {
        name: name.to_owned(),
        durable: true,
        args: table.into(),
        ..DeclareQueue::default()
    };
    let token = world.admin(AdminRequest::DeclareQueue(Box::new(queue)));
    world.settle_down();
    match world.admin_reply(token) {
        Some(AdminReply::QueueDeclared(Ok(_))) => {}
        other => panic!("not declared: {other:?}"),
    }
}

/// A message as AMQP has it, to a queue through the default exchange.
fn amqp_batch(queue: &str, payload: &[u8]) -> PublishBatch {
    let mut data = vec![0, queue.len() as u8];
    data.extend_from_slice(queue.as_bytes());
    // One property: it is persistent.
    data.extend_from_slice(&[0, 0, 0, 3, 0x10, 0, 2]);
    data.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    data.extend_from_slice(payload);
    let item = PublishItem {
        content: span(0, data.len()),
        form: Form::Amqp,
        ..PublishItem::default()
    };
    PublishBatch {
        data: data.into(),
        items: vec![item],
        ..PublishBatch::default()
    }
}

fn hold(world: &mut World, token: u32, queue: &str) {
    let spec = SubscribeSpec {
        queue: queue.to_owned(),
        lease: LeaseMode::Connection,
        ..SubscribeSpec::default()
    };
    let sub = sub(CONSUMER, token);
    world.handle(Request::Subscribe { sub, spec });
}

/// Six messages are rejected one after the other, and go to another queue. The disk stops at its
/// `crash_after`-th operation from there on. How many were rejected before that.
fn run_dead_letters(crash_after: u64) -> (World, usize) {
    let mut world = World::reopened(MemDisk::new(crash_after + 1), START, config());
    let dead = [
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-routing-key", "dead"),
    ];
    declare(&mut world, "in", &dead);
    declare(&mut world, "dead", &[]);
    for n in 0..MOVED {
        let reply = ReplyTo {
            conn: PRODUCER,
            token: 500,
        };
        let batch = amqp_batch("in", &payload(n));
        world.handle(Request::Publish { reply, batch });
    }
    hold(&mut world, 9, "in");
    world.settle_down();
    let batches = world.deliveries(sub(CONSUMER, 9));
    let items = batches
        .iter()
        .flat_map(|batch| batch.items.iter().map(|it| (batch.queue_id, it.id)));
    let items: Vec<_> = items.collect();
    assert_eq!(items.len(), MOVED);
    world.disk.crash_after(crash_after);
    let mut rejected = 0;
    for (queue, id) in items {
        let item = SettleItem {
            queue: SettleQueue::Id(queue),
            id,
            settlement: Settlement::Nack { requeue: false },
        };
        let batch = SettleBatch {
            items: vec![item],
            ..SettleBatch::default()
        };
        let reply = ReplyTo {
            conn: CONSUMER,
            token: 600,
        };
        world.handle(Request::Settle { reply, batch });
        world.settle_down();
        if world.node.failed().is_some() {
            break;
        }
        rejected += 1;
    }
    (world, rejected)
}

#[test]
fn a_dead_letter_is_in_one_queue_after_a_crash_at_any_disk_call() {
    let mut between = 0;
    for crash_after in 0.. {
        let (world, rejected) = run_dead_letters(crash_after);
        let disk = world.disk.restart();
        let now = world.now;
        let mut world = World::reopened(disk, now, config());
        for (token, name) in [(20, "in"), (21, "dead")] {
            hold(&mut world, token, name);
        }
        world.settle_down();
        let mut found = BTreeMap::new();
        for (token, name) in [(20, "in"), (21, "dead")] {
            for batch in world.deliveries(sub(CONSUMER, token)) {
                for item in &batch.items {
                    let content = tanda_engine::Content::new(item.form, batch.content(item));
                    let body = content.payload().unwrap();
                    let n = usize::from(body[0] - b'a');
                    assert_eq!(body, payload(n), "{name}");
                    let before = found.insert(n, name);
                    assert_eq!(before, None, "message {n} is twice after {crash_after}");
                }
            }
        }
        assert_eq!(found.len(), MOVED, "after {crash_after}: {found:?}");
        let dead = found.values().filter(|name| **name == "dead").count();
        between += usize::from(dead > 0 && dead < MOVED);
        if rejected == MOVED && dead == MOVED {
            break;
        }
    }
    assert!(between > 0, "no crash in between");
}

/// One message to both queues `out1` and `out2`, with one body.
fn fan_out(world: &mut World, n: usize) {
    let mut batch = publish_batch("out1", &[payload(n)]);
    // Each queue's dead-letter queue has the id after its own.
    batch.routes = [3, 5].map(QueueId).to_vec();
    for item in &mut batch.items {
        item.target = PublishTarget::Queues(span(0, 2));
    }
    let reply = ReplyTo {
        conn: PRODUCER,
        token: 700,
    };
    world.handle(Request::Publish { reply, batch });
}

#[test]
fn a_body_that_two_queues_share_is_found_when_a_start_moves_it() {
    let mut found_both = 0;
    for flushes in 0..4 {
        let mut world = World::reopened(MemDisk::new(9), START, config());
        for name in QUEUES {
            world.create(named(name));
        }
        world.settle_down();
        for n in 0..flushes {
            fan_out(&mut world, n);
            world.run();
            // On disk, and nothing says so yet: the next start takes it along to a new segment.
            world.flush();
        }
        let now = world.now;
        let mut world = World::reopened(world.disk.kill(), now, config());
        let found = contents(&mut world);
        for n in 0..flushes {
            assert_eq!(
                found.get(&(n, "out1")),
                found.get(&(n, "out2")),
                "{n}: {found:?}"
            );
            found_both += usize::from(found.contains_key(&(n, "out2")));
        }
    }
    assert!(found_both > 0, "nothing was found");
}
