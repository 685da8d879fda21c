use std::sync::Arc;

use tanda_engine::{DeliveryBatch, MessageId, Millis, PublishResult, SubscriptionEnd};

use super::*;

const A: ConnId = ConnId(1);
const B: ConnId = ConnId(2);

fn published(conn: ConnId, after: u64, token: u32) -> Output {
    Output {
        conn,
        after: Lsn(after),
        event: Event::Published {
            token,
            results: vec![PublishResult::Stored(MessageId(7))],
        },
    }
}

fn settled(conn: ConnId, after: u64, token: u32) -> Output {
    Output {
        conn,
        after: Lsn(after),
        event: Event::Settled {
            token,
            results: Vec::new(),
        },
    }
}

fn delivery(conn: ConnId, after: u64, token: u32, id: u128) -> Output {
    let batch = DeliveryBatch {
        queue: Arc::from("q"),
        items: vec![DeliveryItem {
            id: MessageId(id),
            ..DeliveryItem::default()
        }],
        ..DeliveryBatch::default()
    };
    Output {
        conn,
        after: Lsn(after),
        event: Event::Delivery { token, batch },
    }
}

fn subscribed(conn: ConnId, after: u64, token: u32) -> Output {
    Output {
        conn,
        after: Lsn(after),
        event: Event::Subscribed { token, consumer: 1 },
    }
}

fn ended(conn: ConnId, after: u64, token: u32) -> Output {
    Output {
        conn,
        after: Lsn(after),
        event: Event::SubscriptionEnded {
            token,
            reason: SubscriptionEnd::QueueDeleted,
        },
    }
}

/// One word per event: kind and token, with the message for deliveries.
fn name(released: (ConnId, Event)) -> String {
    let (conn, event) = released;
    let what = match event {
        Event::Published { token, .. } => format!("published {token}"),
        Event::Settled { token, .. } => format!("settled {token}"),
        Event::Subscribed { token, .. } => format!("subscribed {token}"),
        Event::SubscribeFailed { token, .. } => format!("refused {token}"),
        Event::Delivery { token, batch } => format!("delivery {token}:{}", batch.items[0].id.0),
        Event::SubscriptionEnded { token, .. } => format!("ended {token}"),
        Event::Committed { token, .. } => format!("committed {token}"),
        Event::Got { token, .. } => format!("got {token}"),
        Event::Admin { token, .. } => format!("admin {token}"),
        Event::Keys { token, .. } => format!("keys {token}"),
        Event::Watching { token, .. } => format!("watching {token}"),
        Event::Watched { token, .. } => format!("watched {token}"),
        Event::WatchEnded { token } => format!("watch ended {token}"),
        Event::StorageFailed { token } => format!("failed {token}"),
    };
    format!("{} {what}", conn.0)
}

fn offer(queue: &mut EffectQueue, output: Output, durable: u64) -> Option<String> {
    let released = queue.offer(output, Lsn(durable)).map(name);
    queue.assert_invariants();
    released
}

fn pop_all(queue: &mut EffectQueue, durable: u64) -> Vec<String> {
    let released = core::iter::from_fn(|| queue.pop(Lsn(durable)))
        .map(name)
        .collect();
    queue.assert_invariants();
    released
}

#[test]
fn an_effect_leaves_exactly_when_its_position_is_durable() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, published(A, 100, 1), 99), None);
    assert_eq!(pop_all(&mut queue, 99), [""; 0]);
    assert_eq!(pop_all(&mut queue, 100), ["1 published 1"]);
    assert_eq!(
        offer(&mut queue, published(A, 100, 2), 100).as_deref(),
        Some("1 published 2")
    );
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn an_answer_overtakes_what_waits_for_its_connection() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, published(A, 200, 1), 100), None);
    assert_eq!(offer(&mut queue, delivery(A, 200, 5, 50), 100), None);
    assert_eq!(
        offer(&mut queue, settled(A, 0, 2), 100).as_deref(),
        Some("1 settled 2")
    );
}

#[test]
fn deliveries_never_overtake_on_their_connection() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, subscribed(A, 200, 5), 100), None);
    assert_eq!(offer(&mut queue, delivery(A, 50, 5, 50), 100), None);
    assert_eq!(offer(&mut queue, delivery(A, 0, 6, 60), 100), None);
    assert_eq!(offer(&mut queue, ended(A, 0, 5), 100), None);
    // Another connection has nothing to wait for.
    assert_eq!(
        offer(&mut queue, delivery(B, 50, 5, 51), 100).as_deref(),
        Some("2 delivery 5:51")
    );
    assert_eq!(
        pop_all(&mut queue, 200),
        [
            "1 subscribed 5",
            "1 delivery 5:50",
            "1 delivery 6:60",
            "1 ended 5"
        ]
    );
    assert_eq!(
        offer(&mut queue, delivery(A, 200, 5, 52), 200).as_deref(),
        Some("1 delivery 5:52")
    );
}

