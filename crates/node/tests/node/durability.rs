//! Effects leave exactly when the log holds what they speak of.

use crate::support::{CONSUMER, PRODUCER, World, named, stored, sub};
use tanda_engine::{
    AdminRequest, DeliveryDurability, Event, MessageId, QueueSpec, SettleError, Settlement,
    SubscriptionEnd, VhostId,
};

fn payloads(count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![n; 20]).collect()
}

#[test]
fn a_confirm_waits_for_its_flush() {
    let mut world = World::new();
    world.create(named("jobs"));
    let token = world.publish("jobs", &payloads(3));
    world.run();
    assert_eq!(world.published(token), None);
    assert!(world.node.backlog_bytes() > 60);

    let job = world.node.take_flush().unwrap();
    // Comes after the job was taken: not part of it.
    let late = world.publish("jobs", &payloads(1));
    assert!(world.node.take_flush().is_none(), "one job at a time");
    let outcome = job.run();
    assert_eq!(world.published(token), None);
    world.node.on_flushed(world.now, outcome);
    world.node.drain_released(&mut world.events);
    assert_eq!(stored(&world.published(token).unwrap()).len(), 3);
    assert_eq!(world.published(late), None);

    assert!(world.flush());
    assert_eq!(stored(&world.published(late).unwrap()).len(), 1);
    assert_eq!(world.node.stats().waiting_effects, 0);
    assert_eq!(world.node.backlog_bytes(), 0);
}

#[test]
fn a_lease_is_on_disk_before_its_message_leaves() {
    let mut world = World::new();
    world.create(named("jobs"));
    let token = world.publish("jobs", &payloads(3));
    world.settle_down();
    let ids = stored(&world.published(token).unwrap());

    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", Some(2));
    world.run();
    assert_eq!(world.received(consumer), []);
    assert!(world.flush());
    let received = world.received(consumer);
    assert_eq!(received.len(), 2);
    for (n, message) in received.iter().enumerate() {
        assert_eq!(message.id, ids[n]);
        assert_eq!(message.attempts, 1);
        assert_eq!(message.payload, payloads(3)[n]);
    }
}

#[test]
fn subscribed_comes_before_the_first_delivery() {
    let mut world = World::new();
    world.create(named("jobs"));
    world.publish("jobs", &payloads(3));
    world.settle_down();
    world.take();
    world.subscribe(sub(CONSUMER, 9), "jobs", None);
    world.settle_down();
    let kinds: Vec<&str> = world
        .take()
        .iter()
        .map(|(conn, event)| {
            assert_eq!(*conn, CONSUMER);
            match event {
                Event::Subscribed { .. } => "subscribed",
                Event::Delivery { .. } => "delivery",
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(kinds.first(), Some(&"subscribed"));
    assert!(kinds.contains(&"delivery"));
}

#[test]
fn an_ack_of_a_committed_queue_waits_for_the_disk() {
    let mut world = World::new();
    world.create(named("jobs"));
    world.publish("jobs", &payloads(1));
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    world.settle_down();
    let id = world.received(consumer)[0].id;
    let token = world.settle("jobs", &[id], Settlement::Ack);
    world.run();
    assert_eq!(world.settled(token), None);
    assert!(world.flush());
    assert!(world.settled(token).unwrap()[0].is_ok());
    let again = world.settle("jobs", &[id], Settlement::Ack);
    world.settle_down();
    assert!(world.settled(again).unwrap()[0].is_err());
}

#[test]
fn an_ack_of_a_fast_queue_overtakes_what_waits() {
    let mut world = World::new();
    world.create(QueueSpec {
        durability: DeliveryDurability::Fast,
        ..named("fast")
    });
    world.create(named("jobs"));
    world.publish("fast", &payloads(1));
    let fast = sub(CONSUMER, 9);
    world.subscribe(fast, "fast", None);
    world.settle_down();
    let id = world.received(fast)[0].id;

    // On the same connection a delivery of the committed queue waits for its lease.
    world.subscribe(sub(CONSUMER, 10), "jobs", None);
    world.publish("jobs", &payloads(1));
    world.run();
    assert_eq!(world.received(sub(CONSUMER, 10)), []);
    let token = world.settle("fast", &[id], Settlement::Ack);
    assert!(world.settled(token).unwrap()[0].is_ok());
    assert_eq!(world.received(sub(CONSUMER, 10)), []);
    assert!(world.flush());
    assert_eq!(world.received(sub(CONSUMER, 10)).len(), 1);
}

#[test]
fn deleting_a_queue_ends_its_subscriptions_after_their_deliveries() {
    let mut world = World::new();
    world.create(named("jobs"));
    world.subscribe(sub(CONSUMER, 9), "jobs", None);
    world.settle_down();
    world.take();
    world.publish("jobs", &payloads(1));
    world.run();
    let name = "jobs".to_owned();
    world.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    world.settle_down();
    let events = world.take();
    let last = events
        .iter()
        .rev()
        .find(|(conn, _)| *conn == CONSUMER)
        .unwrap();
    assert!(matches!(
        last.1,
        Event::SubscriptionEnded {
            token: 9,
            reason: SubscriptionEnd::QueueDeleted
        }
    ));
}

#[test]
fn queues_do_not_wait_for_each_other() {
    let mut world = World::new();
    world.create(named("jobs"));
    world.create(named("idle"));
    world.publish("jobs", &payloads(1));
    world.run();
    // Nothing of this queue is new: the answer needs no flush.
    let token = world.settle("idle", &[MessageId(5)], Settlement::Ack);
    assert_eq!(
        world.settled(token),
        Some(vec![Err(SettleError::MessageNotFound)])
    );
    assert!(world.take().is_empty());
    assert!(world.flush());
    let told: Vec<_> = world.take().into_iter().map(|(conn, _)| conn).collect();
    assert_eq!(told, [PRODUCER]);
}
