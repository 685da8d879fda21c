//! Messages leave undelivered when their time has come, wherever they are.

use tanda_engine::{
    EngineConfig, KeyKind, KeyPart, LeaseMode, MissingOrderingKey, MissingThrottleKey, Ordering,
    QueueSpec, ThrottleLimit, ThrottleSpec,
};

use crate::broker::{Broker, NACK, fail, job, jobs, queue, transient};
use crate::harness::Harness;

fn expired(b: &mut Broker) -> (u64, u64) {
    let counts = b.counts("jobs");
    (counts.depth, counts.expired)
}

#[test]
fn a_message_leaves_when_its_time_has_come_and_not_before() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[job("long").ttl(5_000), job("short").ttl(1_000), job("ever")]);
    b.advance(999);
    assert_eq!(expired(&mut b), (3, 0));
    b.advance(1);
    // From behind one that stays.
    assert_eq!(expired(&mut b), (2, 1));
    b.advance(3_999);
    assert_eq!(expired(&mut b), (2, 1));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: long ever"]);
    b.advance(10_000);
    assert_eq!(expired(&mut b), (0, 1));
    // What is leased does not leave.
    b.ack("jobs", ["long", "ever"]);
}

#[test]
fn messages_with_and_without_a_time_go_in_their_order() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[job("a"), job("b").ttl(9_000), job("c"), job("d").ttl(8_000)]);
    b.worker("w", "jobs", Some(4));
    assert_eq!(b.order(), ["a", "b", "c", "d"]);
}

#[test]
fn a_leased_message_leaves_when_it_comes_back() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(1));
    b.send(&[job("a").ttl(1_000), job("b").ttl(60_000)]);
    b.advance(2_000);
    assert_eq!(b.got(), ["w: a"]);
    let counts = b.counts("jobs");
    assert_eq!((counts.in_flight, counts.expired), (1, 0));
    b.grant(w, 2);
    b.nack("jobs", "a");
    b.advance(5_000);
    // Never delivered again, although somebody waits.
    assert_eq!(b.order(), ["b"]);
    assert_eq!(expired(&mut b), (0, 1));
    assert_eq!(
        b.settle("jobs", &[("a", NACK)]),
        [crate::broker::NOT_LEASED]
    );
}

#[test]
fn a_message_that_is_not_due_yet_leaves() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", Some(1));
    b.send(&[job("late").delay(5_000).ttl(1_000), job("tried").ttl(3_000)]);
    assert_eq!(b.settle("jobs", &[("tried", fail(Some(60_000)))]).len(), 1);
    assert_eq!(b.counts("jobs").delayed, 2);
    b.advance(1_000);
    assert_eq!(b.counts("jobs").delayed, 1);
    b.advance(2_000);
    assert_eq!(b.counts("jobs").delayed, 0);
    assert_eq!(expired(&mut b), (0, 2));
    b.advance(100_000);
    assert_eq!(b.order(), ["tried"]);
}

#[test]
fn a_message_behind_its_group_leaves_and_the_others_go_on() {
    for expires in ["a", "b", "c", "d"] {
        let mut b = Broker::with(QueueSpec {
            ordering: Ordering::Key {
                key: vec![KeyPart {
                    kind: KeyKind::FairnessKey,
                    name: String::new(),
                }],
                missing: MissingOrderingKey::Unordered,
            },
            ..queue("jobs")
        });
        let messages = ["a", "b", "c", "d"].map(|name| {
            let message = job(name).key("k");
            if name == expires {
                message.ttl(1_000)
            } else {
                message
            }
        });
        b.send(&messages);
        assert_eq!(b.counts("jobs").behind, 3);
        b.advance(1_000);
        assert_eq!(b.counts("jobs").behind, 2);
        b.worker("w", "jobs", None);
        let left = ["a", "b", "c", "d"].into_iter().filter(|it| *it != expires);
        for name in left {
            assert_eq!(b.order(), [name]);
            b.ack("jobs", [name]);
        }
        assert_eq!(expired(&mut b), (0, 1));
    }
}

#[test]
fn a_message_that_waits_for_a_throttle_leaves() {
    let mut b = Broker::with(queue("jobs"));
    let throttle = ThrottleSpec {
        name: "calls".to_owned(),
        key: vec![KeyPart {
            kind: KeyKind::Header,
            name: "to".to_owned(),
        }],
        limits: vec![ThrottleLimit {
            max_deliveries: 1,
            window_ms: 60_000,
        }],
        missing: MissingThrottleKey::default(),
    };
    b.throttled("w", "jobs", None, &[throttle]);
    let message = |name: &str| job(name).header("to", "x");
    b.send(&[
        message("a"),
        message("b").ttl(1_000),
        message("c"),
        message("d").ttl(2_000),
    ]);
    assert_eq!(b.got(), ["w: a"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.counts("jobs").throttled, 3);
    b.advance(1_000);
    assert_eq!(b.counts("jobs").throttled, 2);
    b.advance(1_000);
    assert_eq!(b.counts("jobs").throttled, 1);
    b.advance(60_000);
    assert_eq!(b.order(), ["c"]);
    assert_eq!(expired(&mut b), (0, 2));
}

#[test]
fn a_message_with_no_time_at_all_is_delivered_at_once_or_never() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.worker("w", "jobs", Some(2));
    let now_or_never = |name: &str| job(name).ttl(0);
    // Not in a later pass, which may be at a later time.
    assert_eq!(b.publish(&[now_or_never("a")]), ["a"]);
    assert_eq!(b.got(), ["w: a"]);
    b.send(&[job("x")]);
    b.send(&[now_or_never("b"), job("y")]);
    assert_eq!(b.order(), ["x"]);
    assert_eq!(expired(&mut b), (1, 1));
    b.grant(w, 9);
    assert_eq!(b.order(), ["y"]);
}

