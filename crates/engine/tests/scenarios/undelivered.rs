//! Deliveries that never left: back in their place, as if nothing had happened.

use tanda_engine::{Backoff, DeliveryDurability, LeaseMode, Ordering, QueueSpec, Settlement};

use crate::broker::{Broker, NOT_LEASED, OK, job, jobs, queue};

#[test]
fn what_never_left_counts_nothing_and_keeps_its_place() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", Some(2));
    b.send(&jobs(["a", "b", "c"]));
    b.undelivered(w);
    b.disconnect(w);
    assert_eq!(b.held("jobs"), (3, 0));
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: a b c"]);
}

#[test]
fn nor_does_it_count_after_a_restart() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", Some(1));
    b.send(&jobs(["a", "b"]));
    b.undelivered(w);
    b.disconnect(w);
    b.restart(0);
    assert_eq!(b.held("jobs"), (2, 0));
    b.got();
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: a b"]);
}

#[test]
fn only_what_is_still_leased_comes_back() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    // Settled by somebody who knew the ids.
    let held = core::mem::take(&mut b.out);
    b.settle(
        "jobs",
        &[("a", Settlement::Ack), ("b", crate::broker::NACK)],
    );
    b.out = held;
    b.undelivered(w);
    b.disconnect(w);
    let counts = b.counts("jobs");
    assert_eq!((counts.ready, counts.delayed, counts.in_flight), (1, 1, 0));
    assert_eq!(b.settle("jobs", &[("c", Settlement::Ack)]), [NOT_LEASED]);
}

#[test]
fn what_waited_beyond_its_lease_takes_no_later_lease_back() {
    let mut b = Broker::with(QueueSpec {
        lease_ms: 1_000,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", Some(2));
    b.send(&jobs(["a"]));
    let waiting = core::mem::take(&mut b.out);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: a#2"]);
    assert_eq!(b.held("jobs"), (0, 1));
    b.out = waiting;
    b.undelivered(w);
    b.run();
    // The second lease stands; the credit of the first delivery is there again.
    assert_eq!(b.held("jobs"), (0, 1));
    assert_eq!(b.got(), Vec::<String>::new());
    b.send(&jobs(["b", "c"]));
    assert_eq!(b.got(), ["w: b"]);
    assert_eq!(b.settle("jobs", &[("a", Settlement::Ack)]), [OK]);
}

#[test]
fn what_waited_beyond_a_redrive_takes_no_later_lease_back() {
    let mut b = Broker::with(QueueSpec {
        lease_ms: 1_000,
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    let waiting = core::mem::take(&mut b.out);
    b.advance(1_000);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    assert_eq!(b.got(), ["w: a+1"]);
    b.out = waiting;
    b.undelivered(w);
    b.run();
    // The same consumer's first delivery again, but of the redriven message.
    assert_eq!(b.got(), Vec::<String>::new());
    assert_eq!(b.settle("jobs", &[("a", Settlement::Ack)]), [OK]);
}

#[test]
fn what_a_session_did_not_pass_on_takes_no_later_lease_back() {
    let mut b = Broker::with(QueueSpec {
        lease_ms: 1_000,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", Some(1));
    b.send(&jobs(["a"]));
    let batches = b.batches();
    let unsent = Settlement::Unsent {
        consumer: batches[0].consumer,
        deliveries: batches[0].items[0].deliveries,
        redrives: 0,
    };
    b.unsubscribe(w);
    assert_eq!(b.settle("jobs", &[("a", unsent)]), [OK]);
    assert_eq!(b.held("jobs"), (1, 0));
    assert_eq!(b.settle("jobs", &[("a", unsent)]), [NOT_LEASED]);
    b.worker("v", "jobs", Some(2));
    assert_eq!(b.got(), ["v: a"]);
    assert_eq!(b.settle("jobs", &[("a", unsent)]), [NOT_LEASED]);
    assert_eq!(b.held("jobs"), (0, 1));
    // Nor when the same consumer has it again.
    let again = Settlement::Unsent {
        consumer: batches[0].consumer + 1,
        deliveries: 2,
        redrives: 0,
    };
    b.advance(1_000);
    assert_eq!(b.got(), ["v: a#2"]);
    assert_eq!(b.settle("jobs", &[("a", again)]), [NOT_LEASED]);
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 1));
}

#[test]
fn a_deleted_queue_takes_nothing_back() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    let name = "jobs".to_owned();
    b.admin(tanda_engine::AdminRequest::DeleteQueue {
        vhost: tanda_engine::VhostId::DEFAULT,
        name,
    });
    b.h.create(queue("jobs"));
    b.undelivered(w);
    b.disconnect(w);
    assert_eq!(b.held("jobs"), (0, 0));
    assert_eq!(b.got(), ["w QueueDeleted"]);
}

#[test]
fn the_room_it_took_is_free_for_other_subscriptions() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("other"));
    let conn = b.connect(tanda_engine::ConnLimits {
        outbound_bytes_max: 1,
        subscriptions_max: 2,
    });
    let one = b.worker_on(conn, "one", "jobs", (None, LeaseMode::Timed));
    b.worker_on(conn, "two", "other", (None, LeaseMode::Timed));
    b.send(&jobs(["a"]));
    let mut x = job("x");
    x.queue = "other".to_owned();
    b.send(&[x]);
    b.undelivered(one);
    b.unsubscribe(one);
    assert_eq!(b.got(), ["two: x"]);
}

#[test]
fn fast_ordered_and_connection_bound_deliveries_come_back_too() {
    for durability in [DeliveryDurability::Fast, DeliveryDurability::Committed] {
        for lease in [LeaseMode::Timed, LeaseMode::Connection] {
            let mut b = Broker::with(QueueSpec {
                durability,
                ordering: Ordering::Queue,
                ..queue("jobs")
            });
            let w = b.worker_as("w", "jobs", None, lease);
            b.send(&jobs(["a", "b"]));
            b.undelivered(w);
            b.disconnect(w);
            let counts = b.counts("jobs");
            assert_eq!((counts.ready, counts.behind), (1, 1));
            b.worker("v", "jobs", None);
            assert_eq!(b.got(), ["v: a"]);
            assert_eq!(b.settle("jobs", &[("a", Settlement::Ack)]), [OK]);
            assert_eq!(b.got(), ["v: b"]);
        }
    }
}
