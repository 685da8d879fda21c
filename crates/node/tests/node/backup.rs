//! Backups: the state as of one moment, whatever happens while it is taken and read.

use std::sync::Arc;

use tanda_engine::{MessageId, Settlement};
use tanda_node::{BackupError, BackupRefused, BackupSource, Node, NodeConfig, Restore, StreamKind};
use tanda_wal::DiskCall;
use tanda_wal::mem_disk::{Fault, MemDisk};

use crate::support::{CONSUMER, START, World, config, named, stored, sub};

/// Pages are made early, snapshots only when they are asked for.
pub(crate) fn small() -> NodeConfig {
    let mut config = NodeConfig {
        snapshot_bytes: u64::MAX,
        snapshot_messages: u64::MAX,
        ..config()
    };
    config.engine.page_messages = 8;
    config.engine.lane_hot = 16;
    config
}

pub(crate) fn send(world: &mut World, range: std::ops::Range<usize>) -> Vec<MessageId> {
    let mut ids = Vec::new();
    for number in range {
        let payload = body(number);
        let token = world.publish("q", std::slice::from_ref(&payload));
        world.settle_down();
        ids.extend(stored(&world.published(token).unwrap()));
    }
    ids
}

fn body(number: usize) -> Vec<u8> {
    format!("<{number}>{}", "x".repeat(number % 97 * 20)).into_bytes()
}

/// Takes `count` messages and acks them.
pub(crate) fn ack(world: &mut World, token: u32, count: u32) -> Vec<Vec<u8>> {
    let sub = sub(CONSUMER, token);
    world.subscribe(sub, "q", Some(count));
    world.settle_down();
    let received = world.received(sub);
    let ids: Vec<_> = received.iter().map(|it| it.id).collect();
    world.settle("q", &ids, Settlement::Ack);
    world.settle_down();
    received.into_iter().map(|it| it.payload).collect()
}

fn ready(world: &mut World) -> BackupSource<MemDisk> {
    // What the snapshot names must be proven to be on disk, which an idle log says after a while.
    world.pass(1_000, 100);
    world.node.take_backup().unwrap().unwrap()
}

pub(crate) fn restored(records: &[Vec<u8>]) -> World {
    let disk = MemDisk::new(9);
    let mut log = Restore::begin(Arc::new(disk.clone()), small().log).unwrap();
    for record in records {
        log.push(record).unwrap();
    }
    log.finish().unwrap();
    World::reopened(disk.kill(), START.after_ms(1_000_000), small())
}

pub(crate) fn rest_of(source: &mut BackupSource<MemDisk>) -> Result<Vec<Vec<u8>>, BackupError> {
    let mut records = Vec::new();
    while let Some(record) = source.next_record()? {
        records.push(record);
    }
    Ok(records)
}

/// Which messages these are; each must be whole.
pub(crate) fn numbers(bodies: &[Vec<u8>]) -> Vec<usize> {
    let number = |it: &Vec<u8>| {
        let digits = it.split(|byte| *byte == b'>').next().unwrap();
        let number = std::str::from_utf8(&digits[1..]).unwrap().parse().unwrap();
        assert_eq!(*it, body(number), "the body of {number}");
        number
    };
    bodies.iter().map(number).collect()
}

#[test]
fn a_backup_is_the_state_of_its_moment_whatever_happens_meanwhile() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..400);
    assert_eq!(ack(&mut world, 1, 50).len(), 50);
    world.node.begin_backup().unwrap();
    // The capture begins now; what follows is not in it.
    let _more = world.node.run(world.now);
    assert_eq!(ack(&mut world, 2, 100).len(), 100);
    send(&mut world, 400..450);
    let mut source = ready(&mut world);
    let header = source.header().unwrap();
    assert_eq!(header.kind, StreamKind::Backup);
    let mut records = vec![source.next_record().unwrap().unwrap()];
    // Everything that it needs is acked, and more comes than the log had.
    assert_eq!(ack(&mut world, 3, 300).len(), 300);
    send(&mut world, 450..900);
    world.node.want_snapshot();
    world.pass(5_000, 100);
    records.extend(rest_of(&mut source).unwrap());
    drop(source);

    let mut copy = restored(&records);
    let found = numbers(&ack(&mut copy, 1, 10_000));
    assert_eq!(found, (50..400).collect::<Vec<_>>());
    // The backed up node goes on as if nothing had been.
    let rest = numbers(&ack(&mut world, 4, 10_000));
    assert_eq!(rest, (450..900).collect::<Vec<_>>());
}

#[test]
fn a_backup_comes_although_a_slow_flush_is_the_last_thing_that_happens() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    world.publish("q", &[body(1)]);
    world.run();
    let slow = world.node.take_flush().unwrap();
    world.node.begin_backup().unwrap();
    // The log is looked at as idle while the flush is under way, and would not be again.
    for _ in 0..10 {
        world.now = world.now.after_ms(100);
        world.run();
    }
    world.node.on_flushed(world.now, slow.run());
    let mut source = ready(&mut world);
    let records = rest_of(&mut source).unwrap();
    let mut copy = restored(&records);
    assert_eq!(numbers(&ack(&mut copy, 1, 10)), [1]);
}

