//! What a disk can do to a node: fail, fill up, refuse to read.

use std::io::ErrorKind;

use crate::support::{CONSUMER, START, World, config, named, stored, sub};
use tanda_engine::{
    AdminRequest, Event, KeyKind, KeyPart, MessageId, PublishError, PublishResult, QueueSpec,
    Settlement,
};
use tanda_wal::DiskCall;
use tanda_wal::mem_disk::{Fault, MemDisk};

#[test]
fn a_failed_sync_confirms_nothing_and_answers_everybody() {
    let mut world = World::new();
    world.create(named("jobs"));
    let kept = world.publish("jobs", &[b"kept".to_vec()]);
    world.settle_down();
    let kept = stored(&world.published(kept).unwrap());

    let consumer = sub(CONSUMER, 9);
    world
        .disk
        .inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
    let lost = world.publish("jobs", &[b"lost".to_vec()]);
    world.subscribe(consumer, "jobs", None);
    world.run();
    world.flush();
    assert!(world.node.failed().unwrap().contains("sync"));
    assert_eq!(world.failed_tokens(), [lost, 9]);
    assert!(
        world
            .take()
            .iter()
            .all(|(_, event)| matches!(event, Event::StorageFailed { .. })),
        "waiting deliveries are discarded"
    );

    let publish = world.publish("jobs", &[b"late".to_vec()]);
    let settle = world.settle("jobs", &kept, Settlement::Ack);
    world.subscribe(sub(CONSUMER, 12), "jobs", None);
    let admin = world.admin(AdminRequest::ListQueues);
    assert_eq!(world.failed_tokens(), [publish, settle, 12, admin]);
    assert!(!world.node.run(world.now));
    assert!(world.node.take_flush().is_none());
    assert_eq!(world.node.next_deadline(), None);
    assert!(world.node.stats().failed.is_some());
    assert_eq!(world.node.stats().waiting_effects, 0);

    // Opened again it still has what it confirmed. The lease may or may not have reached the disk.
    let mut world = crate::support::crash_and_reopen(world, 1);
    world.subscribe(consumer, "jobs", None);
    world.pass(60_000, 1_000);
    let received = world.received(consumer);
    let first = received.iter().find(|m| m.id == kept[0]).unwrap();
    assert_eq!(first.payload, b"kept");
}

/// Publishes until the disk is full; returns the ids that were stored.
fn fill_up(world: &mut World) -> Vec<MessageId> {
    let used = world.disk.used_bytes();
    world.disk.set_capacity(Some(used + (256 << 10)));
    let mut ids = Vec::new();
    for _ in 0..200 {
        let token = world.publish("jobs", &[vec![7; 4_000]]);
        world.settle_down();
        match world.published(token).unwrap()[0] {
            PublishResult::Stored(id) => ids.push(id),
            PublishResult::Refused(PublishError::Storage) => return ids,
            other => panic!("{other:?}"),
        }
    }
    panic!("the disk never filled up");
}

#[test]
fn a_full_disk_refuses_publishes_and_still_settles() {
    let mut world = World::new();
    world.create(named("jobs"));
    let ids = fill_up(&mut world);
    assert!(ids.len() > 10);
    assert!(world.node.stats().storage_full);
    assert_eq!(world.node.failed(), None);

    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", Some(3));
    world.settle_down();
    let received = world.received(consumer);
    assert_eq!(received.len(), 3);
    let token = world.settle("jobs", &[received[0].id], Settlement::Ack);
    world.settle_down();
    assert!(world.settled(token).unwrap()[0].is_ok());

    world.disk.set_capacity(None);
    world.pass(3_000, 100);
    assert!(!world.node.stats().storage_full);
    let token = world.publish("jobs", &[b"again".to_vec()]);
    world.settle_down();
    assert_eq!(stored(&world.published(token).unwrap()).len(), 1);
}

