//! One publish into several queues: one body, one confirm, all or none.

use tanda_engine::{
    AdminRequest, EngineConfig, Event, Limits, Overflow, PublishTarget, QueueId, QueueSpec,
    ReplyTo, Request, Span, VhostId,
};

use crate::broker::{Broker, CLIENT, job, queue, transient};
use crate::harness::{Harness, Msg, batch};
use crate::room_for_doors::at_most;

/// Publishes one message to several queues by id; what its one answer says.
fn publish_to(b: &mut Broker, message: &Msg, ids: &[u32]) -> String {
    let reply = ReplyTo {
        conn: CLIENT,
        token: b.h.token(),
    };
    let mut batch = batch(core::slice::from_ref(message));
    batch.routes = ids.iter().map(|id| QueueId(*id)).collect();
    batch.items[0].target = PublishTarget::Queues(Span {
        start: 0,
        len: u32::try_from(ids.len()).unwrap(),
    });
    let mut out = b.h.handle(Request::Publish { reply, batch });
    let output = out.pop().expect("an answer");
    assert!(out.is_empty(), "one confirm");
    b.after = output.after;
    let Event::Published { results, .. } = output.event else {
        panic!("not {:?}", output.event);
    };
    assert_eq!(results.len(), 1);
    let name = String::from_utf8(message.payload.clone()).unwrap();
    b.told(&name, results[0])
}

/// Queues `a`, `b` and `c`, with ids 1, 3 and 5; `b` takes two messages at most.
fn three() -> Broker {
    let config = EngineConfig {
        limits: Limits {
            message_bytes_max: 1_000,
            ..Limits::default()
        },
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(queue("a"));
    b.h.create(QueueSpec {
        name: "b".to_owned(),
        ..at_most(2, Overflow::Reject)
    });
    b.h.create(queue("c"));
    b
}

fn depths(b: &mut Broker) -> [u64; 3] {
    ["a", "b", "c"].map(|name| b.counts(name).depth)
}

#[test]
fn one_publish_reaches_several_queues_with_one_body_and_one_confirm() {
    let mut b = three();
    let body = "a body that lies in the log once";
    let before = b.h.journal.records.len();
    assert_eq!(
        publish_to(&mut b, &job(body).delay(0).header("h", "v"), &[1, 3, 5]),
        body
    );
    assert_eq!(
        b.after, b.h.journal.end,
        "the confirm waits for all of them"
    );
    assert_eq!(depths(&mut b), [1, 1, 1]);
    let records = &b.h.journal.records[before..];
    let bodies = records
        .iter()
        .filter(|(_, record)| record.windows(body.len()).any(|w| w == body.as_bytes()));
    assert_eq!(bodies.count(), 1);
    b.restart(0);
    assert_eq!(depths(&mut b), [1, 1, 1]);
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        b.worker(name, name, None);
        let batches = b.batches();
        let item = batches[0].items[0];
        assert_eq!(b.payload(&batches[0], &item), body);
        ids.push(item.id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3, "each its own message");
}

#[test]
fn a_queue_named_twice_gets_it_once() {
    let mut b = three();
    assert_eq!(publish_to(&mut b, &job("x"), &[5, 1, 5, 1, 5]), "x");
    assert_eq!(depths(&mut b), [1, 0, 1]);
}

#[test]
fn all_take_it_or_none_does() {
    let mut b = three();
    assert_eq!(publish_to(&mut b, &job("x"), &[3]), "x");
    assert_eq!(publish_to(&mut b, &job("y"), &[3]), "y");
    let end = b.h.journal.end;
    assert_eq!(publish_to(&mut b, &job("z"), &[1, 3, 5]), "QueueFull");
    assert_eq!(publish_to(&mut b, &job("z"), &[1, 99]), "QueueNotFound");
    assert_eq!(publish_to(&mut b, &job("z"), &[]), "QueueNotFound");
    // A dead-letter queue by its id.
    assert_eq!(publish_to(&mut b, &job("z"), &[1, 2]), "ReservedQueueName");
    let large = "z".repeat(1_001);
    assert_eq!(publish_to(&mut b, &job(&large), &[1, 5]), "TooLarge");
    b.h.engine.set_storage_full(true);
    assert_eq!(publish_to(&mut b, &job("z"), &[1, 5]), "Storage");
    assert_eq!(b.h.journal.end, end, "nothing was written");
    assert_eq!(depths(&mut b), [0, 2, 0]);
}

#[test]
fn a_queue_that_has_it_already_is_left_out() {
    let mut b = three();
    assert_eq!(publish_to(&mut b, &job("x").idempotency("1"), &[1]), "x");
    assert_eq!(publish_to(&mut b, &job("y").idempotency("1"), &[1, 5]), "y");
    assert_eq!(depths(&mut b), [1, 0, 1]);
    assert_eq!(
        publish_to(&mut b, &job("z").idempotency("1"), &[1, 5]),
        "=x"
    );
    assert_eq!(depths(&mut b), [1, 0, 1]);
}

#[test]
fn a_transient_message_reaches_several_queues_too() {
    let mut b = three();
    let end = b.h.journal.end;
    assert_eq!(publish_to(&mut b, &transient("x"), &[1, 3]), "x");
    assert_eq!(b.h.journal.end, end);
    b.worker("w", "a", None);
    let batches = b.batches();
    assert_eq!(b.payload(&batches[0], &batches[0].items[0]), "x");
    assert_eq!(depths(&mut b), [0, 1, 0]);
}

#[test]
fn a_body_outlives_the_queue_that_has_it() {
    let mut b = three();
    publish_to(&mut b, &job("x"), &[1, 5]);
    let name = "a".to_owned();
    b.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    b.restart(0);
    b.snapshot();
    b.restart(0);
    b.worker("w", "c", None);
    let batches = b.batches();
    assert_eq!(b.payload(&batches[0], &batches[0].items[0]), "x");
}

#[test]
fn a_body_outlives_a_length_limit_that_drops_it_at_once() {
    let mut b = Broker::with(at_most(1, Overflow::DropHead));
    b.h.create(queue("other"));
    b.send(&[job("later").delay(60_000)]);
    // The only ready message of a full queue is the one that has just come.
    assert_eq!(publish_to(&mut b, &job("x"), &[1, 3]), "x");
    assert_eq!((b.held("jobs"), b.held("other")), ((1, 0), (1, 0)));
    b.restart(0);
    b.worker("w", "other", None);
    let batches = b.batches();
    assert_eq!(b.payload(&batches[0], &batches[0].items[0]), "x");
}
