//! Subscriptions: events, losses, replacement and reconnects.

use super::*;
use crate::amaquet::subscription::Subscription;
use crate::amaquet::{Link, SubscriptionError};

const MADE: &str = r#"{"key":"bus","channel":"a.*"}"#;

async fn subscribed(client: &AmaquetClient, peer: &mut Peer, room: u32) -> (Subscription, u64) {
    let (subscription, id) = tokio::join!(client.subscribe_with("bus", "a.*", room), async {
        let sent = peer.expect(Opcode::Subscribe).await;
        let expected = format!(r#"{{"key":"bus","channel":"a.*","buffer":{room}}}"#);
        assert_eq!(sent.payload, expected);
        peer.answer(&sent, MADE).await;
        sent.id
    });
    (subscription.unwrap(), id)
}

impl Peer {
    async fn tell(&mut self, id: u64, channel: &str, dropped: u64) {
        let payload = r#""payload":{"type":"text","data":"x"}"#;
        let times = format!(r#""published_at":"2026-11-30T12:00:00Z","dropped":{dropped}"#);
        let payload = format!(r#"{{"key":"bus","channel":"{channel}",{payload},{times}}}"#);
        self.send(Header::event(id), &payload).await;
    }

    /// Waits until the client has read everything sent before.
    async fn settle(&mut self, client: &AmaquetClient) {
        let (pong, ()) = tokio::join!(client.ping(), async {
            let ping = self.expect(Opcode::Command).await;
            self.answer(&ping, r#"{"pong":true}"#).await;
        });
        pong.unwrap();
    }
}

#[tokio::test]
async fn events_come_with_what_was_dropped_there_and_here() {
    let (client, mut peer, _network) = connected().await;
    let (mut events, id) = subscribed(&client, &mut peer, 2).await;
    for (channel, dropped) in [("a.1", 0), ("a.2", 3), ("a.3", 0), ("a.4", 5)] {
        peer.tell(id, channel, dropped).await;
    }
    peer.settle(&client).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let event = events.next().await.unwrap().unwrap();
        seen.push((event.channel, event.dropped));
    }
    peer.tell(id, "a.5", 1).await;
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.payload.as_str(), Some("x"));
    seen.push((event.channel, event.dropped));
    // Two found no room here; five and one found none in the server.
    let expected = [("a.1", 0), ("a.2", 3), ("a.5", 8)];
    assert_eq!(seen, expected.map(|(channel, n)| (channel.to_owned(), n)));

    drop(events);
    let left = peer.expect(Opcode::Unsubscribe).await;
    assert_eq!(left.payload, r#"{"key":"bus","channel":"a.*"}"#);
}

#[tokio::test]
async fn the_same_place_again_replaces_the_first_one() {
    let (client, mut peer, _network) = connected().await;
    let (mut first, _) = subscribed(&client, &mut peer, 1).await;
    let (mut second, id) = subscribed(&client, &mut peer, 1).await;
    assert_eq!(first.next().await, Some(Err(SubscriptionError::Replaced)));
    assert_eq!(first.next().await, None);
    drop(first);
    peer.tell(id, "a.1", 0).await;
    assert_eq!(second.next().await.unwrap().unwrap().channel, "a.1");
    // Dropping the replaced one did not end the other.
    peer.settle(&client).await;
}

#[tokio::test]
async fn a_refused_subscription_is_none() {
    let (client, mut peer, _network) = connected().await;
    let (error, ()) = tokio::join!(client.subscribe("bus", "a"), async {
        let sent = peer.expect(Opcode::Subscribe).await;
        peer.refuse(&sent, ErrorCode::WrongType).await;
    });
    assert_eq!(error.unwrap_err().code(), Some(ErrorCode::WrongType));
    peer.settle(&client).await;
}

#[tokio::test]
async fn the_server_may_end_one() {
    let (client, mut peer, _network) = connected().await;
    let (mut events, id) = subscribed(&client, &mut peer, 1).await;
    peer.tell(id, "a.1", 0).await;
    let made = Sent {
        opcode: Opcode::Subscribe,
        id,
        payload: String::new(),
    };
    peer.refuse(&made, ErrorCode::NotFound).await;
    assert_eq!(events.next().await.unwrap().unwrap().channel, "a.1");
    let end = events.next().await.unwrap().unwrap_err();
    assert!(
        matches!(&end, SubscriptionError::Ended(it) if it.code == "NOT_FOUND"),
        "{end}"
    );
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn it_is_made_again_after_a_loss() {
    let (client, mut peer, network) = connected_with(eager()).await;
    let (mut events, _) = subscribed(&client, &mut peer, 4).await;
    let mut link = client.watch();
    drop(peer);
    assert!(matches!(link.changed().await, Some(Link::Lost { .. })));
    let mut next = Peer::new(network.accept());
    next.greet().await;
    let again = next.expect(Opcode::Subscribe).await;
    next.answer(&again, MADE).await;
    assert_eq!(link.changed().await, Some(Link::Up));
    next.tell(again.id, "a.1", 0).await;
    next.tell(again.id, "a.2", 0).await;
    assert!(events.next().await.unwrap().unwrap().after_reconnect);
    assert!(!events.next().await.unwrap().unwrap().after_reconnect);
    client.close().await;
    assert_eq!(events.next().await, None);
    assert!(matches!(link.changed().await, Some(Link::Ended { .. })));
    assert_eq!(link.changed().await, None);
}
