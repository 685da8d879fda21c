//! `tanda exchange ...`: exchanges and bindings, and messages through them, over FireMQ; lists of
//! them over the HTTP door.

mod list;
mod messages;
mod topology;

pub(crate) use list::{life, list_path};

use std::env;

use clap::{Args, Subcommand};
use tanda_client::{
    ReconnectPolicy,
    fire::{ConnectError, FireClient, ReplyCode, RequestError},
};

use crate::{
    failure::{Failure, IS_IT_RUNNING},
    target::{Target, TargetArgs},
};

const URL_ENV: &str = "TANDA_FIREMQ";
const URL_DEFAULT: &str = "fire://127.0.0.1:5673";

#[derive(Debug, Subcommand)]
pub(crate) enum ExchangeCommand {
    /// List exchanges.
    List(list::ListArgs),
    /// List bindings.
    Bindings(list::BindingsArgs),
    /// Declare an exchange; one that is there with the same properties stays.
    Declare(topology::DeclareArgs),
    /// Delete an exchange with its bindings.
    Delete(topology::DeleteArgs),
    /// Let an exchange give messages to a queue, or to another exchange.
    Bind(topology::BindArgs),
    /// Remove a binding.
    Unbind(topology::BindArgs),
    /// Send messages to an exchange: arguments, or lines of standard input.
    Send(messages::SendArgs),
    /// Print what an exchange gives from now on, through a queue that goes with this command.
    Listen(messages::ListenArgs),
}

/// Where the FireMQ door is.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoorArgs {
    /// FireMQ door of the broker, fire:// or fires://, with user, password and virtual host where
    /// they are not guest, guest and /. Other users of this machine can read a password in the list
    /// of processes: prefer the environment
    /// [env: TANDA_FIREMQ] [default: fire://127.0.0.1:5673]
    #[arg(long, value_name = "URL")]
    firemq: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) async fn run(command: ExchangeCommand, before: TargetArgs) -> Result<(), Failure> {
    match command {
        ExchangeCommand::List(args) => list::list(args, before).await,
        ExchangeCommand::Bindings(args) => list::bindings(args, before).await,
        ExchangeCommand::Declare(args) => topology::declare(args, before).await,
        ExchangeCommand::Delete(args) => topology::delete(args, before).await,
        ExchangeCommand::Bind(args) => topology::bind(args, before).await,
        ExchangeCommand::Unbind(args) => topology::unbind(args, before).await,
        ExchangeCommand::Send(args) => messages::send(args, before).await,
        ExchangeCommand::Listen(args) => messages::listen(args, before).await,
    }
}

/// A connection, and in which form the command answers.
struct Door {
    fire: FireClient,
    json: bool,
}

impl DoorArgs {
    async fn open(self, before: TargetArgs) -> Result<Door, Failure> {
        let url = self
            .firemq
            .or_else(|| env::var(URL_ENV).ok().filter(|url| !url.is_empty()))
            .unwrap_or_else(|| URL_DEFAULT.to_owned());
        let target = self.target.or(before);
        let fire = connect(&url, &target).await?;
        let json = target.json;
        Ok(Door { fire, json })
    }
}

async fn connect(url: &str, target: &Target) -> Result<FireClient, Failure> {
    let mut builder = FireClient::builder(url).reconnect(ReconnectPolicy::never());
    if url.starts_with("fires:") {
        builder = builder.tls(target.tls()?);
    }
    let place = without_login(url);
    builder.connect().await.map_err(|error| {
        if let ConnectError::Io(error) = &error {
            let text = format!("cannot reach the FireMQ door at {place}: {error}");
            return Failure::Refused(format!("{text}; {IS_IT_RUNNING}"));
        }
        if matches!(error, ConnectError::Url(_) | ConnectError::WebSocket { .. }) {
            return Failure::Usage(format!("cannot use {place}: {error}"));
        }
        Failure::Refused(format!("cannot connect to {place}: {error}"))
    })
}

/// A URL as it may be shown.
fn without_login(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        _ => url.to_owned(),
    }
}

/// A request that failed; `action` completes "cannot ...".
fn refused(action: &str, error: &RequestError) -> Failure {
    let text = format!("cannot {action}: {error}");
    if error.code() == Some(ReplyCode::NotFound) {
        Failure::NotFound(text)
    } else {
        Failure::Refused(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        let shown = [
            "fire://anna:s3cret@host:5673/shop",
            "fires://anna:p@ss@host/",
            "fire://host:5673",
            "nonsense",
        ]
        .map(without_login);
        let expected = [
            "fire://host:5673/shop",
            "fires://host/",
            "fire://host:5673",
            "nonsense",
        ];
        assert_eq!(shown, expected);
    }
}
