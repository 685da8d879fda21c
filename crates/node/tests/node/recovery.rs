//! What a node holds after its machine stopped, and why it may refuse to start.

use std::sync::Arc;

use crate::support::{CONSUMER, START, World, config, named, stored, sub};
use tanda_engine::Settlement;
use tanda_node::{Node, OpenError, RecoveryProgress};
use tanda_wal::mem_disk::{Fault, MemDisk};
use tanda_wal::{DiskCall, Log};

#[test]
fn what_was_confirmed_is_there_again_and_what_was_acked_is_not() {
    let mut world = World::new();
    world.create(named("jobs"));
    let token = world.publish("jobs", &[b"one".to_vec(), b"two".to_vec(), b"six".to_vec()]);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", Some(1));
    world.settle_down();
    let ids = stored(&world.published(token).unwrap());
    let first = world.received(consumer);
    assert_eq!(first[0].id, ids[0]);
    let token = world.settle("jobs", &[ids[0]], Settlement::Ack);
    world.settle_down();
    assert!(world.settled(token).unwrap()[0].is_ok());
    // Not confirmed, and its flush never comes.
    world.publish("jobs", &[b"never".to_vec()]);

    let mut world = crate::support::crash_and_reopen(world, 1);
    world.subscribe(consumer, "jobs", None);
    world.settle_down();
    let payloads: Vec<Vec<u8>> = world
        .received(consumer)
        .into_iter()
        .map(|m| m.payload)
        .collect();
    assert_eq!(payloads, [b"two".to_vec(), b"six".to_vec()]);
    assert_eq!(world.stats("jobs").counts.in_flight, 2);
}

#[test]
fn the_clock_does_not_start_before_the_newest_record() {
    let mut world = World::new();
    world.pass(50_000, 50_000);
    world.create(named("jobs"));
    let token = world.publish("jobs", &[b"one".to_vec()]);
    world.settle_down();
    let id = stored(&world.published(token).unwrap())[0];
    let disk = world.disk.crash();
    let mut world = World::reopened(disk, START, config());
    assert!(world.node.clock_floor() > id.enqueued_at());
    let token = world.publish("jobs", &[b"two".to_vec()]);
    world.settle_down();
    assert!(stored(&world.published(token).unwrap())[0] > id);
}

#[test]
fn recovery_tells_how_far_it_is() {
    let mut world = World::new();
    world.create(named("jobs"));
    world.publish("jobs", &[vec![1; 500]]);
    world.settle_down();
    let disk = Arc::new(world.disk.crash());
    let mut told: Vec<RecoveryProgress> = Vec::new();
    let node = Node::open_with_progress(disk, config(), START, &mut |p| told.push(p)).unwrap();
    let last = told.last().unwrap();
    assert!(last.records >= 2);
    assert!(last.bytes >= 500);
    assert!(last.at < node.stats().end);
}

/// A disk with a few synced and proven messages.
fn disk_with_messages() -> MemDisk {
    let mut world = World::new();
    world.create(named("jobs"));
    for _ in 0..5 {
        world.publish("jobs", &[vec![0xAB; 3_000]]);
        world.settle_down();
    }
    world.pass(2_000, 100);
    world.disk.crash()
}

fn open(disk: MemDisk) -> Result<Node<MemDisk>, OpenError> {
    Node::open(Arc::new(disk), config(), START)
}

#[test]
fn a_damaged_log_is_refused() {
    let disk = disk_with_messages();
    let mut damaged = 0;
    for name in disk.names() {
        let mut content = disk.content(&name).unwrap();
        if let Some(at) = content.windows(100).position(|w| w == [0xAB; 100]) {
            content[at] ^= 1;
            disk.set_content(&name, &content);
            damaged += 1;
        }
    }
    assert!(damaged > 0);
    let error = open(disk.crash()).err().unwrap();
    assert!(matches!(error, OpenError::Corrupt(_)), "{error}");
    assert!(error.to_string().contains("docs/recovery.md"), "{error}");
}

#[test]
fn a_log_of_a_newer_build_is_refused() {
    let disk = disk_with_messages();
    for name in disk.names() {
        let mut content = disk.content(&name).unwrap();
        if content.starts_with(b"TANDALOG") {
            content[8] = 99;
            disk.set_content(&name, &content);
        }
    }
    let error = open(disk.crash()).err().unwrap();
    assert!(matches!(error, OpenError::NewerVersion(_)), "{error}");
}

#[test]
fn a_record_without_sense_is_refused() {
    let disk = MemDisk::new(1);
    let mut log = Log::open(
        Arc::new(disk.clone()),
        config().log,
        tanda_wal::Lsn(0),
        &mut |_, _| Ok(()),
    )
    .unwrap();
    let at = log.append(&[0xFF; 40]).unwrap();
    let outcome = log.take_flush().unwrap().run();
    log.on_flushed(outcome).unwrap();
    drop(log);
    let error = open(disk.kill()).err().unwrap();
    let OpenError::Record { at: found, problem } = &error else {
        panic!("{error}");
    };
    assert!(found.0 >= at.0);
    assert!(!problem.is_empty());
}

#[test]
fn a_log_in_use_is_refused() {
    let world = World::new();
    let error = open(world.disk.clone()).err().unwrap();
    assert!(matches!(error, OpenError::Log(_)), "{error}");
    assert_eq!(world.node.failed(), None, "who has it goes on");
}

#[test]
fn a_snapshot_whose_sync_failed_is_not_used_after_a_kill() {
    let mut world = World::new();
    world.create(named("jobs"));
    for _ in 0..5 {
        world.publish("jobs", &vec![vec![1; 1_000]; 10]);
        world.settle_down();
    }
    assert!(world.node.published_snapshot().is_none());
    world.node.want_snapshot();
    for _ in 0..100 {
        world.now = world.now.after_ms(100);
        world.run();
        world.flush();
        let other = std::io::ErrorKind::Other;
        if let Some(job) = world.node.take_background() {
            world.disk.inject(DiskCall::Sync, 1, Fault::Fail(other));
            let outcome = job.run();
            world.node.on_background(world.now, outcome);
            break;
        }
    }
    assert_eq!(world.node.snapshot_failures().0, 1);
    // It can be read, but no sync will ever put it on disk.
    let (disk, now) = (world.disk.kill(), world.now);
    drop(world);
    let mut world = World::reopened(disk, now, config());
    assert_eq!(world.node.published_snapshot(), None);
    assert_eq!(world.stats("jobs").counts.depth, 50);
}
