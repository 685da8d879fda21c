//! Operations on a queue that holds a million messages.

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, LeaseMode, Ordering, QueueChanges, QueueSpec, Reclassify,
    Request, ScriptFailure, ScriptFault, Settlement, VhostId,
};
use tanda_engine::{KeyKind, KeyPart, MissingOrderingKey, SettleBatch, SettleItem, SettleQueue};

use crate::lab::{BATCH, CONN, Lab, MILLION, QUEUE, Shape, queue};

const KEYED: Shape = Shape {
    keys: MILLION,
    header: false,
    idempotency: true,
    delay_ms: 0,
    ttl_ms: None,
};

fn name() -> String {
    QUEUE.to_owned()
}

#[test]
#[ignore = "a measurement"]
fn a_queue_of_a_million_keys_is_deleted() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(MILLION, KEYED);
    lab.measure();
    let reply = lab.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    assert_eq!(reply, AdminReply::Deleted(Ok(())));
    lab.report("a queue of 1 M keys, remembered for deduplication, is deleted");
}

#[test]
#[ignore = "a measurement"]
fn a_queue_of_delayed_messages_is_deleted() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(
        MILLION,
        Shape {
            delay_ms: 3_600_000,
            ..Shape::default()
        },
    );
    lab.measure();
    lab.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    lab.report("a queue of 1 M delayed messages is deleted");
}

#[test]
#[ignore = "a measurement"]
fn a_purge() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(MILLION, KEYED);
    lab.measure();
    let vhost = VhostId::DEFAULT;
    let reply = lab.admin(AdminRequest::Purge {
        vhost,
        name: name(),
    });
    assert_eq!(reply, AdminReply::QueuePurged(Ok(u64::from(MILLION))));
    lab.report("a queue of 1 M keys is purged");
    for n in 0..2 {
        // All is newer than what the purge is to take: it walks over it.
        let reply = lab.reply();
        lab.measure();
        if n == 1 {
            lab.handle(Request::Admin {
                reply,
                request: AdminRequest::PurgeQueue {
                    vhost: VhostId::DEFAULT,
                    name: name(),
                },
            });
        }
        lab.publish(MILLION, KEYED);
    }
    lab.report("1 M messages are stored beside a purge that has begun");
}

#[test]
#[ignore = "a measurement"]
fn a_purge_of_groups() {
    let mut lab = Lab::new();
    let part = KeyPart {
        kind: KeyKind::FairnessKey,
        name: String::new(),
    };
    lab.create(QueueSpec {
        ordering: Ordering::Key {
            key: vec![part],
            missing: MissingOrderingKey::Reject,
        },
        ..queue()
    });
    let shape = Shape {
        keys: MILLION,
        ..Shape::default()
    };
    lab.publish(MILLION, shape);
    lab.subscribe(CONN, LeaseMode::Timed);
    lab.run();
    lab.measure();
    let reply = lab.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    assert_eq!(reply, AdminReply::Purged(Ok(0)));
    lab.report("a queue of 1 M ordering groups, all of them leased, is purged");
}

#[test]
#[ignore = "a measurement"]
fn statistics_of_keys() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(MILLION, KEYED);
    lab.measure();
    let reply = lab.admin(AdminRequest::QueueStats {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    assert!(matches!(reply, AdminReply::Stats(Ok(stats)) if stats.keys.len() == MILLION as usize));
    lab.report("statistics of 1 M keys");
}

#[test]
#[ignore = "a measurement"]
fn a_list_of_queues() {
    let mut lab = Lab::new();
    for n in 0..50_000 {
        lab.create(QueueSpec {
            name: format!("queue-{n}"),
            ..queue()
        });
    }
    lab.measure();
    let reply = lab.admin(AdminRequest::ListQueues);
    assert!(matches!(reply, AdminReply::Queues(all) if all.len() == 100_000));
    lab.report("a list of 100,000 queues");
}

#[test]
#[ignore = "a measurement"]
fn a_connection_goes() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(MILLION, Shape::default());
    let conn = ConnId(2);
    lab.connect(conn);
    lab.subscribe(conn, LeaseMode::Connection);
    lab.run();
    lab.outputs();
    lab.measure();
    lab.handle(Request::Disconnect { conn });
    lab.run();
    lab.report("a connection that holds 1 M messages goes");
    lab.subscribe(CONN, LeaseMode::Timed);
    lab.run();
    let delivered = lab.deliveries();
    let delivered = delivered.iter().flat_map(|batch| &batch.items);
    let ids: Vec<_> = delivered.map(|item| item.id).collect();
    assert!(ids.is_sorted() && ids.len() == MILLION as usize);
}

#[test]
#[ignore = "a measurement"]
fn a_script_changes() {
    let mut lab = Lab::new();
    lab.create(QueueSpec {
        on_enqueue: Some("a".to_owned()),
        script_failure: ScriptFailure::Park,
        ..queue()
    });
    lab.publish(MILLION, Shape::default());
    lab.measure();
    lab.fault = ScriptFault::Failed("no".to_owned());
    let changes = QueueChanges {
        on_enqueue: Some(Some("b".to_owned())),
        ..QueueChanges::default()
    };
    lab.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
        changes: Box::new(changes.clone()),
    });
    lab.report("another script, 1 M messages parked after timeouts");
    lab.measure();
    lab.admin(AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
        changes: Box::new(changes),
    });
    lab.report("another script, 1 M messages parked after failures");
    lab.measure();
    lab.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    lab.report("a queue of 1 M parked messages is deleted");
}

#[test]
#[ignore = "a measurement"]
fn a_redrive_that_leaves_all() {
    let mut lab = Lab::new();
    lab.create(QueueSpec {
        on_enqueue: Some("a".to_owned()),
        script_failure: ScriptFailure::Park,
        park_dead_letter_after: 1,
        ..queue()
    });
    lab.publish(MILLION, Shape::default());
    lab.measure();
    let name = format!("{QUEUE}.dlq");
    let reply = lab.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: Reclassify::None,
    });
    assert!(
        matches!(reply, AdminReply::Redriven(Ok(it)) if it.left_unclassified == u64::from(MILLION)),
        "{reply:?}"
    );
    lab.report("a redrive that leaves 1 M unclassified messages where they are");
}

#[test]
#[ignore = "a measurement"]
fn all_messages_fail() {
    let mut lab = Lab::new();
    lab.create(QueueSpec {
        max_attempts: 1,
        ..queue()
    });
    lab.publish(
        MILLION,
        Shape {
            keys: MILLION,
            ..Shape::default()
        },
    );
    lab.subscribe(CONN, LeaseMode::Timed);
    lab.run();
    let deliveries = lab.deliveries();
    lab.measure();
    for batch in deliveries {
        let queue = SettleQueue::Id(batch.queue_id);
        for items in batch.items.chunks(BATCH as usize) {
            let items = items.iter().map(|item| SettleItem {
                queue,
                id: item.id,
                settlement: Settlement::Reject,
            });
            let batch = SettleBatch {
                items: items.collect(),
                ..SettleBatch::default()
            };
            let reply = lab.reply();
            lab.handle(Request::Settle { reply, batch });
            lab.run();
        }
    }
    lab.report("1 M messages of as many keys become dead letters");
}
