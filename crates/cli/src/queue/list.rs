//! `tanda queue list`.

use clap::Args;
use serde_json::{Value, json};
use tanda_client::admin::QueueInfo;

use crate::{
    exchange::{life, list_path},
    failure::Failure,
    output::{Output, printable, text},
    table::{Table, grouped},
    target::{Target, TargetArgs},
};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The queues of this virtual host, with what AMQP and FireMQ declared them with; over the HTTP
    /// door. Without it: those that Fila shows, which are in /
    #[arg(long, value_name = "VHOST")]
    vhost: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    if let Some(vhost) = &args.vhost {
        return of_vhost(vhost, &target).await;
    }
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

async fn of_vhost(vhost: &str, target: &Target) -> Result<(), Failure> {
    let queues = target
        .http()?
        .read(&list_path("queues", Some(vhost)))
        .await?;
    let mut out = Output::new();
    if target.json {
        out.document(&queues)?;
        return out.flush();
    }
    let numbers = ["MESSAGES", "READY", "UNACKED", "CONSUMERS"];
    let mut table = Table::new(&["QUEUE", "IS"], &numbers);
    for it in queues.as_array().into_iter().flatten() {
        let number = |key: &str| grouped(it.get(key).and_then(Value::as_u64).unwrap_or(0));
        table.row([
            text(it, "name"),
            life(it),
            number("messages"),
            number("messages_ready"),
            number("messages_unacknowledged"),
            number("consumers"),
        ]);
    }
    out.line(table)?;
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
