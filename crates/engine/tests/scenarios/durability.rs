//! What a crash may forget of leases and acks: nothing, or little on a fast queue.

use tanda_engine::{
    Backoff, DeliveryDurability, Lsn, Ordering, QueueChanges, QueueSpec, Settlement,
};

use crate::broker::{Broker, NACK, NOT_LEASED, OK, fail, job, jobs, queue};

fn fast() -> QueueSpec {
    QueueSpec {
        durability: DeliveryDurability::Fast,
        reclaim_grace_ms: 5_000,
        backoff_initial_ms: 100,
        ..queue("jobs")
    }
}

/// The positions all outputs since the last look wait for.
fn afters(b: &Broker) -> Vec<Lsn> {
    b.out.iter().map(|output| output.after).collect()
}

#[test]
fn committed_deliveries_wait_for_their_lease() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    b.publish(&jobs(["a", "b"]));
    let stored = b.h.journal.end;
    assert_eq!(b.after, stored, "an accepted message is on disk");
    b.run();
    let leased = b.h.journal.end;
    assert!(leased > stored);
    assert_eq!(afters(&b), [leased]);
    assert_eq!(b.got(), ["w: a b"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.after, b.h.journal.end);
    // What says "not leased" speaks of the ack: it must not come before it.
    assert_eq!(b.settle("jobs", &[("a", NACK)]), [NOT_LEASED]);
    assert_eq!(b.after, b.h.journal.end);
}

#[test]
fn one_pass_writes_one_lease_record() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    b.worker("v", "jobs", None);
    let messages: Vec<_> = (0..500).map(|n| job(&n.to_string())).collect();
    b.publish(&messages);
    let records = b.h.journal.records.len();
    b.run();
    assert_eq!(b.h.journal.records.len(), records + 1);
    assert_eq!(b.batches().len(), 2);
}

#[test]
fn committed_leases_end_no_sooner_after_a_restart() {
    let mut b = Broker::with(QueueSpec {
        lease_ms: 10_000,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["short", "long"]));
    let by_ms = 50_000;
    b.settle("jobs", &[("long", Settlement::Extend { by_ms })]);
    b.got();
    b.restart(1_000);
    b.worker("v", "jobs", None);
    // max(recorded end, now + full length): 10 s from now for one, 49 s for the other.
    b.advance(9_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["v: short#2"]);
    b.ack("jobs", ["short"]);
    b.advance(38_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["v: long#2"]);
}

#[test]
fn a_lease_is_written_for_nothing_but_what_was_delivered() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("other"));
    b.worker("w", "jobs", None);
    let other = |name: &str| {
        let mut message = job(name);
        message.queue = "other".to_owned();
        message
    };
    // Acks of one queue, then a lease in another that has messages at the same positions.
    b.send(&[other("x"), other("y"), other("z")]);
    b.send(&jobs(["a", "b", "c"]));
    b.ack("jobs", ["a", "b", "c"]);
    b.worker("v", "other", Some(1));
    assert_eq!(b.got(), ["w: a b c", "v: x"]);
    b.restart(0);
    assert_eq!(b.held("other"), (2, 1));
    b.worker("u", "other", None);
    assert_eq!(b.got(), ["u: y z"]);
}

#[test]
fn committed_leases_can_be_settled_after_a_restart() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    b.ack("jobs", ["a"]);
    b.restart(0);
    b.got();
    assert_eq!(b.held("jobs"), (0, 2));
    assert_eq!(b.settle("jobs", &[("a", Settlement::Ack)]), [NOT_LEASED]);
    assert_eq!(
        b.settle("jobs", &[("b", Settlement::Ack), ("c", fail(Some(0)))]),
        [OK, OK]
    );
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: c#2"]);
}

#[test]
fn committed_attempts_never_exceed_their_limit_across_crashes() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 3,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b.send(&jobs(["a"]));
    let mut seen = Vec::new();
    for _ in 0..6 {
        b.worker("w", "jobs", Some(1));
        seen.extend(b.got());
        // The worker dies with the broker, again and again.
        b.restart(1_000);
        b.advance(30_000);
    }
    assert_eq!(seen, ["w: a", "w: a#2", "w: a#3"]);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
    b.got();
    b.worker("dead", "jobs.dlq", None);
    assert_eq!(b.got(), ["dead: a#4"]);
}

