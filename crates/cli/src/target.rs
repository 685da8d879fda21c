//! Which broker a command calls, and in which form it answers.

use std::env;

use clap::Args;
use tanda_client::{Client, ReconnectPolicy, Tls};

use crate::{
    credentials::{KeyArgs, Secret},
    encryption::{Encryption, TlsArgs},
    failure::Failure,
    http_door::{HttpDoor, Place},
};

const ADDR_ENV: &str = "TANDA_ADDR";
const ADDR_DEFAULT: &str = "127.0.0.1:5555";
const ADDR_DEFAULT_TLS: &str = "127.0.0.1:5556";
const HTTP_ENV: &str = "TANDA_HTTP";
const HTTP_DEFAULT: &str = "http://127.0.0.1:15672";

/// Flags of every command that calls a broker; they may stand before or after its name.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[command(next_help_heading = "Broker")]
pub(crate) struct TargetArgs {
    /// Fila door of the broker [env: TANDA_ADDR] [default: 127.0.0.1:5555; with TLS port 5556]
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// HTTP door of the broker; https:// for the one with TLS
    /// [env: TANDA_HTTP] [default: http://127.0.0.1:15672]
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    tls: TlsArgs,
    /// Answer in JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// The broker to call.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    addr: String,
    http: String,
    key: KeyArgs,
    encryption: Encryption,
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
    pub(crate) fn is_given(&self) -> bool {
        *self != Self::default()
    }

    /// These flags, which win, and those that stood before the command.
    pub(crate) fn or(self, before: Self) -> Target {
        let pick = |given: Option<String>, name, default: &str| {
            let set = |text: &String| !text.is_empty();
            given
                .or_else(|| env::var(name).ok().filter(set))
                .unwrap_or_else(|| default.to_owned())
        };
        let encryption = self.tls.or(before.tls);
        let addr_default = if encryption.is_asked() {
            ADDR_DEFAULT_TLS
        } else {
            ADDR_DEFAULT
        };
        Target {
            addr: pick(self.addr.or(before.addr), ADDR_ENV, addr_default),
            http: pick(self.http.or(before.http), HTTP_ENV, HTTP_DEFAULT),
            key: self.key.or(before.key),
            encryption,
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
        let mut builder = Client::builder().address(&self.addr).reconnect(policy);
        let key = self.key.load()?;
        let has_key = key.is_some();
        if let Some(key) = key {
            builder = builder.api_key(key.reveal());
        }
        if self.encryption.is_asked() {
            builder = builder.tls(self.encryption.load()?);
        }
        builder.connect().await.map_err(|source| Failure::Connect {
            addr: self.addr.clone(),
            has_key,
            source,
        })
    }

    /// Whether TLS is asked for.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encryption.is_asked()
    }

    /// The API key to show, if one is given.
    pub(crate) fn api_key(&self) -> Result<Option<Secret>, Failure> {
        self.key.load()
    }

    /// What TLS trusts and shows.
    pub(crate) fn tls(&self) -> Result<Tls, Failure> {
        self.encryption.load()
    }

    /// The HTTP door, which gets the same credentials as the Fila door.
    pub(crate) fn http(&self) -> Result<HttpDoor, Failure> {
        let place = Place::parse(&self.http).map_err(Failure::Usage)?;
        let tls = match place.is_encrypted() {
            true => Some(self.encryption.load()?),
            false => None,
        };
        Ok(HttpDoor::new(place, self.key.load()?, tls))
    }

    pub(crate) fn addr(&self) -> &str {
        &self.addr
    }
}
