//! Room for the other doors: what AMQP, FireMQ and Amaquet queues will ask of the engine (one
//! publish into several queues: `several_queues.rs`).

use tanda_engine::{
    AdminReply, AdminRequest, KeyKind, KeyPart, LeaseMode, MaxLength, MissingOrderingKey, Ordering,
    Overflow, QueueSpec, Settlement, VhostId,
};

use crate::broker::{Broker, OK, job, jobs, queue, transient};
use crate::harness::Msg;

fn at(priority: u8, name: &str) -> Msg {
    Msg {
        priority,
        ..job(name)
    }
}

pub(crate) fn at_most(messages: u64, overflow: Overflow) -> QueueSpec {
    QueueSpec {
        max_length: Some(MaxLength { messages, overflow }),
        ..queue("jobs")
    }
}

#[test]
fn higher_priorities_go_first() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[at(0, "a"), at(5, "b"), at(9, "c"), at(5, "d"), at(0, "e")]);
    let w = b.worker("w", "jobs", Some(2));
    assert_eq!(b.got(), ["w: c b"]);
    b.send(&[at(7, "f"), at(5, "g")]);
    b.grant(w, 10);
    assert_eq!(b.got(), ["w: f d g a e"]);
}

#[test]
fn priorities_survive_a_restart_and_hold_among_keys() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[
        at(0, "a").key("x"),
        at(1, "b").key("x"),
        at(1, "c").key("x"),
        at(1, "d").key("y"),
        at(0, "e").key("y"),
    ]);
    b.restart(0);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: b d c a e"]);
}

#[test]
fn a_requeued_message_returns_to_its_old_place() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(3));
    b.send(&jobs(["a", "b", "c", "d"]));
    b.got();
    let requeue = |name| (name, Settlement::Requeue);
    assert_eq!(b.settle("jobs", &[requeue("b"), requeue("a")]), [OK, OK]);
    b.grant(w, 1);
    assert_eq!(b.got(), ["w: a"], "not a failed attempt");
    b.restart(0);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: b d"]);
}

#[test]
fn a_delivery_says_how_often_the_message_was_out() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker_as("w", "jobs", Some(1), LeaseMode::Connection);
    b.send(&jobs(["a"]));
    let seen = |b: &mut Broker| {
        let item = b.batches()[0].items[0];
        (item.deliveries, item.attempts)
    };
    assert_eq!(seen(&mut b), (1, 1));
    b.settle("jobs", &[("a", Settlement::Requeue)]);
    b.grant(w, 1);
    assert_eq!(seen(&mut b), (2, 1));
    b.disconnect(w);
    b.restart(0);
    let w = b.worker("w", "jobs", Some(1));
    assert_eq!(seen(&mut b), (3, 1));
    // A lease that never left was no delivery.
    b.settle("jobs", &[("a", Settlement::Requeue)]);
    b.grant(w, 1);
    b.undelivered(w);
    b.disconnect(w);
    b.worker("w", "jobs", Some(1));
    assert_eq!(seen(&mut b), (4, 1));
}

#[test]
fn transient_messages_live_beside_durable_ones_until_a_restart() {
    let mut b = Broker::with(queue("jobs"));
    let records = b.h.journal.records.len();
    b.publish(&[transient("a")]);
    assert_eq!(b.h.journal.records.len(), records, "nothing is written");
    b.send(&[job("b"), transient("c"), transient("d"), job("e")]);
    let written = b.h.journal.records[records..]
        .iter()
        .map(|(_, record)| record);
    let all: Vec<u8> = written.flatten().copied().collect();
    let holds = |text: &[u8]| all.windows(text.len()).any(|w| w == text);
    assert!(holds(b"\0\0\0\x01b") && holds(b"\0\0\0\x01e"));
    assert!(!holds(b"\0\0\0\x01c") && !holds(b"\0\0\0\x01d"));
    let w = b.worker("w", "jobs", Some(3));
    let batches = b.batches();
    let payloads: Vec<_> = batches[0]
        .items
        .iter()
        .map(|item| b.payload(&batches[0], item))
        .collect();
    assert_eq!(payloads, ["a", "b", "c"]);
    // They are settled, retried and returned as any other.
    b.settle(
        "jobs",
        &[
            ("a", Settlement::Requeue),
            ("c", crate::broker::fail(Some(0))),
        ],
    );
    b.grant(w, 2);
    assert_eq!(b.got(), ["w: a c#2"]);
    b.ack("jobs", ["a", "b"]);
    b.disconnect(w);
    assert_eq!(b.held("jobs"), (2, 1));
    b.restart(0);
    assert_eq!(b.held("jobs"), (1, 0));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: e"]);
    b.send(&jobs(["f"]));
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 2));
}

