//! `tanda acl ...`: what an API key allows.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tanda_client::admin::{KeyAcl, Permission, PermissionKind};

use crate::{
    failure::Failure,
    output::{Output, printable},
    table::Table,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum AclCommand {
    /// Show the grants of an API key.
    Get(GetArgs),
    /// Replace all grants of an API key.
    Set(SetArgs),
}

#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// The key's ID, as `tanda key list` shows it
    #[arg(value_name = "KEY_ID")]
    id: String,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
#[command(after_help = "\
produce is for sending; consume for receiving and settling; admin for making, changing, looking at
and removing queues and for redrive. admin:* is for runtime configuration and throttles too. In a
pattern * stands for any characters, dots too, and ? for one:
  tanda acl set KEY_ID 'produce:orders.*' 'consume:orders.eu'")]
pub(crate) struct SetArgs {
    /// The key's ID, as `tanda key list` shows it
    #[arg(value_name = "KEY_ID")]
    id: String,
    /// What it allows from now on: produce, consume or admin, and a pattern for queue names
    #[arg(
        value_name = "KIND:PATTERN", value_parser = parse_grant, required_unless_present = "none",
    )]
    grants: Vec<Permission>,
    /// Take away all grants
    #[arg(long, conflicts_with = "grants")]
    none: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: AclCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        AclCommand::Get(args) => read(args, before).await,
        AclCommand::Set(args) => set(args, before).await,
    }
}

/// Reads `produce:orders.*`.
///
/// # Errors
/// Names what can be granted.
pub(crate) fn parse_grant(text: &str) -> Result<Permission, String> {
    let kind = |name: &str| {
        let kind = PermissionKind::from_name(name);
        (!matches!(kind, PermissionKind::Other(_))).then_some(kind)
    };
    text.split_once(':')
        .filter(|(_, pattern)| !pattern.is_empty())
        .and_then(|(name, pattern)| Some(Permission::new(kind(name)?, pattern)))
        .ok_or_else(|| {
            "a grant is produce, consume or admin, a colon and a pattern for queue names, like \
             consume:orders.*"
                .to_owned()
        })
}

/// "produce:a, consume:b".
pub(crate) fn grants(permissions: &[Permission]) -> String {
    let grant = |it: &Permission| format!("{}:{}", it.kind.name(), it.pattern);
    let grants: Vec<String> = permissions.iter().map(grant).collect();
    printable(grants.join(", ").as_bytes())
}

async fn read(args: GetArgs, before: TargetArgs) -> Result<(), Failure> {
    let id = args.id;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let acl = admin
        .acl(&id)
        .await
        .map_err(|error| Failure::request(format!("read the grants of the key {id:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&as_json(&acl))?;
    } else if acl.is_superadmin {
        out.line("may do everything, whatever its grants say")?;
    } else {
        out.line(table(&acl))?;
    }
    out.flush()
}

fn as_json(acl: &KeyAcl) -> Value {
    json!({
        "key_id": acl.key_id,
        "is_superadmin": acl.is_superadmin,
        "grants": acl.permissions.iter().map(grant_json).collect::<Value>(),
    })
}

fn grant_json(permission: &Permission) -> Value {
    json!({"kind": permission.kind.name(), "pattern": permission.pattern})
}

fn table(acl: &KeyAcl) -> Table {
    let mut table = Table::new(&["MAY", "ON QUEUES"], &[]);
    for permission in &acl.permissions {
        table.row([
            printable(permission.kind.name().as_bytes()),
            printable(permission.pattern.as_bytes()),
        ]);
    }
    table
}

async fn set(args: SetArgs, before: TargetArgs) -> Result<(), Failure> {
    let (id, permissions) = (args.id, args.grants);
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    admin
        .set_acl(&id, &permissions)
        .await
        .map_err(|error| Failure::request(format!("set the grants of the key {id:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        let grants = permissions.iter().map(grant_json).collect::<Value>();
        out.document(&json!({"key_id": id, "grants": grants}))?;
    } else {
        let may = match permissions.as_slice() {
            [] => "nothing".to_owned(),
            permissions => grants(permissions),
        };
        out.line(format_args!(
            "the key {} may {may}",
            printable(id.as_bytes())
        ))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_a_kind_and_a_pattern() {
        assert_eq!(
            parse_grant("consume:a:b.*"),
            Ok(Permission::new(PermissionKind::Consume, "a:b.*"))
        );
        for text in ["", "consume", "consume:", "read:a", "Produce:a"] {
            assert!(parse_grant(text).is_err(), "{text}");
        }
        let both = ["produce:a.*", "admin:*"].map(|text| parse_grant(text).unwrap());
        assert_eq!(grants(&both), "produce:a.*, admin:*");
    }
}
