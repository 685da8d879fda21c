//! What happens when the server says that it is overloaded.

use std::time::Duration;

use tanda_wire::fila::consume::ConsumeOk;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::queue_admin::ListQueuesResult;
use tanda_wire::fila::{ErrorCode, Opcode};
use tokio::time::Instant;

use super::{Peer, connect};
use crate::{Message, OverloadRetry};

/// Answers the next request of this kind with `ChannelFull`.
async fn refuse(peer: &mut Peer, opcode: Opcode, retry_after_ms: &str) {
    let sent = peer.expect(opcode).await;
    let refusal = ErrorFrame {
        error_code: ErrorCode::ChannelFull,
        message: "busy",
        metadata: vec![("retry_after_ms", retry_after_ms)],
    };
    peer.send(sent.id(), &refusal).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_is_sent_again_after_the_time_asked() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let begun = Instant::now();
    let sending = tokio::spawn(async move { producer.send(Message::to("q").payload("m")).await });
    refuse(&mut peer, Opcode::Enqueue, "700").await;
    refuse(&mut peer, Opcode::Enqueue, "1").await;
    assert_eq!(peer.confirm().await, [b"m"]);
    sending.await.unwrap().unwrap();
    // 700 ms as asked, then the second delay of the policy, which is longer than what was asked.
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(800), "{waited:?}");
    assert!(waited < Duration::from_millis(900), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn messages_that_shared_a_refused_frame_are_all_sent_again() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let careful = client.producer().overload_retry(OverloadRetry::off());
    let first = producer
        .submit(Message::to("q").payload("0"))
        .await
        .unwrap();
    let second = careful.submit(Message::to("q").payload("1")).await.unwrap();
    let third = producer
        .submit(Message::to("q").payload("2"))
        .await
        .unwrap();
    refuse(&mut peer, Opcode::Enqueue, "10").await;
    let error = second.await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ChannelFull));
    assert!(error.retryable());
    assert_eq!(error.metadata().unwrap()["retry_after_ms"], "10");
    assert_eq!(peer.confirm().await, [b"0", b"2"]);
    first.await.unwrap();
    third.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_the_last_try_the_caller_is_told() {
    let (client, mut peer, _network) = connect().await;
    let producer = client
        .producer()
        .overload_retry(OverloadRetry::default().tries_max(2));
    let sending = tokio::spawn(async move { producer.send(Message::to("q")).await });
    for _ in 0..3 {
        refuse(&mut peer, Opcode::Enqueue, "10").await;
    }
    let error = sending.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ChannelFull));
}

#[tokio::test(start_paused = true)]
async fn other_requests_are_made_again_too() {
    let (client, mut peer, _network) = connect().await;
    let admin = client.admin();
    let listing = tokio::spawn(async move { admin.list_queues().await });
    refuse(&mut peer, Opcode::ListQueues, "10").await;
    let sent = peer.expect(Opcode::ListQueues).await;
    peer.send(sent.id(), &ListQueuesResult::default()).await;
    assert_eq!(listing.await.unwrap(), Ok(vec![]));

    let opening = tokio::spawn(client.consumer().subscribe("q").open());
    refuse(&mut peer, Opcode::Consume, "10").await;
    let sent = peer.expect(Opcode::Consume).await;
    peer.send(sent.id(), &ConsumeOk { consumer_id: "c" }).await;
    opening.await.unwrap().unwrap();
}
