//! The log lets go of what nothing needs, and what is left is enough.

use tanda_engine::{
    AdminReply, AdminRequest, Backoff, EngineConfig, Lsn, QueueSpec, Rebalancing, VhostId,
};

use crate::broker::{Broker, job, jobs, queue};
use crate::harness::{Harness, Msg};

const SHIFT: u32 = 12;

fn broker() -> Broker {
    let config = EngineConfig {
        segment_shift: SHIFT,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(QueueSpec {
        dedup_window_ms: 10_000,
        max_attempts: 1,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b
}

const fn segment(at: Lsn) -> u64 {
    at.0 >> SHIFT
}

/// Fills some segments with messages that leave at once.
fn churn(b: &mut Broker, segments: u64) {
    let start = segment(b.h.journal.end);
    let w = b.worker("churner", "jobs", None);
    let mut round = 0;
    while segment(b.h.journal.end) < start + segments {
        round += 1;
        let name = format!("{}-{round}-{}", "churn".repeat(20), b.h.journal.end.0);
        b.send(&[job(&name)]);
        b.ack("jobs", [&name]);
    }
    b.unsubscribe(w);
    b.got();
}

#[test]
fn nothing_of_the_log_is_needed_when_nothing_is_stored() {
    let mut b = broker();
    churn(&mut b, 5);
    b.snapshot();
    assert_eq!(b.segments(), []);
    assert!(b.h.journal.records.is_empty());
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 0));
    b.send(&jobs(["a"]));
}

#[test]
fn a_message_holds_its_segment_and_no_other() {
    let mut b = broker();
    churn(&mut b, 2);
    b.send(&jobs(["keep"]));
    let keep = segment(b.h.journal.end);
    b.worker("w", "jobs", Some(1));
    b.got();
    churn(&mut b, 4);
    b.snapshot();
    assert_eq!(b.segments(), [keep]);
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 1));
    assert_eq!(b.segments(), [keep]);
    b.ack("jobs", ["keep"]);
    let mut free = Vec::new();
    b.h.engine.take_unreferenced(&mut free);
    assert_eq!((b.segments(), free), (vec![], vec![keep]));
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 0));
}

#[test]
fn a_remembered_key_holds_no_segment() {
    let mut b = broker();
    churn(&mut b, 1);
    let w = b.worker("w", "jobs", Some(1));
    b.send(&[job("a").idempotency("1")]);
    b.ack("jobs", ["a"]);
    b.unsubscribe(w);
    churn(&mut b, 3);
    b.snapshot();
    assert_eq!(b.segments(), []);
    b.restart(0);
    assert_eq!(b.publish(&[job("b").idempotency("1")]), ["=a"]);
    b.advance(10_000);
    b.snapshot();
    b.restart(0);
    assert_eq!(b.publish(&[job("c").idempotency("1")]), ["c"]);
}

#[test]
fn dead_letters_and_their_counters_survive() {
    let mut b = broker();
    let w = b.worker("w", "jobs", Some(3));
    b.send(&jobs(["a", "b", "c"]));
    let keep = segment(b.h.journal.end);
    b.nack("jobs", "a");
    b.nack("jobs", "b");
    b.unsubscribe(w);
    assert_eq!(b.redrive("jobs.dlq", 1), 1);
    churn(&mut b, 3);
    // The churner was given the redriven message as well.
    b.snapshot();
    assert_eq!(b.segments(), [keep]);
    b.restart(60_000);
    b.advance(60_000);
    assert_eq!(b.held("jobs.dlq"), (3, 0));
    b.got();
    b.worker("dead", "jobs.dlq", None);
    let mut got = b.order();
    got.sort();
    assert_eq!(got, ["a", "b", "c"]);
}

#[test]
fn queues_configuration_and_switches_are_in_the_snapshot() {
    let mut b = broker();
    let set = |key: &str, value: &str| AdminRequest::SetConfig {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    b.admin(set("a", "old"));
    b.admin(set("a", "1"));
    b.admin(set("b", ""));
    b.admin(AdminRequest::SetRebalancing(Rebalancing::Disabled));
    for name in ["gone", "other"] {
        b.h.create(queue(name));
    }
    let name = "gone".to_owned();
    b.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    let inspect = |b: &mut Broker, name: &str| {
        let name = name.to_owned();
        match b.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        }) {
            AdminReply::Inspected(Ok(details)) => (details.id, details.config),
            other => panic!("not {other:?}"),
        }
    };
    let before = (inspect(&mut b, "jobs"), inspect(&mut b, "other"));
    for _ in 0..3 {
        churn(&mut b, 3);
        b.snapshot();
        assert!(b.h.journal.records.is_empty());
        b.restart(0);
        assert_eq!((inspect(&mut b, "jobs"), inspect(&mut b, "other")), before);
        let prefix = String::new();
        let config = [("a", "1"), ("b", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let reply = b.admin(AdminRequest::ListConfig { prefix });
        assert_eq!(reply, AdminReply::ConfigList(config.to_vec()));
        let AdminReply::ClusterStatus(status) = b.admin(AdminRequest::ClusterStatus) else {
            panic!("a status");
        };
        assert_eq!(
            (status.rebalancing, status.queue_leaderships),
            (Rebalancing::Disabled, 2)
        );
    }
    // Ids are never used again, also those of queues whose records are gone.
    b.h.create(queue("new"));
    let (id, _) = inspect(&mut b, "new");
    assert_eq!(id, "q7");
}

#[test]
fn positions_go_on_where_they_were() {
    let mut b = broker();
    churn(&mut b, 3);
    b.snapshot();
    b.restart(0);
    let w = b.worker("w", "jobs", Some(2));
    b.send(&jobs(["a", "b"]));
    b.settle("jobs", &[("b", tanda_engine::Settlement::Ack)]);
    b.unsubscribe(w);
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 1));
    b.ack("jobs", ["a"]);
}

#[test]
fn a_snapshot_between_all_steps_changes_nothing() {
    let mut b = broker();
    let mut expected = Vec::new();
    for round in 0..40 {
        let name = format!("m{round}");
        b.send(&[Msg {
            weight: 2,
            ..job(&name).key(["x", "y"][round % 2]).payload(&name)
        }]);
        if round % 3 == 0 {
            expected.push(name);
        } else {
            let w = b.worker("w", "jobs", None);
            b.h.settle("jobs", &[(b.id(&name), tanda_engine::Settlement::Ack)]);
            // What else it was given failed: a dead letter.
            b.unsubscribe(w);
        }
        churn(&mut b, 1);
        let before = (b.counts("jobs").bytes, b.counts("jobs.dlq").bytes);
        b.snapshot();
        b.restart(0);
        assert_eq!((b.counts("jobs").bytes, b.counts("jobs.dlq").bytes), before);
    }
    let bytes = b.counts("jobs").bytes + b.counts("jobs.dlq").bytes;
    assert_eq!(
        bytes,
        expected
            .iter()
            .map(|name| name.len() as u64 + 6)
            .sum::<u64>()
    );
    b.advance(60_000);
    b.got();
    b.worker("dead", "jobs.dlq", None);
    let batches = b.batches();
    for batch in &batches {
        for item in &batch.items {
            assert!(expected.contains(&b.payload(batch, item)));
        }
    }
}
