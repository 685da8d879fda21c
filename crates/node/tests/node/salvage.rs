//! Rescue from damaged directories: at most what lay in damaged batches is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use tanda_engine::{AdminReply, AdminRequest, Millis, Settlement};
use tanda_node::{Node, NodeConfig, OpenError, Salvaged, salvage};
use tanda_wal::inspect::{FileState, Survey};
use tanda_wal::mem_disk::MemDisk;

use crate::support::{CONSUMER, START, World, config, named, stored, sub};

const LOG_ID: u128 = 7;

/// Two queues, three runs, several segments; nothing was acked, no snapshot was taken.
fn world() -> (MemDisk, BTreeSet<Vec<u8>>) {
    let config = NodeConfig {
        snapshot_bytes: u64::MAX,
        snapshot_messages: u64::MAX,
        ..config()
    };
    let (world, sent) = running(&config);
    (world.disk.kill(), sent)
}

fn running(config: &NodeConfig) -> (World, BTreeSet<Vec<u8>>) {
    let mut world = World::reopened(MemDisk::new(1), START, config.clone());
    world.create(named("a"));
    world.create(named("b"));
    let mut sent = BTreeSet::new();
    for run in 0..3 {
        for number in 0..60 {
            let payload = format!("<{run}-{number}>{}", "x".repeat(number * 40)).into_bytes();
            let queue = if number % 3 == 0 { "b" } else { "a" };
            let token = world.publish(queue, std::slice::from_ref(&payload));
            world.settle_down();
            stored(&world.published(token).unwrap());
            sent.insert(payload);
        }
        let now = world.now.after_ms(10);
        let disk = world.disk.kill();
        drop(world.node);
        world = World::reopened(disk, now, config.clone());
    }
    (world, sent)
}

pub(crate) fn copy_of(disk: &MemDisk, without: Option<&str>) -> MemDisk {
    let copy = MemDisk::new(0);
    for name in disk.names() {
        if Some(name.as_str()) != without {
            copy.set_content(&name, &disk.content(&name).unwrap());
        }
    }
    copy
}

fn rescued(disk: &MemDisk, log_id: Option<u128>) -> (Salvaged, MemDisk) {
    let to = MemDisk::new(5);
    let target = (Arc::new(to.clone()), config());
    let before = copy_of(disk, None);
    let salvaged = salvage(&Arc::new(disk.clone()), log_id, target).unwrap();
    for name in disk.names() {
        assert_eq!(
            disk.content(&name),
            before.content(&name),
            "{name} was changed"
        );
    }
    assert_eq!(disk.names(), before.names());
    (salvaged, to)
}

/// Payloads of all messages of all queues.
fn drained(disk: MemDisk) -> BTreeSet<Vec<u8>> {
    let mut world = World::reopened(disk, START.after_ms(100_000), config());
    let token = world.admin(AdminRequest::ListQueues);
    world.settle_down();
    let Some(AdminReply::Queues(queues)) = world.admin_reply(token) else {
        panic!("no queues");
    };
    let mut found = BTreeSet::new();
    for (number, queue) in (1..).zip(queues) {
        let consumer = sub(CONSUMER, number);
        world.subscribe(consumer, &queue.name, None);
        loop {
            world.settle_down();
            let received = world.received(consumer);
            if received.is_empty() {
                break;
            }
            let ids: Vec<_> = received.iter().map(|it| it.id).collect();
            world.settle(&queue.name, &ids, Settlement::Ack);
            for message in received {
                assert!(found.insert(message.payload), "delivered twice");
            }
        }
    }
    found
}

/// What lies in batches that have none of these bytes of the file. Each record is one message.
fn outside(disk: &MemDisk, file: &str, damaged: std::ops::Range<u64>) -> BTreeSet<Vec<u8>> {
    let survey = Survey::of(disk, Some(LOG_ID)).unwrap();
    let report = survey.files().iter().find(|it| it.name == file).unwrap();
    let base = report.state.segment().map_or(0, |segment| segment.base);
    let hit: Vec<_> = report
        .batches
        .iter()
        .filter(|batch| batch.position - base < damaged.end && damaged.start < batch.end - base)
        .collect();
    let mut found = BTreeSet::new();
    survey.replay(false, &mut |at, record| {
        let is_hit = hit
            .iter()
            .any(|batch| (batch.position..batch.end).contains(&at.0));
        if !is_hit && record[0] == 3 {
            let start = record.iter().rposition(|byte| *byte == b'<').unwrap();
            found.insert(record[start..].to_vec());
        }
    });
    found
}

