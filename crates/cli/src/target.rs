//! Which broker a command calls, and in which form it answers.

use std::env;

use clap::Args;
use tanda_client::{Client, ReconnectPolicy};

use crate::{failure::Failure, http_door::HttpDoor};

const ADDR_ENV: &str = "TANDA_ADDR";
const ADDR_DEFAULT: &str = "127.0.0.1:5555";
const HTTP_ENV: &str = "TANDA_HTTP";
const HTTP_DEFAULT: &str = "http://127.0.0.1:15672";

/// Flags of every command that calls a broker; they may stand before or after its name.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Broker")]
pub(crate) struct TargetArgs {
    /// Fila door of the broker [env: TANDA_ADDR] [default: 127.0.0.1:5555]
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// HTTP door of the broker [env: TANDA_HTTP] [default: http://127.0.0.1:15672]
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// Answer in JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// The broker to call.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    addr: String,
    http: String,
    pub(crate) json: bool,
}

/// What happens when the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenLost {
    /// The command fails.
    Fail,
    /// It is opened again.
    Reconnect,
}

impl TargetArgs {
    pub(crate) const fn is_given(&self) -> bool {
        self.addr.is_some() || self.http.is_some() || self.json
    }

    /// These flags, which win, and those that stood before the command.
    pub(crate) fn or(self, before: Self) -> Target {
        let pick = |given: Option<String>, name, default: &str| {
            let set = |text: &String| !text.is_empty();
            given
                .or_else(|| env::var(name).ok().filter(set))
                .unwrap_or_else(|| default.to_owned())
        };
        Target {
            addr: pick(self.addr.or(before.addr), ADDR_ENV, ADDR_DEFAULT),
            http: pick(self.http.or(before.http), HTTP_ENV, HTTP_DEFAULT),
            json: self.json || before.json,
        }
    }
}

impl Target {
    /// Connects to the Fila door.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.connect_for(WhenLost::Fail).await
    }

    /// Connects to the Fila door. The first connection is tried once.
    pub(crate) async fn connect_for(&self, when_lost: WhenLost) -> Result<Client, Failure> {
        let policy = match when_lost {
            WhenLost::Fail => ReconnectPolicy::never(),
            WhenLost::Reconnect => ReconnectPolicy::default(),
        };
        let builder = Client::builder().address(&self.addr).reconnect(policy);
        builder.connect().await.map_err(|source| Failure::Connect {
            addr: self.addr.clone(),
            source,
        })
    }

    pub(crate) fn http(&self) -> Result<HttpDoor, Failure> {
        HttpDoor::new(&self.http).map_err(Failure::Usage)
    }

    pub(crate) fn addr(&self) -> &str {
        &self.addr
    }
}
