//! What survives the loss of a connection, and what fails with it.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "frames that are not named fail the test"
)]

use tanda_wire::firemq::consume::{Credit, Subscribe};
use tanda_wire::firemq::message::ToServer;
use tanda_wire::firemq::topology::{Bind, DeclareQueue};
use tanda_wire::firemq::{Op, ReplyCode};

use super::{Network, Peer, builder, connect, connect_with, message};
use crate::ReconnectPolicy;
use crate::fire::{
    Binding, Exchange, ExchangeKind, FireClient, Message, Published, Queue, RequestError,
    Subscription, SubscriptionError,
};

/// Declares an exchange, a queue that the server names `gen-1`, a binding and a subscription.
async fn declare(client: &FireClient, peer: &mut Peer) -> Subscription {
    let asking = tokio::spawn({
        let client = client.clone();
        async move {
            let exchange = Exchange::new("e", ExchangeKind::Topic);
            client.declare_exchange(exchange).await.unwrap();
            let queue = Queue::server_named().exclusive();
            let queue = client.declare_queue(queue).await.unwrap().name;
            let binding = Binding::to_queue("e", queue.as_str()).key("k");
            client.bind(binding).await.unwrap();
            client.subscribe(queue).prefetch(10).open().await.unwrap()
        }
    });
    peer.grant(Op::DeclareExchange).await;
    peer.grant_as(Op::DeclareQueue, "gen-1").await;
    peer.grant(Op::Bind).await;
    peer.grant(Op::Subscribe).await;
    asking.await.unwrap()
}

/// Sees the same come again, with the queue named `name`; returns the subscription's credit.
async fn see_restored(peer: &mut Peer, name: &str) -> u64 {
    peer.grant(Op::DeclareExchange).await;
    let sent = peer.grant_as(Op::DeclareQueue, name).await;
    assert_eq!(DeclareQueue::decode(&sent.header).unwrap().name, "");
    let sent = peer.grant(Op::Bind).await;
    assert_eq!(Bind::decode(&sent.header).unwrap().queue, name);
    let sent = peer.grant(Op::Subscribe).await;
    let subscribe = Subscribe::decode(&sent.header).unwrap();
    assert_eq!(subscribe.queue, name);
    subscribe.credit
}

#[tokio::test(start_paused = true)]
async fn everything_declared_comes_back_before_anything_else() {
    let (client, mut peer, network) = connect().await;
    let mut subscription = declare(&client, &mut peer).await;
    let lost = client.submit(message("lost")).await.unwrap();
    peer.published().await;
    drop(peer);
    // The client has seen the loss when this fails.
    assert!(lost.await.unwrap_err().outcome_unknown());
    let confirm = client.submit(message("meanwhile")).await.unwrap();
    network.refuse();
    let mut peer = network.fire_accept().await;
    assert_eq!(see_restored(&mut peer, "gen-2").await, 10);
    assert_eq!(peer.published().await.2, "meanwhile");
    peer.confirm(1).await;
    assert_eq!(confirm.await, Ok(Published::Taken));
    peer.deliver(1, 1..=1).await;
    let delivery = subscription.next().await.unwrap().unwrap();
    delivery.ack().unwrap();
    peer.expect(Op::Ack).await;
    assert_eq!(client.current_queue_name("gen-1"), "gen-2");

    // The first name stays good, also as the key of the default exchange.
    let _confirm = client.submit(Message::to_queue("gen-1")).await.unwrap();
    assert_eq!(peer.published().await.1, "gen-2");
    let _confirm = client.submit(Message::to("e", "gen-1")).await.unwrap();
    assert_eq!(peer.published().await.1, "gen-1");
    let purging = tokio::spawn({
        let client = client.clone();
        async move { client.purge_queue("gen-1").await }
    });
    let sent = peer.grant(Op::PurgeQueue).await;
    assert!(matches!(sent.header(), ToServer::PurgeQueue(it) if it.name == "gen-2"));
    purging.await.unwrap().unwrap();

    // And once more.
    drop(peer);
    let mut peer = network.fire_accept().await;
    see_restored(&mut peer, "gen-3").await;
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_does_not_come_back() {
    let (client, mut peer, network) = connect().await;
    let subscription = declare(&client, &mut peer).await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move {
            subscription.unsubscribe().await;
            client.delete_queue("gen-1").await.unwrap();
            client.delete_exchange("e").await.unwrap();
        }
    });
    peer.grant(Op::Unsubscribe).await;
    peer.grant(Op::DeleteQueue).await;
    peer.grant(Op::DeleteExchange).await;
    asking.await.unwrap();
    drop(peer);
    let mut peer = network.fire_accept().await;
    let _confirm = client.submit(message("first")).await.unwrap();
    peer.published().await;
}

#[tokio::test(start_paused = true)]
async fn a_publish_without_its_confirm_fails_unless_it_may_go_again() {
    let (client, mut peer, network) = connect().await;
    let confirmed = client.submit(message("confirmed")).await.unwrap();
    let lost = client.submit(message("lost")).await.unwrap();
    let again = client
        .submit(message("again").resend_after_loss())
        .await
        .unwrap();
    for _ in 0..3 {
        peer.published().await;
    }
    peer.confirm(1).await;
    assert_eq!(confirmed.await, Ok(Published::Taken));
    drop(peer);
    let error = lost.await.unwrap_err();
    assert!(error.outcome_unknown() && error.retryable(), "{error}");
    let later = client.submit(message("later")).await.unwrap();
    let mut peer = network.fire_accept().await;
    // Numbers begin anew on each connection.
    assert_eq!(
        peer.published().await,
        (1, "k".to_owned(), "again".to_owned())
    );
    assert_eq!(
        peer.published().await,
        (2, "k".to_owned(), "later".to_owned())
    );
    peer.confirm(2).await;
    assert_eq!(again.await, Ok(Published::Taken));
    assert_eq!(later.await, Ok(Published::Taken));
}

