//! Messages out: credit, settlement, and the end of subscriptions.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "frames that are not named fail the test"
)]

use tanda_wire::firemq::consume::{Ack, Cancelled, Credit, GetOk, Nack};
use tanda_wire::firemq::message::ToServer;
use tanda_wire::firemq::reply::OkReply;
use tanda_wire::firemq::{Op, ReplyCode};

use super::{Peer, connect};
use crate::fire::{Delivery, Fields, FireClient, RequestError, Subscription, SubscriptionError};

/// A subscription with this prefetch, and its number.
async fn subscribe(client: &FireClient, peer: &mut Peer, prefetch: u32) -> (Subscription, u64) {
    let opening = tokio::spawn(client.subscribe("q").prefetch(prefetch).open());
    let (sub, credit) = peer.subscribed().await;
    assert_eq!(credit, u64::from(prefetch));
    (opening.await.unwrap().unwrap(), sub)
}

async fn take(subscription: &mut Subscription, count: usize) -> Vec<Delivery> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(subscription.next().await.unwrap().unwrap());
    }
    taken
}

fn ack(tag: u64, multiple: bool) -> ToServer<'static> {
    ToServer::Ack(Ack { tag, multiple })
}

fn nack(tag: u64, multiple: bool, requeue: bool) -> ToServer<'static> {
    ToServer::Nack(Nack {
        tag,
        multiple,
        requeue,
    })
}

#[tokio::test(start_paused = true)]
async fn credit_is_topped_up_by_halves() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, sub) = subscribe(&client, &mut peer, 4).await;
    peer.deliver(sub, 1..=4).await;
    let taken = take(&mut subscription, 4).await;
    taken[0].ack().unwrap();
    taken[1].ack().unwrap();
    assert_eq!(peer.expect(Op::Ack).await.header(), ack(1, false));
    assert_eq!(peer.expect(Op::Ack).await.header(), ack(2, false));
    let credit = Credit { sub, credit: 2 };
    assert_eq!(
        peer.expect(Op::Credit).await.header(),
        ToServer::Credit(credit)
    );
}

