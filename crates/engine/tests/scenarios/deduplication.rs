//! Deduplication: by every kind of key, for as long as the message is there and a window longer.

use tanda_engine::{AdminRequest, KeyKind, KeyPart, QueueSpec, Settlement, VhostId};

use crate::broker::{Broker, job, jobs, queue};
use crate::harness::Msg;

fn by(kinds: &[(KeyKind, &str)]) -> Broker {
    let parts = kinds.iter().map(|(kind, name)| KeyPart {
        kind: *kind,
        name: (*name).to_owned(),
    });
    Broker::with(QueueSpec {
        dedup_key: Some(parts.collect()),
        dedup_window_ms: 60_000,
        ..queue("jobs")
    })
}

/// The default: the producer's idempotency key.
fn default_key() -> Broker {
    Broker::with(QueueSpec {
        dedup_window_ms: 60_000,
        max_attempts: 1,
        ..queue("jobs")
    })
}

fn idem(name: &str, key: &str) -> Msg {
    job(name).idempotency(key)
}

#[test]
fn the_producers_key_decides_by_default() {
    let mut b = default_key();
    let told = b.publish(&[
        idem("a", "1"),
        idem("b", "2"),
        idem("c", "1"),
        job("d"),
        job("e"),
    ]);
    assert_eq!(told, ["a", "b", "=a", "d", "e"]);
    let end = b.h.journal.end;
    assert_eq!(b.publish(&[idem("f", "2")]), ["=b"]);
    assert_eq!(b.after, end, "a duplicate's answer waits for its original");
    assert_eq!(b.h.journal.end, end, "and writes nothing");
    // An empty key is none.
    assert_eq!(b.publish(&[idem("g", ""), idem("h", "")]), ["g", "h"]);
    assert_eq!(b.counts("jobs").depth, 6);
}

#[test]
fn a_header_can_be_the_key() {
    let mut b = by(&[(KeyKind::Header, "order")]);
    let told = b.publish(&[
        job("a").header("order", "1").idempotency("x"),
        job("b").header("order", "1").idempotency("y"),
        job("c").header("order", "2").idempotency("x"),
        job("bare").idempotency("x"),
        job("bare too").idempotency("x"),
        job("d").header("order", ""),
        job("e").header("order", ""),
    ]);
    // The queue's key replaces the producer's; a message that lacks it is not deduplicated.
    assert_eq!(told, ["a", "=a", "c", "bare", "bare too", "d", "=d"]);
}

#[test]
fn the_fairness_key_can_be_the_key() {
    let mut b = by(&[(KeyKind::FairnessKey, "")]);
    let told = b.publish(&[
        job("a").key("t"),
        job("b").key("t"),
        job("c").key("u"),
        job("d"),
        job("e"),
    ]);
    assert_eq!(told, ["a", "=a", "c", "d", "e"]);
}

#[test]
fn an_attribute_is_missing_without_a_script() {
    let mut b = by(&[(KeyKind::Attribute, "tenant")]);
    assert_eq!(b.publish(&[idem("a", "1"), idem("b", "1")]), ["a", "b"]);
}

#[test]
fn the_idempotency_key_can_be_a_part() {
    let mut b = by(&[(KeyKind::IdempotencyKey, ""), (KeyKind::Header, "tenant")]);
    let told = b.publish(&[
        idem("a", "1").header("tenant", "x"),
        idem("b", "1").header("tenant", "y"),
        idem("c", "1").header("tenant", "x"),
        idem("d", "1"),
        job("e").header("tenant", "x"),
    ]);
    assert_eq!(told, ["a", "b", "=a", "d", "e"]);
}

#[test]
fn the_payload_can_be_the_key() {
    let mut b = by(&[(KeyKind::Payload, "")]);
    let told = b.publish(&[
        job("a").header("n", "1"),
        job("b"),
        job("a").header("n", "2"),
        job(""),
    ]);
    assert_eq!(told, ["a", "b", "=a", ""]);
    assert_eq!(b.publish(&[job("")]), ["="]);
}

#[test]
fn all_headers_can_be_the_key_in_any_order() {
    let mut b = by(&[(KeyKind::AllHeaders, "")]);
    let told = b.publish(&[
        job("a").header("x", "1").header("y", "2"),
        job("b").header("y", "2").header("x", "1"),
        job("c").header("x", "1"),
        job("d").header("x", "1y2"),
        job("e").header("xy", "12"),
        job("f"),
        job("g"),
    ]);
    assert_eq!(told, ["a", "=a", "c", "d", "e", "f", "=f"]);
}

