//! Dead letters: where they go, what they keep, how they come back.

use tanda_engine::{
    AdminReply, AdminRequest, Backoff, CreateQueueError, DeleteQueueError, Millis, QueueChanges,
    QueueSpec, RedriveError, Settlement, UpdateQueueError, VhostId,
};

use crate::broker::{Broker, NACK, fail, job, jobs, queue};
use crate::harness::Msg;

/// One attempt, then dead.
fn broker() -> Broker {
    Broker::with(QueueSpec {
        max_attempts: 1,
        backoff_initial_ms: 100,
        backoff_max_ms: 400,
        ..queue("jobs")
    })
}

/// Sends messages and lets each die.
fn kill<const N: usize>(b: &mut Broker, names: [&str; N]) {
    let w = b.worker("w", "jobs", None);
    b.send(&jobs(names));
    let items: Vec<_> = names.iter().map(|name| (*name, NACK)).collect();
    b.settle("jobs", &items);
    b.unsubscribe(w);
    b.got();
}

#[test]
fn a_dead_letter_keeps_what_it_is() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.send(&[job("a").key("tenant").weight(3).header("h", "v")]);
    let (id, sent) = (b.id("a"), b.now());
    b.advance(7_000);
    b.nack("jobs", "a");
    b.got();
    b.worker("dead", "jobs.dlq", None);
    let batch = b.batches().remove(0);
    let item = batch.items[0];
    assert_eq!(&*batch.queue, "jobs.dlq");
    assert_eq!((item.id, item.id.enqueued_at()), (id, sent));
    assert_eq!((batch.fairness_key(&item), item.weight), ("tenant", 3));
    assert_eq!((item.attempts, item.redrives), (2, 0));
    assert_eq!(b.payload(&batch, &item), "a");
}

#[test]
fn a_redriven_message_keeps_its_identity_and_starts_again() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 2,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&[job("a").key("tenant").weight(3)]);
    let (id, sent) = (b.id("a"), b.now());
    b.nack("jobs", "a");
    b.nack("jobs", "a");
    b.unsubscribe(w);
    b.advance(5_000);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    assert_eq!(b.after, b.h.journal.end, "the answer waits for the move");
    b.restart(1_000);
    b.got();
    b.worker("w", "jobs", None);
    let batch = b.batches().remove(0);
    let item = batch.items[0];
    assert_eq!((item.id, item.id.enqueued_at()), (id, sent));
    assert_eq!((batch.fairness_key(&item), item.weight), ("tenant", 3));
    assert_eq!((item.attempts, item.redrives), (1, 1));
    assert_eq!(b.payload(&batch, &item), "a");
    // All its attempts again, then dead again, and redriven a second time.
    b.nack("jobs", "a");
    b.nack("jobs", "a");
    assert_eq!(b.got(), ["w: a#2+1"]);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    assert_eq!(b.got(), ["w: a+2"]);
}

#[test]
fn redrive_takes_the_oldest_first() {
    let mut b = broker();
    kill(&mut b, ["a", "b", "c", "d", "e"]);
    assert_eq!(b.redrive("jobs.dlq", 2), 2);
    assert_eq!(b.held("jobs.dlq"), (3, 0));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: a+1 b+1"]);
    b.restart(0);
    assert_eq!(b.redrive("jobs.dlq", 1), 1);
    assert_eq!(b.redrive("jobs.dlq", 10), 2);
    assert_eq!(b.redrive("jobs.dlq", 10), 0);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: c+1 d+1 e+1"]);
}

#[test]
fn the_oldest_first_also_across_fairness_keys() {
    let mut b = broker();
    let w = b.worker("w", "jobs", None);
    let messages: Vec<_> = (0..9)
        .map(|n| job(&n.to_string()).key(["x", "y", "z"][n % 3]))
        .collect();
    b.send(&messages);
    for n in 0..9 {
        b.nack("jobs", &n.to_string());
    }
    b.unsubscribe(w);
    b.got();
    assert_eq!(b.redrive("jobs.dlq", 4), 4);
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: 0+1 1+1 2+1 3+1"]);
}

#[test]
fn leased_dead_letters_stay_and_delayed_ones_go() {
    let mut b = broker();
    kill(&mut b, ["a", "b", "c"]);
    b.worker("dead", "jobs.dlq", Some(2));
    b.settle("jobs.dlq", &[("a", fail(Some(60_000)))]);
    assert_eq!(b.counts("jobs.dlq").delayed, 1);
    b.got();
    assert_eq!(b.redrive("jobs.dlq", 0), 2);
    assert_eq!(b.held("jobs.dlq"), (0, 1));
    b.worker("w", "jobs", None);
    assert_eq!(b.got(), ["w: c+1 a+1"]);
    b.ack("jobs.dlq", ["b"]);
}