#[test]
fn acks_of_a_full_disk_make_room_again() {
    let mut world = World::new();
    world.create(named("jobs"));
    let ids = fill_up(&mut world);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    world.settle_down();
    let received: Vec<MessageId> = world.received(consumer).iter().map(|m| m.id).collect();
    assert_eq!(received, ids);
    let token = world.settle("jobs", &ids, Settlement::Ack);
    world.pass(5_000, 100);
    assert!(world.settled(token).unwrap().iter().all(Result::is_ok));
    assert!(!world.node.stats().storage_full);
    let token = world.publish("jobs", &[b"again".to_vec()]);
    world.settle_down();
    assert_eq!(stored(&world.published(token).unwrap()).len(), 1);
}

#[test]
fn an_unreadable_content_is_tried_again_later_and_does_not_count() {
    let mut world = World::new();
    world.create(QueueSpec {
        max_attempts: 1,
        ..named("jobs")
    });
    // More than the cache holds, so that the oldest have to be read back.
    let mut ids = Vec::new();
    for n in 0..100_u8 {
        let token = world.publish("jobs", &[vec![n; 4_000]]);
        world.settle_down();
        ids.extend(stored(&world.published(token).unwrap()));
    }
    world.take();
    let consumer = sub(CONSUMER, 9);
    world
        .disk
        .inject(DiskCall::Read, 1, Fault::Fail(ErrorKind::Other));
    world.subscribe(consumer, "jobs", Some(2));
    world.settle_down();
    let received = world.received(consumer);
    assert_eq!(received.len(), 1, "{:?}", world.node.stats());
    assert_eq!(received[0].payload, vec![1; 4_000]);
    let stats = world.node.stats();
    assert_eq!((stats.read_errors, stats.unreadable_messages), (1, 1));
    assert!(stats.last_read_error.unwrap().contains("read"));

    world.pass(900, 100);
    assert_eq!(world.received(consumer), []);
    world.pass(200, 100);
    let received = world.received(consumer);
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].id, ids[0]);
    assert_eq!(received[0].payload, vec![0; 4_000]);
    assert_eq!(received[0].attempts, 1);
    assert_eq!(world.node.stats().returned_messages, 1);
    assert_eq!(world.node.stats().unreadable_messages, 0);
}

#[test]
fn damaged_messages_do_not_hold_up_the_sound_ones() {
    let mut world = World::new();
    world.create(QueueSpec {
        max_attempts: 1,
        lease_ms: 5_000,
        ..named("jobs")
    });
    let mut ids = Vec::new();
    for n in 0..100_u8 {
        let token = world.publish("jobs", &[vec![n; 4_000]]);
        world.settle_down();
        ids.extend(stored(&world.published(token).unwrap()));
    }
    for name in world.disk.names() {
        let content = world.disk.content(&name).unwrap();
        for damaged in [1, 2] {
            if let Some(at) = content.windows(100).position(|w| w == [damaged; 100]) {
                world.disk.damage(&name, at);
            }
        }
    }
    world.take();
    let consumer = sub(CONSUMER, 9);
    // The damaged ones would take most of its credit.
    world.subscribe(consumer, "jobs", Some(3));
    world.settle_down();
    let received = world.received(consumer);
    let received: Vec<_> = received.iter().map(|message| message.id).collect();
    assert_eq!(received, [ids[0], ids[3], ids[4]]);
    assert_eq!(world.node.read_errors(), 2);
    assert!(world.node.last_read_error().unwrap().contains("corrupt"));
    assert_eq!(world.stats("jobs").counts.in_flight, 5);

    world.pass(6_000, 100);
    assert_eq!(world.stats("jobs.dlq").counts.depth, 5);
}

#[test]
fn what_was_acked_is_given_back_to_the_disk() {
    let mut world = World::new();
    world.create(named("jobs"));
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    let mut most = 0;
    for round in 0..300_u16 {
        world.publish("jobs", &vec![vec![1; 1_000]; 10]);
        world.settle_down();
        let ids: Vec<MessageId> = world.received(consumer).iter().map(|m| m.id).collect();
        assert_eq!(ids.len(), 10, "round {round}");
        world.settle("jobs", &ids, Settlement::Ack);
        world.pass(20, 20);
        world.take();
        most = most.max(world.node.stats().log.segments);
    }
    // 3 MB went through segments of 64 KiB.
    assert!(most <= 8, "{most} segments");
    let kept = world.publish("jobs", &[b"kept".to_vec()]);
    world.settle_down();
    let kept = stored(&world.published(kept).unwrap());
    let mut world = crate::support::crash_and_reopen(world, 40_000);
    world.subscribe(consumer, "jobs", None);
    world.pass(120_000, 500);
    let received = world.received(consumer);
    assert!(received.iter().all(|m| m.id == kept[0]));
    assert!(!received.is_empty());
}

