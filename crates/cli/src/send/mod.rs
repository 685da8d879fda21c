//! `tanda send`.

mod input;
mod pipeline;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use tanda_client::Message;

use crate::{durations, failure::Failure, target::TargetArgs};

use input::Input;
use pipeline::{Pipeline, Receipts};

#[derive(Args, Debug)]
#[command(after_help = "\
Without a message or a file, each line of standard input is one message; its line end is not part \
of it.
Prints the ID of each message once the broker has it on disk.")]
pub(crate) struct SendArgs {
    /// The queue
    queue: String,
    /// Messages; an empty one is written ''
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,
    /// Send the lines of standard input; the default without a message or a file
    #[arg(long, conflicts_with_all = ["messages", "file"])]
    lines: bool,
    /// Send the content of a file as one message; may be given several times
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Add a header; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_header)]
    header: Vec<(String, String)>,
    /// The group that gets its turns, such as a tenant
    #[arg(long, value_name = "KEY")]
    fairness_key: Option<String>,
    /// The share of the group relative to others [broker's default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    weight: Option<u32>,
    /// Not to be delivered before this long from now
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    delay: Option<Duration>,
    /// By which the queue knows this message when it is sent again; for a single message
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Do not print the IDs
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(mut args: SendArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = std::mem::take(&mut args.target).or(before);
    let given = args.messages.len() + args.file.len();
    if args.idempotency_key.is_some() && given != 1 {
        return Err(Failure::Usage(
            "--idempotency-key is for a single message: the queue would take all others for \
             duplicates of the first"
                .to_owned(),
        ));
    }
    let template = args.template();
    let input = if given == 0 {
        Input::lines()
    } else {
        Input::of(args.messages, args.file)
    };
    let receipts = match (args.quiet, target.json) {
        (true, _) => Receipts::Silent,
        (false, true) => Receipts::Json,
        (false, false) => Receipts::Ids,
    };
    let client = target.connect().await?;
    let pipeline = Pipeline::new(client.producer(), template, receipts);
    let outcome = pipeline.run(input).await;
    client.close().await;
    outcome
}

impl SendArgs {
    fn template(&self) -> Message {
        let mut message = Message::to(self.queue.as_str());
        for (name, value) in &self.header {
            message = message.header(name, value);
        }
        if let Some(key) = &self.fairness_key {
            message = message.fairness_key(key.as_str());
        }
        if let Some(weight) = self.weight {
            message = message.weight(weight);
        }
        if let Some(delay) = self.delay {
            message = message.delay(delay);
        }
        if let Some(key) = &self.idempotency_key {
            message = message.idempotency_key(key.as_str());
        }
        message
    }
}

pub(crate) fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("a header is written NAME=VALUE, like lang=en".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(
            parse_header("a=b=c"),
            Ok(("a".to_owned(), "b=c".to_owned()))
        );
        assert_eq!(parse_header("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_header("=b").is_err());
        assert!(parse_header("a").is_err());
    }
}
