//! Subscriptions, credit and settling.

use std::time::Duration;

use tanda_wire::fila::consume::{Consume, ConsumeOk, Credit};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::settle::{
    AckBatch, AckResult, ExtendBatch, ExtendItemResult, ExtendLeaseResult, NackBatch, NackResult,
};
use tanda_wire::fila::{ErrorCode, Opcode};

use super::{Peer, connect, id};
use crate::{Client, KeyPart, Subscription, SubscriptionError, Throttle, WhenThrottleKeyMissing};

/// A subscription with this prefetch, and its request ID.
async fn subscribe(client: &Client, peer: &mut Peer, prefetch: u32) -> (Subscription, u32) {
    let consumer = client.consumer();
    let opening =
        tokio::spawn(async move { consumer.subscribe("q").prefetch(prefetch).open().await });
    let sent = peer.expect(Opcode::Consume).await;
    let request = Consume::decode(&sent.body).unwrap();
    assert_eq!((request.queue, request.credit), ("q", prefetch));
    peer.send(sent.id(), &ConsumeOk { consumer_id: "c" }).await;
    (opening.await.unwrap().unwrap(), sent.id())
}

/// Answers an `Ack` with Ok for each item, and returns their IDs.
async fn answer_acks(peer: &mut Peer) -> Vec<[u8; 16]> {
    let sent = peer.expect(Opcode::Ack).await;
    let batch = AckBatch::decode_header(&sent.body).unwrap();
    let ids: Vec<[u8; 16]> = batch.map(|item| item.unwrap().message_id).collect();
    peer.send(
        sent.id(),
        &AckResult {
            results: vec![ErrorCode::Ok; ids.len()],
        },
    )
    .await;
    ids
}

#[tokio::test]
async fn a_delivery_is_read_as_it_was_sent() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(request_id, 0..2).await;
    let first = subscription.next().await.unwrap().unwrap();
    let second = subscription.next().await.unwrap().unwrap();
    assert_eq!(first.id().as_bytes(), &id(0));
    assert_eq!(second.id().as_bytes(), &id(1));
    assert_eq!(second.queue(), "q");
    assert_eq!(second.header("number"), Some("1"));
    assert_eq!(second.headers().len(), 1);
    assert_eq!(second.payload(), b"1");
    assert_eq!(second.payload_bytes(), "1");
    assert_eq!(second.fairness_key(), "key");
    assert_eq!(
        (second.weight(), second.attempt(), second.redrives()),
        (2, 1, 0)
    );
    let times = (
        second.enqueued_at_ms(),
        second.leased_at_ms(),
        second.lease_expires_at_ms(),
    );
    assert_eq!(times, (10, 20, 30));
}

#[tokio::test]
async fn acks_made_together_share_a_frame_and_credit_comes_in_one_grant() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 4).await;
    peer.deliver(request_id, 0..4).await;
    let mut acks = Vec::new();
    for _ in 0..4 {
        let delivery = subscription.next().await.unwrap().unwrap();
        acks.push(tokio::spawn(async move { delivery.ack().await }));
    }
    assert_eq!(answer_acks(&mut peer).await, [id(0), id(1), id(2), id(3)]);
    for ack in acks {
        ack.await.unwrap().unwrap();
    }
    let mut granted = 0;
    let mut frames = 0;
    while granted < 4 {
        let sent = peer.expect(Opcode::Credit).await;
        assert_eq!(sent.id(), request_id);
        granted += Credit::decode(&sent.body).unwrap().additional_credit;
        frames += 1;
    }
    assert_eq!(granted, 4);
    assert!(frames <= 2, "{frames} frames for a prefetch of 4");
}