#[test]
fn transient_messages_keep_order_die_and_are_redriven_as_others() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&[transient("a"), job("b"), transient("c")]);
    b.nack("jobs", "a");
    b.nack("jobs", "b");
    b.nack("jobs", "c");
    assert_eq!(b.got(), ["w: a", "w: b", "w: c"]);
    assert_eq!(b.held("jobs.dlq"), (3, 0));
    assert_eq!(b.redrive("jobs.dlq", 1), 1);
    let batches = b.batches();
    assert_eq!(b.payload(&batches[0], &batches[0].items[0]), "a");
    b.unsubscribe(w);
    b.restart(0);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
    let name = "jobs.dlq".to_owned();
    assert_eq!(
        b.admin(AdminRequest::PurgeQueue {
            vhost: VhostId::DEFAULT,
            name
        }),
        AdminReply::Purged(Ok(1))
    );
}

#[test]
fn a_connections_leases_end_with_it() {
    let mut b = Broker::with(QueueSpec {
        lease_ms: 1_000,
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker_as("w", "jobs", None, LeaseMode::Connection);
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(
        b.batches()[0].lease_expires_at,
        tanda_engine::Millis(u64::MAX)
    );
    // No timeout while it lives.
    b.advance(1_000_000);
    assert_eq!(b.held("jobs"), (0, 3));
    b.ack("jobs", ["b"]);
    b.disconnect(w);
    assert_eq!(b.held("jobs"), (2, 0));
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: a c"], "in their old places, not failed");
}

#[test]
fn a_connections_leases_end_with_the_broker() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    b.worker_as("w", "jobs", Some(1), LeaseMode::Connection);
    b.send(&jobs(["a", "b"]));
    b.got();
    b.restart(0);
    assert_eq!(b.held("jobs"), (2, 0));
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: a b"]);
}

#[test]
fn cancelling_gives_a_connections_leases_back() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker_as("w", "jobs", None, LeaseMode::Connection);
    b.send(&jobs(["a", "b"]));
    b.unsubscribe(w);
    assert_eq!(b.held("jobs"), (2, 0));
}

#[test]
fn a_full_queue_drops_its_head() {
    let mut b = Broker::with(at_most(3, Overflow::DropHead));
    b.send(&jobs(["a", "b", "c", "d", "e"]));
    assert_eq!(b.held("jobs"), (3, 0));
    b.restart(0);
    b.worker("w", "jobs", Some(2));
    assert_eq!(b.got(), ["w: c d"]);
    // What is out does not count.
    b.send(&jobs(["f", "g"]));
    assert_eq!(b.held("jobs"), (3, 2));
    b.send(&jobs(["h"]));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: f g h"]);
}

#[test]
fn the_oldest_gives_way_whatever_its_key() {
    let mut b = Broker::with(at_most(3, Overflow::DropHead));
    b.send(&[job("a").key("x"), job("b").key("y"), job("c").key("x")]);
    b.send(&[job("d").key("z"), job("e").key("x")]);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: c d e"]);
}

#[test]
fn the_head_is_dropped_behind_many_that_are_out() {
    let mut b = Broker::with(at_most(10, Overflow::DropHead));
    b.worker("w", "jobs", Some(600));
    for n in 0..1_000 {
        b.send(&[job(&n.to_string())]);
    }
    assert_eq!(b.held("jobs"), (10, 600));
}

#[test]
fn an_ordered_queue_is_bounded_too() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        ..at_most(3, Overflow::DropHead)
    });
    b.send(&jobs(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(b.held("jobs"), (3, 0));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: d"]);
    b.ack("jobs", ["d"]);
    assert_eq!(b.got(), ["w: e"]);
}

#[test]
fn what_moves_up_in_its_group_may_be_the_oldest() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Key {
            key: vec![KeyPart {
                kind: KeyKind::FairnessKey,
                name: String::new(),
            }],
            missing: MissingOrderingKey::Reject,
        },
        ..at_most(2, Overflow::DropHead)
    });
    b.send(&[job("a").key("g"), job("b").key("g")]);
    b.send(&[job("c").key("h"), job("d").key("i")]);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: c d"]);
}

#[test]
fn a_duplicate_needs_no_room() {
    let mut b = Broker::with(at_most(1, Overflow::Reject));
    b.send(&[job("a").idempotency("k")]);
    let again = [job("a").idempotency("k"), job("b")];
    assert_eq!(b.publish(&again), ["=a", "QueueFull"]);
}

#[test]
fn a_full_queue_may_also_refuse() {
    let mut b = Broker::with(at_most(2, Overflow::Reject));
    assert_eq!(b.publish(&jobs(["a", "b", "c"])), ["a", "b", "QueueFull"]);
    b.run();
    let w = b.worker("w", "jobs", Some(1));
    assert_eq!(b.publish(&jobs(["d", "e"])), ["d", "QueueFull"]);
    b.restart(0);
    assert_eq!(b.publish(&jobs(["f"])), ["QueueFull"]);
    b.disconnect(w);
}
