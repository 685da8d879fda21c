//! Statistics: every counter equals what a recount finds.

use tanda_engine::{
    AdminReply, AdminRequest, KeyKind, KeyPart, KeyStats, MessagePlace, MissingOrderingKey,
    Ordering, QueueCounts, QueueSpec, QueueStats, VhostId,
};

use crate::broker::{Broker, job, queue};

fn key(name: &str, pending: u64, deficit: i64, weight: u32) -> KeyStats {
    KeyStats {
        key: name.to_owned(),
        pending,
        deficit,
        weight,
    }
}

fn spec() -> QueueSpec {
    let part = KeyPart {
        kind: KeyKind::Header,
        name: "g".to_owned(),
    };
    QueueSpec {
        ordering: Ordering::Key {
            key: vec![part],
            missing: MissingOrderingKey::Unordered,
        },
        ..queue("jobs")
    }
}

/// A broker with messages in every place.
fn broker() -> Broker {
    let mut b = Broker::with(spec());
    b.worker("w", "jobs", Some(4));
    b.send(&[
        job("leased").key("a").header("g", "1"),
        job("behind").key("a").header("g", "1"),
        job("behind too").key("b").header("g", "1").delay(5),
        job("failed").key("b").idempotency("i"),
        job("gone").key("c").idempotency("j"),
        job("dead"),
        job("delayed").delay(100_000),
    ]);
    b.send(&[job("ready").key("b").weight(7)]);
    assert_eq!(b.got(), ["w: leased failed gone dead"]);
    b.nack("jobs", "failed");
    b.ack("jobs", ["gone"]);
    b.settle("jobs", &[("dead", tanda_engine::Settlement::Reject)]);
    b
}

fn expected(active_consumers: u32) -> QueueStats {
    let names = [
        "leased",
        "behind",
        "behind too",
        "failed",
        "ready",
        "delayed",
    ];
    // Six bytes of layout each; a header takes four more and its texts.
    let bytes = names.iter().map(|name| name.len() as u64 + 6).sum::<u64>() + 3 * 6;
    QueueStats {
        counts: QueueCounts {
            depth: 5,
            in_flight: 1,
            delayed: 2,
            behind: 2,
            throttled: 0,
            ready: 1,
            active_fairness_keys: 3,
            active_consumers,
            bytes,
            remembered_keys: 2,
            ..QueueCounts::default()
        },
        keys: vec![key("", 1, 0, 1), key("a", 1, 0, 1), key("b", 3, 0, 7)],
        quantum: 1,
        throttles: Vec::new(),
    }
}

#[test]
fn every_place_is_counted_once() {
    let mut b = broker();
    assert_eq!(b.stats("jobs"), expected(1));
    assert_eq!(b.held("jobs.dlq"), (1, 0));
    b.restart(0);
    assert_eq!(b.stats("jobs"), expected(0));
    let AdminReply::Queues(list) = b.admin(AdminRequest::ListQueues) else {
        panic!("a list");
    };
    let names: Vec<_> = list.iter().map(|q| (&*q.name, q.counts.depth)).collect();
    assert_eq!(names, [("jobs", 5), ("jobs.dlq", 1)]);
}

#[test]
fn each_message_knows_its_place() {
    let mut b = broker();
    let now = b.now();
    let place = |b: &mut Broker, name: &str| {
        let request = AdminRequest::Explain {
            vhost: VhostId::DEFAULT,
            name: "jobs".to_owned(),
            message: Some(b.id(name)),
        };
        match b.admin(request) {
            AdminReply::Explained(Ok(explanation)) => explanation.message.expect("a place"),
            other => panic!("not {other:?}"),
        }
    };
    let leased = MessagePlace::Leased {
        expires_at: Some(now.after_ms(30_000)),
        attempts: 1,
        consumer: Some(1),
    };
    assert_eq!(place(&mut b, "leased"), leased);
    let behind = MessagePlace::Behind {
        head: b.id("leased"),
        head_place: Box::new(leased),
    };
    assert_eq!(place(&mut b, "behind too"), behind);
    let failed = MessagePlace::Delayed {
        due_at: now.after_ms(1_000),
        attempts: 1,
    };
    assert_eq!(place(&mut b, "failed"), failed);
    let ready = MessagePlace::Ready {
        fairness_key: "b".to_owned(),
        ahead_in_key: 0,
        keys_in_ring: 1,
        is_unfit: false,
        attempts: 0,
    };
    assert_eq!(place(&mut b, "ready"), ready);
    assert_eq!(place(&mut b, "gone"), MessagePlace::Unknown);
    let dead = MessagePlace::DeadLettered {
        queue: "jobs.dlq".to_owned(),
    };
    assert_eq!(place(&mut b, "dead"), dead);
}

#[test]
fn an_explanation_counts_who_could_take_a_message() {
    let mut b = broker();
    b.worker("v", "jobs", Some(0));
    let request = AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        message: None,
    };
    let AdminReply::Explained(Ok(explained)) = b.admin(request) else {
        panic!("an explanation");
    };
    assert_eq!(explained.counts, expected(2).counts);
    assert_eq!(
        (
            explained.consumers_ready,
            explained.consumers_without_credit
        ),
        (0, 2)
    );
    assert_eq!(explained.next_due_at, Some(b.now().after_ms(1_000)));
    assert_eq!(explained.next_lease_end_at, Some(b.now().after_ms(30_000)));
    assert_eq!((explained.groups_held, explained.message), (1, None));
}

#[test]
fn a_drained_queue_counts_nothing() {
    let mut b = Broker::with(spec());
    b.worker("w", "jobs", None);
    let messages: Vec<_> = (0..100)
        .map(|n| job(&n.to_string()).key(["x", "y"][n % 2]).header("g", "1"))
        .collect();
    b.send(&messages);
    for n in 0..100 {
        b.ack("jobs", [&n.to_string()]);
    }
    let counts = QueueCounts {
        active_consumers: 1,
        ..QueueCounts::default()
    };
    assert_eq!(b.counts("jobs"), counts);
    assert!(b.stats("jobs").keys.is_empty());
}
