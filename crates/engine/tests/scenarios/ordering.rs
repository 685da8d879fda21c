//! Ordering groups: one message of a group in flight, in arrival order, whatever fails.

use tanda_engine::{
    Backoff, KeyKind, KeyPart, MissingOrderingKey, Ordering, QueueSpec, Settlement,
};

use crate::broker::{Broker, fail, job, jobs, queue};
use crate::harness::Msg;

fn by_account(missing: MissingOrderingKey) -> QueueSpec {
    let key = vec![KeyPart {
        kind: KeyKind::Header,
        name: "account".to_owned(),
    }];
    QueueSpec {
        ordering: Ordering::Key { key, missing },
        backoff_initial_ms: 100,
        ..queue("jobs")
    }
}

fn of(account: &str, name: &str) -> Msg {
    job(name).header("account", account)
}

fn whole() -> QueueSpec {
    QueueSpec {
        ordering: Ordering::Queue,
        backoff_initial_ms: 100,
        ..queue("jobs")
    }
}

#[test]
fn a_whole_queue_goes_one_at_a_time() {
    let mut b = Broker::with(whole());
    b.worker("w", "jobs", None);
    b.worker("v", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.got(), ["w: a"]);
    let counts = b.counts("jobs");
    assert_eq!((counts.depth, counts.behind, counts.in_flight), (2, 2, 1));
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["v: b"]);
    b.ack("jobs", ["b"]);
    assert_eq!(b.got(), ["w: c"]);
    b.ack("jobs", ["c"]);
    b.send(&jobs(["d"]));
    assert_eq!(b.got(), ["v: d"]);
}

#[test]
fn groups_do_not_wait_for_each_other() {
    let mut b = Broker::with(by_account(MissingOrderingKey::Reject));
    b.worker("w", "jobs", None);
    b.send(&[
        of("1", "a1"),
        of("1", "a2"),
        of("2", "b1"),
        of("2", "b2"),
        of("3", "c1"),
    ]);
    assert_eq!(b.got(), ["w: a1 b1 c1"]);
    b.ack("jobs", ["b1"]);
    assert_eq!(b.got(), ["w: b2"]);
    b.ack("jobs", ["a1"]);
    assert_eq!(b.got(), ["w: a2"]);
}

#[test]
fn a_missing_key_is_refused_alone() {
    let mut b = Broker::with(by_account(MissingOrderingKey::Reject));
    let told = b.publish(&[of("1", "a"), job("bare"), of("1", "b")]);
    assert_eq!(told, ["a", "OrderingKeyMissing", "b"]);
    b.worker("w", "jobs", None);
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["w: a", "w: b"]);
}

#[test]
fn a_missing_key_may_also_mean_no_order() {
    let mut b = Broker::with(by_account(MissingOrderingKey::Unordered));
    b.send(&[of("1", "a"), job("x"), of("1", "b"), job("y"), job("z")]);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: a x y z"]);
    // An empty value is a value.
    b.send(&[of("", "e"), of("", "f")]);
    assert_eq!(b.got(), ["w: e"]);
    b.restart(0);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), Vec::<String>::new());
    b.ack("jobs", ["x", "a", "e"]);
    assert_eq!(b.got(), ["w: b f"]);
}

#[test]
fn several_parts_make_one_key() {
    let key = vec![
        KeyPart {
            kind: KeyKind::Header,
            name: "account".to_owned(),
        },
        KeyPart {
            kind: KeyKind::FairnessKey,
            name: String::new(),
        },
    ];
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Key {
            key,
            missing: MissingOrderingKey::Reject,
        },
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    let told = b.publish(&[
        of("1", "a").key("t"),
        of("1", "b").key("u"),
        of("1", "c").key("t"),
        of("1", "bare"),
    ]);
    assert_eq!(told, ["a", "b", "c", "OrderingKeyMissing"]);
    b.run();
    assert_eq!(b.got(), ["w: a b"]);
}

#[test]
fn arrival_decides_inside_a_group_across_fairness_keys() {
    let mut b = Broker::with(by_account(MissingOrderingKey::Reject));
    b.worker("w", "jobs", Some(1));
    let messages: Vec<_> = (0..12)
        .map(|n| {
            let key = ["x", "y", "z"][n % 3];
            of("1", &n.to_string()).key(key).weight(5)
        })
        .collect();
    b.send(&messages);
    let mut order = b.order();
    b.restart(0);
    b.worker("w", "jobs", None);
    while let Some(last) = order.last().cloned() {
        b.ack("jobs", [&last]);
        let next = b.order();
        if next.is_empty() {
            break;
        }
        order.extend(next);
    }
    let expected: Vec<_> = (0..12).map(|n| n.to_string()).collect();
    assert_eq!(order, expected);
}

#[test]
fn a_retry_holds_its_group() {
    let mut b = Broker::with(whole());
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    b.nack("jobs", "a");
    b.advance(99);
    assert_eq!(b.got(), ["w: a"]);
    b.advance(1);
    assert_eq!(b.got(), ["w: a#2"]);
    b.settle("jobs", &[("a", fail(Some(7_000)))]);
    b.restart(0);
    b.worker("w", "jobs", None);
    b.advance(6_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["w: a#3"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn an_expired_lease_holds_its_group() {
    let mut b = Broker::with(QueueSpec {
        backoff: Some(Backoff::None),
        lease_ms: 1_000,
        ..whole()
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    b.advance(1_000);
    assert_eq!(b.got(), ["w: a", "w: a#2"]);
    assert_eq!(
        b.settle("jobs", &[("a", Settlement::Requeue)]),
        [crate::broker::OK]
    );
    assert_eq!(b.got(), ["w: a#2"]);
}

#[test]
fn a_dead_letter_releases_its_group_and_a_redriven_one_joins_the_back() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..whole()
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    b.nack("jobs", "a");
    assert_eq!(b.got(), ["w: a", "w: b"]);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    assert_eq!(b.counts("jobs").behind, 2);
    b.restart(0);
    assert_eq!(b.counts("jobs").behind, 2);
    b.got();
    b.worker("w", "jobs", None);
    b.ack("jobs", ["b"]);
    b.ack("jobs", ["c"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["w: c", "w: a+1"]);
}

#[test]
fn dead_letters_of_an_ordered_queue_do_not_wait_for_each_other() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..whole()
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b"]));
    b.nack("jobs", "a");
    b.nack("jobs", "b");
    b.got();
    b.worker("dead", "jobs.dlq", None);
    assert_eq!(b.got(), ["dead: a#2 b#2"]);
    b.restart(30_000);
    assert_eq!(b.held("jobs.dlq"), (0, 2));
    b.worker("dead", "jobs.dlq", None);
    b.advance(60_000);
    assert_eq!(b.got(), ["dead: a#3 b#3"]);
}

#[test]
fn a_purge_lets_the_leased_head_be() {
    let mut b = Broker::with(whole());
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    let name = "jobs".to_owned();
    b.admin(tanda_engine::AdminRequest::PurgeQueue {
        vhost: tanda_engine::VhostId::DEFAULT,
        name,
    });
    assert_eq!(b.held("jobs"), (0, 1));
    b.send(&jobs(["d"]));
    assert_eq!(b.got(), ["w: a"]);
    b.ack("jobs", ["a"]);
    assert_eq!(b.got(), ["w: d"]);
}
