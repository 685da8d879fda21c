//! `tanda queue update`.

use clap::Args;
use serde_json::json;

use super::{policies::PolicyArgs, scripts::ScriptChangeArgs};
use crate::{failure::Failure, output::Output, target::TargetArgs};

#[derive(Args, Debug)]
pub(crate) struct UpdateArgs {
    /// The queue
    name: String,
    #[command(flatten)]
    scripts: ScriptChangeArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: UpdateArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    if args.policies.is_empty() && args.scripts.is_empty() {
        let text = "nothing to change: name at least one policy or script; `tanda help queue \
                    update` lists them";
        return Err(Failure::Usage(text.to_owned()));
    }
    let changes = args.scripts.put_into(args.policies.changes())?;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    admin
        .update_queue(&name, &changes)
        .await
        .map_err(|error| Failure::request(format!("update queue {name:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"name": name, "updated": true}))?;
    } else {
        out.line(format_args!("updated queue {name}"))?;
    }
    out.flush()
}
