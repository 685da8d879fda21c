//! Not-before times: never early, whatever happens in between.

use tanda_engine::{Ordering, QueueSpec};

use crate::broker::{Broker, job, jobs, queue};

#[test]
fn a_delayed_message_is_never_early() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    b.send(&[job("late").delay(5_000), job("soon").delay(10), job("now")]);
    assert_eq!(b.got(), ["w: now"]);
    let counts = b.counts("jobs");
    assert_eq!((counts.depth, counts.delayed, counts.ready), (2, 2, 0));
    b.advance(9);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: soon"]);
    b.advance(4_989);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: late"]);
}

#[test]
fn a_delay_is_held_over_a_restart() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[job("a").delay(5_000), job("b").delay(2_000), job("c")]);
    b.restart(3_000);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: b c"]);
    b.advance(1_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: a"]);
}

#[test]
fn a_delayed_head_holds_its_group() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&[job("a").delay(1_000), job("b")]);
    b.advance(999);
    assert_eq!(b.got(), Vec::<String>::new());
    let counts = b.counts("jobs");
    assert_eq!((counts.delayed, counts.behind, counts.ready), (1, 1, 0));
    b.advance(1);
    assert_eq!(b.got(), ["w: a"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn a_delayed_message_behind_its_group_waits_for_both() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&[job("a"), job("b").delay(1_000), job("c").delay(500)]);
    b.ack("jobs", ["a"]);
    b.advance(999);
    assert_eq!(b.got(), ["w: a"]);
    // The same after a restart.
    b.restart(0);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: b"]);
    // Its own time came long ago when the group lets it go.
    b.advance(100);
    b.ack("jobs", ["b"]);
    assert_eq!(b.got(), ["w: c"]);
}

#[test]
fn many_due_at_once_all_come_in_order() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    let messages: Vec<_> = (0..3_000).map(|n| job(&n.to_string()).delay(50)).collect();
    b.send(&messages);
    b.advance(50);
    let expected: Vec<_> = (0..3_000).map(|n| n.to_string()).collect();
    assert_eq!(b.order(), expected);
}

#[test]
fn an_endless_delay_is_just_long() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", None);
    b.send(&[job("never").delay(u64::MAX), job("now")]);
    b.advance(1_000_000_000_000);
    assert_eq!(b.order(), ["now", "now", "now"]);
    b.restart(0);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.send(&jobs(["more"]));
}

#[test]
fn a_queue_with_much_to_do_does_not_hold_up_the_timers_of_another() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("other"));
    b.worker("other", "other", None);
    let messages: Vec<_> = (0..5_000).map(|n| job(&n.to_string()).delay(10)).collect();
    b.send(&messages);
    let mut late = job("late").delay(11);
    late.queue = "other".to_owned();
    b.send(&[late]);
    b.h.now = b.now().after_ms(11);
    assert!(b.pass(), "the first queue is not done");
    assert_eq!(b.got(), ["other: late"]);
    b.run();
    assert_eq!(b.counts("jobs").ready, 5_000);
}
