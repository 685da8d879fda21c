//! `tanda permission ...` and `tanda topic-permission ...`: what users may do.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    http_door::segment,
    output::{Output, done, printable, text},
    table::Table,
    target::{Target, TargetArgs},
};

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionCommand {
    /// Say what a user may do in a virtual host, in place of what it might before.
    Set(SetArgs),
    /// Close a virtual host to a user.
    Clear(ClearArgs),
    /// List permissions.
    List(ListArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
CONFIGURE, WRITE and READ are regular expressions of names of exchanges and queues. They match
anywhere in a name: write ^ and $ where that matters. '.*' is everything, '' is nothing:
  tanda permission set anna '^anna-.*' '^(orders|amq\\.default)$' '.*'")]
pub(crate) struct SetArgs {
    /// The user's name
    user: String,
    /// What it may make and delete
    configure: String,
    /// Where it may put messages
    write: String,
    /// Where it may take messages from
    read: String,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ClearArgs {
    /// The user's name
    user: String,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Only in this virtual host
    #[arg(long, value_name = "VHOST")]
    vhost: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
struct VhostArgs {
    /// The virtual host
    #[arg(long, value_name = "VHOST", default_value = "/")]
    vhost: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicPermissionCommand {
    /// Say which routing keys a user may use with an exchange.
    Set(SetTopicArgs),
    /// Let a user use any routing key again.
    Clear(ClearTopicArgs),
    /// List permissions for routing keys.
    List(ListArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
WRITE and READ are regular expressions of routing keys; {username} and {vhost} in them stand for
the user and the virtual host:
  tanda topic-permission set anna amq.topic '^{username}\\.' '.*'")]
pub(crate) struct SetTopicArgs {
    /// The user's name
    user: String,
    /// The exchange
    exchange: String,
    /// Keys it may publish with
    write: String,
    /// Keys it may bind with
    read: String,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ClearTopicArgs {
    /// The user's name
    user: String,
    /// Only of this exchange
    exchange: Option<String>,
    #[command(flatten)]
    vhost: VhostArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: PermissionCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        PermissionCommand::Set(args) => set(args, before).await,
        PermissionCommand::Clear(args) => clear(args, before).await,
        PermissionCommand::List(args) => {
            let columns = ["user", "vhost", "configure", "write", "read"];
            list(args, before, ("/api/permissions", &columns)).await
        }
    }
}

pub(crate) async fn run_topic(
    command: TopicPermissionCommand,
    before: TargetArgs,
) -> Result<(), Failure> {
    match command {
        TopicPermissionCommand::Set(args) => set_topic(args, before).await,
        TopicPermissionCommand::Clear(args) => clear_topic(args, before).await,
        TopicPermissionCommand::List(args) => {
            let columns = ["user", "vhost", "exchange", "write", "read"];
            list(args, before, ("/api/topic-permissions", &columns)).await
        }
    }
}

fn path(kind: &str, vhost: &str, user: &str) -> String {
    format!("/api/{kind}/{}/{}", segment(vhost), segment(user))
}

fn place(user: &str, vhost: &str) -> String {
    format!(
        "user {} in virtual host {}",
        printable(user.as_bytes()),
        printable(vhost.as_bytes())
    )
}

async fn put(target: &Target, path: &str, document: &Value) -> Result<(), Failure> {
    target.http()?.put(path, document).await.map(drop)
}

async fn set(args: SetArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let (user, vhost) = (args.user, args.vhost.vhost);
    let permissions = json!({
        "user": user,
        "vhost": vhost,
        "configure": args.configure,
        "write": args.write,
        "read": args.read,
    });
    put(&target, &path("permissions", &vhost, &user), &permissions).await?;
    let sentence = format!("set the permissions of {}", place(&user, &vhost));
    done(target.json, &permissions, &sentence)
}

async fn clear(args: ClearArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let (user, vhost) = (args.user, args.vhost.vhost);
    let path = path("permissions", &vhost, &user);
    target.http()?.delete(&path).await?;
    let document = json!({"user": user, "vhost": vhost, "cleared": true});
    let sentence = format!("{} may do nothing any more", place(&user, &vhost));
    done(target.json, &document, &sentence)
}

async fn set_topic(args: SetTopicArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let (user, vhost) = (args.user, args.vhost.vhost);
    let permissions = json!({
        "user": user,
        "vhost": vhost,
        "exchange": args.exchange,
        "write": args.write,
        "read": args.read,
    });
    put(
        &target,
        &path("topic-permissions", &vhost, &user),
        &permissions,
    )
    .await?;
    let sentence = format!(
        "set the routing keys of {} for exchange {}",
        place(&user, &vhost),
        printable(args.exchange.as_bytes())
    );
    done(target.json, &permissions, &sentence)
}

async fn clear_topic(args: ClearTopicArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let (user, vhost) = (args.user, args.vhost.vhost);
    let mut path = path("topic-permissions", &vhost, &user);
    if let Some(exchange) = &args.exchange {
        path.push('/');
        path.push_str(&segment(exchange));
    }
    target.http()?.delete(&path).await?;
    let document = json!({
        "user": user,
        "vhost": vhost,
        "exchange": args.exchange,
        "cleared": true,
    });
    let sentence = format!("{} may use any routing key", place(&user, &vhost));
    done(target.json, &document, &sentence)
}

async fn list(
    args: ListArgs,
    before: TargetArgs,
    (path, columns): (&str, &[&str]),
) -> Result<(), Failure> {
    let target = args.target.or(before);
    let all = target.http()?.read(path).await?;
    let is_meant = |it: &&Value| {
        let is = |key: &str, wanted: &Option<String>| {
            let found = it.get(key).and_then(Value::as_str);
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is("user", &args.user) && is("vhost", &args.vhost)
    };
    let meant = all.as_array().into_iter().flatten().filter(is_meant);
    let mut out = Output::new();
    if target.json {
        out.document(&meant.cloned().collect())?;
        return out.flush();
    }
    let headings: Vec<_> = columns.iter().map(|name| name.to_uppercase()).collect();
    let headings: Vec<_> = headings.iter().map(String::as_str).collect();
    let mut table = Table::new(&headings, &[]);
    for it in meant {
        table.row(columns.iter().map(|column| text(it, column)));
    }
    out.line(table)?;
    out.flush()
}
