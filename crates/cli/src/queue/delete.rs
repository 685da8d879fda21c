//! `tanda queue delete`.

use clap::Args;
use serde_json::json;

use crate::{
    confirm::ConfirmArgs, failure::Failure, output::Output, table::counted, target::TargetArgs,
};

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The queue
    name: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: DeleteArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let failed = |error| Failure::request(format!("delete queue {name:?}"), &error);
    let stats = admin.queue_stats(&name).await.map_err(failed)?;
    let messages = counted(stats.depth + stats.in_flight, "message");
    args.confirm.ask(
        &format!("delete queue {name:?}"),
        &format!("Delete queue {name:?} with {messages}, and its dead-letter queue?"),
    )?;
    admin.delete_queue(&name).await.map_err(failed)?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"name": name, "deleted": true}))?;
    } else {
        out.line(format_args!("deleted queue {name}"))?;
    }
    out.flush()
}
