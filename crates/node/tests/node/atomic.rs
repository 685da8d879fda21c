//! What belongs together is there as a whole after a crash at any disk call, or not at all.

use std::collections::BTreeMap;

use crate::support::{CONSUMER, PRODUCER, START, World, config, named, publish_batch, span, sub};
use tanda_engine::{
    Backoff, Event, PublishBatch, PublishResult, QueueSpec, ReplyTo, Request, SettleBatch,
    SettleItem, SettleQueue, Settlement,
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
        if let tanda_engine::PublishTarget::Name(name) = &mut item.target {
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
