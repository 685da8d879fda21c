//! The machine stops at every single disk call of a backup, a restore, a snapshot, a freeing.

use std::sync::Arc;

use tanda_engine::{MessageId, Millis, Settlement};
use tanda_node::{Node, NodeConfig, OpenError, Restore, RestoreError};
use tanda_wal::mem_disk::MemDisk;

use crate::backup::{ack, numbers, rest_of, restored, send, small};
use crate::salvage::copy_of;
use crate::support::{CONSUMER, START, World, config, named, stored, sub};

/// All records of a backup, if it could be made.
fn backup_of(world: &mut World) -> Option<Vec<Vec<u8>>> {
    world.node.begin_backup().ok()?;
    world.pass(1_000, 100);
    let mut source = world.node.take_backup()?.ok()?;
    rest_of(&mut source).ok()
}

#[test]
fn power_lost_at_any_disk_call_of_a_backup_costs_nothing() {
    let (mut steps, mut made) = (0, 0);
    for operations in 0.. {
        let mut world = World::reopened(MemDisk::new(operations), START, small());
        world.create(named("q"));
        send(&mut world, 0..120);
        assert_eq!(ack(&mut world, 1, 20).len(), 20);
        world.disk.crash_after(operations);
        let records = backup_of(&mut world);
        let was_down = world.disk.is_down();
        assert!(records.is_some() || was_down);
        let disk = world.disk.restart();
        drop(world);
        let mut world = World::reopened(disk, START.after_ms(1_000_000), small());
        let left = numbers(&ack(&mut world, 2, 10_000));
        assert_eq!(left, (20..120).collect::<Vec<_>>(), "after {operations}");
        if let Some(records) = records {
            let found = numbers(&ack(&mut restored(&records), 1, 10_000));
            assert_eq!(found, (20..120).collect::<Vec<_>>(), "after {operations}");
            made += 1;
        }
        if !was_down {
            break;
        }
        steps += 1;
    }
    assert!(steps > 10 && made > 0, "{steps} steps, {made} backups");
}

fn restore(disk: &MemDisk, records: &[Vec<u8>]) -> Result<(), RestoreError> {
    let mut log = Restore::begin(Arc::new(disk.clone()), small().log)?;
    for record in records {
        log.push(record)?;
    }
    log.finish()
}

#[test]
fn a_restore_that_has_ended_is_whole_and_one_that_has_not_passes_for_nothing() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..120);
    let records = backup_of(&mut world).unwrap();
    let check = |disk: MemDisk| {
        let mut world = World::reopened(disk, START.after_ms(1_000_000), small());
        let found = numbers(&ack(&mut world, 1, 10_000));
        assert_eq!(found, (0..120).collect::<Vec<_>>());
    };
    let (mut parts, mut ended) = (0, 0);
    for seed in 0..4 {
        for operations in 0.. {
            let disk = MemDisk::new(seed);
            disk.crash_after(operations);
            let outcome = restore(&disk, &records);
            let was_down = disk.is_down();
            let disk = disk.restart();
            if outcome.is_ok() {
                check(disk);
                ended += 1;
            } else {
                // In the directory that it left another one finds a log, or begins anew.
                match restore(&disk, &records) {
                    Ok(()) => check(disk.crash()),
                    Err(RestoreError::NotEmpty) => parts += 1,
                    Err(error) => panic!("after {operations}: {error}"),
                }
            }
            if !was_down {
                break;
            }
        }
    }
    assert!(parts > 0 && ended >= 4, "{parts} parts, {ended} ended");
}

#[test]
fn a_start_puts_the_snapshot_that_it_uses_on_disk_before_it_goes_on_from_it() {
    let mut unsynced = 0;
    for seed in 0..16 {
        for operations in 0.. {
            let mut world = World::reopened(MemDisk::new(seed), START, config());
            world.create(named("jobs"));
            for _ in 0..5 {
                world.publish("jobs", &vec![vec![1; 1_000]; 10]);
                world.settle_down();
            }
            world.node.want_snapshot();
            let job = loop {
                world.now = world.now.after_ms(100);
                world.run();
                world.flush();
                if let Some(job) = world.node.take_background() {
                    break job;
                }
            };
            world.disk.crash_after(operations);
            let _outcome = job.run();
            let was_down = world.disk.is_down();
            // The process is killed in the middle of it; the machine goes on.
            let (disk, now) = (world.disk.kill(), world.now);
            drop(world);
            let mut world = World::reopened(disk, now, config());
            let used = world.node.published_snapshot().is_some();
            unsynced += u32::from(was_down && used);
            // The log claims a start, then the power is lost.
            world.publish("jobs", &[vec![2; 1_000]]);
            world.settle_down();
            let (disk, now) = (world.disk.crash(), world.now);
            drop(world);
            let mut world = World::reopened(disk, now, config());
            assert_eq!(world.stats("jobs").counts.depth, 51, "{seed}, {operations}");
            if !was_down {
                break;
            }
        }
    }
    assert!(
        unsynced > 0,
        "no snapshot was used that had not been synced"
    );
}

