//! Sends, and what of them shares frames.

use tanda_wire::fila::enqueue::{EnqueueBatch, EnqueueResultWriter};
use tanda_wire::fila::frame::write_frame;
use tanda_wire::fila::{ErrorCode, Opcode};
use tokio::io::AsyncWriteExt;

use super::{connect, id};
use crate::{Message, MessageId, RequestError};

#[tokio::test]
async fn a_message_arrives_as_it_was_made() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let message = Message::to("q")
        .header("name", "value")
        .fairness_key("tenant")
        .weight(3)
        .delay(std::time::Duration::from_millis(7))
        .idempotency_key("once")
        .payload("content");
    let sending = tokio::spawn(async move { producer.send(message).await });
    let sent = peer.expect(Opcode::Enqueue).await;
    let messages: Vec<_> = EnqueueBatch::decode_header(&sent.body).unwrap().collect();
    let [Ok(message)] = messages.as_slice() else {
        panic!("{messages:?}")
    };
    assert_eq!(message.queue, "q");
    assert_eq!(
        message.headers.iter().collect::<Vec<_>>(),
        [("name", "value")]
    );
    assert_eq!(message.fairness_key, Some("tenant"));
    assert_eq!(message.weight, Some(3));
    assert_eq!(message.delay_ms, Some(7));
    assert_eq!(message.idempotency_key, Some("once"));
    assert_eq!(message.payload, b"content");

    let mut out = Vec::new();
    write_frame(&mut out, Opcode::EnqueueResult, sent.id(), |out| {
        let mut writer = EnqueueResultWriter::new(out);
        writer.push(ErrorCode::Ok, &id(9), true)?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    peer.stream.write_all(&out).await.unwrap();
    let receipt = sending.await.unwrap().unwrap();
    assert_eq!(receipt.id, MessageId::from_bytes(id(9)));
    assert!(receipt.duplicate);
}

#[tokio::test]
async fn messages_that_wait_together_share_a_frame() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let mut confirms = Vec::new();
    for number in 0..5 {
        confirms.push(
            producer
                .submit(Message::to("q").payload(number.to_string()))
                .await
                .unwrap(),
        );
    }
    // On one thread the connection's task did not run yet.
    assert_eq!(peer.confirm().await, [b"0", b"1", b"2", b"3", b"4"]);
    for (number, confirm) in confirms.into_iter().enumerate() {
        assert_eq!(confirm.await.unwrap().id, MessageId::from_bytes(id(number)));
    }
}

#[tokio::test]
async fn a_producer_that_does_not_gather_sends_each_alone() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer().gather(false);
    let mut confirms = Vec::new();
    for number in 0..3 {
        confirms.push(
            producer
                .submit(Message::to("q").payload(number.to_string()))
                .await
                .unwrap(),
        );
    }
    for number in ["0", "1", "2"] {
        assert_eq!(peer.confirm().await, [number.as_bytes()]);
    }
    for confirm in confirms {
        confirm.await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_has_a_result_for_each_message_in_order() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let too_long = "x".repeat(65_536);
    let messages = vec![
        Message::to("q").payload("0"),
        Message::to(too_long.as_str()),
        Message::to("q").payload("1"),
    ];
    let sending = tokio::spawn(async move { producer.send_batch(messages).await });
    let sent = peer.expect(Opcode::Enqueue).await;
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::EnqueueResult, sent.id(), |out| {
        let mut writer = EnqueueResultWriter::new(out);
        writer.push(ErrorCode::Ok, &id(0), false)?;
        writer.push(ErrorCode::QueueNotFound, &[0; 16], false)?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    peer.stream.write_all(&out).await.unwrap();
    let results = sending.await.unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(
        results[0].as_ref().unwrap().id,
        MessageId::from_bytes(id(0))
    );
    assert!(matches!(results[1], Err(RequestError::Unencodable(_))));
    assert_eq!(
        results[2].as_ref().unwrap_err().code(),
        Some(ErrorCode::QueueNotFound)
    );
}

#[tokio::test]
async fn a_result_of_another_length_answers_nobody() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let sending = tokio::spawn(async move { producer.send(Message::to("q")).await });
    let sent = peer.expect(Opcode::Enqueue).await;
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::EnqueueResult, sent.id(), |out| {
        let mut writer = EnqueueResultWriter::new(out);
        writer.push(ErrorCode::Ok, &id(0), false)?;
        writer.push(ErrorCode::Ok, &id(1), false)?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    peer.stream.write_all(&out).await.unwrap();
    let error = sending.await.unwrap().unwrap_err();
    assert!(
        matches!(error, RequestError::InvalidReply { .. }),
        "{error}"
    );
    assert!(error.outcome_unknown());
    assert!(!error.retryable());
}

#[tokio::test]
async fn what_was_submitted_is_sent_although_the_client_is_dropped() {
    let (client, mut peer, _network) = connect().await;
    let producer = client.producer();
    let confirm = producer
        .submit(Message::to("q").payload("last"))
        .await
        .unwrap();
    drop((client, producer));
    assert_eq!(peer.confirm().await, [b"last"]);
    confirm.await.unwrap();
    peer.expect(Opcode::Disconnect).await;
    assert!(peer.next().await.is_none());
}
