//! The Rust client's Amaquet against the binary: every family by its types, and a broker that dies.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tanda_client::amaquet::{
    AmaquetClient, Command, ErrorCode, Link, Payload, PushMessage, Pushed, QueueOptions,
    RequestError, SetCondition, Side,
};
use tanda_client::{Dial, ReconnectPolicy};
use tokio::net::TcpStream;

use crate::broker::Broker;

const SOON: Duration = Duration::from_secs(20);
const MINUTE: Duration = Duration::from_secs(60);

async fn connected(broker: &Broker) -> AmaquetClient {
    AmaquetClient::connect(broker.door("amaquet"))
        .await
        .unwrap()
}

fn code<T>(result: Result<T, RequestError>) -> Option<ErrorCode> {
    result.err().and_then(|error| error.code())
}

fn text(text: &str) -> Payload {
    Payload::text(text)
}

#[tokio::test]
async fn values_and_counters() {
    let broker = Broker::start();
    let client = connected(&broker).await;
    let values = client.values();
    let first = values.set("v", "a").await.unwrap();
    let got = values.get("v").await.unwrap().unwrap();
    assert_eq!((got.value, got.version), (text("a"), first));
    let taken = values.set_if("v", "b", SetCondition::IfAbsent).await;
    assert_eq!(code(taken), Some(ErrorCode::Exists));
    let condition = SetCondition::IfVersion(first);
    let second = values
        .set_if("v", vec![0_u8, 255], condition)
        .await
        .unwrap();
    assert!(second > first);
    let stale = values.set_if("v", "c", condition).await;
    assert_eq!(code(stale), Some(ErrorCode::Conflict));
    let swapped = values.swap("v", Payload::json("[1.50]").unwrap()).await;
    let (previous, third) = swapped.unwrap();
    assert_eq!(previous, Some(Payload::bytes(vec![0_u8, 255])));
    let many = values.get_many(&["v", "none"]).await.unwrap();
    assert_eq!(many.len(), 2);
    let found = many.first().unwrap().clone().unwrap();
    assert_eq!(found.value.as_str(), Some("[1.50]"));
    assert_eq!((found.version, many.last()), (third, Some(&None)));
    assert_eq!(values.swap("new", "x").await.unwrap().0, None);
    let stale = values.delete_version("v", first).await;
    assert_eq!(code(stale), Some(ErrorCode::Conflict));
    assert_eq!(values.delete("v").await, Ok(true));
    assert_eq!(values.delete("v").await, Ok(false));
    assert_eq!(values.get("v").await, Ok(None));

    let counters = client.counters();
    assert_eq!(counters.get("n").await, Ok(None));
    assert_eq!(counters.expiring_after(MINUTE).add("n", 5).await, Ok(5));
    let left = client.keys().ttl("n").await.unwrap().unwrap();
    assert!(left <= MINUTE && left > Duration::ZERO);
    counters.set("n", i64::MAX).await.unwrap();
    assert_eq!(code(counters.add("n", 1).await), Some(ErrorCode::Conflict));
    assert_eq!(counters.get("n").await, Ok(Some(i64::MAX)));
    assert_eq!(code(values.get("n").await), Some(ErrorCode::WrongType));
    client.close().await;
}

#[tokio::test]
async fn collections() {
    let broker = Broker::start();
    let client = connected(&broker).await;
    let maps = client.maps();
    assert_eq!(maps.set("m", "a", "x").await, Ok(true));
    assert_eq!(maps.add("m", "n", -3).await, Ok(-3));
    assert_eq!(maps.get("m", "a").await, Ok(Some(text("x"))));
    assert_eq!(maps.get("m", "b").await, Ok(None));
    let all = maps.all("m").await.unwrap();
    assert_eq!(all.get("n"), Some(&Payload::json("-3").unwrap()));
    assert_eq!(maps.remove("m", "n").await, Ok(true));
    assert_eq!(maps.length("m").await, Ok(1));
    assert_eq!(maps.length("none").await, Ok(0));

    let sets = client.sets();
    assert_eq!(sets.add("s", &["b", "a", "b"]).await, Ok(2));
    assert_eq!(sets.members("s").await.unwrap(), ["a", "b"]);
    assert_eq!(sets.contains("s", "a").await, Ok(true));
    assert_eq!(sets.remove("s", &["a", "x"]).await, Ok(1));
    assert_eq!(sets.length("s").await, Ok(1));
    assert_eq!(sets.contains("none", "a").await, Ok(false));

    let rankings = client.rankings();
    for (member, score) in [("a", 1.0), ("b", 2.5), ("c", -1e300)] {
        assert_eq!(rankings.add("r", member, score).await, Ok(true));
    }
    let top = rankings.top("r", 2).await.unwrap();
    let top: Vec<_> = top
        .iter()
        .map(|it| (it.member.as_str(), it.score))
        .collect();
    assert_eq!(top, [("b", 2.5), ("a", 1.0)]);
    assert_eq!(rankings.range("r", 0, 0).await.unwrap().len(), 1);
    assert_eq!(rankings.by_score("r", 1.0, 3.0).await.unwrap().len(), 2);
    assert_eq!(rankings.rank("r", "c").await, Ok(Some(0)));
    assert_eq!(rankings.rank_from_top("r", "c").await, Ok(Some(2)));
    assert_eq!(rankings.score("r", "x").await, Ok(None));
    assert_eq!(rankings.remove("r", "c").await, Ok(true));
    assert_eq!(rankings.length("r").await, Ok(2));
}