#[test]
fn a_snapshot_that_a_start_could_not_read_never_counts_later() {
    let mut world = World::reopened(MemDisk::new(1), START, config());
    world.create(named("jobs"));
    world.publish("jobs", &vec![vec![1; 1_000]; 10]);
    world.settle_down();
    world.node.want_snapshot();
    let job = loop {
        world.now = world.now.after_ms(100);
        world.run();
        world.flush();
        if let Some(job) = world.node.take_background() {
            break job;
        }
    };
    // It is whole; the process is killed before the log knows.
    let _outcome = job.run();
    let (disk, now) = (world.disk.kill(), world.now);
    drop(world);
    disk.rot("snapshot-a", 30);
    let mut world = World::reopened(disk, now, config());
    assert!(world.node.published_snapshot().is_none());
    // What this life gives back, that snapshot may name.
    world.publish("jobs", &[vec![2; 1_000]]);
    world.settle_down();
    world.disk.mend();
    let (disk, now) = (world.disk.kill(), world.now);
    drop(world);
    let mut world = World::reopened(disk, now, config());
    assert!(world.node.published_snapshot().is_none());
    assert_eq!(world.stats("jobs").counts.depth, 11);
}

#[test]
fn a_snapshot_that_the_log_goes_on_from_must_be_there() {
    let mut world = World::reopened(MemDisk::new(1), START, config());
    world.create(named("jobs"));
    for round in 1..=2 {
        for _ in 0..30 {
            let token = world.publish("jobs", &vec![vec![1; 1_000]; 10]);
            world.settle_down();
            assert_eq!(stored(&world.published(token).unwrap()).len(), 10);
        }
        world.node.want_snapshot();
        world.pass(2_000, 100);
        assert!(world.node.published_snapshot().unwrap().sequence >= round);
    }
    let disk = world.disk.crash();
    drop(world);
    for name in ["snapshot-a", "snapshot-b"] {
        let damaged = MemDisk::new(1);
        for name in disk.names() {
            damaged.set_content(&name, &disk.content(&name).unwrap());
        }
        damaged.damage(name, 30);
        let opened = Node::open(Arc::new(damaged), config(), START.after_ms(1_000_000));
        match opened.map(drop) {
            // The older one is not needed.
            Ok(()) => {}
            Err(error @ OpenError::Snapshot { .. }) => {
                let error = error.to_string();
                assert!(error.contains("snapshot"), "{error}");
                assert!(error.contains(&format!("{name} does not count")), "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("neither of the two is needed");
}

#[test]
fn a_start_on_a_disk_that_stops_blames_the_disk_and_not_what_is_on_it() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..120);
    world.node.want_snapshot();
    world.pass(2_000, 100);
    assert!(world.node.published_snapshot().is_some() && world.node.stats().pages > 5);
    // Pages of the snapshot are loaded, so a start has to read them.
    assert_eq!(ack(&mut world, 1, 60).len(), 60);
    let (disk, now) = (world.disk.crash(), world.now);
    drop(world);
    for operations in 0.. {
        let copy = copy_of(&disk, None);
        copy.crash_after(operations);
        match Node::open(Arc::new(copy), small(), now) {
            Ok(_) => {
                assert!(operations > 20, "{operations} operations");
                return;
            }
            Err(OpenError::Log(tanda_wal::OpenError::Disk(_))) => {}
            Err(error) => panic!("after {operations}: {error}"),
        }
    }
}

/// None but those that are asked for.
fn no_snapshots() -> NodeConfig {
    NodeConfig {
        snapshot_bytes: 64 << 20,
        ..config()
    }
}

/// A log of several segments with a whole snapshot of which it does not know: the process was
/// killed before. Nothing of the first segments is needed but what they say of the last ten.
fn with_unnamed_snapshot(seed: u64) -> (MemDisk, Millis) {
    let mut world = World::reopened(MemDisk::new(seed), START, no_snapshots());
    world.create(named("q"));
    for _ in 0..30 {
        world.publish("q", &vec![vec![1; 1_000]; 10]);
        world.settle_down();
    }
    world.node.want_snapshot();
    let job = loop {
        world.now = world.now.after_ms(100);
        world.run();
        world.flush();
        if let Some(job) = world.node.take_background() {
            break job;
        }
    };
    let _outcome = job.run();
    (world.disk.kill(), world.now)
}

#[test]
fn a_snapshot_that_a_start_found_is_needed_as_soon_as_anything_else_is_gone() {
    let (mut steps, mut refused) = (0, 0);
    for operations in 0.. {
        let (disk, now) = with_unnamed_snapshot(operations);
        disk.crash_after(operations);
        if let Ok(node) = Node::open(Arc::new(disk.clone()), no_snapshots(), now) {
            let mut world = World::of(node, disk.clone(), now);
            assert!(world.node.published_snapshot().is_some());
            // Everything that was there leaves, and with it the segments.
            let left = ack(&mut world, 1, 300).len();
            assert!(left == 300 || disk.is_down());
            world.publish("q", &vec![vec![2; 1_000]; 10]);
            world.pass(3_000, 100);
        }
        let was_down = disk.is_down();
        let disk = disk.crash();
        let mut world = World::reopened(
            copy_of(&disk, None),
            now.after_ms(1_000_000),
            no_snapshots(),
        );
        let expected = world.stats("q").counts.depth;
        disk.damage("snapshot-a", 30);
        match Node::open(
            Arc::new(disk.clone()),
            no_snapshots(),
            now.after_ms(1_000_000),
        ) {
            Ok(node) => {
                let mut world = World::of(node, disk, now.after_ms(1_000_000));
                assert_eq!(world.stats("q").counts.depth, expected, "{operations}");
            }
            Err(OpenError::Snapshot { .. }) => refused += 1,
            Err(error) => panic!("{operations}: {error}"),
        }
        if !was_down {
            break;
        }
        steps += 1;
    }
    assert!(
        steps > 10 && refused > 0,
        "{steps} steps, {refused} refused"
    );
}

/// Messages that fill segments, leased; their ids and, for each, the segment of its content.
fn leased(world: &mut World) -> Vec<MessageId> {
    world.create(named("jobs"));
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    let mut ids = Vec::new();
    for _ in 0..12 {
        let token = world.publish("jobs", &vec![vec![7; 20_000]; 1]);
        world.settle_down();
        ids.extend(stored(&world.published(token).unwrap()));
    }
    world.node.want_snapshot();
    world.pass(3_000, 100);
    assert_eq!(world.received(consumer).len(), 12);
    ids
}

#[test]
fn a_segment_goes_only_when_what_emptied_it_is_on_disk() {
    let (mut steps, mut kept) = (0, 0);
    for operations in 0.. {
        let mut world = World::reopened(MemDisk::new(operations), START, config());
        let ids = leased(&mut world);
        // All of the first segments but one message leave, which asks for a look at segments ..
        world.settle("jobs", &ids[..3], Settlement::Ack);
        world.run();
        let job = world.node.take_flush().unwrap();
        // .. and before that is on disk, messages of the next ones leave.
        let unflushed = world.settle("jobs", &ids[3..9], Settlement::Ack);
        let outcome = job.run();
        world.node.on_flushed(world.now, outcome);
        world.disk.crash_after(operations);
        world.settle_down();
        let was_confirmed = world.settled(unflushed).is_some();
        let was_down = world.disk.is_down();
        let disk = world.disk.restart();
        drop(world);
        let mut world = World::reopened(disk, START.after_ms(1_000_000), config());
        let consumer = sub(CONSUMER, 9);
        world.subscribe(consumer, "jobs", None);
        // The leases of before end.
        world.pass(40_000, 1_000);
        let found = world.received(consumer);
        assert!(found.iter().all(|it| it.payload == vec![7; 20_000]));
        let all = found.len() == 3 || found.len() == 9 && !was_confirmed;
        assert!(all, "{} are left, after {operations}", found.len());
        kept += usize::from(found.len() == 9);
        if !was_down {
            break;
        }
        steps += 1;
    }
    assert!(
        steps > 3 && kept > 0,
        "{steps} steps, {kept} without the acks"
    );
}