#[tokio::test]
async fn a_batch_is_acked_in_one_frame() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 100).await;
    peer.deliver(request_id, 0..60).await;
    let mut batch = Vec::new();
    while batch.len() < 60 {
        batch.extend(subscription.next_batch(60 - batch.len()).await.unwrap());
    }
    let consumer = client.consumer();
    let acking = tokio::spawn(async move { consumer.ack_batch(&batch).await });
    assert_eq!(answer_acks(&mut peer).await.len(), 60);
    assert!(acking.await.unwrap().iter().all(Result::is_ok));
    let sent = peer.expect(Opcode::Credit).await;
    assert_eq!(Credit::decode(&sent.body).unwrap().additional_credit, 60);
}

#[tokio::test]
async fn a_reader_that_waits_with_all_credit_spent_gets_what_is_due() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(request_id, 0..10).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(subscription.next().await.unwrap().unwrap());
    }
    // One of ten is no batch, but nothing more would ever come.
    drop(held.pop());
    let reading = tokio::spawn(async move { subscription.next().await.unwrap().unwrap().id() });
    let sent = peer.expect(Opcode::Credit).await;
    assert_eq!(Credit::decode(&sent.body).unwrap().additional_credit, 1);
    peer.deliver(request_id, 10..11).await;
    assert_eq!(reading.await.unwrap().as_bytes(), &id(10));
}

#[tokio::test]
async fn nacks_and_extensions_carry_what_was_asked() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(request_id, 0..1).await;
    let delivery = subscription.next().await.unwrap().unwrap();
    let settling = tokio::spawn(async move {
        let until = delivery.extend_lease(Duration::from_secs(5)).await;
        let nacked = delivery.nack("broken").await;
        let retried = delivery.retry_after(Duration::from_secs(2), "busy").await;
        (until, nacked, retried)
    });

    let sent = peer.expect(Opcode::ExtendLease).await;
    let item = ExtendBatch::decode_header(&sent.body)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(
        (item.queue, item.message_id, item.extend_by_ms),
        ("q", id(0), 5_000)
    );
    let result = ExtendItemResult {
        error_code: ErrorCode::Ok,
        lease_expires_at_ms: 99,
    };
    peer.send(
        sent.id(),
        &ExtendLeaseResult {
            results: vec![result],
        },
    )
    .await;

    let sent = peer.expect(Opcode::Nack).await;
    let item = NackBatch::decode_header(&sent.body)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!((item.error, item.retry_after_ms), ("broken", None));
    peer.send(
        sent.id(),
        &NackResult {
            results: vec![ErrorCode::Ok],
        },
    )
    .await;

    let sent = peer.expect(Opcode::Nack).await;
    let item = NackBatch::decode_header(&sent.body)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!((item.error, item.retry_after_ms), ("busy", Some(2_000)));
    peer.send(
        sent.id(),
        &NackResult {
            results: vec![ErrorCode::MessageNotFound],
        },
    )
    .await;

    let (until, nacked, retried) = settling.await.unwrap();
    assert_eq!(until, Ok(99));
    assert_eq!(nacked, Ok(()));
    assert_eq!(
        retried.unwrap_err().code(),
        Some(ErrorCode::MessageNotFound)
    );
}

#[tokio::test]
async fn throttles_are_declared_and_refusals_reach_the_caller() {
    let (client, mut peer, _network) = connect().await;
    let throttle = Throttle::new("t")
        .at_most(5)
        .per(Duration::from_secs(1))
        .keyed_by([KeyPart::header("domain")])
        .when_missing(WhenThrottleKeyMissing::Unthrottled);
    let subscribing = client
        .consumer()
        .subscribe("q")
        .unlimited()
        .throttle(throttle);
    let opening = tokio::spawn(subscribing.open());
    let sent = peer.expect(Opcode::Consume).await;
    let request = Consume::decode(&sent.body).unwrap();
    assert_eq!(request.credit, 0);
    let [declared] = request.throttles.as_slice() else {
        panic!("{request:?}")
    };
    assert_eq!((declared.name, declared.when_key_missing), ("t", 1));
    assert_eq!(
        (
            declared.limits[0].max_deliveries,
            declared.limits[0].window_ms
        ),
        (5, 1_000)
    );
    assert_eq!(
        (declared.key.parts[0].kind, declared.key.parts[0].name),
        (0, "domain")
    );
    let refusal = ErrorFrame {
        error_code: ErrorCode::ThrottleConflict,
        message: "another key",
        metadata: vec![("unknown", "kept")],
    };
    peer.send(sent.id(), &refusal).await;
    let error = opening.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ThrottleConflict));
    assert_eq!(error.metadata().unwrap()["unknown"], "kept");
    assert!(!error.retryable());
}

