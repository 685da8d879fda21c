//! What a node does at its memory limit.

use crate::support::{CONSUMER, START, World, config, named, stored, sub};
use tanda_engine::{MessageId, PublishError, PublishResult, Settlement};
use tanda_node::NodeConfig;
use tanda_wal::mem_disk::MemDisk;

const LIMIT_BYTES: u64 = 400 << 10;

#[test]
fn at_the_memory_limit_publishes_are_refused_until_messages_have_left() {
    let limited = NodeConfig {
        memory_limit_bytes: LIMIT_BYTES,
        ..config()
    };
    let mut world = World::reopened(MemDisk::new(1), START, limited);
    world.create(named("jobs"));
    let (mut count, mut was_short) = (0, false);
    while !world.node.stats().memory_full {
        let token = world.publish("jobs", &vec![vec![1; 10]; 100]);
        world.settle_down();
        // Memory is counted now and then.
        world.pass(200, 100);
        count += stored(&world.published(token).unwrap()).len();
        assert!(count < 20_000, "never full");
        was_short |= world.node.memory_short() && !world.node.memory_full();
    }
    assert!(was_short, "not told before it was full");
    assert!(world.node.memory_full());
    let refused = world.publish("jobs", &[b"too much".to_vec()]);
    world.settle_down();
    let answer = world.published(refused).unwrap();
    assert_eq!(answer, [PublishResult::Refused(PublishError::Storage)]);

    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    let mut acked = 0;
    while acked < count {
        world.settle_down();
        let ids: Vec<MessageId> = world.received(consumer).iter().map(|m| m.id).collect();
        assert!(!ids.is_empty(), "{acked} of {count}");
        acked += ids.len();
        let token = world.settle("jobs", &ids, Settlement::Ack);
        world.settle_down();
        assert!(world.settled(token).unwrap().iter().all(Result::is_ok));
    }
    assert_eq!(acked, count, "the refused one is not there");
    // It notices that by itself.
    while let Some(at) = world
        .node
        .next_deadline()
        .filter(|_| world.node.memory_short())
    {
        world.now = world.now.max(at);
        world.run();
    }
    assert!(!world.node.memory_full() && !world.node.memory_short());
    world.pass(1_000, 100);
    let token = world.publish("jobs", &[b"again".to_vec()]);
    world.settle_down();
    assert_eq!(stored(&world.published(token).unwrap()).len(), 1);
}