#[tokio::test(start_paused = true)]
async fn settlements_of_all_kinds() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, sub) = subscribe(&client, &mut peer, 100).await;
    peer.deliver(sub, 1..=7).await;
    let taken = take(&mut subscription, 7).await;
    assert_eq!((taken[0].key(), taken[0].body()), ("k", &b"1"[..]));
    taken[0].nack().unwrap();
    taken[1].reject().unwrap();
    taken[3].ack_all().unwrap();
    assert_eq!(taken[2].ack(), Err(RequestError::AlreadySettled));
    assert_eq!(taken[0].ack(), Err(RequestError::AlreadySettled));
    taken[5].nack_all().unwrap();
    assert_eq!(taken[4].nack(), Err(RequestError::AlreadySettled));
    taken[6].ack().unwrap();
    for expected in [
        nack(1, false, true),
        nack(2, false, false),
        ack(4, true),
        nack(6, true, true),
        ack(7, false),
    ] {
        let sent = peer.next().await.unwrap();
        assert_eq!(sent.header(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_read_goes_back() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, sub) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(sub, 1..=3).await;
    let taken = take(&mut subscription, 1).await;
    // The others have come when the later answer has.
    let checking = tokio::spawn(async move { client.check_exchange("e").await });
    peer.grant(Op::DeclareExchange).await;
    checking.await.unwrap().unwrap();
    let ending = tokio::spawn(subscription.unsubscribe());
    let mut requeued = Vec::new();
    let rid = loop {
        let sent = peer.next().await.unwrap();
        match sent.header() {
            ToServer::Nack(nack) => requeued.push(nack.tag),
            ToServer::Unsubscribe(it) => break it.rid,
            other => panic!("{other:?}"),
        }
    };
    // One that was on its way goes back too.
    peer.deliver(sub, 4..=4).await;
    while requeued.len() < 3 {
        let sent = peer.expect(Op::Nack).await;
        requeued.extend(tanda_wire::firemq::peek_uint(&sent.header, "tag"));
    }
    requeued.sort_unstable();
    assert_eq!(requeued, [2, 3, 4]);
    assert!(!ending.is_finished());
    peer.send(&OkReply {
        rid,
        ..OkReply::default()
    })
    .await;
    ending.await.unwrap();
    taken[0].ack().unwrap();
    assert_eq!(peer.expect(Op::Ack).await.header(), ack(1, false));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_subscription_ends_with_the_reason() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, sub) = subscribe(&client, &mut peer, 10).await;
    peer.deliver(sub, 1..=1).await;
    let cancelled = Cancelled {
        sub,
        code: ReplyCode::NotFound,
        msg: "queue deleted",
    };
    peer.send(&cancelled).await;
    assert_eq!(subscription.next().await.unwrap().unwrap().body(), b"1");
    match subscription.next().await {
        Some(Err(SubscriptionError::Cancelled(refusal))) => {
            assert_eq!(refusal.to_string(), "404 not-found: queue deleted");
        }
        other => panic!("{other:?}"),
    }
    assert!(subscription.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_credit_is_not_buffered() {
    let (client, mut peer, _network) = connect().await;
    let (mut subscription, sub) = subscribe(&client, &mut peer, 2).await;
    peer.deliver(sub, 1..=3).await;
    drop(take(&mut subscription, 2).await);
    assert!(matches!(
        subscription.next().await,
        Some(Err(SubscriptionError::TooManyDelivered))
    ));
    loop {
        let sent = peer.next().await.unwrap();
        if sent.op == Op::Unsubscribe {
            break;
        }
        assert_eq!(sent.op, Op::Credit);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_says_all_that_was_said() {
    let (client, mut peer, _network) = connect().await;
    let opening = client
        .subscribe("q")
        .no_ack()
        .exclusive()
        .tag("me")
        .arguments(Fields::new().set("x-priority", 3_u32))
        .prefetch(50)
        .messages_max(7);
    let opening = tokio::spawn(opening.open());
    let sent = peer.grant(Op::Subscribe).await;
    let ToServer::Subscribe(subscribe) = sent.header() else {
        panic!("{sent:?}")
    };
    assert_eq!((subscribe.queue, subscribe.tag), ("q", "me"));
    assert_eq!((subscribe.credit, subscribe.args.len()), (7, 1));
    assert!(subscribe.no_ack && subscribe.exclusive);
    let sub = subscribe.sub;
    let mut subscription = opening.await.unwrap().unwrap();
    peer.deliver(sub, 1..=1).await;
    let delivery = subscription.next().await.unwrap().unwrap();
    assert_eq!(delivery.ack(), Err(RequestError::AlreadySettled));
}

#[tokio::test(start_paused = true)]
async fn one_message_is_taken_at_a_time() {
    let (client, mut peer, _network) = connect().await;
    let asking = tokio::spawn({
        let client = client.clone();
        async move { (client.get("q").await, client.get("q").await) }
    });
    let sent = peer.expect(Op::Get).await;
    let got = GetOk {
        rid: sent.rid(),
        tag: 5,
        key: "k",
        remaining: 1,
        ..GetOk::default()
    };
    peer.send_with(&got, b"body").await;
    let sent = peer.expect(Op::Get).await;
    let empty = OkReply {
        rid: sent.rid(),
        empty: true,
        ..OkReply::default()
    };
    peer.send(&empty).await;
    let (first, second) = asking.await.unwrap();
    let delivery = first.unwrap().unwrap();
    assert!(second.unwrap().is_none());
    assert_eq!(delivery.body(), b"body");
    delivery.ack().unwrap();
    assert_eq!(peer.expect(Op::Ack).await.header(), ack(5, false));
}
