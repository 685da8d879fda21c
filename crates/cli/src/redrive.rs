//! `tanda redrive`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use tanda_client::{
    RequestError,
    admin::{Admin, Reclassify, Redriven},
};
use tokio::time::sleep;

use crate::{
    failure::Failure, output::Output, progress::Progress, table::counted, target::TargetArgs,
};

const DEAD_LETTER_SUFFIX: &str = ".dlq";
/// Between two looks at how far it has come.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Args, Debug)]
#[command(after_help = "\
Each message keeps its ID, begins with no attempts used, and joins the back of the queue. What the
on_enqueue script makes of it depends on --reclassify:
  all           every message meets the script as it is now
  unclassified  only those that no script has classified yet; the others keep what they were given
  none          no message meets it; those without a classification stay dead letters")]
pub(crate) struct RedriveArgs {
    /// The queue, or its dead-letter queue
    #[arg(value_name = "QUEUE_OR_DLQ")]
    queue: String,
    /// Move at most so many messages [default: all that are there now]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Which messages meet the on_enqueue script again, where the queue has one
    #[arg(long, value_enum, default_value_t = Mode::All, hide_possible_values = true,
        value_name = "all|unclassified|none")]
    reclassify: Mode,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    All,
    Unclassified,
    None,
}

impl Mode {
    const fn to_client(self) -> Reclassify {
        match self {
            Self::All => Reclassify::All,
            Self::Unclassified => Reclassify::UnclassifiedOnly,
            Self::None => Reclassify::None,
        }
    }
}

pub(crate) async fn run(args: RedriveArgs, before: TargetArgs) -> Result<(), Failure> {
    let dlq = match args.queue.strip_suffix(DEAD_LETTER_SUFFIX) {
        Some(_) => args.queue,
        None => format!("{}{DEAD_LETTER_SUFFIX}", args.queue),
    };
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let moved = redrive(&admin, &dlq, args.count, args.reclassify.to_client())
        .await
        .map_err(|error| Failure::request(format!("redrive {dlq:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({
            "dead_letter_queue": dlq,
            "redriven": moved.redriven,
            "left_unclassified": moved.left_unclassified,
            "rejected_by_script": moved.rejected_by_script,
        }))?;
    } else {
        for sentence in sentences(&dlq, moved) {
            out.line(sentence)?;
        }
    }
    out.flush()
}

/// One request moves all of it; meanwhile the counts of the queue tell how far it is.
async fn redrive(
    admin: &Admin,
    dlq: &str,
    count: Option<u64>,
    reclassify: Reclassify,
) -> Result<Redriven, RequestError> {
    let depth = admin.queue_stats(dlq).await?.depth;
    let total = count.map_or(depth, |count| count.min(depth));
    let moving = admin.redrive(dlq, count.unwrap_or(0), reclassify);
    tokio::select! {
        moved = moving => moved,
        never = watch(admin, dlq, depth, total) => match never {},
    }
}

/// Shows how many messages have left, until it is dropped.
async fn watch(admin: &Admin, dlq: &str, depth: u64, total: u64) -> std::convert::Infallible {
    let mut progress = Progress::new("moved");
    loop {
        sleep(LOOK_INTERVAL).await;
        // The request itself will say what is wrong, if something is.
        if let Ok(stats) = admin.queue_stats(dlq).await {
            let left = depth.saturating_sub(stats.depth);
            progress.at(left.min(total), Some(total));
        }
    }
}

fn sentences(dlq: &str, moved: Redriven) -> Vec<String> {
    let queue = dlq.strip_suffix(DEAD_LETTER_SUFFIX).unwrap_or(dlq);
    let messages = counted(moved.redriven, "message");
    let mut sentences = vec![format!("moved {messages} from {dlq} back to {queue}")];
    if moved.left_unclassified > 0 {
        sentences.push(format!(
            "left {} in {dlq}: no script has classified them yet; --reclassify unclassified lets \
             the script try",
            counted(moved.left_unclassified, "message")
        ));
    }
    if moved.rejected_by_script > 0 {
        sentences.push(format!(
            "left {} in {dlq}: the on_enqueue script of {queue} failed on them",
            counted(moved.rejected_by_script, "message")
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stayed_is_told_with_its_reason() {
        let moved = Redriven {
            redriven: 1,
            left_unclassified: 2,
            rejected_by_script: 3,
        };
        let sentences = sentences("q.dlq", moved);
        assert_eq!(sentences[0], "moved 1 message from q.dlq back to q");
        assert!(sentences[1].starts_with("left 2 messages in q.dlq: no script"));
        assert!(sentences[2].ends_with("the on_enqueue script of q failed on them"));
        assert_eq!(super::sentences("q.dlq", Redriven::default()).len(), 1);
    }
}
