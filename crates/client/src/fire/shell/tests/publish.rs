//! Messages in: confirms, returns, pauses and bounds.

use std::time::Duration;

use tanda_wire::firemq::publish::{Confirm, Publish, Returned};
use tanda_wire::firemq::reply::ErrorReply;
use tanda_wire::firemq::session::Flow;
use tanda_wire::firemq::{Op, ReplyCode, Value};

use super::{builder, connect, connect_with, message};
use crate::fire::{Fields, Message, Published, RequestError};

#[tokio::test(start_paused = true)]
async fn many_are_under_way_and_confirmed_together() {
    let (client, mut peer, _network) = connect().await;
    let mut confirms = Vec::new();
    for body in ["1", "2", "3"] {
        confirms.push(client.submit(message(body)).await.unwrap());
    }
    for seq in 1..=3 {
        assert_eq!(
            peer.published().await,
            (seq, "k".to_owned(), seq.to_string())
        );
    }
    let full = Confirm::rejected(2, ReplyCode::ResourceError, "full");
    peer.send(&full).await;
    peer.confirm(3).await;
    let mut results = Vec::new();
    for confirm in confirms {
        results.push(confirm.await);
    }
    let error = results.remove(1).unwrap_err();
    assert_eq!(error.code(), Some(ReplyCode::ResourceError));
    assert_eq!(error.text(), "full");
    assert!(error.retryable());
    assert!(!error.outcome_unknown());
    assert_eq!(results, [Ok(Published::Taken), Ok(Published::Taken)]);
}

#[tokio::test(start_paused = true)]
async fn everything_of_a_message_is_sent() {
    let (client, mut peer, _network) = connect().await;
    let message = Message::to("e", "k")
        .persistent()
        .mandatory()
        .content_type("text/plain")
        .content_encoding("gzip")
        .correlation_id("c")
        .reply_to("r")
        .message_id("m")
        .kind("t")
        .user_id("guest")
        .app_id("a")
        .priority(7)
        .expires_after(Duration::from_millis(1_500))
        .timestamp(std::time::UNIX_EPOCH + Duration::from_secs(9))
        .headers(Fields::new().set("old", true))
        .header("old", 1_u32)
        .header("text", "v")
        .body("body");
    let _confirm = client.submit(message).await.unwrap();
    let sent = peer.expect(Op::Publish).await;
    let publish = Publish::decode(&sent.header).unwrap();
    assert_eq!((publish.exchange, publish.key), ("e", "k"));
    assert!(publish.persistent && publish.mandatory);
    let props = publish.props.fields();
    assert_eq!(
        (props.content_type, props.content_encoding, props.reply_to),
        ("text/plain", "gzip", "r")
    );
    assert_eq!(
        (props.correlation_id, props.message_id, props.kind),
        ("c", "m", "t")
    );
    assert_eq!((props.user_id, props.app_id), ("guest", "a"));
    assert_eq!(
        (props.priority, props.expiration_ms, props.timestamp_s),
        (7, 1_500, 9)
    );
    assert_eq!(publish.headers.len(), 2);
    assert_eq!(publish.headers.find("old"), Some(Value::Uint(1)));
    assert_eq!(publish.headers.find("text"), Some(Value::Str("v")));
    assert_eq!(sent.body, b"body");
}

#[tokio::test(start_paused = true)]
async fn a_mandatory_message_comes_back_with_its_result() {
    let (client, mut peer, _network) = connect().await;
    let confirm = client.submit(message("lonely").mandatory()).await.unwrap();
    peer.published().await;
    let returned = Returned {
        seq: 1,
        code: ReplyCode::NoRoute,
        msg: "nobody",
        exchange: "e",
        key: "k",
        ..Returned::default()
    };
    peer.send_with(&returned, b"lonely").await;
    peer.confirm(1).await;
    let published = confirm.await.unwrap();
    let back = published.returned().unwrap();
    assert_eq!((back.code, &*back.message), (ReplyCode::NoRoute, "nobody"));
    assert_eq!(back.content.body(), b"lonely");
}

