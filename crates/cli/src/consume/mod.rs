//! `tanda consume`.

mod exec;
mod job;
mod print;
mod take;
mod throttle;

use std::time::Duration;

use clap::Args;
use tanda_client::{Client, Subscription, Throttle};

use crate::{
    durations,
    failure::Failure,
    signals::StopSignals,
    target::{Target, TargetArgs, WhenLost},
};

/// Messages shown when nothing says how many.
const LOOK_COUNT: u64 = 10;
/// How long a look waits for another message.
const LOOK_WAIT: Duration = Duration::from_secs(1);
/// A retry asked for by exit code 75 comes after this long.
const RETRY_DELAY: &str = "10s";

#[derive(Args, Debug)]
#[command(after_help = "\
Without --ack or --exec this is a look: it prints the first messages (10, or --count), waits 1s for
more (or --wait), and gives them back. A look is not free: the broker counts it as a failed attempt
of each message shown, and a message whose attempts are used up goes to the dead-letter queue.

--exec runs `sh -c COMMAND` for each message, with the payload on standard input and in the
environment TANDA_MESSAGE_ID, TANDA_QUEUE, TANDA_FAIRNESS_KEY, TANDA_WEIGHT, TANDA_ATTEMPT,
TANDA_REDRIVES, TANDA_ENQUEUED_AT_MS, TANDA_HEADERS (a JSON object) and TANDA_HEADER_<NAME>.
Exit code 0 acknowledges the message, 75 asks for a retry after --retry-delay, anything else is a
failure that the queue's retry policy handles. Leases are extended while commands run.

--throttle 'api=100/1s' is at most 100 deliveries in any second; --throttle
'api=100/1s,1000/1m;key=header:x-tenant' is that and at most 1000 in any minute, for each value of
the header x-tenant. PARTS are header:NAME, attribute:NAME and fairness-key. Messages without the
key share one bucket, or are not limited with missing=unthrottled. Consumers that give the same name
share the counts, across queues. What waits uses no attempt; `tanda throttle stats NAME` shows it.

SIGINT or SIGTERM ends it: what runs is finished and settled, what has not begun is given back.")]
pub(crate) struct ConsumeArgs {
    /// The queue; a dead-letter queue too
    queue: String,
    /// Acknowledge messages once they are printed
    #[arg(long, conflicts_with = "exec")]
    ack: bool,
    /// Run this command for each message and settle the message by its exit code
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Commands at a time
    #[arg(
        long, value_name = "N", default_value_t = 1, requires = "exec",
        value_parser = clap::value_parser!(u32).range(1..=1_000),
    )]
    parallel: u32,
    /// When a message is retried whose command exits with 75
    #[arg(
        long, value_name = "DURATION", default_value = RETRY_DELAY, requires = "exec",
        value_parser = durations::parse,
    )]
    retry_delay: Duration,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End when no message came for this long
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    wait: Option<Duration>,
    /// Messages leased at a time [default: 100; with --exec as --parallel]
    #[arg(
        long, value_name = "N", conflicts_with = "exec",
        value_parser = clap::value_parser!(u32).range(1..),
    )]
    prefetch: Option<u32>,
    #[arg(
        long, value_name = "THROTTLE", value_parser = throttle::parse,
        help = "Deliver at most so much, to all consumers of the queue together, as long as this \
                one runs: NAME=N/WINDOW[,N/WINDOW...][;key=PARTS][;missing=shared|unthrottled]; \
                may be given several times",
    )]
    throttle: Vec<Throttle>,
    /// Print payloads only, each with a line end after it
    #[arg(long, conflicts_with_all = ["json", "exec"])]
    raw: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Messages leased at a time when printing.
const PREFETCH: u32 = 100;

pub(crate) async fn run(mut args: ConsumeArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = std::mem::take(&mut args.target).or(before);
    if args.raw && target.json {
        return Err(Failure::Usage(
            "--raw and --json exclude each other".to_owned(),
        ));
    }
    let mut signals = StopSignals::listen()?;
    let client = tokio::select! {
        client = connect(&target) => client?,
        () = signals.arrived() => return Ok(()),
    };
    let outcome = match args.exec.take() {
        Some(command) => exec(&client, &args, command, signals).await,
        None => {
            let form = match (target.json, args.raw) {
                (true, _) => print::Form::Json,
                (false, true) => print::Form::Raw,
                (false, false) => print::Form::Human,
            };
            print(&client, &args, form, signals).await
        }
    };
    client.close().await;
    outcome
}

async fn connect(target: &Target) -> Result<Client, Failure> {
    target.connect_for(WhenLost::Reconnect).await
}

async fn exec(
    client: &Client,
    args: &ConsumeArgs,
    command: String,
    signals: StopSignals,
) -> Result<(), Failure> {
    let subscription = subscribe(client, args, args.parallel, args.count).await?;
    let take = take::Take::new(subscription, signals, args.count, args.wait);
    let job = job::Job::new(command, args.retry_delay);
    exec::Workers::new(take, job).run().await
}

async fn print(
    client: &Client,
    args: &ConsumeArgs,
    form: print::Form,
    signals: StopSignals,
) -> Result<(), Failure> {
    let (count, wait) = if args.ack {
        (args.count, args.wait)
    } else {
        let count = args.count.unwrap_or(LOOK_COUNT);
        (Some(count), Some(args.wait.unwrap_or(LOOK_WAIT)))
    };
    // A look holds all it shows until the end.
    let prefetch = match (args.prefetch, count) {
        (None, Some(count)) if !args.ack => u32::try_from(count).unwrap_or(u32::MAX),
        (prefetch, _) => prefetch.unwrap_or(PREFETCH),
    };
    let subscription = subscribe(client, args, prefetch, count).await?;
    let take = take::Take::new(subscription, signals, count, wait);
    if args.ack {
        print::acknowledge(&client.consumer(), take, form).await
    } else {
        print::look(take, form).await
    }
}

/// Subscribes to the queue of the command line, with its throttles.
async fn subscribe(
    client: &Client,
    args: &ConsumeArgs,
    prefetch: u32,
    count: Option<u64>,
) -> Result<Subscription, Failure> {
    let queue = args.queue.as_str();
    let mut subscribe = client.consumer().subscribe(queue).prefetch(prefetch);
    if let Some(count) = count {
        subscribe = subscribe.messages_max(count);
    }
    for throttle in &args.throttle {
        subscribe = subscribe.throttle(throttle.clone());
    }
    let opened = subscribe.open().await;
    opened.map_err(|error| Failure::request(format!("consume {queue:?}"), &error))
}