#[test]
fn fast_leases_are_not_written_and_acks_wait_for_nothing() {
    let mut b = Broker::with(fast());
    b.worker("w", "jobs", None);
    b.publish(&jobs(["a", "b", "c"]));
    let stored = b.h.journal.end;
    assert_eq!(b.after, stored);
    b.run();
    assert_eq!(b.h.journal.end, stored, "no lease is written");
    // What is delivered is on disk all the same.
    assert_eq!(afters(&b), [stored]);
    assert_eq!(b.got(), ["w: a b c"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.after, Lsn::ZERO);
    let acked = b.h.journal.end;
    assert!(acked > stored, "the ack is written, later");
    let by_ms = 60_000;
    b.settle("jobs", &[("b", Settlement::Extend { by_ms })]);
    assert_eq!((b.after, b.h.journal.end), (Lsn::ZERO, acked));
    b.settle("jobs", &[("c", NACK)]);
    assert_eq!(b.after, Lsn::ZERO);
    // A redelivery waits for nothing that is not on disk already.
    b.advance(100);
    assert_eq!(afters(&b), [stored]);
    assert_eq!(b.got(), ["w: c#2"]);
}

#[test]
fn fast_acks_of_an_ordered_queue_wait_and_so_does_the_next_message() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        ..fast()
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.got(), ["w: a"]);
    b.ack("jobs", ["a"]);
    let acked = b.h.journal.end;
    assert_eq!(b.after, acked);
    assert_eq!(
        afters(&b),
        [acked],
        "else a crash would bring `a` back after `b`"
    );
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn the_reclaim_grace_resolves_what_was_delivered_before_the_crash() {
    let mut b = Broker::with(fast());
    b.worker("w", "jobs", None);
    b.send(&jobs(["acked", "nacked", "extended", "lost", "later"]));
    b.got();
    b.restart(10);
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), Vec::<String>::new(), "held back for the grace");
    let now = b.now();
    let by_ms = 60_000;
    let told = b.settle(
        "jobs",
        &[
            ("acked", Settlement::Ack),
            ("nacked", NACK),
            ("extended", Settlement::Extend { by_ms }),
            ("later", fail(Some(7_000))),
        ],
    );
    assert_eq!(told, [OK, OK, Ok(now.after_ms(60_000)), OK]);
    assert_eq!(b.got(), ["v: nacked#2"]);
    b.advance(4_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    // Nobody knows whether it failed, so it did not.
    assert_eq!(b.got(), ["v: lost"]);
    b.advance(2_000);
    assert_eq!(b.got(), ["v: later#2"]);
    b.ack("jobs", ["nacked", "lost", "later"]);
    b.advance(52_999);
    assert_eq!(b.got(), Vec::<String>::new());
    // The extension made a lease of it again, which fails as any other.
    b.advance(1 + 100);
    assert_eq!(b.got(), ["v: extended#2"]);
}

#[test]
fn the_grace_never_uses_up_attempts() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 2,
        ..fast()
    });
    b.send(&jobs(["a"]));
    for _ in 0..5 {
        b.worker("w", "jobs", Some(1));
        b.advance(5_000);
        assert_eq!(b.got(), ["w: a"]);
        b.restart(0);
    }
}

#[test]
fn after_a_restart_a_fast_queue_delivers_new_messages_at_once() {
    let mut b = Broker::with(fast());
    b.send(&[job("old"), job("delayed").delay(2_000)]);
    b.restart(0);
    b.worker("w", "jobs", None);
    b.send(&jobs(["new"]));
    assert_eq!(b.got(), ["w: new"]);
    b.advance(2_000);
    assert_eq!(
        b.got(),
        ["w: delayed"],
        "it was never out, so it has no grace"
    );
    b.advance(3_000);
    assert_eq!(b.got(), ["w: old"]);
}

#[test]
fn durability_can_change() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", Some(1));
    b.send(&jobs(["a", "b"]));
    let changes = QueueChanges {
        durability: Some(DeliveryDurability::Fast),
        ..QueueChanges::default()
    };
    b.admin(tanda_engine::AdminRequest::UpdateQueue {
        vhost: tanda_engine::VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(changes),
    });
    b.ack("jobs", ["a"]);
    assert_eq!(b.after, Lsn::ZERO);
    b.restart(0);
    assert_eq!(b.held("jobs.dlq"), (0, 0));
    assert_eq!(b.held("jobs"), (0, 1), "in the reclaim grace");
}

#[test]
fn leases_of_a_queue_that_becomes_committed_are_on_disk() {
    let mut b = Broker::with(fast());
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.got(), ["w: a b"]);
    let changes = QueueChanges {
        durability: Some(DeliveryDurability::Committed),
        ..QueueChanges::default()
    };
    b.h.admin(tanda_engine::AdminRequest::UpdateQueue {
        vhost: tanda_engine::VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(changes),
    });
    b.ack("jobs", ["b"]);
    b.restart(0);
    b.worker("v", "jobs", None);
    b.advance(29_999);
    assert_eq!(b.got(), Vec::<String>::new(), "`w` may still hold it");
    b.advance(1);
    b.advance(100);
    assert_eq!(b.got(), ["v: a#2"]);
}
