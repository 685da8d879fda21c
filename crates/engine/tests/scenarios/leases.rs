//! Leases: they outlive connections, can be moved, and fail the attempt when they end.

use tanda_engine::{Millis, QueueSpec, Settlement};

use crate::broker::{Broker, NACK, NOT_LEASED, OK, job, jobs, queue};

fn broker() -> Broker {
    Broker::with(QueueSpec {
        lease_ms: 10_000,
        backoff: Some(tanda_engine::Backoff::None),
        ..queue("jobs")
    })
}

const fn extend(by_ms: u64) -> Settlement {
    Settlement::Extend { by_ms }
}

#[test]
fn a_lease_says_when_it_began_and_ends() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.send(&[job("a")]);
    let now = b.now();
    let batches = b.batches();
    assert_eq!(batches[0].leased_at, now);
    assert_eq!(batches[0].lease_expires_at, now.after_ms(10_000));
    assert_eq!(&*batches[0].queue, "jobs");
    let item = batches[0].items[0];
    assert_eq!((item.attempts, item.weight, item.redrives), (1, 1, 0));
    assert_eq!(b.payload(&batches[0], &item), "a");
}

#[test]
fn a_lease_outlives_its_connection_and_is_settled_from_another() {
    let mut b = broker();
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.got(), ["w: a b c"]);
    b.disconnect(w);
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), Vec::<String>::new());
    assert_eq!(b.held("jobs"), (0, 3));
    let end = b.now().after_ms(500);
    let told = b.settle(
        "jobs",
        &[("a", Settlement::Ack), ("b", NACK), ("c", extend(500))],
    );
    assert_eq!(told, [OK, OK, Ok(end)]);
    assert_eq!(b.got(), ["v: b#2"]);
    assert_eq!(b.held("jobs"), (0, 2));
}

#[test]
fn cancelling_a_subscription_keeps_its_leases() {
    let mut b = broker();
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    b.unsubscribe(w);
    assert_eq!(b.held("jobs"), (0, 1));
    b.got();
    b.worker("v", "jobs", None);
    b.advance(9_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["v: a#2"]);
}

#[test]
fn an_extension_counts_from_now_and_may_shorten() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.send(&jobs(["long", "short"]));
    assert_eq!(b.got(), ["w: long short"]);
    b.advance(5_000);
    let now = b.now();
    let told = b.settle(
        "jobs",
        &[("long", extend(20_000)), ("short", extend(1_000))],
    );
    assert_eq!(told, [Ok(now.after_ms(20_000)), Ok(now.after_ms(1_000))]);
    b.advance(999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: short#2"]);
    b.ack("jobs", ["short"]);
    b.advance(18_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: long#2"]);
}

#[test]
fn an_extension_by_nothing_ends_the_lease_at_once() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    assert_eq!(b.got(), ["w: a"]);
    let now = b.now();
    assert_eq!(b.settle("jobs", &[("a", extend(0))]), [Ok(now)]);
    assert_eq!(b.got(), ["w: a#2"]);
}

#[test]
fn an_endless_extension_has_an_end() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    let [Ok(end)] = b.settle("jobs", &[("a", extend(u64::MAX))])[..] else {
        panic!("not extended");
    };
    assert!(end > b.now().after_ms(1_000_000_000) && end < Millis(u64::MAX));
    b.advance(1_000_000_000);
    assert_eq!(b.held("jobs"), (0, 1));
    // Far from now, yet a lease as any other: it survives a restart and can be shortened.
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 1));
    b.got();
    b.worker("v", "jobs", None);
    assert_eq!(b.settle("jobs", &[("a", extend(0))]), [Ok(b.now())]);
    assert_eq!(b.got(), ["v: a#2"]);
}

#[test]
fn a_lease_that_ends_is_a_failed_attempt() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.worker("dead", "jobs.dlq", None);
    b.send(&jobs(["a"]));
    b.advance(30_000);
    assert_eq!(b.got(), ["w: a", "w: a#2", "w: a#3", "dead: a#4"]);
    // The last holder is too late.
    assert_eq!(b.settle("jobs", &[("a", Settlement::Ack)]), [NOT_LEASED]);
}

#[test]
fn the_second_settlement_finds_nothing() {
    let mut b = broker();
    b.worker("w", "jobs", Some(3));
    b.send(&jobs(["a", "b", "c"]));
    b.got();
    b.ack("jobs", ["a"]);
    for late in [
        Settlement::Ack,
        NACK,
        extend(5),
        Settlement::Requeue,
        Settlement::Reject,
    ] {
        assert_eq!(b.settle("jobs", &[("a", late)]), [NOT_LEASED]);
    }
    // Inside one batch as well.
    let told = b.settle(
        "jobs",
        &[
            ("b", Settlement::Ack),
            ("b", Settlement::Ack),
            ("c", NACK),
            ("c", NACK),
            ("c", extend(9)),
        ],
    );
    assert_eq!(told, [OK, NOT_LEASED, OK, NOT_LEASED, NOT_LEASED]);
    assert_eq!(b.held("jobs"), (1, 0));
    assert_eq!(b.settle("none", &[("c", Settlement::Ack)]), [NOT_LEASED]);
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: c#2"]);
}

#[test]
fn what_is_pending_cannot_be_settled() {
    let mut b = broker();
    b.send(&jobs(["a"]));
    for settlement in [Settlement::Ack, NACK, extend(5)] {
        assert_eq!(b.settle("jobs", &[("a", settlement)]), [NOT_LEASED]);
    }
    assert_eq!(b.held("jobs"), (1, 0));
}

#[test]
fn an_extension_and_a_failure_in_one_batch_fail_once_across_a_restart() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 2,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    let told = b.settle("jobs", &[("a", extend(60_000)), ("a", NACK)]);
    assert_eq!(told, [Ok(b.now().after_ms(60_000)), OK]);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.disconnect(w);
    b.restart(0);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.got();
    b.worker("v", "jobs", None);
    b.advance(1_000);
    assert_eq!(b.got(), ["v: a#2"]);
}
