//! Deliveries that never left go back to where they were, and do not count.

use crate::support::{CONSUMER, OTHER, World, named, sub};
use tanda_engine::{QueueSpec, Request};

fn world_with(messages: u8) -> World {
    let mut world = World::new();
    world.create(QueueSpec {
        max_attempts: 1,
        ..named("jobs")
    });
    let payloads: Vec<Vec<u8>> = (0..messages).map(|n| vec![n; 20]).collect();
    world.publish("jobs", &payloads);
    world.settle_down();
    world.take();
    world
}

/// All messages reach another connection, in order, as first deliveries.
fn assert_all_go_to_another(world: &mut World, messages: u8) {
    let other = sub(OTHER, 4);
    world.subscribe(other, "jobs", None);
    world.settle_down();
    let received = world.received(other);
    let order: Vec<u8> = received.iter().map(|m| m.payload[0]).collect();
    assert_eq!(order, (0..messages).collect::<Vec<u8>>());
    for message in received {
        assert_eq!(message.attempts, 1);
    }
}

#[test]
fn a_disconnect_returns_what_was_not_released() {
    let mut world = world_with(4);
    world.subscribe(sub(CONSUMER, 9), "jobs", None);
    world.run();
    assert!(world.node.stats().waiting_effects > 0);
    world.handle(Request::Disconnect { conn: CONSUMER });
    world.settle_down();
    assert_eq!(world.received(sub(CONSUMER, 9)), []);
    assert_eq!(world.node.stats().returned_messages, 4);
    assert_all_go_to_another(&mut world, 4);
}

#[test]
fn an_unsubscribe_returns_what_was_not_released() {
    let mut world = world_with(4);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", None);
    world.run();
    world.handle(Request::Unsubscribe {
        sub: consumer,
        held: tanda_engine::Held::Requeue,
    });
    world.settle_down();
    assert_eq!(world.received(consumer), []);
    assert_eq!(world.node.stats().returned_messages, 4);
    assert_all_go_to_another(&mut world, 4);
}

#[test]
fn what_was_released_but_not_taken_is_returned_too() {
    let mut world = world_with(4);
    world.subscribe(sub(CONSUMER, 9), "jobs", None);
    world.run();
    let outcome = world.node.take_flush().unwrap().run();
    world.node.on_flushed(world.now, outcome);
    world.handle(Request::Disconnect { conn: CONSUMER });
    assert_eq!(world.received(sub(CONSUMER, 9)), []);
    assert_eq!(world.node.stats().returned_messages, 4);
    assert_all_go_to_another(&mut world, 4);
}

#[test]
fn what_has_left_is_not_returned() {
    let mut world = world_with(4);
    let consumer = sub(CONSUMER, 9);
    world.subscribe(consumer, "jobs", Some(2));
    world.settle_down();
    assert_eq!(world.received(consumer).len(), 2);
    world.handle(Request::Disconnect { conn: CONSUMER });
    world.settle_down();
    assert_eq!(world.node.stats().returned_messages, 0);
    let stats = world.stats("jobs");
    assert_eq!((stats.counts.depth, stats.counts.in_flight), (2, 2));
}

#[test]
fn a_return_survives_a_crash() {
    let mut world = world_with(3);
    world.subscribe(sub(CONSUMER, 9), "jobs", None);
    world.run();
    world.handle(Request::Disconnect { conn: CONSUMER });
    world.settle_down();
    let mut world = crate::support::crash_and_reopen(world, 1);
    assert_all_go_to_another(&mut world, 3);
}

#[test]
fn returned_budget_and_credit_serve_again() {
    // One message at a time fits the connection's budget; the returned one must give it back.
    let mut world = world_with(2);
    let first = sub(CONSUMER, 9);
    world.subscribe(first, "jobs", Some(1));
    world.run();
    world.handle(Request::Unsubscribe {
        sub: first,
        held: tanda_engine::Held::Requeue,
    });
    let second = sub(CONSUMER, 10);
    world.subscribe(second, "jobs", None);
    world.settle_down();
    let order: Vec<u8> = world
        .received(second)
        .iter()
        .map(|m| m.payload[0])
        .collect();
    assert_eq!(order, [0, 1]);
}
