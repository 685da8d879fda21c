//! `tanda queue list`.

use clap::Args;
use serde_json::{Value, json};
use tanda_client::admin::QueueInfo;

use crate::{
    failure::Failure,
    output::{Output, printable},
    table::{Table, grouped},
    target::TargetArgs,
};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let mut queues = admin
        .list_queues()
        .await
        .map_err(|error| Failure::request("list the queues", &error))?;
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    let mut out = Output::new();
    if target.json {
        out.document(&queues.iter().map(as_json).collect())?;
    } else {
        out.line(table(&queues))?;
    }
    out.flush()
}

fn as_json(queue: &QueueInfo) -> Value {
    json!({
        "name": queue.name,
        "depth": queue.depth,
        "in_flight": queue.in_flight,
        "active_consumers": queue.active_consumers,
    })
}

fn table(queues: &[QueueInfo]) -> Table {
    let mut table = Table::new(&["QUEUE"], &["WAITING", "LEASED", "CONSUMERS"]);
    for queue in queues {
        table.row([
            printable(queue.name.as_bytes()),
            grouped(queue.depth),
            grouped(queue.in_flight),
            grouped(u64::from(queue.active_consumers)),
        ]);
    }
    table
}
