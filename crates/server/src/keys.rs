//! Whether clients must show a key, and the first key there is.

use std::{
    fmt, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tanda_engine::{
    AdminReply, AdminRequest, Bootstrapped, ConnId, CreateApiKeyError, Event, KeyHash, ReplyTo,
    Request,
};
use tanda_node::Node;
use tanda_session::fila::Authentication;
use tanda_wal::Disk;

use crate::{
    audit,
    config::{Authenticate, Config, ConfiguredSecret},
};

/// Whose request the bootstrap key is: nobody's, connections are numbered from 1.
const NOBODY: ReplyTo = ReplyTo {
    conn: ConnId(0),
    token: 0,
};

/// Why there is no bootstrap key.
#[derive(Debug)]
pub enum BootstrapError {
    /// Its file cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is in the file cannot be a secret.
    Secret {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The broker makes no key.
    Refused(CreateApiKeyError),
    /// The key could not be written down.
    Storage,
}

/// The configured secret, wherever it stands.
pub(crate) fn bootstrap_secret(
    config: &Config,
) -> Result<Option<ConfiguredSecret>, BootstrapError> {
    match (
        &config.auth_bootstrap_apikey,
        &config.auth_bootstrap_apikey_file,
    ) {
        (Some(secret), _) => Ok(Some(secret.clone())),
        (None, Some(path)) => read_secret(path).map(Some),
        (None, None) => Ok(None),
    }
}

fn read_secret(path: &Path) -> Result<ConfiguredSecret, BootstrapError> {
    let failed = |source| BootstrapError::File {
        path: path.to_owned(),
        source,
    };
    let text = fs::read_to_string(path).map_err(failed)?;
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        tracing::warn!(%path, "others than its owner may read the file of the bootstrap key");
    }
    ConfiguredSecret::new(text.trim_end_matches(['\r', '\n'])).map_err(|problem| {
        BootstrapError::Secret {
            path: path.to_owned(),
            problem,
        }
    })
}

/// Makes the bootstrap key if it is new, and says whether clients must show a key. Writes the log:
/// call it before the node's threads are started.
pub(crate) fn prepare<D: Disk>(
    mode: Authenticate,
    secret: Option<&ConfiguredSecret>,
    node: &mut Node<D>,
) -> Result<Authentication, BootstrapError> {
    if let Some(secret) = secret {
        match make(KeyHash::of(secret.reveal().as_bytes()), node)? {
            Bootstrapped::Made { key, replaced } => {
                let replaced = replaced.map(|id| id.to_string());
                tracing::info!(
                    target: audit::TARGET,
                    key = %key.id,
                    replaced,
                    outcome = "done",
                    "audit: made the bootstrap key"
                );
            }
            Bootstrapped::Known { is_revoked: true } => tracing::warn!(
                "the configured bootstrap key was revoked and stays so: remove it from the \
                 configuration, or give another one"
            ),
            Bootstrapped::Known { is_revoked: false } => {}
        }
    }
    let keys = node.keys();
    let authentication = match mode {
        Authenticate::True => Authentication::On,
        Authenticate::Auto if keys.was_bootstrapped() => Authentication::On,
        Authenticate::Auto | Authenticate::False => Authentication::Off,
    };
    let now = node.clock_floor();
    let is_root =
        |key: &&std::sync::Arc<tanda_engine::ApiKey>| key.is_superadmin && !key.is_expired(now);
    match authentication {
        Authentication::On if keys.iter().find(is_root).is_none() => tracing::warn!(
            "clients must show a key, and no key may make others: set auth.bootstrap_apikey"
        ),
        Authentication::Off if !keys.is_empty() => tracing::warn!(
            keys = keys.len(),
            "there are API keys, but nobody has to show one: set auth.enabled = true"
        ),
        Authentication::On | Authentication::Off => {}
    }
    Ok(authentication)
}

fn make<D: Disk>(hash: KeyHash, node: &mut Node<D>) -> Result<Bootstrapped, BootstrapError> {
    match ask(node, AdminRequest::Bootstrap { hash }) {
        Some(AdminReply::Bootstrapped(result)) => result.map_err(BootstrapError::Refused),
        Some(_) | None => Err(BootstrapError::Storage),
    }
}

/// Asks a node whose threads are not started, and waits until the answer is on disk. `None` when
/// the log failed.
pub(crate) fn ask<D: Disk>(node: &mut Node<D>, request: AdminRequest) -> Option<AdminReply> {
    let now = node.clock_floor();
    node.handle(
        now,
        Request::Admin {
            reply: NOBODY,
            request,
        },
    );
    while let Some(job) = node.take_flush() {
        let outcome = job.run();
        node.on_flushed(now, outcome);
    }
    let mut released = Vec::new();
    node.drain_released(&mut released);
    for (_, event) in released {
        if let Event::Admin { reply, .. } = event {
            return Some(*reply);
        }
    }
    None
}

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => {
                let path = path.display();
                write!(
                    f,
                    "cannot read {path} (auth.bootstrap_apikey_file): {source}"
                )
            }
            Self::Secret { path, problem } => {
                let path = path.display();
                write!(f, "{path} (auth.bootstrap_apikey_file): {problem}")
            }
            Self::Refused(CreateApiKeyError::SecretInUse) => f.write_str(
                "the secret of the bootstrap key is that of another API key: give another one",
            ),
            Self::Refused(CreateApiKeyError::TooMany { max }) => write!(
                f,
                "there are {max} API keys, so no bootstrap key can be made: raise \
                 limits.api_keys_max"
            ),
            Self::Refused(CreateApiKeyError::BadName { problem }) => {
                write!(f, "no bootstrap key can be made: {problem}")
            }
            Self::Refused(CreateApiKeyError::Storage) | Self::Storage => {
                f.write_str("the bootstrap key cannot be written down: the disk is full, or failed")
            }
        }
    }
}

impl std::error::Error for BootstrapError {}