#[tokio::test]
async fn lists_and_locks_wait_and_give_back() {
    let broker = Broker::start();
    let client = connected(&broker).await;
    let lists = client.lists();
    assert_eq!(lists.push("l", vec![text("a"), text("b")]).await, Ok(2));
    assert_eq!(
        lists.push_at(Side::Front, "l", vec![text("z")]).await,
        Ok(3)
    );
    assert_eq!(lists.range("l", 0, 0).await.unwrap(), [text("z")]);
    assert_eq!(lists.pop("l").await, Ok(Some(text("z"))));
    let last = lists.pop_at(Side::Back, "l", Duration::ZERO).await;
    assert_eq!(last, Ok(Some(text("b"))));
    assert_eq!(lists.trim("l", 1, -1).await, Ok(0));
    assert_eq!(lists.pop("l").await, Ok(None));
    assert_eq!(
        lists.pop_wait("l", Duration::from_millis(5)).await,
        Ok(None)
    );
    // A wait that is dropped takes nothing.
    let short = tokio::time::timeout(Duration::from_millis(30), lists.pop_wait("l", MINUTE));
    assert!(short.await.is_err());
    assert_eq!(lists.push("l", vec![text("kept")]).await, Ok(1));
    assert_eq!(lists.length("l").await, Ok(1));
    // Others are served while one waits.
    let (popped, ()) = tokio::join!(lists.pop_wait("w", SOON), async {
        client.ping().await.unwrap();
        lists.push("w", vec![text("x")]).await.unwrap();
    });
    assert_eq!(popped, Ok(Some(text("x"))));

    let locks = client.locks();
    let held = locks.acquire("lock", MINUTE).await.unwrap();
    assert_eq!(
        code(locks.acquire("lock", MINUTE).await),
        Some(ErrorCode::Conflict)
    );
    let short = locks.acquire_wait("lock", MINUTE, Duration::from_millis(5));
    assert_eq!(code(short.await), Some(ErrorCode::Timeout));
    assert!(locks.renew("lock", held.token, 2 * MINUTE).await.unwrap() > held.expires_at_ms);
    let (next, ()) = tokio::join!(locks.acquire_wait("lock", MINUTE, SOON), async {
        client.ping().await.unwrap();
        locks.release("lock", held.token).await.unwrap();
    });
    assert!(next.unwrap().token > held.token);
    let stale = locks.release("lock", held.token).await;
    assert_eq!(code(stale), Some(ErrorCode::Conflict));

    let keys = client.keys();
    assert_eq!(keys.kind("l").await.unwrap().as_deref(), Some("list"));
    assert_eq!(keys.ttl("l").await, Ok(None));
    assert!(keys.expire("l", MINUTE).await.unwrap() > held.expires_at_ms - 60_000);
    assert_eq!(keys.persist("l").await, Ok(true));
    keys.rename("l", "l2").await.unwrap();
    let scanned = keys.scan("l*", None).await.unwrap();
    assert_eq!((scanned.keys.len(), scanned.cursor), (2, None));
    assert_eq!(keys.delete("l2").await, Ok(true));
    assert_eq!(keys.exists("l2").await, Ok(false));
}

