//! Commands, their answers, and their cancellation.

use super::*;

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    let (client, mut peer, _network) = connected().await;
    let get = client.values();
    let (a, b, ()) = tokio::join!(get.get("a"), get.get("b"), async {
        let first = peer.expect(Opcode::Command).await;
        assert_eq!(first.payload, r#"{"command":"value.get","key":"a"}"#);
        let second = peer.expect(Opcode::Command).await;
        let value = r#"{"value":{"type":"json","data":{"n":18446744073709551615}},"version":7}"#;
        peer.answer(&second, value).await;
        peer.refuse(&first, ErrorCode::NotFound).await;
    });
    assert_eq!(a, Ok(None));
    let b = b.unwrap().unwrap();
    assert_eq!(b.version, 7);
    assert_eq!(b.value.as_str(), Some(r#"{"n":18446744073709551615}"#));
}

#[tokio::test]
async fn refusals_carry_what_the_server_said() {
    let (client, mut peer, _network) = connected().await;
    let (error, ()) = tokio::join!(client.run(Command::new("counter.add")), async {
        let sent = peer.expect(Opcode::Command).await;
        let failure =
            r#"{"ok":false,"error":{"code":"NEW_CODE","message":"later","retry_after_ms":30}}"#;
        peer.send(Header::response(sent.opcode, sent.id), failure)
            .await;
    });
    let error = error.unwrap_err();
    assert_eq!(error.code(), None);
    assert_eq!(error.to_string(), "NEW_CODE: later (try again in 30 ms)");
}

#[tokio::test]
async fn dropping_the_future_cancels_the_command() {
    let (client, mut peer, _network) = connected().await;
    let lists = client.lists();
    let pop = lists.pop_wait("jobs", Duration::from_secs(60));
    let sent = tokio::select! {
        sent = peer.expect(Opcode::Command) => sent,
        popped = pop => panic!("{popped:?}"),
    };
    let cancel = peer.expect(Opcode::Cancel).await;
    assert_eq!(cancel.payload, format!(r#"{{"request_id":{}}}"#, sent.id));
    assert_ne!(cancel.id, sent.id);
    peer.answer(
        &cancel,
        &format!(r#"{{"request_id":{},"cancelled":true}}"#, sent.id),
    )
    .await;
    peer.refuse(&sent, ErrorCode::Cancelled).await;
    // The connection goes on.
    let (pong, ()) = tokio::join!(client.ping(), async {
        let ping = peer.expect(Opcode::Command).await;
        peer.answer(&ping, r#"{"pong":true}"#).await;
    });
    assert_eq!(pong, Ok(()));
}

#[tokio::test]
async fn a_cancelled_command_tells_what_became_of_it() {
    let (client, mut peer, _network) = connected().await;
    let command = Command::new("list.pop").arg("key", "jobs");
    let running = client.start(command).await.unwrap();
    let sent = peer.expect(Opcode::Command).await;
    running.cancel();
    let cancel = peer.expect(Opcode::Cancel).await;
    peer.answer(&sent, r#"{"value":{"type":"text","data":"done before"}}"#)
        .await;
    peer.answer(&cancel, r#"{"request_id":3,"cancelled":false}"#)
        .await;
    let reply = running.await.unwrap();
    assert_eq!(
        reply.payload("value").unwrap().as_str(),
        Some("done before")
    );
}

#[tokio::test]
async fn a_request_over_the_servers_limit_is_not_sent() {
    let (client, mut peer, _network) = connected().await;
    let error = client
        .values()
        .set("a", "x".repeat(1000))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            RequestError::TooLarge {
                payload_bytes_max: 1000,
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.outcome_unknown());
    client.close().await;
    assert!(peer.next().await.is_none());
}

#[tokio::test]
async fn only_reads_are_made_again_after_a_loss() {
    let (client, mut peer, network) = connected_with(eager()).await;
    let (read, write, ()) = tokio::join!(
        client.counters().get("n"),
        client.counters().add("n", 1),
        async {
            peer.expect(Opcode::Command).await;
            peer.expect(Opcode::Command).await;
            drop(peer);
            let mut next = Peer::new(network.accept());
            next.greet().await;
            let again = next.expect(Opcode::Command).await;
            assert_eq!(again.text("command"), "counter.get");
            next.answer(&again, r#"{"value":-3}"#).await;
        }
    );
    assert_eq!(read, Ok(Some(-3)));
    let error = write.unwrap_err();
    assert!(error.outcome_unknown() && error.retryable(), "{error}");
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    let builder = AmaquetClient::builder().reconnect(ReconnectPolicy::never());
    let (client, mut peer, _network) = connected_with(builder).await;
    peer.send(
        Header::response(Opcode::Command, 99),
        r#"{"ok":true,"result":{}}"#,
    )
    .await;
    assert!(peer.next().await.is_none());
    let error = client.ping().await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error}");
}

#[tokio::test]
async fn values_of_other_shapes_are_refused() {
    let (client, mut peer, _network) = connected().await;
    let (error, ()) = tokio::join!(client.counters().add("n", 1), async {
        let sent = peer.expect(Opcode::Command).await;
        peer.answer(&sent, r#"{"value":"one"}"#).await;
    });
    assert!(matches!(error, Err(RequestError::InvalidReply { .. })));
}

#[tokio::test]
async fn frames_may_come_byte_by_byte() {
    let (client, mut peer, _network) = connected().await;
    let (pong, ()) = tokio::join!(client.run(Command::new("server.ping")), async {
        let ping = peer.expect(Opcode::Command).await;
        let mut out = Vec::new();
        let header = Header::response(ping.opcode, ping.id);
        write_frame(&mut out, header, MAX, |out| {
            out.extend_from_slice(br#"{"ok":true,"result":{"pong":true}}"#);
        })
        .unwrap();
        for byte in out {
            peer.stream.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(pong.unwrap().bool("pong"), Ok(true));
}