#[test]
fn a_healthy_directory_is_rescued_whole() {
    let (disk, sent) = world();
    let (salvaged, to) = rescued(&disk, Some(LOG_ID));
    assert_eq!(salvaged.faults, []);
    assert_eq!(salvaged.skipped, []);
    assert_eq!(salvaged.messages, sent.len() as u64);
    assert_eq!(drained(to), sent);
}

#[test]
fn at_most_the_messages_of_damaged_batches_are_lost() {
    let (disk, sent) = world();
    let survey = Survey::of(&disk, Some(LOG_ID)).unwrap();
    let mut refused = 0;
    for file in survey.files() {
        if !matches!(file.state, FileState::Replayed(_)) {
            continue;
        }
        for start in (0..file.bytes).step_by(3 * 4096) {
            let damaged = copy_of(&disk, None);
            let mut content = disk.content(&file.name).unwrap();
            let range = start..(start + 5_000).min(file.bytes);
            content[range.start as usize..range.end as usize].fill(0x5a);
            damaged.set_content(&file.name, &content);
            let (salvaged, to) = rescued(&damaged, Some(LOG_ID));
            let found = drained(to);
            let expected = outside(&disk, &file.name, range.clone());
            let missing: Vec<_> = expected.difference(&found).collect();
            let missing = missing.len();
            assert_eq!(missing, 0, "{} {range:?}", file.name);
            assert!(found.is_subset(&sent));
            let copy = Arc::new(copy_of(&damaged, None));
            match Node::open(copy, config(), Millis(START.0 + 50_000)) {
                Ok(_) => {}
                Err(OpenError::Corrupt(_) | OpenError::NewerVersion(_) | OpenError::Log(_)) => {
                    refused += 1;
                    assert!(!salvaged.faults.is_empty(), "{} {range:?}", file.name);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn a_missing_segment_costs_its_own_messages_only() {
    let (disk, sent) = world();
    let survey = Survey::of(&disk, Some(LOG_ID)).unwrap();
    for file in survey.files() {
        if !matches!(file.state, FileState::Replayed(_)) {
            continue;
        }
        let damaged = copy_of(&disk, Some(&file.name));
        let (_, to) = rescued(&damaged, None);
        let found = drained(to);
        let expected = outside(&disk, &file.name, 0..u64::MAX);
        assert!(expected.is_subset(&found), "{}", file.name);
        assert!(found.is_subset(&sent));
    }
}

#[test]
fn messages_of_a_queue_whose_record_is_lost_come_into_a_queue_of_their_own() {
    let (disk, sent) = world();
    let survey = Survey::of(&disk, Some(LOG_ID)).unwrap();
    let first = survey.files().iter().find(|file| {
        let segment = file.state.segment();
        segment.is_some_and(|segment| segment.index == 1)
    });
    let name = &first.unwrap().name;
    let mut content = disk.content(name).unwrap();
    // The first two batches hold the records of the queues.
    content[4096..12288].fill(0);
    disk.set_content(name, &content);
    let (salvaged, to) = rescued(&disk, Some(LOG_ID));
    assert_eq!(salvaged.lost_queues, ["lost-q1", "lost-q3"]);
    assert_eq!(drained(to), sent);
}

#[test]
fn random_damage_never_panics_and_never_invents_messages() {
    let (disk, sent) = world();
    let mut seed = 1_u64;
    let mut draw = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for _ in 0..150 {
        let damaged = copy_of(&disk, None);
        let names = disk.names();
        for _ in 0..=draw(4) {
            let name = &names[draw(names.len())];
            let mut content = damaged.content(name).unwrap();
            let at = draw(content.len());
            match draw(4) {
                0 => content[at] ^= 1,
                1 => content.truncate(at),
                2 => content
                    .iter_mut()
                    .skip(at)
                    .take(9_000)
                    .for_each(|byte| *byte = 0),
                _ => content = damaged.content(&names[draw(names.len())]).unwrap(),
            }
            damaged.set_content(name, &content);
        }
        let (_, to) = rescued(&damaged, Some(LOG_ID));
        assert!(drained(to).is_subset(&sent));
    }
}

#[test]
fn a_snapshot_is_used_and_the_log_stands_in_for_one_that_is_damaged() {
    let (mut world, sent) = running(&config());
    world.pass(5_000, 100);
    let disk = world.disk.kill();
    let (salvaged, to) = rescued(&disk, Some(LOG_ID));
    assert!(salvaged.snapshot_at.is_some(), "no snapshot was taken");
    assert_eq!(salvaged.faults, []);
    assert_eq!(drained(to), sent);
    for name in disk.names() {
        let Some(content) = disk.content(&name).filter(|_| name.starts_with("snapshot")) else {
            continue;
        };
        for at in [0, 20, content.len() / 2] {
            let mut content = content.clone();
            content[at..]
                .iter_mut()
                .take(2_000)
                .for_each(|byte| *byte ^= 0x11);
            let damaged = copy_of(&disk, None);
            damaged.set_content(&name, &content);
            let opened = Node::open(Arc::new(copy_of(&damaged, None)), config(), START);
            let refused = opened.map(drop).is_err();
            let (salvaged, to) = rescued(&damaged, Some(LOG_ID));
            assert_eq!(refused, !salvaged.faults.is_empty(), "{name} {at}");
            let found = drained(to);
            let (lost, whole) = (sent.difference(&found).count(), found.is_subset(&sent));
            // Only the lost snapshot knew where contents were copied to since the one before it.
            assert_eq!(lost as u64, salvaged.lost_contents, "{name} {at}");
            assert!(whole && (refused || lost == 0), "{name} {at}");
        }
    }
}

#[test]
fn messages_in_pages_are_rescued_and_a_damaged_page_costs_its_own_only() {
    let mut paged = config();
    (paged.engine.page_messages, paged.engine.lane_hot) = (16, 40);
    let mut world = World::reopened(MemDisk::new(2), START, paged.clone());
    world.create(named("long"));
    let mut sent = BTreeSet::new();
    for number in 0..400 {
        let payload = format!("<{number}>{}", "y".repeat(900)).into_bytes();
        world.publish("long", std::slice::from_ref(&payload));
        world.settle_down();
        sent.insert(payload);
    }
    world.pass(5_000, 100);
    let disk = world.disk.kill();
    assert!(disk.content("index.pages").is_some(), "nothing was paged");
    let rescue = |disk: &MemDisk| {
        let to = MemDisk::new(5);
        let target = (Arc::new(to.clone()), paged.clone());
        let salvaged = salvage(&Arc::new(disk.clone()), Some(LOG_ID), target).unwrap();
        (salvaged, drained(to))
    };
    let (salvaged, found) = rescue(&disk);
    assert!(
        salvaged.snapshot_at.is_some() && salvaged.is_whole(),
        "{salvaged:?}"
    );
    assert_eq!(found, sent);
    let content = disk.content("index.pages").unwrap();
    let slot_bytes = 4096;
    let mut lost = 0;
    for slot in 0..content.len() / slot_bytes {
        let mut content = content.clone();
        content[slot * slot_bytes + 100] ^= 1;
        let damaged = copy_of(&disk, None);
        damaged.set_content("index.pages", &content);
        let (salvaged, found) = rescue(&damaged);
        assert!(salvaged.lost_pages <= 16, "{}", salvaged.lost_pages);
        assert_eq!(found.len() as u64, sent.len() as u64 - salvaged.lost_pages);
        assert!(found.is_subset(&sent));
        if salvaged.lost_pages > 0 {
            lost += salvaged.lost_pages;
            let (fault, offset) = (&salvaged.faults[0], slot * slot_bytes);
            assert_eq!(
                (fault.file.as_str(), fault.offset),
                ("index.pages", offset as u64)
            );
        }
    }
    assert!(lost > 0, "no page was in use");
    // Without the pages, and without the snapshots that name them, the log has what it has.
    let (salvaged, found) = rescue(&copy_of(&disk, Some("index.pages")));
    assert_eq!(found.len() as u64, sent.len() as u64 - salvaged.lost_pages);
}
