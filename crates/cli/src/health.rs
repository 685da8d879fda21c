//! `tanda health`.

use clap::Args;
use serde_json::Value;

use crate::{durations, failure::Failure, output::Output, target::TargetArgs};

#[derive(Args, Debug)]
#[command(after_help = "The exit code is 0 only when the broker is well.")]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// What runs short, as the broker says it.
pub(crate) fn alarms(answer: &Value) -> String {
    let list = answer.get("alarms").and_then(Value::as_array);
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(" and ")
}

pub(crate) async fn run(args: HealthArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let answer = target.http()?.read("/api/tanda/health").await?;
    let text = |field: &str| answer.get(field).and_then(Value::as_str);
    let status = text("status").unwrap_or("unknown");
    let mut out = Output::new();
    if target.json {
        out.document(&answer)?;
    } else {
        let version = text("version").unwrap_or("?");
        let uptime_ms = answer.get("uptime_ms").and_then(Value::as_u64);
        let uptime = durations::rough(uptime_ms.unwrap_or(0));
        out.line(format_args!("{status}  version {version}  up {uptime}"))?;
    }
    out.flush()?;
    match status {
        "ok" => Ok(()),
        "storage_full" => Err(Failure::Refused(
            "the disk is full, or files cannot be made in the data directory: publishes are \
             refused until that works again; consumers go on"
                .to_owned(),
        )),
        "memory_full" => Err(Failure::Refused(
            "memory.limit is reached: publishes are refused until messages are consumed; \
             consumers go on"
                .to_owned(),
        )),
        "alarm" => Err(Failure::Refused(format!(
            "the broker is low on {}: publishers of AMQP and FireMQ are asked to wait; consumers \
             go on",
            alarms(&answer)
        ))),
        _ => Err(Failure::Refused(format!(
            "the broker is not well: {}",
            text("cause").unwrap_or("it does not say why")
        ))),
    }
}