#[test]
fn what_a_backup_keeps_goes_when_it_is_done() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..600);
    world.node.begin_backup().unwrap();
    let source = ready(&mut world);
    assert_eq!(world.node.begin_backup(), Err(BackupRefused::Busy));
    assert_eq!(ack(&mut world, 1, 10_000).len(), 600);
    world.node.want_snapshot();
    world.pass(5_000, 100);
    let kept = world.node.stats().log.segments;
    let sequence = world.node.published_snapshot().unwrap().sequence;
    drop(source);
    world.pass(5_000, 100);
    assert!(world.node.published_snapshot().unwrap().sequence > sequence);
    let left = world.node.stats().log.segments;
    assert!(left < kept / 2, "{left} of {kept} segments are left");
    assert_eq!(world.node.begin_backup(), Ok(()));
}

#[test]
fn a_node_that_waits_for_a_reader_comes_to_rest() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..300);
    world.node.begin_backup().unwrap();
    let _source = ready(&mut world);
    send(&mut world, 300..600);
    world.node.want_snapshot();
    world.pass(10_000, 100);
    let next = world.node.next_deadline().unwrap();
    assert!(next > world.now, "{next:?} is not after {:?}", world.now);
}

#[test]
fn a_full_disk_ends_a_backup_and_not_the_node() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..300);
    world.node.begin_backup().unwrap();
    let mut source = ready(&mut world);
    assert!(source.next_record().unwrap().is_some());
    world.disk.set_capacity(Some(world.disk.used_bytes()));
    for number in 0..2_000 {
        world.publish("q", &[body(number)]);
        world.settle_down();
        if world.node.storage_full() {
            break;
        }
    }
    assert!(world.node.storage_full());
    world.run();
    assert!(matches!(source.next_record(), Err(BackupError::Cancelled)));
    assert_eq!(world.node.begin_backup(), Err(BackupRefused::NoSpace));
    world.disk.set_capacity(None);
    world.pass(5_000, 100);
    assert_eq!(world.node.begin_backup(), Ok(()));
}

#[test]
fn a_snapshot_that_cannot_be_written_refuses_the_backup_and_the_next_one_works() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..100);
    world.node.begin_backup().unwrap();
    world.run();
    while world.flush() {}
    world.run();
    world
        .disk
        .inject(DiskCall::Create, 1, Fault::Fail(std::io::ErrorKind::Other));
    world.settle_down();
    world.pass(1_000, 100);
    let refused = world.node.take_backup();
    assert!(
        matches!(refused, Some(Err(BackupRefused::Snapshot(_)))),
        "{refused:?}"
    );
    world.node.begin_backup().unwrap();
    world.pass(10_000, 100);
    let mut source = ready(&mut world);
    let mut copy = restored(&rest_of(&mut source).unwrap());
    assert_eq!(ack(&mut copy, 1, 1_000).len(), 100);
}

#[test]
fn a_damaged_file_ends_a_backup_and_is_never_left_out() {
    let mut damaged = 0;
    for name in damageable() {
        let (world, mut source) = backed_up();
        let len = world.disk.content(&name).unwrap().len();
        for offset in (100..len).step_by(64) {
            world.disk.damage(&name, offset);
        }
        let read = rest_of(&mut source);
        assert!(read.is_err(), "{name}");
        damaged += 1;
    }
    assert!(damaged > 5, "pages, a snapshot and some segments");
}

fn backed_up() -> (World, BackupSource<MemDisk>) {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..300);
    world.node.begin_backup().unwrap();
    let source = ready(&mut world);
    (world, source)
}

/// The files that a backup reads.
fn damageable() -> Vec<String> {
    let (world, source) = backed_up();
    drop(source);
    let used = world.disk.names().into_iter();
    used.filter(|name| is_read(&world, name)).collect()
}

fn is_read(world: &World, name: &str) -> bool {
    let content = world.disk.content(name).unwrap();
    let holds_bodies = content.windows(4).any(|it| it == b"xxxx");
    holds_bodies || name == "index.pages" || name == "snapshot-a"
}

#[test]
fn a_node_that_fails_ends_its_backup() {
    let (mut world, mut source) = backed_up();
    world
        .disk
        .inject(DiskCall::Sync, 1, Fault::Fail(std::io::ErrorKind::Other));
    world.publish("q", &[body(1)]);
    world.settle_down();
    assert!(world.node.failed().is_some());
    let _idle = world.node.run(world.now);
    assert!(matches!(source.next_record(), Err(BackupError::Cancelled)));
    assert_eq!(world.node.begin_backup(), Err(BackupRefused::Failed));
    let reopened = Node::open(Arc::new(world.disk.crash()), small(), world.now);
    assert!(reopened.is_ok());
}

#[test]
fn a_node_at_rest_is_backed_up_too() {
    let mut world = World::reopened(MemDisk::new(1), START, small());
    world.create(named("q"));
    send(&mut world, 0..50);
    // The log has said that all of it is on disk, and nothing more is to come.
    world.pass(10_000, 100);
    world.node.begin_backup().unwrap();
    let records = rest_of(&mut ready(&mut world)).unwrap();
    let mut copy = restored(&records);
    assert_eq!(ack(&mut copy, 1, 100).len(), 50);
    // The same after a start that finds nothing to do.
    let mut again = World::reopened(world.disk.kill(), world.now, small());
    again.pass(10_000, 100);
    again.node.begin_backup().unwrap();
    let records = rest_of(&mut ready(&mut again)).unwrap();
    assert_eq!(ack(&mut restored(&records), 1, 100).len(), 50);
}