#[tokio::test]
async fn a_throttle_that_no_server_takes_is_not_sent() {
    let (client, mut peer, _network) = connect().await;
    let subscribing = client.consumer().subscribe("q");
    let error = subscribing
        .clone()
        .throttle(Throttle::new("t"))
        .open()
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::InvalidThrottle));
    assert!(!error.outcome_unknown() && !error.retryable());

    let opening = tokio::spawn(subscribing.open());
    let sent = peer.expect(Opcode::Consume).await;
    assert_eq!(Consume::decode(&sent.body).unwrap().throttles, []);
    drop((opening, client));
}

#[tokio::test]
async fn a_cancelled_subscription_is_read_to_its_end() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(request_id, 0..3).await;
    let first = subscription.next().await.unwrap().unwrap();
    subscription.cancel();
    assert_eq!(peer.expect(Opcode::CancelConsume).await.id(), request_id);
    // What the server sent before it knew is ignored.
    peer.deliver(request_id, 3..4).await;
    assert_eq!(first.payload(), b"0");
    assert_eq!(subscription.next().await.unwrap().unwrap().payload(), b"1");
    assert_eq!(subscription.next().await.unwrap().unwrap().payload(), b"2");
    assert!(subscription.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_subscription_is_cancelled() {
    let (client, mut peer, _network) = connect().await;
    let (subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    drop(subscription);
    assert_eq!(peer.expect(Opcode::CancelConsume).await.id(), request_id);
    client.close().await;
}

#[tokio::test]
async fn a_subscription_ended_by_the_server_says_why() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, request_id) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(request_id, 0..1).await;
    let refusal = ErrorFrame {
        error_code: ErrorCode::QueueNotFound,
        message: "gone",
        metadata: vec![],
    };
    peer.send(request_id, &refusal).await;
    assert_eq!(peer.expect(Opcode::CancelConsume).await.id(), request_id);
    let batch = subscription.next_batch(10).await.unwrap();
    assert_eq!(batch.len(), 1);
    match subscription.next().await {
        Some(Err(SubscriptionError::Rejected(rejection))) => {
            assert_eq!(rejection.code, ErrorCode::QueueNotFound);
            assert_eq!(rejection.message, "gone");
        }
        other => panic!("{other:?}"),
    }
    assert!(subscription.next().await.is_none());
}

#[tokio::test]
async fn an_unlimited_reader_that_does_not_read_is_cut_off() {
    let (client, mut peer, _network) = connect().await;
    let subscribing = client
        .consumer()
        .subscribe("q")
        .unlimited()
        .buffer_bytes_max(200);
    let opening = tokio::spawn(subscribing.open());
    let request_id = peer.expect(Opcode::Consume).await.id();
    peer.send(request_id, &ConsumeOk { consumer_id: "c" }).await;
    let mut subscription = opening.await.unwrap().unwrap();
    peer.deliver(request_id, 0..1).await;
    peer.deliver(request_id, 1..4).await;
    assert_eq!(peer.expect(Opcode::CancelConsume).await.id(), request_id);
    assert_eq!(subscription.next_batch(10).await.unwrap().len(), 1);
    let error = subscription.next_batch(10).await.unwrap_err();
    assert_eq!(
        error,
        SubscriptionError::BufferFull {
            buffer_bytes_max: 200
        }
    );
    assert!(subscription.next().await.is_none());
}
