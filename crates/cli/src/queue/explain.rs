//! `tanda queue explain`.

use clap::Args;
use serde_json::Value;
use tanda_client::MessageId;

use super::sentences;
use crate::{failure::Failure, http_door::queue_path, moments, output::Output, target::TargetArgs};

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// The queue; a dead-letter queue too
    name: String,
    /// A message, by the ID that `send` printed
    message: Option<MessageId>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn run(args: ExplainArgs, before: TargetArgs) -> Result<(), Failure> {
    let name = args.name;
    let target = args.target.or(before);
    let query = args.message.map(|id| format!("?message={id}"));
    let path = format!("{}/explain{}", queue_path(&name), query.unwrap_or_default());
    let answer = target.http()?.read(&path).await?;
    let mut out = Output::new();
    if target.json {
        out.document(&answer)?;
    } else {
        for sentence in sentences::of(&answer, args.message, moments::now_ms()) {
            out.line(sentence)?;
        }
    }
    out.flush()?;
    let place = answer.pointer("/message/place").and_then(Value::as_str);
    match (args.message, place) {
        (Some(id), Some("unknown")) => Err(Failure::NotFound(format!(
            "message {id} is not in queue {name:?}"
        ))),
        _ => Ok(()),
    }
}