#[tokio::test]
async fn queues() {
    let broker = Broker::start();
    let client = connected(&broker).await;
    let queues = client.queues();
    let options = QueueOptions {
        attempts_max: Some(1),
        ..QueueOptions::default()
    };
    queues.create("q", &options).await.unwrap();
    assert_eq!(
        code(queues.create("q", &options).await),
        Some(ErrorCode::Exists)
    );
    let message = PushMessage::new("a").header("h", "v").fairness_key("f");
    let messages = [
        message.idempotency_key("i"),
        PushMessage::new("b").idempotency_key("i"),
        PushMessage::new("c").weight(2).delay(MINUTE),
    ];
    let pushed = queues.push("q", &messages).await.unwrap();
    assert!(
        matches!(
            pushed.as_slice(),
            [Pushed::Added { id }, Pushed::Duplicate { id: same }, Pushed::Added { .. }]
                if id == same
        ),
        "{pushed:?}"
    );
    assert_eq!(queues.peek("q", 5).await.unwrap().len(), 1);
    let counts = queues.counts("q").await.unwrap();
    assert_eq!((counts.depth, counts.delayed, counts.in_flight), (2, 1, 0));
    let popped = queues.pop("q", 5, SOON).await.unwrap();
    let message = popped.first().unwrap();
    assert_eq!((&message.payload, message.attempts), (&text("a"), 1));
    assert_eq!(message.headers.get("h").map(String::as_str), Some("v"));
    let id = message.id.as_str();
    let extended = queues.extend("q", &[id], MINUTE).await.unwrap();
    assert_eq!(extended.first().unwrap().error, None);
    let nacked = queues.nack("q", &[id], "no").await.unwrap();
    assert_eq!(nacked.first().unwrap().error, None);
    let strange = queues.ack("q", &[id]).await.unwrap();
    assert!(strange.first().unwrap().error.is_some(), "{strange:?}");
    let dead = queues.pop("q.dlq", 1, SOON).await.unwrap();
    let id = dead.first().unwrap().id.as_str();
    assert_eq!(queues.ack("q.dlq", &[id]).await.unwrap().len(), 1);
    assert_eq!(queues.redrive("q.dlq", 0).await, Ok(0));
    assert_eq!(queues.pop("q", 1, Duration::ZERO).await, Ok(Vec::new()));
    assert_eq!(queues.delete("q").await, Ok(true));
    assert_eq!(
        code(queues.pop("q", 1, SOON).await),
        Some(ErrorCode::NotFound)
    );
}

/// Where the broker is now.
struct Moving(Arc<Mutex<String>>);

impl Dial for Moving {
    type Stream = TcpStream;

    async fn dial(&mut self) -> io::Result<TcpStream> {
        let address = self.0.lock().unwrap().clone();
        TcpStream::connect(address).await
    }
}

#[tokio::test]
async fn what_was_answered_outlives_the_broker_and_subscriptions_come_back() {
    let mut broker = Broker::start();
    let place = Arc::new(Mutex::new(broker.door("amaquet")));
    let policy = ReconnectPolicy::default().delays(Duration::from_millis(20), SOON);
    let client = AmaquetClient::builder()
        .reconnect(policy.request_wait(MINUTE))
        .connect_through(Moving(Arc::clone(&place)))
        .await
        .unwrap();
    let node = client.server().unwrap().public_key;
    let mut events = client.subscribe("bus", "a.*").await.unwrap();
    assert_eq!(client.publish("bus", "a.b", "one").await, Ok(1));
    assert_eq!(client.channels("bus").await.unwrap(), ["a.*"]);
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(
        (event.channel.as_str(), event.payload),
        ("a.b", text("one"))
    );
    assert!(!event.after_reconnect && event.dropped == 0);

    client.values().set("kept", "x").await.unwrap();
    client.lists().push("l", vec![text("a")]).await.unwrap();
    let token = client.locks().acquire("lock", MINUTE).await.unwrap().token;
    let mut link = client.watch();
    broker.kill_and_restart();
    assert!(matches!(link.changed().await, Some(Link::Lost { .. })));
    *place.lock().unwrap() = broker.door("amaquet");
    assert_eq!(link.changed().await, Some(Link::Up));
    let hello = client.server().unwrap();
    assert_eq!(hello.public_key, node, "it is the same node");
    let kept = client.values().get("kept").await.unwrap().unwrap();
    assert_eq!(kept.value, text("x"));
    assert_eq!(client.lists().pop("l").await, Ok(Some(text("a"))));
    client.locks().release("lock", token).await.unwrap();
    let later = client.locks().acquire("lock", MINUTE).await.unwrap().token;
    assert!(later > token);
    while client.publish("bus", "a.c", "two").await.unwrap() == 0 {}
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event.channel, "a.c");
    assert!(event.after_reconnect);
    drop(events);
    while !client.channels("bus").await.unwrap().is_empty() {}
    let info = client.run(Command::new("server.info")).await.unwrap();
    assert!(info.u64("keys").unwrap() >= 2);
}
