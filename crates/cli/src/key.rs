//! `tanda key ...`: API keys.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tanda_client::admin::{Admin, ApiKeyExpiry, ApiKeyInfo, CreatedApiKey, Permission};

use crate::{
    acl::{grants, parse_grant},
    durations,
    failure::Failure,
    moments,
    note::note,
    output::{Output, printable},
    table::Table,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make an API key and print its secret, which the broker tells only now.
    Create(CreateArgs),
    /// List the API keys, without their secrets.
    List(ListArgs),
    /// End an API key at once, also for those who are connected with it.
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
The secret is all that goes to standard output, so that it can be put where it belongs:
  tanda key create worker --grant consume:orders > worker.key
Without grants a key can do nothing; `tanda acl set` replaces them.")]
pub(crate) struct CreateArgs {
    /// What the key is called in listings and logs
    name: String,
    /// Let it do everything
    #[arg(long, conflicts_with = "grant")]
    superadmin: bool,
    /// Let it do this: produce, consume or admin, on queues whose name fits the pattern, where *
    /// stands for any characters and ? for one; may be given several times
    #[arg(long, value_name = "KIND:PATTERN", value_parser = parse_grant)]
    grant: Vec<Permission>,
    /// End it after this long
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    expires_in: Option<Duration>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// The key's ID, as `tanda key list` shows it; not its secret
    #[arg(value_name = "KEY_ID")]
    id: String,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: KeyCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        KeyCommand::Create(args) => create(args, before).await,
        KeyCommand::List(args) => list(args, before).await,
        KeyCommand::Revoke(args) => revoke(args, before).await,
    }
}

async fn create(args: CreateArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let expiry = expiry(args.expires_in, moments::now_ms())?;
    let admin = target.connect().await?.admin();
    let created = admin
        .create_api_key(&args.name, expiry, args.superadmin)
        .await
        .map_err(|error| Failure::request(format!("make the key {:?}", args.name), &error))?;
    let granted = grant(&admin, &created, &args.grant).await;
    let mut out = Output::new();
    let id = &created.key_id;
    if target.json {
        out.document(&json!({
            "key_id": id,
            "name": args.name,
            "key": created.key,
            "expires_at_ms": expires_at_ms(expiry),
            "is_superadmin": created.is_superadmin,
        }))?;
    } else {
        out.line(&created.key)?;
    }
    out.flush()?;
    let may = if created.is_superadmin {
        "may do everything".to_owned()
    } else {
        may(&args.grant, granted.is_ok())
    };
    note(format_args!(
        "made the key {:?} with ID {id}; it {may}, and ends {}. Its secret cannot be shown again",
        args.name,
        shown_expiry(expiry),
    ));
    granted
}

/// Gives the grants in a request of their own; the key is there even when that fails.
async fn grant(
    admin: &Admin,
    created: &CreatedApiKey,
    permissions: &[Permission],
) -> Result<(), Failure> {
    if permissions.is_empty() {
        return Ok(());
    }
    let id = &created.key_id;
    admin.set_acl(id, permissions).await.map_err(|error| {
        let action = format!("give the new key {id} its grants (try `tanda acl set {id}`)");
        Failure::request(action, &error)
    })
}

fn may(permissions: &[Permission], is_granted: bool) -> String {
    if permissions.is_empty() || !is_granted {
        return "may do nothing yet".to_owned();
    }
    format!("may {}", grants(permissions))
}

fn expiry(after: Option<Duration>, now_ms: u64) -> Result<ApiKeyExpiry, Failure> {
    let Some(after) = after else {
        return Ok(ApiKeyExpiry::Never);
    };
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    match now_ms.checked_add(after_ms) {
        Some(at_ms) if after_ms > 0 => Ok(ApiKeyExpiry::AtMs(at_ms)),
        Some(_) | None => Err(Failure::Usage(
            "--expires-in must be longer than nothing and end some day".to_owned(),
        )),
    }
}

const fn expires_at_ms(expiry: ApiKeyExpiry) -> Option<u64> {
    match expiry {
        ApiKeyExpiry::Never => None,
        ApiKeyExpiry::AtMs(at_ms) => Some(at_ms),
    }
}

fn shown_expiry(expiry: ApiKeyExpiry) -> String {
    expires_at_ms(expiry).map_or_else(|| "never".to_owned(), moments::utc)
}

async fn list(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    let keys = admin
        .list_api_keys()
        .await
        .map_err(|error| Failure::request("list the keys", &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&keys.iter().map(as_json).collect::<Value>())?;
    } else {
        out.line(table(&keys, moments::now_ms()))?;
    }
    out.flush()
}

fn as_json(key: &ApiKeyInfo) -> Value {
    json!({
        "key_id": key.key_id,
        "name": key.name,
        "created_at_ms": key.created_at_ms,
        "expires_at_ms": expires_at_ms(key.expiry),
        "is_superadmin": key.is_superadmin,
    })
}

fn table(keys: &[ApiKeyInfo], now_ms: u64) -> Table {
    let mut table = Table::new(&["KEY ID", "NAME", "MAY", "CREATED", "ENDS"], &[]);
    for key in keys {
        let may = if key.is_superadmin {
            "everything"
        } else {
            "its grants"
        };
        let is_over = expires_at_ms(key.expiry).is_some_and(|at_ms| at_ms <= now_ms);
        let over = if is_over { " (over)" } else { "" };
        table.row([
            printable(key.key_id.as_bytes()),
            printable(key.name.as_bytes()),
            may.to_owned(),
            moments::utc(key.created_at_ms),
            format!("{}{over}", shown_expiry(key.expiry)),
        ]);
    }
    table
}

async fn revoke(args: RevokeArgs, before: TargetArgs) -> Result<(), Failure> {
    let id = args.id;
    let target = args.target.or(before);
    let admin = target.connect().await?.admin();
    admin
        .revoke_api_key(&id)
        .await
        .map_err(|error| Failure::request(format!("revoke the key {id:?}"), &error))?;
    let mut out = Output::new();
    if target.json {
        out.document(&json!({"key_id": id, "revoked": true}))?;
    } else {
        out.line(format_args!("revoked the key {}", printable(id.as_bytes())))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_after_some_time() {
        assert_eq!(expiry(None, 5).unwrap(), ApiKeyExpiry::Never);
        let second = Duration::from_secs(1);
        assert_eq!(expiry(Some(second), 5).unwrap(), ApiKeyExpiry::AtMs(1_005));
        assert!(expiry(Some(Duration::ZERO), 5).is_err());
        assert!(expiry(Some(second), u64::MAX).is_err());
    }

    #[test]
    fn keys_that_are_over_are_marked() {
        let key = |name: &str, expiry| ApiKeyInfo {
            key_id: "1".to_owned(),
            name: name.to_owned(),
            created_at_ms: 0,
            expiry,
            is_superadmin: name == "root",
        };
        let keys = [
            key("root", ApiKeyExpiry::Never),
            key("old", ApiKeyExpiry::AtMs(1_000)),
        ];
        let text = table(&keys, 1_000).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].contains("everything") && lines[1].ends_with("never"),
            "{text}"
        );
        assert!(
            lines[2].ends_with("1970-01-01 00:00:01.000 UTC (over)"),
            "{text}"
        );
    }
}
