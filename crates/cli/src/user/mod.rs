//! `tanda user ...`: users, who log in with a password or a certificate.

mod password;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use password::PasswordArgs;

use crate::{
    confirm::ConfirmArgs,
    failure::Failure,
    http_door::segment,
    output::{Output, done, printable, text},
    table::Table,
    target::TargetArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Make a user; its permissions are given by `tanda permission set`.
    Add(AddArgs),
    /// Remove a user with its permissions, and close its connections.
    Delete(DeleteArgs),
    /// List the users.
    List(ListArgs),
    /// Give a user another password, and close its connections.
    SetPassword(SetPasswordArgs),
    /// Replace a user's tags.
    SetTags(SetTagsArgs),
    /// Say whether a password is a user's.
    Authenticate(AuthenticateArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
The password is asked for, or read from standard input when that is no terminal:
  tanda user add anna --tag monitoring < anna.password")]
pub(crate) struct AddArgs {
    /// The user's name
    name: String,
    /// What the user is: administrator, monitoring, management, policymaker or impersonator; may
    /// be given several times
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Let no password in, only a certificate
    #[arg(long, conflicts_with_all = ["password", "password_file"])]
    no_password: bool,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The user's name
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

#[derive(Args, Debug)]
pub(crate) struct SetPasswordArgs {
    /// The user's name
    name: String,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SetTagsArgs {
    /// The user's name
    name: String,
    /// Its tags from now on; none takes all away
    tags: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AuthenticateArgs {
    /// The user's name
    name: String,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: UserCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        UserCommand::Add(args) => add(args, before).await,
        UserCommand::Delete(args) => delete(args, before).await,
        UserCommand::List(args) => list(args, before).await,
        UserCommand::SetPassword(args) => set_password(args, before).await,
        UserCommand::SetTags(args) => set_tags(args, before).await,
        UserCommand::Authenticate(args) => authenticate(args, before).await,
    }
}

fn path(name: &str) -> String {
    format!("/api/users/{}", segment(name))
}

async fn add(args: AddArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let name = args.name;
    // Or a typing error would change somebody else's password.
    if door.finds(&path(&name)).await? {
        return Err(Failure::Refused(format!(
            "there is a user {name:?}; `tanda user set-password` and `tanda user set-tags` change \
             one"
        )));
    }
    let mut user = Map::new();
    if args.no_password {
        user.insert("password_hash".to_owned(), json!(""));
    } else {
        user.insert("password".to_owned(), json!(args.password.load()?));
    }
    user.insert("tags".to_owned(), json!(args.tags));
    door.put(&path(&name), &Value::Object(user)).await?;
    let sentence = format!(
        "made the user {}; `tanda permission set` says what it may do",
        printable(name.as_bytes())
    );
    done(
        target.json,
        &json!({"name": name, "tags": args.tags}),
        &sentence,
    )
}

async fn delete(args: DeleteArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let name = args.name;
    args.confirm.ask(
        &format!("delete user {name:?}"),
        &format!("Remove user {name:?} and close its connections?"),
    )?;
    door.delete(&path(&name)).await?;
    let sentence = format!("removed the user {}", printable(name.as_bytes()));
    done(
        target.json,
        &json!({"name": name, "deleted": true}),
        &sentence,
    )
}

async fn list(args: ListArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let users = target.http()?.read("/api/users").await?;
    let mut out = Output::new();
    if target.json {
        out.document(&users)?;
        return out.flush();
    }
    let mut table = Table::new(&["USER", "PASSWORD", "TAGS"], &[]);
    for user in users.as_array().into_iter().flatten() {
        let has = user.get("has_password").and_then(Value::as_bool);
        let has = if has == Some(true) { "yes" } else { "none" };
        let tags = user.get("tags").and_then(Value::as_array);
        let tags: Vec<_> = tags
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        table.row([
            text(user, "name"),
            has.to_owned(),
            printable(tags.join(", ").as_bytes()),
        ]);
    }
    out.line(table)?;
    out.flush()
}

async fn set_password(args: SetPasswordArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let name = args.name;
    door.read(&path(&name)).await?;
    let password = args.password.load()?;
    door.put(&path(&name), &json!({ "password": password }))
        .await?;
    let sentence = format!(
        "user {} has another password; its connections have to log in again",
        printable(name.as_bytes())
    );
    done(
        target.json,
        &json!({"name": name, "changed": "password"}),
        &sentence,
    )
}

async fn set_tags(args: SetTagsArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let (name, tags) = (args.name, args.tags);
    door.read(&path(&name)).await?;
    door.put(&path(&name), &json!({ "tags": tags })).await?;
    let shown = if tags.is_empty() {
        "no tags".to_owned()
    } else {
        format!("the tags {}", printable(tags.join(", ").as_bytes()))
    };
    let sentence = format!("user {} has {shown}", printable(name.as_bytes()));
    done(target.json, &json!({"name": name, "tags": tags}), &sentence)
}

async fn authenticate(args: AuthenticateArgs, before: TargetArgs) -> Result<(), Failure> {
    let target = args.target.or(before);
    let door = target.http()?;
    let name = args.name;
    let question = json!({ "password": args.password.load()? });
    let path = format!("/api/tanda/users/{}/authenticate", segment(&name));
    let answer = door.ask(&path, &question).await?;
    let is_right = answer.get("ok").and_then(Value::as_bool) == Some(true);
    if !is_right {
        return Err(Failure::Refused(format!(
            "there is no user {name:?} with this password"
        )));
    }
    let sentence = format!(
        "this is the password of user {}",
        printable(name.as_bytes())
    );
    done(target.json, &json!({"name": name, "ok": true}), &sentence)
}
