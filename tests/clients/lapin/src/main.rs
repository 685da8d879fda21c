//! What lapin sees of the broker: `lapin-checks PORT CHECK`.
//!
//! Each check uses queues of its own, and panics when it fails.

use std::time::Duration;

use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ExchangeKind,
    message::BasicGetMessage,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions,
        BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
        QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable, ShortString},
};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(20);

struct Client {
    connection: Connection,
    channel: Channel,
}

impl Client {
    async fn connect(port: &str) -> Self {
        let url = format!("amqp://guest:guest@127.0.0.1:{port}/%2f");
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(&url, properties).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        Self {
            connection,
            channel,
        }
    }

    async fn queue(&self, name: &str, arguments: &[(&str, AMQPValue)]) {
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        self.channel
            .queue_declare(name.into(), options, table(arguments))
            .await
            .unwrap();
    }

    /// Publishes and waits for the confirm; false when the message came back.
    async fn publish(&self, exchange: &str, key: &str, body: &[u8], priority: u8) -> bool {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_priority(priority)
            .with_headers(table(&[("n", AMQPValue::LongInt(1))]));
        let confirm = self
            .channel
            .basic_publish(exchange.into(), key.into(), options, body, properties)
            .await
            .unwrap();
        let confirmation = confirm.await.unwrap();
        assert!(confirmation.is_ack());
        confirmation.take_message().is_none()
    }

    async fn get(&self, queue: &str) -> Option<BasicGetMessage> {
        self.channel
            .basic_get(queue.into(), BasicGetOptions::default())
            .await
            .unwrap()
    }