#[test]
fn a_failure_in_a_dead_letter_queue_returns_there_with_backoff_for_ever() {
    let mut b = broker();
    kill(&mut b, ["a"]);
    b.worker("dead", "jobs.dlq", None);
    assert_eq!(b.got(), ["dead: a#2"]);
    // The message has failed once already: 200 ms, then the cap.
    for (attempt, wait) in (3..).zip([200, 400, 400, 400, 400]) {
        b.nack("jobs.dlq", "a");
        b.advance(wait - 1);
        assert_eq!(b.got(), Vec::<String>::new());
        b.advance(1);
        assert_eq!(b.got(), [format!("dead: a#{attempt}")]);
    }
    // By the consumer's word, and by a lease that ends.
    b.settle("jobs.dlq", &[("a", fail(Some(0)))]);
    assert_eq!(b.got(), ["dead: a#8"]);
    b.advance(30_400);
    assert_eq!(b.got(), ["dead: a#9"]);
    // Rejected where there is nowhere to go: dropped.
    b.settle("jobs.dlq", &[("a", Settlement::Reject)]);
    assert_eq!(b.held("jobs.dlq"), (0, 0));
}

#[test]
fn attempts_of_a_dead_letter_survive_a_restart() {
    let mut b = broker();
    kill(&mut b, ["a", "b"]);
    b.restart(0);
    let dead = b.worker("dead", "jobs.dlq", Some(1));
    assert_eq!(b.got(), ["dead: a#2"]);
    b.settle("jobs.dlq", &[("a", fail(Some(0)))]);
    b.disconnect(dead);
    b.restart(0);
    b.worker("dead", "jobs.dlq", None);
    assert_eq!(b.got(), ["dead: a#3 b#2"]);
}

#[test]
fn nobody_publishes_to_a_dead_letter_queue() {
    let mut b = broker();
    let told = b.publish(&[
        Msg::to("jobs.dlq").payload("x"),
        job("a"),
        Msg::to("none").payload("y"),
    ]);
    assert_eq!(told, ["ReservedQueueName", "a", "QueueNotFound"]);
}

#[test]
fn dead_letter_queues_come_and_go_with_their_queue() {
    let mut b = broker();
    kill(&mut b, ["a"]);
    let create = |name: &str| AdminRequest::CreateQueue(Box::new(queue(name)));
    let delete = |name: &str| AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: name.to_owned(),
    };
    let reply = b.admin(create("other.dlq"));
    assert_eq!(
        reply,
        AdminReply::Created(Err(CreateQueueError::ReservedName))
    );
    let reply = b.admin(create("jobs"));
    assert_eq!(
        reply,
        AdminReply::Created(Err(CreateQueueError::AlreadyExists))
    );
    let reply = b.admin(delete("jobs.dlq"));
    assert_eq!(
        reply,
        AdminReply::Deleted(Err(DeleteQueueError::ReservedName))
    );
    let reply = b.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs.dlq".to_owned(),
        changes: Box::new(QueueChanges::default()),
    });
    assert_eq!(
        reply,
        AdminReply::Updated(Err(UpdateQueueError::ReservedName))
    );
    b.worker("w", "jobs", None);
    b.worker("dead", "jobs.dlq", None);
    b.got();
    assert_eq!(b.admin(delete("jobs")), AdminReply::Deleted(Ok(())));
    assert_eq!(b.after, b.h.journal.end);
    assert_eq!(b.got(), ["w QueueDeleted", "dead QueueDeleted"]);
    for name in ["jobs", "jobs.dlq"] {
        assert_eq!(
            b.admin(delete(name)),
            AdminReply::Deleted(Err(DeleteQueueError::NotFound))
        );
    }
    // A new queue of that name starts empty, with ids of its own, also after a restart.
    b.h.create(queue("jobs"));
    b.restart(0);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (0, 0)));
    assert_eq!(
        b.settle("jobs.dlq", &[("a", Settlement::Ack)]),
        [crate::broker::NOT_LEASED]
    );
}

#[test]
fn only_dead_letter_queues_are_redriven() {
    let mut b = broker();
    for (name, error) in [
        ("jobs", RedriveError::NotDeadLetterQueue),
        ("none", RedriveError::NotFound),
    ] {
        let name = name.to_owned();
        let reply = b.admin(AdminRequest::Redrive {
            vhost: VhostId::DEFAULT,
            name,
            count: 0,
            reclassify: tanda_engine::Reclassify::All,
        });
        assert_eq!(reply, AdminReply::Redriven(Err(error)));
    }
}

#[test]
fn dead_letters_survive_the_release_of_their_lease() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 2,
        lease_ms: 500,
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b.worker("w", "jobs", None);
    b.send(&jobs(["a"]));
    b.advance(1_000);
    assert_eq!(b.got(), ["w: a", "w: a#2"]);
    b.restart(0);
    assert_eq!((b.held("jobs"), b.held("jobs.dlq")), ((0, 0), (1, 0)));
    assert_eq!(b.id("a").enqueued_at(), Millis(b.now().0 - 1_000));
}

#[test]
fn a_redriven_message_does_not_set_back_the_weight_of_its_key() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    b.send(&[job("old").key("tenant").weight(1)]);
    b.worker("w", "jobs", Some(1));
    b.settle("jobs", &[("old", NACK)]);
    b.send(&[job("new").key("tenant").weight(5)]);
    b.redrive("jobs.dlq", 0);
    let keys = b.stats("jobs").keys;
    assert_eq!((keys.len(), keys[0].weight, keys[0].pending), (1, 5, 2));
}
