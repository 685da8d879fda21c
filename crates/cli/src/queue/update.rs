//! `tanda queue update`.

use clap::Args;
use serde_json::json;

use super::{
    policies::PolicyArgs,
    scripts::{self, ScriptChangeArgs},
};
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
    let texts = args.scripts.texts();
    let changes = args.scripts.put_into(args.policies.changes())?;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    if let Err(error) = admin.update_queue(&name, &changes).await {
        let action = format!("update queue {name:?}");
        return Err(scripts::failed(action, &error, (&target, texts)).await);
    }
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"name": name, "updated": true}))?;
    } else {
        out.line(format_args!("updated queue {name}"))?;
    }
    out.flush()
}
