//! What survives the loss of a connection, and what fails with it.

use std::time::Duration;

use tanda_wire::fila::consume::{Consume, ConsumeOk, Credit};
use tanda_wire::fila::control::{Disconnect, Ping};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::queue_admin::ListQueuesResult;
use tanda_wire::fila::{ErrorCode, Opcode};

use super::{Network, connect, connect_with};
use crate::{Client, ConnectError, Message, ReconnectPolicy, RequestError, SubscriptionError};

fn message(payload: &'static str) -> Message {
    Message::to("q").payload(payload)
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_was_lost_fails_and_the_next_one_goes() {
    let (client, mut peer, network) = connect().await;
    let producer = client.producer();
    let confirm = producer.submit(message("lost")).await.unwrap();
    peer.expect(Opcode::Enqueue).await;
    drop(peer);
    let error = confirm.await.unwrap_err();
    assert!(matches!(
        error,
        RequestError::ConnectionLost {
            outcome_unknown: true,
            ..
        }
    ));
    assert!(error.outcome_unknown());

    // Made while there is no connection: it waits.
    let confirm = producer.submit(message("next")).await.unwrap();
    let mut peer = network.peer();
    peer.accept().await;
    assert_eq!(peer.confirm().await, [b"next"]);
    confirm.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_what_carries_a_key_is_sent_again_and_only_when_asked() {
    let (client, mut peer, network) = connect().await;
    let plain = client.producer();
    let resending = client.producer().resend_after_loss(true);
    let without_key = resending.submit(message("without key")).await.unwrap();
    let with_key = resending
        .submit(message("with key").idempotency_key("k"))
        .await
        .unwrap();
    let not_asked = plain
        .submit(message("not asked").idempotency_key("k"))
        .await
        .unwrap();
    peer.expect(Opcode::Enqueue).await;
    drop(peer);
    assert!(without_key.await.unwrap_err().outcome_unknown());
    assert!(not_asked.await.unwrap_err().outcome_unknown());
    let mut peer = network.peer();
    peer.accept().await;
    assert_eq!(peer.confirm().await, [b"with key"]);
    with_key.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reads_are_made_again_and_changes_are_not() {
    let (client, mut peer, network) = connect().await;
    let (reader, writer) = (client.admin(), client.admin());
    let reading = tokio::spawn(async move { reader.list_queues().await });
    let writing = tokio::spawn(async move { writer.delete_queue("q").await });
    peer.expect(Opcode::ListQueues).await;
    peer.expect(Opcode::DeleteQueue).await;
    drop(peer);
    assert!(writing.await.unwrap().unwrap_err().outcome_unknown());
    let mut peer = network.peer();
    peer.accept().await;
    let sent = peer.expect(Opcode::ListQueues).await;
    peer.send(sent.id(), &ListQueuesResult::default()).await;
    assert_eq!(reading.await.unwrap(), Ok(vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_opened_again_with_the_credit_that_is_left() {
    let (client, mut peer, network) = connect().await;
    let opening = tokio::spawn(client.consumer().subscribe("q").prefetch(10).open());
    let first_id = peer.expect(Opcode::Consume).await.id();
    peer.send(first_id, &ConsumeOk { consumer_id: "c" }).await;
    let mut subscription = opening.await.unwrap().unwrap();
    peer.deliver(first_id, 0..4).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(subscription.next().await.unwrap().unwrap());
    }
    drop(held.pop());
    drop(peer);

    let mut peer = network.peer();
    peer.accept().await;
    let sent = peer.expect(Opcode::Consume).await;
    let request = Consume::decode(&sent.body).unwrap();
    // Three are unsettled.
    assert_eq!((request.queue, request.credit), ("q", 7));
    // Released before the subscription stands: granted when it does.
    drop(held);
    peer.send(sent.id(), &ConsumeOk { consumer_id: "c" }).await;
    let credit = peer.expect(Opcode::Credit).await;
    assert_eq!(credit.id(), sent.id());
    assert_eq!(Credit::decode(&credit.body).unwrap().additional_credit, 3);
    peer.deliver(sent.id(), 4..5).await;
    assert_eq!(subscription.next().await.unwrap().unwrap().payload(), b"4");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_after_a_reconnect_ends() {
    let (client, mut peer, network) = connect().await;
    let opening = tokio::spawn(client.consumer().subscribe("q").open());
    let id = peer.expect(Opcode::Consume).await.id();
    peer.send(id, &ConsumeOk { consumer_id: "c" }).await;
    let mut subscription = opening.await.unwrap().unwrap();
    drop(peer);
    let mut peer = network.peer();
    peer.accept().await;
    let id = peer.expect(Opcode::Consume).await.id();
    let refusal = ErrorFrame {
        error_code: ErrorCode::QueueNotFound,
        message: "gone",
        metadata: vec![],
    };
    peer.send(id, &refusal).await;
    match subscription.next().await {
        Some(Err(SubscriptionError::Rejected(rejection))) => {
            assert_eq!(rejection.code, ErrorCode::QueueNotFound);
        }
        other => panic!("{other:?}"),
    }
    assert!(subscription.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_a_connection_but_not_for_ever() {
    let policy = ReconnectPolicy::default().request_wait(Duration::from_secs(3));
    let (client, peer, network) = connect_with(Client::builder().reconnect(policy)).await;
    drop(peer);
    let producer = client.producer();
    // The client notices the loss with this one.
    assert!(
        producer
            .send(message("lost"))
            .await
            .unwrap_err()
            .outcome_unknown()
    );
    let begun = tokio::time::Instant::now();
    let error = producer.send(message("waits")).await.unwrap_err();
    assert!(matches!(
        error,
        RequestError::ConnectionLost {
            outcome_unknown: false,
            ..
        }
    ));
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    // From now on they fail at once, until there is a connection.
    let begun = tokio::time::Instant::now();
    assert!(producer.send(message("refused")).await.is_err());
    assert_eq!(begun.elapsed(), Duration::ZERO);

    let mut peer = network.peer();
    peer.accept().await;
    // The client must have seen the answer to its handshake before it takes requests again.
    peer.send(0x8000_0001, &Ping {}).await;
    peer.expect(Opcode::Pong).await;
    let confirm = producer.submit(message("goes")).await.unwrap();
    assert_eq!(peer.confirm().await, [b"goes"]);
    confirm.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_client_gives_up_after_so_many_tries() {
    let policy = ReconnectPolicy::default().attempts_max(2);
    let (client, mut peer, network) = connect_with(Client::builder().reconnect(policy)).await;
    let opening = tokio::spawn(client.consumer().subscribe("q").open());
    let id = peer.expect(Opcode::Consume).await.id();
    peer.send(id, &ConsumeOk { consumer_id: "c" }).await;
    let mut subscription = opening.await.unwrap().unwrap();
    drop(peer);
    network.refuse();
    network.refuse();
    match subscription.next().await {
        Some(Err(SubscriptionError::ConnectionLost { reason })) => {
            assert!(reason.contains("refused"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert!(client.producer().send(message("late")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_ends_the_client_and_says_why() {
    let (client, mut peer, network) = connect().await;
    let producer = client.producer();
    let confirm = producer.submit(message("m")).await.unwrap();
    peer.expect(Opcode::Enqueue).await;
    let refusal = ErrorFrame {
        error_code: ErrorCode::Unauthorized,
        message: "revoked",
        metadata: vec![],
    };
    peer.send(0, &refusal).await;
    drop(peer);
    let error = confirm.await.unwrap_err();
    assert!(error.outcome_unknown());
    assert!(error.to_string().contains("revoked"), "{error}");
    let mut peer = network.peer();
    peer.expect(Opcode::Handshake).await;
    peer.send(0, &refusal).await;
    let error = producer.send(message("late")).await.unwrap_err();
    assert!(
        matches!(error, RequestError::ConnectionLost { .. }),
        "{error}"
    );
    // It does not come back.
    client.close().await;
    assert!(peer.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reconnects_ends_with_its_connection() {
    let builder = Client::builder().reconnect(ReconnectPolicy::never());
    let (client, mut peer, _network) = connect_with(builder).await;
    let opening = tokio::spawn(client.consumer().subscribe("q").open());
    let id = peer.expect(Opcode::Consume).await.id();
    peer.send(id, &ConsumeOk { consumer_id: "c" }).await;
    let mut subscription = opening.await.unwrap().unwrap();
    drop(peer);
    assert!(matches!(
        subscription.next().await,
        Some(Err(SubscriptionError::ConnectionLost { .. }))
    ));
    assert!(subscription.next().await.is_none());
    assert!(client.admin().list_queues().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_left() {
    let (client, mut peer, network) = connect().await;
    let producer = client.producer();
    let confirm = producer.submit(message("m")).await.unwrap();
    peer.expect(Opcode::Enqueue).await;
    let begun = tokio::time::Instant::now();
    peer.expect(Opcode::Ping).await;
    assert_eq!(begun.elapsed().as_secs(), 15);
    assert!(confirm.await.unwrap_err().outcome_unknown());
    assert_eq!(begun.elapsed().as_secs(), 45);
    assert!(peer.next().await.is_none());
    network.peer().accept().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_goodbye_gets_no_more_requests() {
    let (client, mut peer, network) = connect().await;
    let producer = client.producer();
    peer.send(0x8000_0001, &Disconnect {}).await;
    peer.send(0x8000_0002, &Ping {}).await;
    peer.expect(Opcode::Pong).await;
    let confirm = producer.submit(message("m")).await.unwrap();
    drop(peer);
    let mut peer = network.peer();
    peer.accept().await;
    assert_eq!(peer.confirm().await, [b"m"]);
    confirm.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_is_under_way() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let confirm = producer.submit(message("m")).await.unwrap();
    let closing = tokio::spawn(client.close());
    let sent = peer.expect(Opcode::Enqueue).await;
    peer.expect(Opcode::Disconnect).await;
    assert!(!closing.is_finished());
    let refusal = ErrorFrame {
        error_code: ErrorCode::QueueNotFound,
        message: "",
        metadata: vec![],
    };
    peer.send(sent.id(), &refusal).await;
    assert_eq!(
        confirm.await.unwrap_err().code(),
        Some(ErrorCode::QueueNotFound)
    );
    closing.await.unwrap();
    assert!(peer.next().await.is_none());
    let error = producer.send(message("late")).await.unwrap_err();
    assert!(
        matches!(error, RequestError::ConnectionLost { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_connection_that_fails_says_why() {
    let (network, dial) = Network::new();
    network.refuse();
    let error = Client::builder().connect_through(dial).await.unwrap_err();
    assert!(matches!(error, ConnectError::Io(_)), "{error}");

    let (network, dial) = Network::new();
    let mut peer = network.peer();
    let connecting = tokio::spawn(Client::builder().connect_through(dial));
    peer.expect(Opcode::Handshake).await;
    let refusal = ErrorFrame {
        error_code: ErrorCode::Unauthorized,
        message: "no key",
        metadata: vec![],
    };
    peer.send(0, &refusal).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no key"), "{error}");
    assert!(!error.retryable());

    let (network, dial) = Network::new();
    drop(network.peer());
    let error = Client::builder().connect_through(dial).await.unwrap_err();
    assert!(matches!(error, ConnectError::Io(_)), "{error}");

    let (network, dial) = Network::new();
    let _silent = network.peer();
    let builder = Client::builder().connect_timeout(Duration::from_secs(2));
    let error = builder.connect_through(dial).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::TimedOut { timeout_ms: 2_000 }),
        "{error}"
    );
}