    async fn soon(&self, queue: &str) -> BasicGetMessage {
        let found = async {
            loop {
                if let Some(message) = self.get(queue).await {
                    return message;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, found).await.expect("nothing came")
    }

    async fn drain(&self, queue: &str) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        while let Some(message) = self.get(queue).await {
            message.ack(BasicAckOptions::default()).await.unwrap();
            bodies.push(message.delivery.data.to_vec());
        }
        bodies
    }

    async fn consume(&self, queue: &str, prefetch: u16) -> Consumer {
        self.channel
            .basic_qos(prefetch, BasicQosOptions::default())
            .await
            .unwrap();
        let options = BasicConsumeOptions::default();
        self.channel
            .basic_consume(queue.into(), "tag".into(), options, FieldTable::default())
            .await
            .unwrap()
    }

    async fn close(self) {
        self.connection.close(200, "bye".into()).await.unwrap();
    }
}

fn table(entries: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(ShortString::from(*name), value.clone());
    }
    table
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

/// Why a message was dead-lettered first.
fn reason(message: &BasicGetMessage) -> String {
    let headers = message.delivery.properties.headers().as_ref();
    let reason = headers.unwrap().inner().get("x-first-death-reason");
    let reason = reason.and_then(AMQPValue::as_long_string);
    reason.unwrap().to_string()
}

async fn publish_confirm_consume(port: &str) {
    let client = Client::connect(port).await;
    client.queue("work", &[]).await;
    let bodies: Vec<Vec<u8>> = (0..300).map(|n| n.to_string().into_bytes()).collect();
    for body in &bodies {
        assert!(client.publish("", "work", body, 0).await);
    }
    let mut consumer = client.consume("work", 10).await;
    for body in &bodies {
        let delivery = timeout(PATIENCE, consumer.next()).await.expect("none");
        let delivery = delivery.unwrap().unwrap();
        assert_eq!(&delivery.data.to_vec(), body);
        assert!(!delivery.redelivered);
        delivery.ack(BasicAckOptions::default()).await.unwrap();
    }
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    assert!(client.publish("", "work", &large, 0).await);
    let delivery = timeout(PATIENCE, consumer.next()).await.expect("none");
    assert!(delivery.unwrap().unwrap().data.to_vec() == large);
    client.close().await;
}

async fn settling(port: &str) {
    let client = Client::connect(port).await;
    client.queue("again", &[]).await;
    for body in [b"a", b"b", b"c"] {
        client.publish("", "again", body, 0).await;
    }
    let requeue = BasicNackOptions {
        requeue: true,
        ..BasicNackOptions::default()
    };
    let first = client.get("again").await.unwrap();
    let second = client.get("again").await.unwrap();
    let third = client.get("again").await.unwrap();
    third.nack(requeue).await.unwrap();
    first.nack(requeue).await.unwrap();
    let message = client.soon("again").await;
    assert!(message.delivery.data.to_vec() == b"a" && message.delivery.redelivered);
    message.ack(BasicAckOptions::default()).await.unwrap();
    second.ack(BasicAckOptions::default()).await.unwrap();
    let held = client.soon("again").await;
    assert_eq!(held.delivery.data.to_vec(), b"c");
    client.close().await;
    // What a connection held comes back, marked.
    let client = Client::connect(port).await;
    let message = client.soon("again").await;
    assert!(message.delivery.data.to_vec() == b"c" && message.delivery.redelivered);
    message.ack(BasicAckOptions::default()).await.unwrap();
    assert!(client.get("again").await.is_none());
    client.close().await;
}

async fn expiry_and_dead_letters(port: &str) {
    let client = Client::connect(port).await;
    let durable = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Direct;
    client
        .channel
        .exchange_declare("graves".into(), kind, durable, FieldTable::default())
        .await
        .unwrap();
    client.queue("dead", &[]).await;
    let options = QueueBindOptions::default();
    let arguments = FieldTable::default();
    client
        .channel
        .queue_bind(
            "dead".into(),
            "graves".into(),
            "gone".into(),
            options,
            arguments,
        )
        .await
        .unwrap();
    let buried = [
        ("x-dead-letter-exchange", text("graves")),
        ("x-dead-letter-routing-key", text("gone")),
    ];
    let ttl = [("x-message-ttl", AMQPValue::LongInt(50))];
    client.queue("short", &[&ttl[..], &buried].concat()).await;
    client.publish("", "short", b"late", 0).await;
    let message = client.soon("dead").await;
    assert_eq!(message.delivery.data.to_vec(), b"late");
    assert_eq!(reason(&message), "expired");
    client.queue("strict", &buried).await;
    client.publish("", "strict", b"bad", 0).await;
    let message = client.soon("strict").await;
    message.nack(BasicNackOptions::default()).await.unwrap();
    let message = client.soon("dead").await;
    assert_eq!(message.delivery.data.to_vec(), b"bad");
    assert_eq!(reason(&message), "rejected");
    client.close().await;
}

async fn priority_and_mandatory(port: &str) {
    let client = Client::connect(port).await;
    let ranked = [("x-max-priority", AMQPValue::LongInt(5))];
    client.queue("ranked", &ranked).await;
    for priority in [1, 5, 3, 9, 0] {
        let body = priority.to_string();
        client
            .publish("", "ranked", body.as_bytes(), priority)
            .await;
    }
    let bodies = client.drain("ranked").await;
    assert_eq!(bodies.concat(), b"59310");
    assert!(!client.publish("amq.direct", "nowhere", b"x", 0).await);
    client.close().await;
}

async fn a_deleted_queue_cancels_its_consumer(port: &str) {
    let client = Client::connect(port).await;
    client.queue("doomed", &[]).await;
    let mut consumer = client.consume("doomed", 1).await;
    let other = Client::connect(port).await;
    let options = QueueDeleteOptions::default();
    other
        .channel
        .queue_delete("doomed".into(), options)
        .await
        .unwrap();
    let end = timeout(PATIENCE, consumer.next()).await.expect("no end");
    assert!(end.is_none_or(|delivery| delivery.is_err()));
    other.close().await;
    client.close().await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().expect("a port");
    let name = arguments.next().expect("a check");
    match name.as_str() {
        "publish_confirm_consume" => publish_confirm_consume(&port).await,
        "settling" => settling(&port).await,
        "expiry_and_dead_letters" => expiry_and_dead_letters(&port).await,
        "priority_and_mandatory" => priority_and_mandatory(&port).await,
        "a_deleted_queue_cancels_its_consumer" => {
            a_deleted_queue_cancels_its_consumer(&port).await;
        }
        other => panic!("no check {other}"),
    }
}
