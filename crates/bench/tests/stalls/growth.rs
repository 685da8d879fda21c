//! What has to grow with the number of messages.

use tanda_engine::{Held, LeaseMode, Request, SettleBatch, SettleItem, SettleQueue, Settlement};

use crate::lab::{BATCH, CONN, Lab, MILLION, Shape, queue};

#[test]
#[ignore = "a measurement"]
fn keys_are_added() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.measure();
    let keys = 2 * MILLION;
    lab.publish(
        keys,
        Shape {
            keys,
            ..Shape::default()
        },
    );
    lab.report("2 M messages of as many keys are stored, 1000 in a batch");
}

#[test]
#[ignore = "a measurement"]
fn deduplication_keys_are_added() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.measure();
    lab.publish(
        2 * MILLION,
        Shape {
            idempotency: true,
            ..Shape::default()
        },
    );
    lab.report("2 M messages with deduplication keys are stored, 1000 in a batch");
}

#[test]
#[ignore = "a measurement"]
fn leases_are_added_and_settled() {
    let mut lab = Lab::new();
    lab.create(queue());
    lab.publish(2 * MILLION, Shape::default());
    for (mode, backwards) in [(LeaseMode::Timed, true), (LeaseMode::Connection, false)] {
        lab.measure();
        let sub = lab.subscribe(CONN, mode);
        lab.run();
        lab.report(&format!("2 M messages are leased, {mode:?}"));
        let deliveries = lab.deliveries();
        let items = deliveries.iter().flat_map(|batch| {
            let queue = batch.queue_id;
            batch.items.iter().map(move |item| (queue, item.id))
        });
        let mut items: Vec<_> = items.collect();
        assert_eq!(items.len(), 2 * MILLION as usize);
        if backwards {
            items.reverse();
        } else {
            // One stays; the others leave in another order than they came.
            items.remove(0);
            items.rotate_left(1000);
        }
        lab.measure();
        for items in items.chunks(BATCH as usize) {
            let settle = |(id, message): &(_, _)| SettleItem {
                queue: SettleQueue::Id(*id),
                id: *message,
                settlement: Settlement::Ack,
            };
            let batch = SettleBatch {
                items: items.iter().map(settle).collect(),
                ..SettleBatch::default()
            };
            let reply = lab.reply();
            lab.handle(Request::Settle { reply, batch });
            lab.run();
        }
        lab.report(&format!("2 M messages are acked, {mode:?}"));
        let held = Held::Keep;
        lab.handle(Request::Unsubscribe { sub, held });
        lab.outputs();
        if backwards {
            lab.publish(2 * MILLION, Shape::default());
            lab.outputs();
        }
    }
}
