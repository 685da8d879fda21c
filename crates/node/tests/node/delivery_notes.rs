//! What a fast queue has delivered says so when it comes again, also after the process was killed
//! before the record of it was on disk.

use std::io;

use tanda_engine::{
    AdminRequest, ConnId, DeclareQueue, Event, GetSpec, LeaseMode, ReplyTo, Request, SubscribeSpec,
    Take, VhostId,
};
use tanda_node::{Node, OpenError};
use tanda_wal::DiskCall;
use tanda_wal::mem_disk::{Fault, MemDisk};

use crate::support::{CONSUMER, OTHER, START, World, config, sub};

/// The number in each payload with how often it was delivered.
type Seen = Vec<(u8, u32)>;

impl World {
    fn declare(&mut self, name: &str) {
        self.admin(AdminRequest::DeclareQueue(Box::new(DeclareQueue {
            name: name.to_owned(),
            durable: true,
            ..DeclareQueue::default()
        })));
        self.settle_down();
    }

    /// Stores messages with these numbers.
    fn store(&mut self, queue: &str, numbers: std::ops::Range<u8>) {
        let payloads: Vec<Vec<u8>> = numbers.map(|number| vec![number; 30]).collect();
        self.publish(queue, &payloads);
        self.settle_down();
    }

    fn consume(&mut self, conn: ConnId, queue: &str, (lease, credit): (LeaseMode, u32)) {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit: Some(credit),
            lease,
            ..SubscribeSpec::default()
        };
        let sub = sub(conn, 9);
        self.handle(Request::Subscribe { sub, spec });
        self.run();
    }

    fn get(&mut self, queue: &str, take: Take) {
        let spec = GetSpec {
            queue: queue.to_owned(),
            take,
            ..GetSpec::default()
        };
        let reply = ReplyTo {
            conn: OTHER,
            token: 7,
        };
        self.handle(Request::Get { reply, spec });
    }

    /// What has left, without a flush.
    fn seen(&mut self) -> Seen {
        let mut seen = Seen::new();
        for (_, event) in self.take() {
            let batch = match event {
                Event::Delivery { batch, .. } => batch,
                Event::Got { result, .. } => result.unwrap().batch.unwrap_or_default(),
                _ => continue,
            };
            let items = batch.items.iter();
            seen.extend(items.map(|it| (*batch.content(it).last().unwrap(), it.deliveries)));
        }
        seen
    }

    /// The process is killed and started again.
    fn killed(self) -> Self {
        let (disk, now) = (self.disk.kill(), self.now.after_ms(1_000));
        drop(self);
        Self::reopened(disk, now, config())
    }

    /// Everything in a queue.
    fn drained(&mut self, queue: &str) -> Seen {
        self.consume(CONSUMER, queue, (LeaseMode::Connection, 1_000));
        self.settle_down();
        let mut seen = self.seen();
        seen.sort_unstable();
        seen
    }
}

const HELD: Take = Take::Held {
    ack_timeout_ms: None,
};

#[test]
fn what_was_delivered_before_a_kill_says_so() {
    type Deliver = fn(&mut World);
    let ways: [Deliver; 4] = [
        |world| world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 2)),
        |world| world.consume(CONSUMER, "jobs", (LeaseMode::NoAck, 2)),
        |world| (0..2).for_each(|_| world.get("jobs", HELD)),
        |world| (0..2).for_each(|_| world.get("jobs", Take::NoAck)),
    ];
    for deliver in ways {
        let mut world = World::new();
        world.declare("jobs");
        world.store("jobs", 0..4);
        world.take();
        deliver(&mut world);
        assert_eq!(world.seen(), [(0, 1), (1, 1)]);
        let world = world.killed();
        // Before the log has what the notes said, and once it has it.
        let mut world = world.killed();
        world.settle_down();
        let mut world = world.killed();
        assert_eq!(world.drained("jobs"), [(0, 2), (1, 2), (2, 1), (3, 1)]);
    }
}

#[test]
fn what_the_log_knows_is_not_counted_twice() {
    let mut world = World::new();
    world.declare("jobs");
    world.store("jobs", 0..3);
    world.take();
    world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 2));
    assert_eq!(world.seen(), [(0, 1), (1, 1)]);
    assert!(world.flush());
    let mut world = world.killed();
    assert_eq!(world.drained("jobs"), [(0, 2), (1, 2), (2, 1)]);
}

#[test]
fn a_message_in_the_place_of_one_that_was_lost_is_new() {
    let mut world = World::new();
    world.declare("jobs");
    world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 10));
    // Taken and noted at once, although nothing of it is in the log when the process is killed.
    world.publish("jobs", &[vec![1; 30], vec![2; 30], vec![3; 30]]);
    world.run();
    let mut world = world.killed();
    world.settle_down();
    world.store("jobs", 7..8);
    world.take();
    let mut world = world.killed();
    assert_eq!(world.drained("jobs"), [(7, 1)]);
}

#[test]
fn notes_of_queues_that_are_gone_are_of_no_use() {
    let mut world = World::new();
    world.declare("jobs");
    world.declare("other");
    world.store("jobs", 0..2);
    world.store("other", 5..7);
    world.take();
    world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 1));
    world.consume(OTHER, "other", (LeaseMode::Connection, 1));
    assert_eq!(world.seen(), [(0, 1), (5, 1)]);
    world.admin(AdminRequest::RemoveQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        if_unused: false,
        if_empty: false,
    });
    assert!(world.flush());
    let mut world = world.killed();
    world.declare("jobs");
    world.store("jobs", 8..9);
    world.take();
    assert_eq!(world.drained("jobs"), [(8, 1)]);
    let mut world = world.killed();
    assert_eq!(world.drained("other"), [(5, 2), (6, 1)]);
}

#[test]
fn a_delivery_that_cannot_be_noted_waits_for_the_log() {
    let mut world = World::new();
    world.declare("jobs");
    world.store("jobs", 0..2);
    world.take();
    world
        .disk
        .inject(DiskCall::Create, 1, Fault::Fail(io::ErrorKind::Other));
    world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 1));
    assert_eq!(world.seen(), []);
    assert!(world.flush());
    assert_eq!(world.seen(), [(0, 1)]);
    let stats = world.node.stats();
    assert_eq!(stats.note_errors, 1);
    assert!(stats.last_note_error.unwrap().contains("deliveries.notes"));
    let mut world = world.killed();
    assert_eq!(world.drained("jobs"), [(0, 2), (1, 1)]);
}

#[test]
fn notes_that_cannot_be_read_refuse_the_start() {
    let mut world = World::new();
    world.declare("jobs");
    world.store("jobs", 0..2);
    world.consume(CONSUMER, "jobs", (LeaseMode::Connection, 1));
    let disk: MemDisk = world.disk.kill();
    drop(world);
    let mut refused = Vec::new();
    for nth in 1.. {
        disk.inject(DiskCall::Open, nth, Fault::Fail(io::ErrorKind::Other));
        match Node::open(disk.clone().into(), config(), START) {
            Ok(_) => break,
            Err(error) => {
                assert!(matches!(error, OpenError::Log(_)), "open {nth}: {error}");
                refused.push(error.to_string());
            }
        }
    }
    assert!(
        refused
            .iter()
            .any(|it| it.contains("open deliveries.notes")),
        "{refused:?}"
    );
}