#[tokio::test(start_paused = true)]
async fn declarations_are_asked_for_again_and_other_requests_are_not() {
    let (client, mut peer, network) = connect().await;
    let declaring = tokio::spawn({
        let client = client.clone();
        async move { client.declare_queue(Queue::named("q")).await }
    });
    peer.expect(Op::DeclareQueue).await;
    let purging = tokio::spawn({
        let client = client.clone();
        async move { client.purge_queue("q").await }
    });
    peer.expect(Op::PurgeQueue).await;
    drop(peer);
    assert!(purging.await.unwrap().unwrap_err().outcome_unknown());
    let mut peer = network.fire_accept().await;
    peer.grant_as(Op::DeclareQueue, "q").await;
    assert_eq!(declaring.await.unwrap().unwrap().name, "q");
}

#[tokio::test(start_paused = true)]
async fn stale_deliveries_are_refused_here_and_say_nothing_there() {
    let (client, mut peer, network) = connect().await;
    let mut subscription = declare(&client, &mut peer).await;
    peer.deliver(1, 1..=3).await;
    let stale = subscription.next().await.unwrap().unwrap();
    assert!(!stale.is_stale());
    drop(peer);
    let mut peer = network.fire_accept().await;
    // One is held by the program, two are not read.
    assert_eq!(see_restored(&mut peer, "gen-2").await, 7);
    peer.deliver(1, 1..=1).await;
    let fresh = subscription.next().await.unwrap().unwrap();
    assert!(stale.is_stale() && !fresh.is_stale());
    assert_eq!(stale.ack(), Err(RequestError::StaleDelivery));
    assert_eq!(stale.nack(), Err(RequestError::AlreadySettled));
    fresh.ack().unwrap();
    let acked = loop {
        let sent = peer.next().await.unwrap();
        match sent.header() {
            // The stale ones make room.
            ToServer::Credit(Credit { sub: 1, .. }) => {}
            ToServer::Ack(ack) => break ack.tag,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(acked, 1);
    let _confirm = client.submit(message("next")).await.unwrap();
    peer.published().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_old_connection_still_holds_is_tried_again() {
    let (client, mut peer, network) = connect().await;
    let _subscription = declare(&client, &mut peer).await;
    drop(peer);
    let mut peer = network.fire_accept().await;
    peer.grant(Op::DeclareExchange).await;
    peer.refuse(Op::DeclareQueue, ReplyCode::ResourceLocked)
        .await;
    peer.grant_as(Op::DeclareQueue, "gen-2").await;
    peer.grant(Op::Bind).await;
    peer.grant(Op::Subscribe).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_would_miss_messages_ends() {
    let (client, mut peer, network) = connect().await;
    let mut subscription = declare(&client, &mut peer).await;
    drop(peer);
    let mut peer = network.fire_accept().await;
    peer.refuse(Op::DeclareExchange, ReplyCode::PreconditionFailed)
        .await;
    peer.grant_as(Op::DeclareQueue, "gen-2").await;
    peer.refuse(Op::Bind, ReplyCode::NotFound).await;
    match subscription.next().await {
        Some(Err(SubscriptionError::NotRestored { what, refusal })) => {
            assert_eq!(
                &*what,
                "the binding \"k\" of exchange \"e\" to queue \"gen-1\""
            );
            assert_eq!(refusal.code, ReplyCode::NotFound);
        }
        other => panic!("{other:?}"),
    }
    let _confirm = client.submit(message("the rest goes on")).await.unwrap();
    peer.published().await;
    assert!(client.complaint().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_reconnect_tells_everybody() {
    let (client, mut peer, _network): (_, _, Network) =
        connect_with(builder().reconnect(ReconnectPolicy::never())).await;
    let mut subscription = declare(&client, &mut peer).await;
    let confirm = client.submit(message("lost")).await.unwrap();
    peer.published().await;
    drop(peer);
    assert!(confirm.await.unwrap_err().outcome_unknown());
    assert!(matches!(
        subscription.next().await,
        Some(Err(SubscriptionError::ConnectionLost { .. }))
    ));
    let error = client.publish(message("late")).await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_left() {
    use tanda_wire::firemq::session::Welcome;
    let (network, dial) = Network::new();
    let mut peer = network.fire_peer();
    let answering = async {
        let mut preamble = [0; 4];
        tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut preamble)
            .await
            .unwrap();
        let sent = peer.expect(Op::Hello).await;
        assert!(matches!(sent.header(), ToServer::Hello(hello) if hello.heartbeat == 4));
        let welcome = Welcome {
            ver: 1,
            max_frame: 1_000,
            heartbeat: 4,
            ..Welcome::default()
        };
        peer.send(&welcome).await;
    };
    let connecting = builder().heartbeat_s(4).connect_through(dial);
    let (client, ()) = tokio::join!(connecting, answering);
    let client = client.unwrap();
    for _ in 0..3 {
        peer.expect(Op::Ping).await;
    }
    assert!(peer.next().await.is_none(), "8 s without a word");
    let mut peer = network.fire_accept().await;
    let _confirm = client.submit(message("next")).await.unwrap();
    peer.published().await;
}
