//! `tanda config ...`: the runtime configuration, which is not the broker's own (`check-config`).

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tanda_client::RequestError;

use crate::{
    failure::Failure,
    output::{Output, printable},
    table::Table,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the value of a key.
    Get(GetArgs),
    /// Set a key.
    Set(SetArgs),
    /// List keys and values.
    List(ListArgs),
}

#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    key: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// At most 1 KiB
    key: String,
    /// At most 65,535 bytes; may be empty
    value: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only keys that start with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: ConfigCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        ConfigCommand::Get(args) => read(args, before).await,
        ConfigCommand::Set(args) => set(args, before).await,
        ConfigCommand::List(args) => list(args, before).await,
    }
}

async fn read(args: GetArgs, before: TargetArgs) -> Result<(), Failure> {
    let key = args.key;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let found = admin.config(&key).await.map_err(failed("read", &key))?;
    let Some(value) = found else {
        return Err(Failure::NotFound(format!(
            "the key {key:?} is not set; `tanda config list` shows those that are"
        )));
    };
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"key": key, "value": value}))?;
    } else {
        out.line(value)?;
    }
    out.flush()
}

async fn set(args: SetArgs, before: TargetArgs) -> Result<(), Failure> {
    let (key, value) = (args.key, args.value);
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    admin
        .set_config(&key, &value)
        .await
        .map_err(failed("set", &key))?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"key": key, "value": value}))?;
    } else {
        out.line(format_args!("set {}", printable(key.as_bytes())))?;
    }
    out.flush()
}

async fn list(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let entries = admin
        .list_config(&args.prefix)
        .await
        .map_err(|error| Failure::request("list the keys", &error))?;
    let mut out = Output::new();
    if target.json {
        let entry = |(key, value): &(String, String)| json!({"key": key, "value": value});
        out.document(&entries.iter().map(entry).collect::<Value>())?;
        return out.flush();
    }
    let mut table = Table::new(&["KEY", "VALUE"], &[]);
    for (key, value) in &entries {
        table.row([printable(key.as_bytes()), printable(value.as_bytes())]);
    }
    out.line(table)?;
    out.flush()
}

fn failed(verb: &str, key: &str) -> impl FnOnce(RequestError) -> Failure {
    let action = format!("{verb} the key {key:?}");
    move |error| Failure::request(action, &error)
}
