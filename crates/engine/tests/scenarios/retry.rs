//! What follows a failed delivery: the delay by the queue's policy, then the dead-letter queue.

use tanda_engine::{Backoff, QueueSpec, Settlement};

use crate::broker::{Broker, NACK, OK, fail, job, jobs, queue};

fn broker(backoff: Backoff) -> Broker {
    let mut b = Broker::with(QueueSpec {
        backoff: Some(backoff),
        backoff_initial_ms: 100,
        backoff_max_ms: 350,
        max_attempts: 6,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b
}

/// Milliseconds between each failure of `a` and its next delivery, until it is dead.
fn delays(b: &mut Broker) -> Vec<u64> {
    let mut delays = Vec::new();
    b.send(&[job("a")]);
    while b.counts("jobs").in_flight == 1 {
        let failed = b.now();
        b.nack("jobs", "a");
        let due = b.h.engine.next_deadline().unwrap_or(failed);
        if b.held("jobs") == (0, 0) {
            break;
        }
        if b.counts("jobs").in_flight == 1 {
            delays.push(0);
            continue;
        }
        let wait = failed.until(due);
        b.advance(wait - 1);
        assert_eq!(b.held("jobs"), (1, 0), "early");
        b.advance(1);
        delays.push(wait);
    }
    delays
}

#[test]
fn no_backoff_retries_at_once() {
    let mut b = broker(Backoff::None);
    assert_eq!(delays(&mut b), [0; 5]);
    assert_eq!(
        b.got(),
        ["w: a", "w: a#2", "w: a#3", "w: a#4", "w: a#5", "w: a#6"]
    );
    assert_eq!(b.held("jobs.dlq"), (1, 0));
}

#[test]
fn fixed_backoff_waits_the_same_each_time() {
    let mut b = broker(Backoff::Fixed);
    assert_eq!(delays(&mut b), [100; 5]);
    assert_eq!(b.held("jobs.dlq"), (1, 0));
}

#[test]
fn exponential_backoff_doubles_up_to_its_cap() {
    let mut b = broker(Backoff::Exponential);
    assert_eq!(delays(&mut b), [100, 200, 350, 350, 350]);
    assert_eq!(b.held("jobs.dlq"), (1, 0));
}

#[test]
fn the_defaults_are_three_deliveries_with_one_and_two_seconds_between() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    assert_eq!(delays(&mut b), [1_000, 2_000]);
    assert_eq!(b.got(), ["w: a", "w: a#2", "w: a#3"]);
}

#[test]
fn retry_after_replaces_the_delay_only() {
    let mut b = broker(Backoff::Exponential);
    b.send(&[job("a")]);
    assert_eq!(b.settle("jobs", &[("a", fail(Some(0)))]), [OK]);
    assert_eq!(b.got(), ["w: a", "w: a#2"]);
    assert_eq!(b.settle("jobs", &[("a", fail(Some(5_000)))]), [OK]);
    b.advance(4_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: a#3"]);
    // The policy goes on where it would have been: the third failure waits its cap.
    b.nack("jobs", "a");
    b.advance(350);
    assert_eq!(b.got(), ["w: a#4"]);
    b.settle("jobs", &[("a", fail(Some(0)))]);
    b.settle("jobs", &[("a", fail(Some(0)))]);
    assert_eq!(b.got(), ["w: a#5", "w: a#6"]);
    // No delay saves it from its limit.
    b.settle("jobs", &[("a", fail(Some(1)))]);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
}

#[test]
fn an_absurd_retry_after_waits_and_breaks_nothing() {
    let mut b = broker(Backoff::None);
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.settle("jobs", &[("a", fail(Some(u64::MAX)))]), [OK]);
    b.advance(1_000_000_000);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.restart(0);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.send(&[job("c")]);
    b.worker("v", "jobs", None);
    b.out.clear();
    b.ack("jobs", ["c"]);
}

#[test]
fn max_attempts_counts_deliveries_in_total_across_restarts() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 4,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b.send(&[job("a")]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        b.worker("w", "jobs", None);
        b.nack("jobs", "a");
        seen.extend(b.got());
        if b.held("jobs") == (0, 0) {
            break;
        }
        b.restart(50);
        b.out.clear();
        // The delivery after the nack was recorded: its lease is still out.
        b.advance(29_999);
        assert_eq!(b.held("jobs"), (0, 1));
    }
    assert_eq!(seen, ["w: a", "w: a#2", "w: a#3", "w: a#4"]);
    b.restart(0);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
}

#[test]
fn one_attempt_means_no_retry() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    b.settle("jobs", &[("a", NACK), ("b", fail(Some(0)))]);
    assert_eq!(b.held("jobs.dlq"), (2, 0));
    b.got();
    b.worker("dead", "jobs.dlq", None);
    assert_eq!(b.got(), ["dead: a#2 b#2"]);
}

#[test]
fn a_rejected_message_is_dead_at_once() {
    let mut b = broker(Backoff::None);
    b.send(&[job("a")]);
    assert_eq!(b.settle("jobs", &[("a", Settlement::Reject)]), [OK]);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
}

#[test]
fn a_retried_message_keeps_its_place() {
    let mut b = Broker::with(QueueSpec {
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", Some(1));
    b.send(&jobs(["a", "b", "c"]));
    b.nack("jobs", "a");
    b.grant(w, 3);
    assert_eq!(b.got(), ["w: a", "w: a#2 b c"]);
}
