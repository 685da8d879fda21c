//! The Rust client's FireMQ against the binary, and what it makes of a broker that dies.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tanda_client::fire::{
    Binding, Delivery, Exchange, ExchangeKind, FireClient, Message, Published, Queue, ReplyCode,
    RequestError, Subscription, SubscriptionError,
};

/// A broker on a fixed port, so that it can come back there.
struct Broker {
    child: Child,
    data_dir: PathBuf,
    port: u16,
}

impl Broker {
    fn start(name: &str) -> Self {
        let folder = format!("tanda-fire-client-{}-{name}", std::process::id());
        let data_dir = std::env::temp_dir().join(folder);
        // A port that was free a moment ago.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let child = serve(&data_dir, port);
        Self {
            child,
            data_dir,
            port,
        }
    }

    /// SIGKILL, and another one on the same data.
    fn die_and_return(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = serve(&self.data_dir, self.port);
    }

    async fn client(&self) -> FireClient {
        let url = format!("fire://127.0.0.1:{}/", self.port);
        FireClient::connect(url).await.unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::fs::remove_dir_all(&self.data_dir).unwrap();
    }
}

/// Starts one and waits until it is ready.
fn serve(data_dir: &Path, port: u16) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tanda"))
        .args([
            "serve",
            "--no-http",
            "--no-amaquet",
            "--fila",
            "127.0.0.1:0",
        ])
        .args(["--amqp", "127.0.0.1:0", "--firemq"])
        .arg(format!("127.0.0.1:{port}"))
        .args(["--log-level", "error", "--data-dir"])
        .arg(data_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ready in ") {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "serve has ended");
    }
    child
}

async fn next(subscription: &mut Subscription) -> Delivery {
    let next = tokio::time::timeout(Duration::from_secs(30), subscription.next());
    next.await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn publish_confirm_consume() {
    let broker = Broker::start("consume");
    let client = broker.client().await;
    client
        .declare_exchange(Exchange::new("events", ExchangeKind::Topic).durable())
        .await
        .unwrap();
    let queue = client.declare_queue(Queue::named("q").durable()).await;
    assert_eq!(queue.unwrap().name, "q");
    client
        .bind(Binding::to_queue("events", "q").key("order.*"))
        .await
        .unwrap();

    let message = Message::to("events", "order.new")
        .persistent()
        .content_type("text/plain")
        .header("n", 7_u32);
    let mut confirms = Vec::new();
    for number in 0..1_000 {
        let message = message.clone().body(format!("{number}"));
        confirms.push(client.submit(message).await.unwrap());
    }
    for confirm in confirms {
        assert_eq!(confirm.await, Ok(Published::Taken));
    }
    let lost = Message::to("events", "nobody").mandatory().body("back");
    let published = client.publish(lost).await.unwrap();
    let returned = published.returned().unwrap();
    assert_eq!(returned.code, ReplyCode::NoRoute);
    assert_eq!(returned.content.body(), b"back");

    let mut subscription = client.subscribe("q").prefetch(10).open().await.unwrap();
    for number in 0..1_000 {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.body(), number.to_string().as_bytes());
        assert_eq!(delivery.properties().content_type, "text/plain");
        assert_eq!(delivery.header("n"), Some(7_u32.into()));
        match number {
            999 => delivery.nack().unwrap(),
            _ => delivery.ack().unwrap(),
        }
    }
    let again = next(&mut subscription).await;
    assert!(again.redelivered());
    assert_eq!(again.body(), b"999");
    drop(again);
    subscription.unsubscribe().await;

    let error = client.check_queue("none").await.unwrap_err();
    assert_eq!(error.code(), Some(ReplyCode::NotFound));
    client
        .post(Message::to_queue("q").body("posted"))
        .await
        .unwrap();
    let got = client.get("q").await.unwrap().unwrap();
    assert_eq!(got.body(), b"posted");
    got.ack().unwrap();
    assert!(client.get("q").await.unwrap().is_none());
    client.close().await;
}

#[tokio::test]
async fn a_deleted_queue_cancels_its_subscription() {
    let broker = Broker::start("cancel");
    let client = broker.client().await;
    client.declare_queue(Queue::named("q")).await.unwrap();
    let mut subscription = client.subscribe("q").open().await.unwrap();
    let other = broker.client().await;
    other.delete_queue("q").await.unwrap();
    assert!(matches!(
        subscription.next().await,
        Some(Err(SubscriptionError::Cancelled(_)))
    ));
    assert!(subscription.next().await.is_none());
}

#[tokio::test]
async fn a_killed_broker_comes_back_with_all_that_was_declared() {
    let mut broker = Broker::start("killed");
    let client = broker.client().await;
    let exchange = Exchange::new("transient", ExchangeKind::Fanout);
    client.declare_exchange(exchange).await.unwrap();
    client
        .declare_queue(Queue::named("kept").durable())
        .await
        .unwrap();
    let own = client
        .declare_queue(Queue::server_named().exclusive())
        .await
        .unwrap()
        .name;
    for queue in ["kept", own.as_str()] {
        client
            .bind(Binding::to_queue("transient", queue))
            .await
            .unwrap();
    }
    let mut own_messages = client.subscribe(own.as_str()).open().await.unwrap();
    let message = |body: String| Message::to("transient", "").persistent().body(body);
    let confirmed = client.publish(message("before".to_owned())).await;
    assert_eq!(confirmed, Ok(Published::Taken));
    let stale = next(&mut own_messages).await;

    broker.die_and_return();
    // The loss may be seen at this publish, whose outcome is then unknown; the next one waits.
    let mut taken = BTreeSet::from(["before".to_owned()]);
    while taken.len() < 3 {
        let body = format!("after {}", taken.len());
        match client.publish(message(body.clone())).await {
            Ok(_) => {
                taken.insert(body);
            }
            Err(error) => assert!(error.retryable(), "{error}"),
        }
    }
    // The exclusive queue was declared, bound and subscribed to again, under another name.
    let delivery = next(&mut own_messages).await;
    assert!(delivery.body().starts_with(b"after "));
    delivery.ack().unwrap();
    assert_eq!(stale.ack(), Err(RequestError::StaleDelivery));
    assert_ne!(client.current_queue_name(&own), own);
    assert_eq!(client.check_queue(own.as_str()).await.unwrap().consumers, 1);

    // What was confirmed before is there, and the binding brought the rest.
    let mut kept = client.subscribe("kept").open().await.unwrap();
    while !taken.is_empty() {
        let delivery = next(&mut kept).await;
        taken.remove(std::str::from_utf8(delivery.body()).unwrap());
        delivery.ack().unwrap();
    }
    client.close().await;
}