#[test]
fn a_drained_backlog_is_given_back_although_the_log_hardly_grows() {
    let mut world = World::new();
    world.create(named("jobs"));
    for _ in 0..50 {
        world.publish("jobs", &vec![vec![1; 1_000]; 20]);
        world.settle_down();
    }
    world.take();
    let before = world.node.stats().log.segments;
    assert!(before > 10);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    let mut acked = 0;
    while acked < 1_000 {
        world.settle_down();
        let ids: Vec<MessageId> = world.received(consumer).iter().map(|m| m.id).collect();
        assert!(!ids.is_empty());
        acked += ids.len();
        world.settle("jobs", &ids, Settlement::Ack);
    }
    world.pass(5_000, 100);
    let after = world.node.stats().log.segments;
    assert!(after <= 5, "{before} segments, then {after}");
    assert_eq!(world.stats("jobs").counts.depth, 0);
}

#[test]
fn remembered_keys_keep_no_part_of_the_log() {
    let mut world = World::new();
    world.create(QueueSpec {
        dedup_key: Some(vec![KeyPart {
            kind: KeyKind::Payload,
            name: String::new(),
        }]),
        dedup_window_ms: 50_000,
        ..named("jobs")
    });
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    for number in 0..200_u16 {
        let mut payload = vec![1; 4_000];
        payload.extend_from_slice(&number.to_be_bytes());
        world.publish("jobs", &[payload]);
        world.settle_down();
        let ids: Vec<MessageId> = world.received(consumer).iter().map(|m| m.id).collect();
        world.settle("jobs", &ids, Settlement::Ack);
        world.settle_down();
    }
    world.pass(40_000, 500);
    let held = world.node.stats().log.segments;
    assert!(
        held <= 5,
        "{held} segments although only keys are remembered"
    );
    world.pass(20_000, 500);
    let after = world.node.stats().log.segments;
    assert!(after <= 3, "{held} segments, then {after}");
    assert!(world.node.next_deadline().is_none_or(|at| at > world.now));
    world.pass(20_000, 500);
    assert_eq!(world.node.next_deadline(), None, "nothing is left to do");
}

#[test]
fn a_failed_sync_of_pages_ahead_of_a_snapshot_is_told_of_and_costs_nothing() {
    let mut paged = config();
    (paged.engine.page_messages, paged.engine.lane_hot) = (8, 40);
    paged.snapshot_bytes = 1 << 40;
    let mut world = World::reopened(MemDisk::new(1), START, paged.clone());
    world.create(named("jobs"));
    let mut sent = Vec::new();
    while world.node.stats().pages < 64 {
        let token = world.publish("jobs", &vec![vec![1; 10]; 8]);
        world.run();
        assert!(world.flush());
        sent.extend(stored(&world.published(token).unwrap()));
    }
    assert!(world.node.published_snapshot().is_none());
    world
        .disk
        .inject(DiskCall::Sync, 1, Fault::Fail(ErrorKind::Other));
    assert!(world.background(), "the pages are to be synced");
    let (failures, cause) = world.node.snapshot_failures();
    assert_eq!(failures, 1);
    assert!(cause.unwrap().contains("sync index.pages"), "{cause:?}");
    world.node.want_snapshot();
    world.pass(10_000, 1_000);
    assert!(
        world.node.published_snapshot().is_none(),
        "names lost pages"
    );

    let mut world = World::reopened(world.disk.crash(), world.now, paged);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    world.settle_down();
    let mut found = Vec::new();
    while found.len() < sent.len() {
        let received = world.received(consumer);
        assert!(!received.is_empty(), "{} of {}", found.len(), sent.len());
        found.extend(received.iter().map(|message| message.id));
        let ids: Vec<_> = received.iter().map(|message| message.id).collect();
        world.settle("jobs", &ids, Settlement::Ack);
        world.settle_down();
    }
    assert_eq!(found, sent);
}
