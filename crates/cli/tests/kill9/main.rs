//! The server is killed with SIGKILL under concurrent producers and consumers, again and again:
//! every confirmed message is delivered, an acked one never again, order and deduplication keys
//! survive. `TANDA_KILL_ROUNDS` sets the number of rounds (20).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at what it does not expect"
)]

mod keys;
mod ledger;
mod server;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ledger::Ledger;
use server::Server;
use tanda_client::{
    Client, Message, PropertyKey, ReconnectPolicy, RequestError,
    admin::{Backoff, Ordering, QueueSettings},
};
use tokio::time::timeout;

const QUEUES: [&str; 3] = ["plain", "ordered", "unique"];
const LEASE: Duration = Duration::from_secs(5);

type Shared = Arc<Mutex<Ledger>>;

#[test]
fn nothing_confirmed_is_lost_and_nothing_acked_comes_back() {
    let rounds = std::env::var("TANDA_KILL_ROUNDS").map_or(20, |rounds| rounds.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let dir = server::fresh_dir("kill9");
    let ledger = Shared::default();
    for round in 0..rounds {
        let mut server = Server::start(&dir);
        runtime.block_on(async {
            if round == 0 {
                create_queues(&server.address).await;
            }
            let work = under_load(&server.address, round, &ledger);
            // Each round dies at another moment of its life.
            let life = Duration::from_millis(40 + (round * 67) % 400);
            timeout(life, work).await.unwrap_err();
            server.kill();
        });
    }
    let mut server = Server::start(&dir);
    runtime.block_on(drain(&server.address, &ledger));
    server.kill();
    let ledger = ledger.lock().unwrap();
    ledger.assert_all_confirmed_came();
    println!("{rounds} rounds: {ledger}");
}

async fn client(address: &str) -> Client {
    let builder = Client::builder()
        .address(address)
        .reconnect(ReconnectPolicy::never());
    builder.connect().await.unwrap()
}

async fn create_queues(address: &str) {
    let client = client(address).await;
    for name in QUEUES {
        let mut settings = QueueSettings::new(name)
            .visibility_timeout(LEASE)
            .max_attempts(1_000_000)
            .backoff(Backoff::None);
        if name == "ordered" {
            let key = PropertyKey::header("group");
            settings = settings.ordering(Ordering::ByKey(key));
        }
        client.admin().create_queue(&settings).await.unwrap();
    }
}

/// Producers and consumers of all queues; it only ends when the server does.
async fn under_load(address: &str, round: u64, ledger: &Shared) {
    let (a, b) = (client(address).await, client(address).await);
    tokio::join!(
        produce_plain(&a, round, ledger),
        produce_ordered(&b, ledger),
        produce_unique(&b, ledger),
        consume(&a, "plain", ledger),
        consume(&b, "plain", ledger),
        consume(&a, "ordered", ledger),
        consume(&b, "ordered", ledger),
        consume(&a, "unique", ledger),
        std::future::pending::<()>(),
    );
}

/// Batches with fairness keys; the outcome of the last ones is unknown.
async fn produce_plain(client: &Client, round: u64, ledger: &Shared) {
    let producer = client.producer();
    for batch in 0.. {
        let payloads: Vec<String> = (0..=batch % 50)
            .map(|n| format!("plain {round} {batch} {n}"))
            .collect();
        let messages = payloads.iter().enumerate().map(|(n, payload)| {
            let message = Message::to("plain").payload(payload.clone());
            message.fairness_key(format!("tenant {}", n % 7))
        });
        let messages = messages.collect();
        ledger.lock().unwrap().on_sent(&payloads);
        let results = producer.send_batch(messages).await;
        for (payload, result) in payloads.iter().zip(results) {
            match result {
                Ok(receipt) => ledger.lock().unwrap().on_confirmed(payload, receipt.id),
                Err(error) if error.outcome_unknown() => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Numbered messages of a few groups, one after the other.
async fn produce_ordered(client: &Client, ledger: &Shared) {
    let producer = client.producer();
    loop {
        let (group, payload) = ledger.lock().unwrap().next_ordered();
        let message = Message::to("ordered")
            .header("group", group)
            .payload(payload.clone());
        match producer.send(message).await {
            Ok(receipt) => ledger.lock().unwrap().on_confirmed(&payload, receipt.id),
            Err(error) if error.outcome_unknown() => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Messages with an idempotency key, each sent until it is confirmed and once more.
async fn produce_unique(client: &Client, ledger: &Shared) {
    let producer = client.producer();
    loop {
        let key = ledger.lock().unwrap().next_key();
        let message = Message::to("unique")
            .idempotency_key(key.clone())
            .payload(key.clone());
        match producer.send(message).await {
            Ok(receipt) => {
                ledger
                    .lock()
                    .unwrap()
                    .on_key_confirmed(&key, receipt.id, receipt.duplicate);
            }
            Err(error) if error.outcome_unknown() => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Takes messages, acks most, drops some; ends when the connection does.
async fn consume(client: &Client, queue: &str, ledger: &Shared) {
    let Ok(mut subscription) = client.consumer().subscribe(queue).prefetch(64).open().await else {
        return;
    };
    while let Some(Ok(delivery)) = subscription.next().await {
        let id = delivery.id();
        if !ledger
            .lock()
            .unwrap()
            .on_delivered(queue, id, delivery.payload())
            .is_to_be_acked
        {
            continue;
        }
        match delivery.ack().await {
            Ok(()) => ledger.lock().unwrap().on_acked(id),
            Err(error) => {
                if ended(&error) {
                    return;
                }
            }
        }
    }
}

/// An ack may come too late for its lease; anything else but the connection's end is a failure.
fn ended(error: &RequestError) -> bool {
    match error.code() {
        Some(tanda_client::ErrorCode::MessageNotFound) => false,
        Some(_) => panic!("{error}"),
        None => true,
    }
}

/// Acks everything that is left.
async fn drain(address: &str, ledger: &Shared) {
    let client = client(address).await;
    tokio::join!(
        consume_all(&client, "plain", ledger),
        consume_all(&client, "ordered", ledger),
        consume_all(&client, "unique", ledger),
    );
}

async fn consume_all(client: &Client, queue: &str, ledger: &Shared) {
    let consumer = client.consumer();
    let mut subscription = consumer
        .subscribe(queue)
        .prefetch(1000)
        .open()
        .await
        .unwrap();
    let mut progress_at = Instant::now();
    loop {
        let wait = timeout(Duration::from_millis(200), subscription.next_batch(500));
        if let Ok(deliveries) = wait.await {
            let deliveries = deliveries.unwrap();
            for delivery in &deliveries {
                // What is not acked under load is acked here.
                let (id, payload) = (delivery.id(), delivery.payload());
                ledger.lock().unwrap().on_delivered(queue, id, payload);
            }
            let acked = consumer.ack_batch(&deliveries).await;
            for (delivery, result) in deliveries.iter().zip(acked) {
                result.unwrap();
                ledger.lock().unwrap().on_acked(delivery.id());
            }
            progress_at = Instant::now();
            continue;
        }
        let stats = client.admin().queue_stats(queue).await.unwrap();
        if stats.depth == 0 && stats.in_flight == 0 {
            return;
        }
        // Every lease has ended long before.
        assert!(
            progress_at.elapsed() < 12 * LEASE,
            "{queue} is stuck: {stats:?}"
        );
    }
}
