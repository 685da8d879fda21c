//! A full disk: what grows is refused, what shrinks goes on.

use tanda_engine::{
    AdminReply, AdminRequest, CreateQueueError, QueueChanges, Settlement, UpdateQueueError, VhostId,
};

use crate::broker::{Broker, NACK, OK, job, jobs, queue};
use crate::scripted::{Scripted, msg, parking};

#[test]
fn publishes_and_new_queues_are_refused_and_consuming_goes_on() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", Some(3));
    b.send(&[job("a").idempotency("1"), job("b"), job("c"), job("d")]);
    b.got();
    b.h.engine.set_storage_full(true);
    assert_eq!(
        b.publish(&[job("e"), job("f").idempotency("1")]),
        ["Storage", "Storage"]
    );
    let reply = b.admin(AdminRequest::CreateQueue(Box::new(queue("other"))));
    assert_eq!(reply, AdminReply::Created(Err(CreateQueueError::Storage)));
    let by_ms = 60_000;
    let told = b.settle(
        "jobs",
        &[
            ("a", Settlement::Ack),
            ("b", NACK),
            ("c", Settlement::Extend { by_ms }),
        ],
    );
    assert_eq!(told, [OK, OK, Ok(b.now().after_ms(by_ms))]);
    b.worker("v", "jobs", None);
    assert_eq!(b.got(), ["v: d"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["v: b#2"]);
    let name = "jobs".to_owned();
    let reply = b.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(reply, AdminReply::Purged(Ok(0)));
    b.h.engine.set_storage_full(false);
    b.send(&jobs(["g"]));
    let name = "jobs".to_owned();
    b.h.engine.set_storage_full(true);
    let reply = b.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(reply, AdminReply::Deleted(Ok(())));
}

#[test]
fn another_script_still_lets_parked_messages_go() {
    let mut s = Scripted::with(parking("jobs", "v1"));
    s.publish(&[msg("a").header("fails", "v1")]);
    assert_eq!(s.counts("jobs").unclassified, 1);
    s.h.engine.set_storage_full(true);
    let reply = s.update(QueueChanges {
        on_enqueue: Some(Some("-".repeat(100_000))),
        ..QueueChanges::default()
    });
    assert_eq!(reply, AdminReply::Updated(Err(UpdateQueueError::Storage)));
    s.set_script(Some("v2"));
    s.run();
    let counts = s.counts("jobs");
    assert_eq!((counts.unclassified, counts.ready), (0, 1));
}
