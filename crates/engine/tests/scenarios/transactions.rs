//! A transaction takes effect as a whole, or not at all.

use tanda_engine::{
    Event, MaxLength, MessageId, Overflow, PublishBatch, PublishError, PublishResult,
    PublishTarget, QueueId, QueueSpec, ReplyTo, Request, SettleBatch, SettleError, SettleItem,
    SettleQueue, SettleResult, Settlement, Span,
};

use crate::broker::{Broker, CLIENT, NOT_LEASED, OK, fail, job, jobs, queue};
use crate::harness::{Harness, Msg, batch};

type Told = (Vec<String>, Vec<SettleResult>);

/// Publishes and settles in one transaction; settlements are of queue `jobs`.
fn commit(b: &mut Broker, messages: &[Msg], settled: &[(&str, Settlement)]) -> Told {
    let ids: Vec<_> = settled
        .iter()
        .map(|(name, how)| (b.id(name), *how))
        .collect();
    commit_batch(b, messages, batch(messages), &ids)
}

fn commit_batch(
    b: &mut Broker,
    messages: &[Msg],
    publish: PublishBatch,
    settled: &[(MessageId, Settlement)],
) -> Told {
    let name = Span { start: 0, len: 4 };
    let items = settled.iter().map(|(id, settlement)| SettleItem {
        queue: SettleQueue::Name(name),
        id: *id,
        settlement: *settlement,
    });
    let settle = SettleBatch {
        data: "jobs".into(),
        items: items.collect(),
        ..SettleBatch::default()
    };
    let token = b.h.token();
    let reply = ReplyTo {
        conn: CLIENT,
        token,
    };
    let mut out = b.h.handle(Request::Transaction {
        reply,
        publish,
        settle,
    });
    let answer = out.remove(0);
    b.out.extend(out);
    b.after = answer.after;
    let Event::Committed {
        token: told,
        published,
        settled,
    } = answer.event
    else {
        panic!("not {answer:?}");
    };
    assert_eq!(told, token);
    let published = messages.iter().zip(published).map(|(message, result)| {
        if result == PublishResult::Stored(MessageId::NIL) {
            return "not stored".to_owned();
        }
        b.told(core::str::from_utf8(&message.payload).unwrap(), result)
    });
    let published = published.collect();
    b.run();
    (published, settled)
}

fn to(queue: &str, name: &str) -> Msg {
    Msg::to(queue).payload(name)
}

fn two_queues() -> Broker {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(QueueSpec {
        max_length: Some(MaxLength {
            messages: 2,
            overflow: Overflow::Reject,
        }),
        ..queue("full")
    });
    b
}

#[test]
fn all_of_it_is_one_record() {
    let mut b = two_queues();
    b.worker("w", "jobs", Some(2));
    b.send(&jobs(["a", "b"]));
    let records = b.h.journal.records.len();
    let done = [("a", Settlement::Ack), ("b", Settlement::Requeue)];
    let told = commit(&mut b, &[job("c"), to("full", "d")], &done);
    assert_eq!(told, (vec!["c".to_owned(), "d".to_owned()], vec![OK, OK]));
    assert_eq!(b.h.journal.records.len(), records + 1);
    assert_eq!(b.after, b.h.journal.end);
    assert_eq!(b.held("jobs"), (2, 0));
    b.restart(0);
    assert_eq!(b.held("jobs"), (2, 0));
    assert_eq!(b.held("full"), (1, 0));
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["a", "b", "b", "c"]);
}

#[test]
fn without_its_record_nothing_of_it_happened() {
    let mut b = two_queues();
    b.worker("w", "jobs", Some(2));
    b.send(&jobs(["a", "b"]));
    let end = b.h.journal.records.len();
    commit(
        &mut b,
        &[job("c"), to("full", "d")],
        &[("a", Settlement::Ack)],
    );
    b.h.journal.records.truncate(end);
    b.restart(0);
    assert_eq!(b.counts("full").depth, 0);
    b.advance(300_000);
    b.got();
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["a", "b"]);
}

#[test]
fn nothing_happens_when_a_part_is_refused() {
    let mut b = two_queues();
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    b.ack("jobs", ["a"]);
    let records = b.h.journal.records.len();
    let refused = |what: &[&str]| what.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    // What a session refuses.
    let done = [("b", Settlement::Refused(SettleError::Forbidden))];
    let told = commit(&mut b, &[], &done);
    assert_eq!(told.1, [Err(SettleError::Forbidden)]);
    // A queue that is not there.
    let told = commit(
        &mut b,
        &[job("x"), to("no", "y")],
        &[("b", Settlement::Ack)],
    );
    assert_eq!(told, (refused(&["not stored", "QueueNotFound"]), vec![OK]));
    // One that gets full by it.
    let messages = ["x", "y", "z"].map(|name| to("full", name));
    let told = commit(&mut b, &messages, &[("b", Settlement::Ack)]);
    let expected = refused(&["not stored", "not stored", "QueueFull"]);
    assert_eq!(told, (expected, vec![OK]));
    b.h.engine.set_storage_full(true);
    let told = commit(&mut b, &[job("x")], &[]);
    assert_eq!(told, (refused(&["Storage"]), vec![]));
    b.h.engine.set_storage_full(false);
    assert_eq!(b.h.journal.records.len(), records, "nothing was written");
    assert_eq!(b.counts("full").depth, 0);
    assert_eq!(b.held("jobs"), (0, 2));
    // All of it could still be done.
    let done = [("b", Settlement::Ack), ("c", Settlement::Ack)];
    let told = commit(&mut b, &messages[..2], &done);
    assert_eq!(told, (refused(&["x", "y"]), vec![OK, OK]));
}

