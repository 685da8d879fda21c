//! The greeting, its signature, and the login.

use super::*;

async fn fails(
    builder: AmaquetClientBuilder,
    peer: impl AsyncFnOnce(Peer),
    auth_required: bool,
) -> ConnectError {
    let (network, dial) = Network::new();
    let mut end = Peer::new(network.accept());
    end.auth_required = auth_required;
    let (client, ()) = tokio::join!(builder.connect_through(dial), peer(end));
    client.unwrap_err()
}

#[tokio::test]
async fn the_server_says_who_it_is() {
    let (client, ..) = connected_with(AmaquetClient::builder().server_key(node_key())).await;
    let hello = client.server().unwrap();
    assert_eq!(
        (hello.server.as_str(), hello.payload_bytes_max),
        ("tanda", 1000)
    );
    assert_eq!(hello.public_key, node_key());
    assert_eq!(client.login(), None);
}

#[tokio::test]
async fn another_key_or_a_wrong_signature_is_refused_before_the_api_key_is_shown() {
    let other = AmaquetClient::builder()
        .server_key([1; 32])
        .api_key("secret");
    let error = fails(
        other,
        async |mut peer: Peer| {
            peer.greet().await;
            assert!(peer.next().await.is_none(), "no key is shown");
        },
        true,
    )
    .await;
    assert!(matches!(error, ConnectError::NotGenuine { .. }), "{error}");

    let error = fails(
        AmaquetClient::builder(),
        async |mut peer: Peer| {
            let hello = peer.expect(Opcode::Hello).await;
            let replayed = encoded(node().sign(b"amaquet-hello-v1 and another nonce").as_ref());
            let greeting = peer.greeting(&replayed);
            peer.answer(&hello, &greeting).await;
        },
        false,
    )
    .await;
    assert!(matches!(error, ConnectError::NotGenuine { .. }), "{error}");
}

#[tokio::test]
async fn the_api_key_is_shown_where_there_is_one() {
    let (network, dial) = Network::new();
    let mut peer = Peer::new(network.accept());
    peer.auth_required = true;
    let builder = AmaquetClient::builder().api_key("secret");
    let (client, ()) = tokio::join!(builder.connect_through(dial), async {
        peer.greet().await;
        let auth = peer.expect(Opcode::Auth).await;
        assert_eq!(auth.payload, r#"{"api_key":"secret"}"#);
        let login = r#"{"key_id":"k","name":"worker","superadmin":false}"#;
        peer.answer(&auth, login).await;
    });
    let login = client.unwrap().login().unwrap();
    assert_eq!(login.key_id.as_deref(), Some("k"));
    assert_eq!(
        (login.name.as_str(), login.is_superadmin),
        ("worker", false)
    );

    let error = fails(
        AmaquetClient::builder(),
        async |mut peer: Peer| peer.greet().await,
        true,
    )
    .await;
    assert!(matches!(error, ConnectError::KeyWanted), "{error}");

    let error = fails(
        AmaquetClient::builder().api_key("wrong"),
        async |mut peer: Peer| {
            peer.greet().await;
            let auth = peer.expect(Opcode::Auth).await;
            peer.refuse(&auth, ErrorCode::Unauthenticated).await;
        },
        true,
    )
    .await;
    assert!(
        matches!(&error, ConnectError::Refused(it) if it.code == "UNAUTHENTICATED"),
        "{error}"
    );
}

#[tokio::test]
async fn another_protocol_is_told_as_such() {
    let error = fails(
        AmaquetClient::builder(),
        async |mut peer: Peer| peer.stream.write_all(b"HTTP/1.1 400").await.unwrap(),
        false,
    )
    .await;
    let said = error.to_string();
    assert!(matches!(error, ConnectError::NotAmaquet { .. }), "{said}");
    assert!(said.contains("\"HTTP\""), "{said}");
}