#[test]
fn parts_cannot_run_into_each_other() {
    let mut b = by(&[(KeyKind::Header, "x"), (KeyKind::Header, "y")]);
    let told = b.publish(&[
        job("a").header("x", "12").header("y", "3"),
        job("b").header("x", "1").header("y", "23"),
        job("c").header("y", "3").header("x", "12"),
    ]);
    assert_eq!(told, ["a", "b", "=a"]);
}

#[test]
fn the_window_starts_when_the_message_left() {
    let mut b = default_key();
    b.worker("w", "jobs", None);
    b.send(&[idem("a", "1")]);
    b.advance(20_000);
    b.ack("jobs", ["a"]);
    b.advance(59_999);
    assert_eq!(b.publish(&[idem("b", "1")]), ["=a"]);
    assert_eq!(b.counts("jobs").remembered_keys, 1);
    b.advance(1);
    assert_eq!(b.counts("jobs").remembered_keys, 0);
    assert_eq!(b.publish(&[idem("c", "1")]), ["c"]);
    assert_eq!(b.publish(&[idem("d", "1")]), ["=c"]);
}

#[test]
fn a_key_is_remembered_while_its_message_is_dead() {
    let mut b = default_key();
    b.worker("w", "jobs", None);
    b.send(&[idem("a", "1")]);
    b.nack("jobs", "a");
    assert_eq!(b.held("jobs.dlq"), (1, 0));
    b.advance(10_000_000);
    assert_eq!(b.publish(&[idem("b", "1")]), ["=a"]);
    b.restart(10_000_000);
    assert_eq!(b.publish(&[idem("c", "1")]), ["=a"]);
    // It leaves the dead-letter queue: now the window runs.
    b.worker("dead", "jobs.dlq", None);
    b.ack("jobs.dlq", ["a"]);
    b.advance(59_999);
    assert_eq!(b.publish(&[idem("d", "1")]), ["=a"]);
    b.advance(1);
    assert_eq!(b.publish(&[idem("e", "1")]), ["e"]);
}

#[test]
fn keys_and_windows_survive_a_restart() {
    let mut b = default_key();
    b.worker("w", "jobs", Some(1));
    b.send(&[idem("a", "1"), idem("b", "2")]);
    b.ack("jobs", ["a"]);
    b.restart(30_000);
    assert_eq!(b.publish(&[idem("c", "1"), idem("d", "2")]), ["=a", "=b"]);
    b.advance(29_999);
    assert_eq!(b.publish(&[idem("e", "1")]), ["=a"]);
    b.restart(1);
    assert_eq!(b.publish(&[idem("f", "1"), idem("g", "2")]), ["f", "=b"]);
    b.restart(0);
    assert_eq!(b.publish(&[idem("h", "1")]), ["=f"]);
}

#[test]
fn redrive_is_not_checked() {
    let mut b = Broker::with(QueueSpec {
        dedup_window_ms: 1_000,
        max_attempts: 1,
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&[idem("a", "1")]);
    b.nack("jobs", "a");
    b.got();
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    assert_eq!(b.got(), ["w: a+1"]);
    assert_eq!(b.publish(&[idem("b", "1")]), ["=a"]);
    b.ack("jobs", ["a"]);
    b.advance(1_000);
    assert_eq!(b.publish(&[idem("c", "1")]), ["c"]);
}

#[test]
fn a_purged_message_leaves_its_key_for_the_window() {
    let mut b = default_key();
    b.send(&[idem("a", "1")]);
    let name = "jobs".to_owned();
    b.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(b.publish(&[idem("b", "1")]), ["=a"]);
    b.advance(60_000);
    assert_eq!(b.publish(&[idem("c", "1")]), ["c"]);
}

#[test]
fn queues_do_not_share_keys_and_a_deleted_one_forgets_them() {
    let mut b = default_key();
    b.h.create(queue("other"));
    let mut other = idem("b", "1");
    other.queue = "other".to_owned();
    assert_eq!(b.publish(&[idem("a", "1"), other]), ["a", "b"]);
    let name = "jobs".to_owned();
    b.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    b.h.create(queue("jobs"));
    assert_eq!(b.publish(&[idem("c", "1")]), ["c"]);
    b.restart(0);
    assert_eq!(b.publish(&[idem("d", "1")]), ["=c"]);
}

#[test]
fn requeueing_and_rejecting_keep_the_key() {
    let mut b = default_key();
    let w = b.worker("w", "jobs", Some(1));
    b.send(&[idem("a", "1")]);
    b.settle("jobs", &[("a", Settlement::Requeue)]);
    assert_eq!(b.publish(&[idem("b", "1")]), ["=a"]);
    b.grant(w, 1);
    b.settle("jobs", &[("a", Settlement::Reject)]);
    assert_eq!(b.publish(&[idem("c", "1")]), ["=a"]);
    b.send(&jobs(["d"]));
}