#[tokio::test(start_paused = true)]
async fn a_post_asks_for_nothing_and_its_refusal_is_a_complaint() {
    let (client, mut peer, _network) = connect().await;
    client.post(message("quiet")).await.unwrap();
    assert_eq!(peer.published().await.0, 0);
    let error = ErrorReply {
        code: ReplyCode::NotFound,
        msg: "no exchange",
        ..ErrorReply::default()
    };
    peer.send(&error).await;
    // What comes later is seen later.
    let confirm = client.submit(message("next")).await.unwrap();
    assert_eq!(peer.published().await.0, 1);
    peer.confirm(1).await;
    assert_eq!(confirm.await, Ok(Published::Taken));
    let complaint = client.complaint().unwrap();
    assert_eq!(complaint.code, ReplyCode::NotFound);
    assert_eq!(client.complaint(), None);
    assert_eq!(
        client.post(message("x").mandatory()).await,
        Err(RequestError::MandatoryUnconfirmed)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_publishers_and_nothing_else() {
    let (client, mut peer, _network) = connect().await;
    peer.send(&Flow { pause: true }).await;
    // The pause has come when this is answered.
    let checking = tokio::spawn({
        let client = client.clone();
        async move { client.check_exchange("e").await }
    });
    peer.grant(Op::DeclareExchange).await;
    checking.await.unwrap().unwrap();

    let first = client.submit(message("first")).await.unwrap();
    let second = client.submit(message("second")).await.unwrap();
    let purging = tokio::spawn({
        let client = client.clone();
        async move { client.purge_queue("q").await }
    });
    peer.grant(Op::PurgeQueue).await;
    purging.await.unwrap().unwrap();
    peer.send(&Flow { pause: false }).await;
    assert_eq!(peer.published().await.2, "first");
    assert_eq!(peer.published().await.2, "second");
    peer.confirm(2).await;
    assert_eq!(first.await, Ok(Published::Taken));
    assert_eq!(second.await, Ok(Published::Taken));
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_the_window_holds() {
    let (client, mut peer, _network) = connect_with(builder().publishes_max(2)).await;
    let _first = client.submit(message("1")).await.unwrap();
    let _second = client.submit(message("2")).await.unwrap();
    let third = client.submit(message("3"));
    let mut third = std::pin::pin!(third);
    let waits = tokio::time::timeout(Duration::from_secs(60), third.as_mut()).await;
    assert!(waits.is_err(), "two are under way");
    peer.published().await;
    peer.published().await;
    peer.confirm(1).await;
    let third = third.await.unwrap();
    assert_eq!(peer.published().await.2, "3");
    peer.confirm(3).await;
    assert_eq!(third.await, Ok(Published::Taken));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_the_server_is_not_sent() {
    let (client, mut peer, _network) = connect().await;
    let large = Message::to("e", "k").body(vec![0; 100_000]);
    let error = client.publish(large.clone()).await.unwrap_err();
    assert!(matches!(error, RequestError::TooLarge(_)), "{error}");
    assert!(!error.retryable());
    client.post(large).await.unwrap();
    let _confirm = client.submit(message("small")).await.unwrap();
    assert_eq!(
        peer.published().await,
        (1, "k".to_owned(), "small".to_owned())
    );
    assert!(client.complaint().is_some());
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_confirms() {
    let (client, mut peer, _network) = connect().await;
    let confirm = client.submit(message("last")).await.unwrap();
    let closing = tokio::spawn(client.clone().close());
    peer.published().await;
    peer.confirm(1).await;
    peer.see_close().await;
    closing.await.unwrap();
    assert_eq!(confirm.await, Ok(Published::Taken));
    let error = client.publish(message("late")).await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error}");
}
