//! Everything that can be observed of a node, as text.

use std::fmt::Write;

use tanda_engine::{
    AdminReply, AdminRequest, QueueCounts, QueueDetails, Request, Settlement, SubId, VhostId,
};

use crate::scenes::{Message, send};
use crate::support::{CONSUMER, World, sub};

/// Describes queues, configuration and statistics, then takes every message out and describes it.
pub(crate) fn of(mut world: World) -> String {
    let mut text = String::new();
    for (key, value) in config_list(&mut world) {
        writeln!(text, "config {key:?} = {value:?}").unwrap();
    }
    match ask(&mut world, AdminRequest::ClusterStatus) {
        AdminReply::ClusterStatus(status) => {
            let (mode, end) = (status.rebalancing, status.pause_ends_at.0);
            writeln!(text, "rebalancing {mode:?} until {end}").unwrap();
        }
        other => panic!("{other:?}"),
    }
    let names = queue_names(&mut world);
    for name in &names {
        queue(&mut world, &mut text, name);
    }
    duplicates(&mut world, &mut text, &names);
    world.take();
    for (number, name) in (10..).zip(&names) {
        drain(&mut world, &mut text, name, sub(CONSUMER, number));
    }
    text
}

pub(crate) fn ask(world: &mut World, request: AdminRequest) -> AdminReply {
    let token = world.admin(request);
    world.settle_down();
    world.admin_reply(token).unwrap()
}

fn config_list(world: &mut World) -> Vec<(String, String)> {
    let prefix = String::new();
    match ask(world, AdminRequest::ListConfig { prefix }) {
        AdminReply::ConfigList(list) => list,
        other => panic!("{other:?}"),
    }
}

fn queue_names(world: &mut World) -> Vec<String> {
    match ask(world, AdminRequest::ListQueues) {
        AdminReply::Queues(queues) => queues.into_iter().map(|queue| queue.name).collect(),
        other => panic!("{other:?}"),
    }
}

fn queue(world: &mut World, text: &mut String, name: &str) {
    let request = AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name: name.to_owned(),
    };
    match ask(world, request) {
        AdminReply::Inspected(Ok(details)) => describe(text, &details),
        other => panic!("{other:?}"),
    }
    // One per key and priority; those of one key come in no order.
    let mut keys: Vec<String> = Vec::new();
    for key in world.stats(name).keys {
        let (pending, weight) = (key.pending, key.weight);
        keys.push(format!(
            "  key {:?}: {pending} pending, weight {weight}\n",
            key.key
        ));
    }
    keys.sort();
    text.push_str(&keys.concat());
    let request = AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name: name.to_owned(),
        message: None,
    };
    match ask(world, request) {
        AdminReply::Explained(Ok(it)) => {
            let (due, lease) = (it.next_due_at, it.next_lease_end_at);
            let held = it.groups_held;
            writeln!(
                text,
                "  next due {due:?}, next lease end {lease:?}, held {held}"
            )
            .unwrap();
        }
        other => panic!("{other:?}"),
    }
}

fn describe(text: &mut String, details: &QueueDetails) {
    let QueueDetails {
        id,
        name,
        dead_letter_queue,
        parent,
        config,
        counts,
    } = details;
    writeln!(
        text,
        "queue {name:?} {id} dead letters {dead_letter_queue:?} of {parent:?}"
    )
    .unwrap();
    let (lease, grace) = (config.lease_ms, config.reclaim_grace_ms);
    let (window, park) = (config.dedup_window_ms, config.park_dead_letter_after);
    writeln!(
        text,
        "  lease {lease}, grace {grace}, window {window}, park {park}"
    )
    .unwrap();
    let (ordering, dedup) = (&config.ordering, &config.dedup_key);
    writeln!(text, "  ordering {ordering:?}, deduplication {dedup:?}").unwrap();
    let (retry, durability) = (config.retry, config.durability);
    writeln!(
        text,
        "  attempts {}, {:?} {} to {}, {durability:?}, {:?}, {:?}",
        retry.max_attempts,
        retry.backoff,
        retry.initial_ms,
        retry.max_ms,
        config.max_length,
        config.script_failure
    )
    .unwrap();
    describe_counts(text, *counts);
}

fn describe_counts(text: &mut String, counts: QueueCounts) {
    writeln!(
        text,
        "  depth {}, in flight {}, delayed {}, behind {}, ready {}, keys {}, bytes {}, \
         remembered {}",
        counts.depth,
        counts.in_flight,
        counts.delayed,
        counts.behind,
        counts.ready,
        counts.active_fairness_keys,
        counts.bytes,
        counts.remembered_keys
    )
    .unwrap();
}

/// What is remembered of deduplication.
fn duplicates(world: &mut World, text: &mut String, names: &[String]) {
    if !names.iter().any(|name| name == "once") {
        return;
    }
    for once in ["x", "y", "z"] {
        world.take();
        let message = Message {
            once: Some(once),
            payload: b"again".to_vec(),
            ..Message::default()
        };
        send(world, "once", &[message]);
        world.settle_down();
        let results = world.published(99_999).unwrap();
        writeln!(text, "sent again {once:?}: {results:?}").unwrap();
    }
}

/// Takes every message of a queue, in time, in the order in which they come.
fn drain(world: &mut World, text: &mut String, queue: &str, consumer: SubId) {
    writeln!(text, "messages of {queue:?}").unwrap();
    world.subscribe(consumer, queue, None);
    world.settle_down();
    let end = world.now.after_ms(3 * 3_600_000);
    loop {
        let ids = take(world, text, consumer);
        if !ids.is_empty() {
            world.settle(queue, &ids, Settlement::Ack);
            world.settle_down();
            continue;
        }
        let counts = world.stats(queue).counts;
        if world.now >= end || counts.depth + counts.in_flight == 0 {
            break;
        }
        world.pass(60_000, 60_000);
    }
    world.handle(Request::Unsubscribe {
        sub: consumer,
        held: tanda_engine::Held::Requeue,
    });
    let counts = world.stats(queue).counts;
    assert_eq!((counts.depth, counts.in_flight, counts.bytes), (0, 0, 0));
}

fn take(world: &mut World, text: &mut String, consumer: SubId) -> Vec<tanda_engine::MessageId> {
    let mut ids = Vec::new();
    for batch in world.deliveries(consumer) {
        for item in &batch.items {
            let content = String::from_utf8_lossy(batch.content(item));
            let shown: String = content
                .chars()
                .filter(|c| !c.is_control())
                .take(40)
                .collect();
            writeln!(
                text,
                "  {} key {:?} weight {} attempts {} deliveries {} redrives {} {} bytes {shown:?}",
                item.id,
                batch.fairness_key(item),
                item.weight,
                item.attempts,
                item.deliveries,
                item.redrives,
                item.len
            )
            .unwrap();
            ids.push(item.id);
        }
    }
    ids
}