#[test]
fn times_survive_restarts_and_snapshots() {
    for snapshot in [false, true] {
        let mut b = Broker::with(queue("jobs"));
        b.send(&[
            job("a").ttl(1_000),
            job("b").delay(9_000).ttl(5_000),
            job("c").ttl(5_000),
            job("d"),
        ]);
        if snapshot {
            b.snapshot();
        }
        b.restart(2_000);
        assert_eq!(expired(&mut b), (3, 1));
        b.restart(0);
        b.advance(2_999);
        assert_eq!(b.counts("jobs").depth, 3);
        b.advance(1);
        assert_eq!(b.counts("jobs").depth, 1);
        b.worker("w", "jobs", None);
        assert_eq!(b.order(), ["d"]);
    }
}

#[test]
fn messages_with_a_time_stay_out_of_pages() {
    let mut b = Broker::over(Harness::with_config(EngineConfig {
        segment_shift: 12,
        page_messages: 3,
        lane_hot: 2,
        ..EngineConfig::default()
    }));
    b.h.create(queue("jobs"));
    let names: Vec<_> = (0..60).map(|n| format!("m{n}")).collect();
    let messages = names.iter().enumerate().map(|(n, name)| match n % 3 {
        0 => job(name).ttl(1_000 + 10 * n as u64),
        _ => job(name),
    });
    b.send(&messages.collect::<Vec<_>>());
    assert!(b.h.journal.pages.iter().flatten().count() > 5);
    b.advance(1_300);
    // Those below 30 are gone, from between the pages.
    assert_eq!(expired(&mut b), (49, 11));
    b.worker("w", "jobs", None);
    let left = (0..60).filter(|n| n % 3 != 0 || *n > 30);
    assert_eq!(b.order(), left.map(|n| format!("m{n}")).collect::<Vec<_>>());
}

#[test]
fn many_leave_in_bounded_steps_and_none_is_delivered_meanwhile() {
    let mut b = Broker::with(queue("jobs"));
    let names: Vec<_> = (0..3_000).map(|n| format!("m{n}")).collect();
    let messages: Vec<_> = names.iter().map(|name| job(name).ttl(1_000)).collect();
    b.send(&messages);
    b.send(&jobs(["last"]));
    // A worker comes when all of them have expired and not one has left.
    b.h.now = b.h.now.after_ms(1_000);
    b.h.subscribe_as(crate::broker::CLIENT, "jobs", None, LeaseMode::Timed);
    let mut passes = 0;
    while b.pass() {
        passes += 1;
    }
    assert!(passes >= 2, "{passes} passes");
    assert_eq!(b.order(), ["last"]);
    assert_eq!(expired(&mut b), (0, 3_000));
}

#[test]
fn memory_is_counted_and_given_back() {
    let mut b = Broker::with(queue("jobs"));
    let before = b.h.engine.memory_bytes();
    let names: Vec<_> = (0..5_000).map(|n| format!("m{n}")).collect();
    let plain: Vec<_> = names.iter().map(|name| job(name)).collect();
    b.send(&plain);
    let without = b.h.engine.memory_bytes() - before;
    let mut b = Broker::with(queue("jobs"));
    let messages: Vec<_> = names.iter().map(|name| job(name).ttl(1_000)).collect();
    b.send(&messages);
    let with = b.h.engine.memory_bytes() - before;
    assert!(with > without + 5_000 * 24, "{with} after {without}");
    b.advance(1_000);
    assert_eq!(expired(&mut b), (0, 5_000));
    let left = b.h.engine.memory_bytes() - before;
    assert!(left < without / 2, "{left} of {with}");
}

#[test]
fn a_transient_message_leaves_too() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[transient("a").ttl(1_000), transient("b")]);
    b.advance(1_000);
    assert_eq!(expired(&mut b), (1, 1));
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["b"]);
}

#[test]
fn a_dead_letter_stays() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&[job("a").ttl(1_000)]);
    b.nack("jobs", "a");
    b.advance(10_000);
    assert_eq!(b.counts("jobs.dlq").depth, 1);
    b.restart(10_000);
    assert_eq!(b.counts("jobs.dlq").depth, 1);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    b.advance(10_000);
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["a", "a"]);
}
