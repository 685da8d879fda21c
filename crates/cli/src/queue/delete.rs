//! `tanda queue delete`.

use clap::Args;
use serde_json::{Value, json};

use super::vhost::VhostArgs;
use crate::{
    confirm::ConfirmArgs,
    failure::Failure,
    http_door::{queue_path, segment},
    output::Output,
    table::counted,
    target::{Target, TargetArgs},
};

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The queue
    name: String,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: DeleteArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    if !args.vhost.is_root() {
        return over_http(&target, (args.vhost.name(), &name), args.confirm).await;
    }
    let admin = target.connect().await?.admin();
    let failed = |error| Failure::request(format!("delete queue {name:?}"), &error);
    let stats = admin.queue_stats(&name).await.map_err(failed)?;
    let messages = counted(stats.depth + stats.in_flight, "message");
    args.confirm.ask(
        &format!("delete queue {name:?}"),
        &format!("Delete queue {name:?} with {messages}, and its dead-letter queue?"),
    )?;
    admin.delete_queue(&name).await.map_err(failed)?;
    say_deleted(&target, &name)
}

/// Of a virtual host that Fila does not serve.
async fn over_http(
    target: &Target,
    (vhost, name): (&str, &str),
    confirm: ConfirmArgs,
) -> Result<(), Failure> {
    let door = target.http()?;
    let details = door.read(&queue_path(vhost, name)).await?;
    let count = |path| details.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let messages = count("/counts/depth") + count("/counts/in_flight");
    let messages = counted(messages, "message");
    confirm.ask(
        &format!("delete queue {name:?}"),
        &format!("Delete queue {name:?} of virtual host {vhost:?} with {messages}?"),
    )?;
    let path = format!("/api/queues/{}/{}", segment(vhost), segment(name));
    door.delete(&path).await?;
    say_deleted(target, name)
}

fn say_deleted(target: &Target, name: &str) -> Result<(), Failure> {
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"name": name, "deleted": true}))?;
    } else {
        out.line(format_args!("deleted queue {name}"))?;
    }
    out.flush()
}
