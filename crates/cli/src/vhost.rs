//! `tanda vhost ...`: virtual hosts.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::{
    confirm::ConfirmArgs,
    failure::Failure,
    http_door::segment,
    output::{Output, done, printable, text},
    table::Table,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum VhostCommand {
    /// Make a virtual host; one that is there stays.
    Add(AddArgs),
    /// Remove a virtual host with all its queues, exchanges, messages and permissions.
    Delete(DeleteArgs),
    /// List the virtual hosts.
    List(ListArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    confirm: ConfirmArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: VhostCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        VhostCommand::Add(args) => add(args, before).await,
        VhostCommand::Delete(args) => delete(args, before).await,
        VhostCommand::List(args) => list(args, before).await,
    }
}

fn path(name: &str) -> String {
    format!("/api/vhosts/{}", segment(name))
}

async fn add(args: AddArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let name = args.name;
    target.http()?.put(&path(&name), &json!({})).await?;
    let sentence = format!(
        "virtual host {} is there; `tanda permission set --vhost` opens it to users",
        printable(name.as_bytes())
    );
    done(target.json, &json!({ "name": name }), &sentence)
}

async fn delete(args: DeleteArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let name = args.name;
    args.confirm.ask(
        &format!("delete virtual host {name:?}"),
        &format!("Remove virtual host {name:?} with everything in it for good?"),
    )?;
    door.delete(&path(&name)).await?;
    let sentence = format!("removed virtual host {}", printable(name.as_bytes()));
    done(
        target.json,
        &json!({"name": name, "deleted": true}),
        &sentence,
    )
}

async fn list(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let vhosts = target.http()?.read("/api/vhosts").await?;
    let mut out = Output::new();
    if target.json {
        out.document(&vhosts)?;
        return out.flush();
    }
    let mut table = Table::new(&["VHOST"], &[]);
    for vhost in vhosts.as_array().into_iter().flatten() {
        table.row([text(vhost, "name")]);
    }
    out.line(table)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_virtual_host_is_one_segment() {
        assert_eq!(path("/"), "/api/vhosts/%2F");
    }
}
