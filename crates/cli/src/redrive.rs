//! `tanda redrive`.

use clap::Args;
use serde_json::json;
use tanda_client::admin::{Admin, Reclassify, Redriven};

use crate::{
    failure::Failure, output::Output, progress::Progress, table::counted, target::TargetArgs,
};

const DEAD_LETTER_SUFFIX: &str = ".dlq";
/// Messages moved by one request, so that there is progress to tell.
const SLICE: u64 = 10_000;

#[derive(Args, Debug)]
pub(crate) struct RedriveArgs {
    /// The queue, or its dead-letter queue
    #[arg(value_name = "QUEUE_OR_DLQ")]
    queue: String,
    /// Move at most so many messages [default: all that are there now]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(args: RedriveArgs, before: TargetArgs) -> Result<(), Failure> {
    let dlq = match args.queue.strip_suffix(DEAD_LETTER_SUFFIX) {
        Some(_) => args.queue,
        None => format!("{}{DEAD_LETTER_SUFFIX}", args.queue),
    };
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let moved = redrive(&admin, &dlq, args.count).await?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({
            "dead_letter_queue": dlq,
            "redriven": moved.redriven,
            "left_unclassified": moved.left_unclassified,
            "rejected_by_script": moved.rejected_by_script,
        }))?;
    } else {
        let queue = dlq.strip_suffix(DEAD_LETTER_SUFFIX).unwrap_or(&dlq);
        let messages = counted(moved.redriven, "message");
        out.line(format_args!("moved {messages} from {dlq} back to {queue}"))?;
    }
    out.flush()
}

/// Moves in slices what is there at the start, not what fails again meanwhile.
async fn redrive(admin: &Admin, dlq: &str, count: Option<u64>) -> Result<Redriven, Failure> {
    let failed = |error| Failure::request(format!("redrive {dlq:?}"), &error);
    let depth = admin.queue_stats(dlq).await.map_err(failed)?.depth;
    let total = count.map_or(depth, |count| count.min(depth));
    let mut progress = Progress::new("moved");
    let mut moved = Redriven::default();
    while moved.redriven < total {
        let slice = SLICE.min(total - moved.redriven);
        let step = admin
            .redrive(dlq, slice, Reclassify::All)
            .await
            .map_err(failed)?;
        moved.redriven += step.redriven;
        moved.left_unclassified += step.left_unclassified;
        moved.rejected_by_script += step.rejected_by_script;
        progress.at(moved.redriven, Some(total));
        if step.redriven < slice {
            break;
        }
    }
    Ok(moved)
}
