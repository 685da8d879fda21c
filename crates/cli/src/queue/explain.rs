//! `tanda queue explain`.

use clap::Args;
use serde_json::Value;
use tanda_client::{MessageId, admin::ThrottleStats};

use super::{sentences, vhost::VhostArgs};
use crate::{
    failure::Failure,
    http_door::queue_path,
    moments,
    output::Output,
    target::{Target, TargetArgs},
};

/// Buckets asked for of each throttle: one more than are named.
const BUCKETS: u32 = 4;

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The queue; a dead-letter queue too
    name: String,
    /// A message, by the ID that `send` printed
    message: Option<MessageId>,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ExplainArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let query = args.message.map(|id| format!("?message={id}"));
    let queue = queue_path(args.vhost.name(), &name);
    let path = format!("{queue}/explain{}", query.unwrap_or_default());
    let answer = target.http()?.read(&path).await?;
    let mut out = Output::new();
    if target.json {
        out.document(&answer)?;
    } else {
        let throttles = match answer.pointer("/counts/throttled").and_then(Value::as_u64) {
            // Fila tells of them, which knows the queues of one virtual host.
            Some(1..) if args.message.is_none() && args.vhost.is_root() => {
                throttles(&target, &name).await?
            }
            Some(_) | None => Vec::new(),
        };
        for sentence in sentences::of(&answer, &throttles, args.message, moments::now_ms()) {
            out.line(sentence)?;
        }
    }
    out.flush()?;
    let place = answer.pointer("/message/place").and_then(Value::as_str);
    match (args.message, place) {
        (Some(id), Some("unknown")) => Err(Failure::NotFound(format!(
            "message {id} is not in queue {name:?}"
        ))),
        _ => Ok(()),
    }
}

/// The throttles of a queue with their fullest buckets. Who may ask for a queue may not always ask
/// for throttles: then there are none.
async fn throttles(target: &Target, queue: &str) -> Result<Vec<ThrottleStats>, Failure> {
    let admin = target.connect().await?.admin();
    let stats = admin
        .queue_stats(queue)
        .await
        .map_err(|error| Failure::request(format!("read the counts of queue {queue:?}"), &error))?;
    let mut throttles = Vec::new();
    for throttle in &stats.throttles {
        // One that has gone meanwhile is no reason to say nothing.
        if let Ok(stats) = admin.throttle_stats(&throttle.name, BUCKETS).await {
            throttles.push(stats);
        }
    }
    Ok(throttles)
}