#[test]
fn a_settlement_that_comes_too_late_takes_nothing_else_along() {
    let mut b = two_queues();
    b.worker("w", "jobs", None);
    b.send(&jobs(["a", "b", "c"]));
    b.ack("jobs", ["a"]);
    // Of a message that is not leased any more, and of one that is settled twice.
    let done = [
        ("b", Settlement::Ack),
        ("a", Settlement::Ack),
        ("b", Settlement::Requeue),
    ];
    let told = commit(&mut b, &[to("full", "x")], &done);
    let settled = vec![OK, NOT_LEASED, NOT_LEASED];
    assert_eq!(told, (vec!["x".to_owned()], settled));
    assert_eq!((b.held("jobs"), b.held("full")), ((0, 1), (1, 0)));
    b.restart(0);
    assert_eq!(b.held("full"), (1, 0));
}

#[test]
fn acks_need_no_room() {
    let mut b = two_queues();
    b.worker("w", "jobs", None);
    b.send(&[job("a")]);
    b.h.engine.set_storage_full(true);
    assert_eq!(commit(&mut b, &[], &[("a", Settlement::Ack)]).1, [OK]);
    assert_eq!(b.held("jobs"), (0, 0));
}

#[test]
fn an_empty_transaction_is_answered() {
    let mut b = two_queues();
    let records = b.h.journal.records.len();
    assert_eq!(commit(&mut b, &[], &[]), (vec![], vec![]));
    assert_eq!(b.h.journal.records.len(), records);
}

#[test]
fn several_queues_share_one_body_within_the_record() {
    for restarts in [false, true] {
        let mut b = Broker::with(queue("jobs"));
        b.h.create(queue("more"));
        let messages = [job("a"), job("b")];
        let mut publish = batch(&messages);
        // Each queue has its dead-letter queue's id after its own.
        publish.routes = [1, 3].map(QueueId).to_vec();
        for item in &mut publish.items {
            item.target = PublishTarget::Queues(Span { start: 0, len: 2 });
        }
        commit_batch(&mut b, &messages, publish, &[]);
        let records = &b.h.journal.records;
        let bodies = records.iter().map(|(_, record)| {
            let found = record.windows(5).filter(|it| it == b"\0\0\0\x01a");
            found.count()
        });
        assert_eq!(bodies.sum::<usize>(), 1, "bodies of a");
        if restarts {
            b.restart(0);
        }
        for queue in ["jobs", "more"] {
            b.worker("w", queue, None);
            let batches = b.batches();
            let [got] = batches.as_slice() else {
                panic!("one batch, not {batches:?}");
            };
            let items = got.items.iter().map(|item| b.payload(got, item));
            assert_eq!(items.collect::<Vec<_>>(), ["a", "b"]);
        }
    }
}

#[test]
fn a_duplicate_is_none_of_the_refused() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&[job("a").idempotency("k")]);
    let messages = [job("b").idempotency("k"), job("c").idempotency("l")];
    let messages = [&messages[..], &[job("d").idempotency("l")]].concat();
    let told = commit(&mut b, &messages, &[]);
    assert_eq!(told.0, ["=a", "c", "=c"]);
}

#[test]
fn dead_letters_and_what_is_over_the_length_follow() {
    let mut b = Broker::with(QueueSpec {
        max_length: Some(MaxLength {
            messages: 1,
            overflow: Overflow::DropHead,
        }),
        ..queue("jobs")
    });
    b.worker("w", "jobs", Some(1));
    b.send(&[job("a")]);
    let done = [("a", Settlement::Reject)];
    let told = commit(&mut b, &[job("b"), job("c")], &done);
    assert_eq!(told.0, ["b", "c"]);
    assert_eq!(b.held("jobs"), (1, 0));
    assert_eq!(b.counts("jobs.dlq").depth, 1);
    b.restart(0);
    assert_eq!(b.held("jobs"), (1, 0));
    assert_eq!(b.counts("jobs.dlq").depth, 1);
    b.got();
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["c"]);
}

#[test]
fn a_retry_is_recorded_with_the_rest() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", Some(1));
    b.send(&[job("a")]);
    let told = commit(&mut b, &[job("b")], &[("a", fail(Some(5_000)))]);
    assert_eq!(told.1, [OK]);
    b.restart(0);
    assert_eq!(b.counts("jobs").delayed, 1);
}

#[test]
fn queues_with_scripts_look_at_the_messages_afterwards() {
    let mut b = Broker::over(Harness::with_scripts());
    b.h.create(QueueSpec {
        on_enqueue: Some("tenants".to_owned()),
        ..queue("jobs")
    });
    let message = job("a").header("tenant", "t1");
    let told = commit(&mut b, &[message], &[]);
    assert_eq!(told.0, ["a"]);
    assert_eq!(b.counts("jobs").unclassified, 1);
    b.h.run_scripts();
    let counts = b.counts("jobs");
    assert_eq!((counts.unclassified, counts.ready), (0, 1));
    b.worker("w", "jobs", None);
    let batches = b.batches();
    assert_eq!(batches[0].keys, b"t1");
}

#[test]
fn too_large_ones_are_refused() {
    let mut b = Broker::with(queue("jobs"));
    let mut publish = batch(&[job("a"), job("b")]);
    for item in &mut publish.items {
        item.content.len = 100 << 20;
    }
    let messages = jobs(["a", "b"]);
    let told = commit_batch(&mut b, &messages, publish, &[]);
    let error = format!("{:?}", PublishError::TooLarge);
    assert_eq!(told.0, [error.clone(), error]);
}
