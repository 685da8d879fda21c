//! `tanda bench`: a short load through the client, for a first impression of a broker.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use tanda_client::{
    Client, Message, RequestError,
    admin::{Admin, QueueSettings},
};

use crate::{
    failure::Failure,
    moments,
    note::note,
    output::Output,
    table::grouped,
    target::{Target, TargetArgs},
};

/// Batches of messages under way.
const BATCHES_UNDER_WAY: usize = 8;
/// Sends of one message at a time.
const SINGLE_SENDS: usize = 200;

#[derive(Args, Debug)]
#[command(after_help = "\
One connection, one client that shares the machine with the broker: the numbers are a first
impression. `make bench` in the sources measures properly, with the broker's CPU time.")]
pub(crate) struct BenchArgs {
    /// Messages to send, consume and acknowledge
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    messages: u32,
    /// Bytes of each payload
    #[arg(long, value_name = "BYTES", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    size: u32,
    /// Messages per request
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    #[command(flatten)]
    target: TargetArgs,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
struct Figures {
    send: Duration,
    consume: Duration,
    /// Medians and the like of single sends.
    single_p50: Duration,
    single_p99: Duration,
}

pub(crate) async fn run(args: BenchArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.clone().or(before);
    let client = target.connect().await?;
    let admin = client.admin();
    let queue = format!("tanda-bench-{}-{}", std::process::id(), moments::now_ms());
    admin
        .create_queue(&QueueSettings::new(&queue))
        .await
        .map_err(|error| Failure::request(format!("create queue {queue:?}"), &error))?;
    let measured = measure(&client, &args, &queue).await;
    remove(&admin, &queue).await;
    let figures = measured.map_err(|error| Failure::request("finish the load", &error))?;
    print(&args, &target, figures)
}

async fn remove(admin: &Admin, queue: &str) {
    if let Err(error) = admin.delete_queue(queue).await {
        note(format_args!("cannot delete queue {queue:?}: {error}"));
    }
}

async fn measure(client: &Client, args: &BenchArgs, queue: &str) -> Result<Figures, RequestError> {
    let message = Message::to(queue).payload(vec![b'x'; args.size as usize]);
    let mut singles = Vec::with_capacity(SINGLE_SENDS);
    let producer = client.producer();
    for _ in 0..SINGLE_SENDS {
        let began = Instant::now();
        producer.send(message.clone()).await?;
        singles.push(began.elapsed());
    }
    singles.sort_unstable();
    take(client, queue, SINGLE_SENDS as u64).await?;
    let began = Instant::now();
    send(client, args, &message).await?;
    let send = began.elapsed();
    let began = Instant::now();
    take(client, queue, u64::from(args.messages)).await?;
    let at = |percent: usize| singles.get(singles.len() * percent / 100).copied();
    Ok(Figures {
        send,
        consume: began.elapsed(),
        single_p50: at(50).unwrap_or_default(),
        single_p99: at(99).unwrap_or_default(),
    })
}

async fn send(client: &Client, args: &BenchArgs, message: &Message) -> Result<(), RequestError> {
    let producer = client.producer();
    let mut under_way = std::collections::VecDeque::new();
    let mut left = args.messages;
    while left > 0 || !under_way.is_empty() {
        if left > 0 && under_way.len() < BATCHES_UNDER_WAY {
            let size = left.min(args.batch);
            left -= size;
            let batch = vec![message.clone(); size as usize];
            under_way.push_back(producer.submit_batch(batch).await?);
        } else if let Some(confirm) = under_way.pop_front() {
            for result in confirm.await {
                result?;
            }
        }
    }
    Ok(())
}

/// Consumes and acknowledges so many messages.
async fn take(client: &Client, queue: &str, messages: u64) -> Result<(), RequestError> {
    let consumer = client.consumer();
    let subscribe = consumer
        .subscribe(queue)
        .prefetch(10_000)
        .messages_max(messages);
    let mut subscription = subscribe.open().await?;
    let mut left = messages;
    while left > 0 {
        let batch = subscription.next_batch(1_000).await;
        let batch = batch.map_err(|error| RequestError::ConnectionLost {
            outcome_unknown: false,
            reason: error.to_string().into(),
        })?;
        left = left.saturating_sub(batch.len() as u64);
        for result in consumer.ack_batch(&batch).await {
            result?;
        }
    }
    Ok(())
}

fn print(args: &BenchArgs, target: &Target, figures: Figures) -> Result<(), Failure> {
    let per_second = |elapsed: Duration| {
        let micros = elapsed.as_micros().max(1);
        u64::try_from(u128::from(args.messages) * 1_000_000 / micros).unwrap_or(u64::MAX)
    };
    let micros = |elapsed: Duration| u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    let mut out = Output::new();
    if target.json {
        out.document(&json!({
            "messages": args.messages,
            "payload_bytes": args.size,
            "batch": args.batch,
            "sent_per_second": per_second(figures.send),
            "consumed_and_acked_per_second": per_second(figures.consume),
            "single_send_p50_us": micros(figures.single_p50),
            "single_send_p99_us": micros(figures.single_p99),
        }))?;
        return out.flush();
    }
    let (messages, size) = (
        grouped(u64::from(args.messages)),
        grouped(u64::from(args.size)),
    );
    out.line(format_args!(
        "{messages} messages of {size} bytes in batches of {}, one connection to {}",
        grouped(u64::from(args.batch)),
        target.addr()
    ))?;
    let rates = [
        ("sent", figures.send),
        ("consumed and acked", figures.consume),
    ];
    for (what, elapsed) in rates {
        out.line(format_args!(
            "{what:<20}{:>10} messages/s",
            grouped(per_second(elapsed))
        ))?;
    }
    let singles = [
        ("single send, p50", figures.single_p50),
        ("single send, p99", figures.single_p99),
    ];
    for (what, elapsed) in singles {
        out.line(format_args!(
            "{what:<20}{:>10} us",
            grouped(micros(elapsed))
        ))?;
    }
    out.line("a first impression only: `make bench` in the sources measures properly")?;
    out.flush()
}