#[test]
fn an_answer_that_waits_does_not_hold_back_deliveries() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, published(A, 200, 1), 100), None);
    assert_eq!(
        offer(&mut queue, delivery(A, 100, 5, 50), 100).as_deref(),
        Some("1 delivery 5:50")
    );
}

#[test]
fn positions_that_fall_wait_with_the_one_before() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, published(A, 300, 1), 100), None);
    assert_eq!(offer(&mut queue, published(B, 200, 2), 100), None);
    assert_eq!(offer(&mut queue, published(B, 400, 3), 100), None);
    assert_eq!(pop_all(&mut queue, 200), [""; 0]);
    assert_eq!(pop_all(&mut queue, 399), ["1 published 1", "2 published 2"]);
    assert_eq!(pop_all(&mut queue, 400), ["2 published 3"]);
}

/// The first message that is given back.
fn first_id(undelivered: &Undelivered) -> u128 {
    let Undelivered::Messages(batch) = undelivered else {
        panic!("a key");
    };
    batch.items[0].id.0
}

#[test]
fn a_disconnect_takes_everything_of_the_connection() {
    let mut queue = EffectQueue::new();
    for output in [
        published(A, 200, 1),
        delivery(A, 200, 5, 50),
        delivery(B, 200, 5, 51),
        delivery(A, 210, 6, 52),
        settled(B, 210, 3),
    ] {
        assert_eq!(offer(&mut queue, output, 100), None);
    }
    let mut undelivered = Vec::new();
    queue.remove_conn(A, &mut undelivered);
    queue.assert_invariants();
    let ids: Vec<u128> = undelivered.iter().map(first_id).collect();
    assert_eq!(ids, [50, 52]);
    assert_eq!(pop_all(&mut queue, 300), ["2 delivery 5:51", "2 settled 3"]);
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn an_unsubscribe_takes_the_deliveries_of_that_subscription_only() {
    let mut queue = EffectQueue::new();
    for output in [
        subscribed(A, 200, 5),
        delivery(A, 200, 5, 50),
        delivery(A, 200, 6, 51),
        delivery(B, 200, 5, 52),
        published(A, 200, 5),
        delivery(A, 210, 5, 53),
    ] {
        assert_eq!(offer(&mut queue, output, 100), None);
    }
    let mut undelivered = Vec::new();
    queue.remove_sub(SubId { conn: A, token: 5 }, &mut undelivered);
    queue.assert_invariants();
    let ids: Vec<u128> = undelivered.iter().map(first_id).collect();
    assert_eq!(ids, [50, 53]);
    assert_eq!(
        pop_all(&mut queue, 300),
        [
            "1 subscribed 5",
            "1 delivery 6:51",
            "2 delivery 5:52",
            "1 published 5"
        ]
    );
}

#[test]
fn a_failed_log_answers_who_waits_and_discards_the_rest() {
    let mut queue = EffectQueue::new();
    for output in [
        published(A, 200, 1),
        subscribed(A, 200, 5),
        delivery(A, 200, 5, 50),
        ended(A, 200, 5),
        settled(B, 210, 3),
    ] {
        assert_eq!(offer(&mut queue, output, 100), None);
    }
    let mut told = Vec::new();
    queue.fail(&mut told);
    queue.assert_invariants();
    let told: Vec<String> = told.into_iter().map(name).collect();
    assert_eq!(told, ["1 failed 1", "1 failed 5", "2 failed 3"]);
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.bytes(), 0);
    assert_eq!(pop_all(&mut queue, u64::MAX), [""; 0]);
}

#[test]
fn bytes_follow_what_waits() {
    let mut queue = EffectQueue::new();
    assert_eq!(offer(&mut queue, published(A, 200, 1), 100), None);
    let one = queue.bytes();
    assert!(one >= size_of::<PublishResult>());
    assert_eq!(offer(&mut queue, delivery(A, 300, 5, 50), 100), None);
    assert!(queue.bytes() >= one + size_of::<DeliveryItem>());
    assert_eq!(pop_all(&mut queue, 200), ["1 published 1"]);
    assert!(queue.bytes() >= size_of::<DeliveryItem>());
    assert_eq!(pop_all(&mut queue, 300), ["1 delivery 5:50"]);
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn a_lock_for_who_is_gone_goes_back() {
    let locked = |token, waited| Output {
        conn: A,
        after: Lsn(200),
        event: Event::Keys {
            token,
            vhost: VhostId::DEFAULT,
            result: Box::new(Ok(KeyAnswer::Locked {
                key: "l".into(),
                token: 1,
                expires_at: Millis(9),
                waited,
            })),
        },
    };
    let mut queue = EffectQueue::new();
    for output in [locked(1, true), locked(2, false)] {
        assert_eq!(offer(&mut queue, output, 100), None);
    }
    let mut undelivered = Vec::new();
    queue.remove_conn(A, &mut undelivered);
    let tokens = undelivered.iter().map(|it| match it {
        Undelivered::Key { token, .. } => *token,
        Undelivered::Messages(_) => panic!("messages"),
    });
    assert_eq!(tokens.collect::<Vec<_>>(), [1]);
}
