//! `tanda queue create`.

use clap::{Args, ValueEnum};
use serde_json::json;
use tanda_client::{
    PropertyKey,
    admin::{Ordering, QueueSettings},
};

use super::{
    policies::PolicyArgs,
    scripts::{self, NewScriptArgs},
};
use crate::{failure::Failure, key_parts, output::Output, target::TargetArgs};

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// 1 to 255 bytes, no control characters, not ending in .dlq
    name: String,
    /// In which order messages go: none; the whole queue one by one; or one by one among messages
    /// with equal values of --ordering-key. Fixed at creation
    #[arg(long, value_enum)]
    ordering: Option<OrderingKind>,
    /// Parts separated by commas: header:NAME, attribute:NAME, fairness-key. Implies --ordering key
    #[arg(long, value_name = "PARTS", value_parser = key_parts::parse_ordering)]
    ordering_key: Option<PropertyKey>,
    /// What becomes of a message that lacks a part of the ordering key [default: reject]
    #[arg(long, value_enum)]
    missing_ordering_key: Option<MissingKey>,
    /// What makes two messages duplicates, in place of the sender's idempotency key: parts as for
    /// --ordering-key, and idempotency-key, payload, headers. Fixed at creation
    #[arg(long, value_name = "PARTS", value_parser = key_parts::parse_dedup)]
    dedup_key: Option<PropertyKey>,
    #[command(flatten)]
    scripts: NewScriptArgs,
    #[command(flatten)]
    policies: PolicyArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderingKind {
    None,
    Queue,
    Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MissingKey {
    /// Refuse it.
    Reject,
    /// It belongs to no group and never waits.
    Unordered,
}

pub(super) async fn run(args: CreateArgs, before: TargetArgs) -> Result<(), Failure> {
    let ordering = args.ordering().map_err(Failure::Usage)?;
    let mut settings = QueueSettings::new(&args.name).ordering(ordering);
    if let Some(key) = args.dedup_key {
        settings = settings.dedup_key(key);
    }
    let settings = args.policies.put_into(settings);
    let texts = args.scripts.texts();
    let settings = args.scripts.put_into(settings)?;
    let target = args.target.or(before);
    let name = args.name;
    let admin = target.connect().await?.admin();
    let id = match admin.create_queue(&settings).await {
        Ok(id) => id,
        Err(error) => {
            let action = format!("create queue {name:?}");
            return Err(scripts::failed(action, &error, (&target, texts)).await);
        }
    };
    let mut out = Output::new();
    let dead_letter_queue = format!("{name}.dlq");
    if target.json {
        let answer = json!({"name": name, "id": id, "dead_letter_queue": dead_letter_queue});
        out.document(&answer)?;
    } else {
        out.line(format_args!(
            "created queue {name}, with dead-letter queue {dead_letter_queue}"
        ))?;
    }
    out.flush()
}

impl CreateArgs {
    /// The three flags about order as one value.
    fn ordering(&self) -> Result<Ordering, String> {
        let key = self.ordering_key.clone();
        let by_key = match (self.ordering, &key) {
            (Some(OrderingKind::Key), None) => {
                return Err(
                    "--ordering key needs --ordering-key, like --ordering-key header:account"
                        .to_owned(),
                );
            }
            (Some(OrderingKind::None | OrderingKind::Queue), Some(_)) => {
                return Err("--ordering-key goes with --ordering key only".to_owned());
            }
            (None | Some(OrderingKind::Key), _) => key,
            (Some(OrderingKind::None | OrderingKind::Queue), None) => None,
        };
        match (by_key, self.missing_ordering_key) {
            (Some(key), None | Some(MissingKey::Reject)) => Ok(Ordering::ByKey(key)),
            (Some(key), Some(MissingKey::Unordered)) => Ok(Ordering::ByKeyIfPresent(key)),
            (None, Some(_)) => {
                Err("--missing-ordering-key goes with --ordering-key only".to_owned())
            }
            (None, None) if self.ordering == Some(OrderingKind::Queue) => Ok(Ordering::WholeQueue),
            (None, None) => Ok(Ordering::Unordered),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CreateArgs,
    }

    fn ordering(flags: &str) -> Result<Ordering, String> {
        let words = ["create", "q"].into_iter().chain(flags.split_whitespace());
        Line::try_parse_from(words).unwrap().args.ordering()
    }

    #[test]
    fn the_flags_about_order_are_one_value() {
        let key = || PropertyKey::header("a");
        let cases = [
            ("", Ordering::Unordered),
            ("--ordering none", Ordering::Unordered),
            ("--ordering queue", Ordering::WholeQueue),
            ("--ordering-key header:a", Ordering::ByKey(key())),
            (
                "--ordering key --ordering-key header:a --missing-ordering-key unordered",
                Ordering::ByKeyIfPresent(key()),
            ),
        ];
        for (flags, wanted) in cases {
            assert_eq!(ordering(flags), Ok(wanted), "{flags}");
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for flags in [
            "--ordering key",
            "--ordering queue --ordering-key header:a",
            "--ordering none --ordering-key header:a",
            "--missing-ordering-key reject",
            "--ordering queue --missing-ordering-key reject",
        ] {
            assert!(ordering(flags).is_err(), "{flags}");
        }
    }
}
