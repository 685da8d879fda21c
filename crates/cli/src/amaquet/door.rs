//! Where the Amaquet door is, and why there is no connection to it.

use std::{env, io};

use clap::Args;
use tanda_client::{
    ReconnectPolicy, TlsProblem,
    amaquet::{AmaquetClient, ConnectError, ErrorCode},
};

use crate::{
    credentials::HOW_TO_GIVE,
    failure::{Failure, IS_IT_RUNNING},
    target::{Target, TargetArgs},
};

const ADDR_ENV: &str = "TANDA_AMAQUET";
const ADDR_DEFAULT: &str = "127.0.0.1:7272";
const ADDR_DEFAULT_TLS: &str = "127.0.0.1:7273";
const NODE_KEY_ENV: &str = "TANDA_AMAQUET_NODE_KEY";
const NO_TLS_THERE: &str = "it does not speak TLS: name the door for TLS by --amaquet, or leave \
                            out --tls and what implies it";

#[derive(Args, Clone, Debug)]
pub(crate) struct DoorArgs {
    /// Amaquet door of the broker
    /// [env: TANDA_AMAQUET] [default: 127.0.0.1:7272; with TLS port 7273]
    #[arg(long, value_name = "HOST:PORT")]
    amaquet: Option<String>,
    /// The public key that the broker must prove to have, in base64, as `status` in the shell shows
    /// it [env: TANDA_AMAQUET_NODE_KEY]
    #[arg(long, value_name = "KEY")]
    node_key: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

/// The door to call, and how.
pub(super) struct Door {
    pub(super) addr: String,
    node_key: Option<String>,
    target: Target,
}

impl DoorArgs {
    pub(super) fn or(self, before: TargetArgs) -> Door {
        let set = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let target = self.target.or(before);
        let addr_default = match target.is_encrypted() {
            true => ADDR_DEFAULT_TLS,
            false => ADDR_DEFAULT,
        };
        Door {
            addr: self
                .amaquet
                .or_else(|| set(ADDR_ENV))
                .unwrap_or_else(|| addr_default.to_owned()),
            node_key: self.node_key.or_else(|| set(NODE_KEY_ENV)),
            target,
        }
    }
}

impl Door {
    /// Connects; a lost connection is opened again as the policy says.
    pub(super) async fn connect(&self, policy: ReconnectPolicy) -> Result<AmaquetClient, Failure> {
        let mut builder = AmaquetClient::builder()
            .address(&self.addr)
            .reconnect(policy);
        let api_key = self.target.api_key()?;
        let has_key = api_key.is_some();
        if let Some(api_key) = api_key {
            builder = builder.api_key(api_key.reveal());
        }
        if let Some(node_key) = &self.node_key {
            builder = builder.server_key(read_key(node_key)?);
        }
        if self.target.is_encrypted() {
            builder = builder.tls(self.target.tls()?);
        }
        let connected = builder.connect().await;
        connected.map_err(|error| Failure::Refused(self.explain(has_key, &error)))
    }

    fn explain(&self, has_key: bool, error: &ConnectError) -> String {
        let addr = &self.addr;
        if matches!(error, ConnectError::KeyWanted) {
            return format!("the broker at {addr} asks for an API key; give one by {HOW_TO_GIVE}");
        }
        if let ConnectError::Refused(refusal) = error
            && has_key
            && refusal.known_code() == Some(ErrorCode::Unauthenticated)
        {
            return format!(
                "the broker at {addr} does not know the API key, or the key has expired or was \
                 revoked ({refusal})"
            );
        }
        let what = if let ConnectError::Io(source) = error
            && error.tls_problem().is_none()
        {
            // The error without a second "cannot connect".
            source.to_string()
        } else {
            error.to_string()
        };
        let remedy = match self.target.is_encrypted() && is_end(error) {
            true => Some(NO_TLS_THERE.to_owned()),
            false => remedy(error),
        };
        let remedy = remedy.map(|remedy| format!("; {remedy}"));
        let remedy = remedy.unwrap_or_default();
        format!("cannot reach the Amaquet door at {addr}: {what}{remedy}")
    }
}

/// The door without TLS answers nothing to what is no frame: it closes.
fn is_end(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof)
}

fn remedy(error: &ConnectError) -> Option<String> {
    if let Some(problem) = error.tls_problem() {
        return tls_remedy(problem).map(String::from);
    }
    if matches!(error, ConnectError::NotAmaquet { .. }) {
        let text = "another program listens there, or it is another door; when it is the door for \
                    TLS, say --tls";
        return Some(text.to_owned());
    }
    if matches!(error, ConnectError::NotGenuine { .. }) {
        let text = "no API key was shown to it; when the broker was made anew, take its key from \
                    `status` in a shell that you trust, or leave out --node-key";
        return Some(text.to_owned());
    }
    error
        .retryable()
        .then(|| format!("{IS_IT_RUNNING} --amaquet HOST:PORT (or {ADDR_ENV}) names another place"))
}

const fn tls_remedy(problem: TlsProblem) -> Option<&'static str> {
    Some(match problem {
        TlsProblem::NotTls => NO_TLS_THERE,
        TlsProblem::UnknownAuthority => {
            "nobody whom this client trusts has signed the broker's certificate: --ca FILE names \
             the authority that did"
        }
        TlsProblem::WrongName => {
            "the broker's certificate is for another name: call it by that in --amaquet, or give \
             the name by --server-name"
        }
        TlsProblem::NotValidNow => "renew the broker's certificate, or set this machine's clock",
        TlsProblem::ClientCertificate => {
            "the broker wants a certificate of an authority that it trusts: --cert FILE and --key \
             FILE give one"
        }
        TlsProblem::Other | _ => return None,
    })
}

fn read_key(text: &str) -> Result<[u8; 32], Failure> {
    let bytes = tanda_client::amaquet::server_key_of(text);
    bytes.ok_or_else(|| {
        Failure::Usage(format!(
            "--node-key {text:?} is no public key: it is 32 bytes in base64"
        ))
    })
}
