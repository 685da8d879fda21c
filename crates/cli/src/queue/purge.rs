//! `tanda queue purge`.

use clap::Args;
use serde_json::Value;

use super::vhost::VhostArgs;
use crate::{
    confirm::ConfirmArgs, failure::Failure, http_door::queue_path, output::Output, table::counted,
    target::TargetArgs,
};

#[derive(Args, Debug)]
pub(crate) struct PurgeArgs {
    /// The queue; a dead-letter queue too
    name: String,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: PurgeArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let door = target.http()?;
    let path = queue_path(args.vhost.name(), &name);
    let details = door.read(&path).await?;
    let waiting = details.pointer("/counts/depth").and_then(Value::as_u64);
    let messages = waiting.map_or_else(|| "its".to_owned(), |count| counted(count, "message"));
    args.confirm.ask(
        &format!("purge queue {name:?}"),
        &format!("Remove {messages} from queue {name:?} for good?"),
    )?;
    let answer = door.act(&format!("{path}/purge")).await?;
    let mut out = Output::new();
    if target.json {
        out.document(&answer)?;
    } else {
        let purged = answer.get("purged").and_then(Value::as_u64).unwrap_or(0);
        out.line(format_args!(
            "removed {} from {name}",
            counted(purged, "message")
        ))?;
    }
    out.flush()
}
