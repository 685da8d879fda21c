//! The data directory: who may use it, and whose it is.
//!
//! Layout (`docs/formats/data-directory.md`): `identity` names the log; `shard-0/` holds it;
//! `node-key` is what the node proves itself with.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use tanda_wal::Disk;

use crate::{
    disk::{DirLock, RealDisk},
    node_key::{NodeKey, NodeKeyProblem},
    random,
};

/// First line of the identity file.
const HEADER: &str = "tanda data directory, version 1";
const IDENTITY: &str = "identity";
const NODE_KEY: &str = "node-key";
const SHARD: &str = "shard-0";

/// A data directory that this process owns.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    log_id: u128,
    /// Keeps other processes out for as long as it lives.
    _lock: DirLock,
}

/// Why a data directory cannot be used.
#[derive(Debug)]
pub enum DataDirError {
    /// Another process uses it.
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The system refused something.
    Io {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The file of its node's key cannot be used; nothing was changed.
    NodeKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: NodeKeyProblem,
    },
    /// Its identity file cannot be read; nothing was changed.
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl DataDir {
    /// Takes the directory for this process; makes it when it does not exist.
    ///
    /// # Errors
    /// See [`DataDirError`].
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let failed = |action| {
            let path = path.to_owned();
            move |source| DataDirError::Io {
                path,
                action,
                source,
            }
        };
        let disk = RealDisk::open(path).map_err(failed("open"))?;
        let lock = match disk.lock() {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let path = path.to_owned();
                return Err(DataDirError::InUse { path });
            }
            Err(error) => return Err(failed("lock")(error)),
        };
        let log_id = match fs::read_to_string(path.join(IDENTITY)) {
            Ok(text) => parse(&text).map_err(|problem| DataDirError::Identity {
                path: path.join(IDENTITY),
                problem,
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_identity(path, &disk)?,
            Err(error) => return Err(failed("read the identity of")(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            log_id,
            _lock: lock,
        })
    }

    /// The identity of the log in it.
    #[must_use]
    pub const fn log_id(&self) -> u128 {
        self.log_id
    }

    /// What this node proves itself with; drawn and written when there is none yet.
    ///
    /// # Errors
    /// When the file is damaged, or cannot be read or written.
    pub(crate) fn node_key(&self) -> Result<NodeKey, DataDirError> {
        let failed = |action| {
            let path = self.path.clone();
            move |source| DataDirError::Io {
                path,
                action,
                source,
            }
        };
        let path = self.path.join(NODE_KEY);
        let unusable = |problem| DataDirError::NodeKey {
            path: path.clone(),
            problem,
        };
        match fs::read(&path) {
            Ok(bytes) => NodeKey::parse(&bytes).map_err(unusable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (key, text) = NodeKey::draw().map_err(unusable)?;
                let disk = RealDisk::open(&self.path).map_err(failed("open"))?;
                write_whole(&self.path, &disk, NODE_KEY, &text)
                    .map_err(failed("write the node key of"))?;
                Ok(key)
            }
            Err(error) => Err(failed("read the node key of")(error)),
        }
    }

    /// The directory of the shard's log.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn shard(&self) -> Result<RealDisk, DataDirError> {
        RealDisk::open(&self.path.join(SHARD)).map_err(|source| DataDirError::Io {
            path: self.path.clone(),
            action: "open the shard in",
            source,
        })
    }
}

/// The identity in the directory, which is only read.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read_identity(path: &Path) -> Result<u128, String> {
    let path = path.join(IDENTITY);
    let failed = |problem: String| format!("{}: {problem}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(failed)
}

/// The directory of the shard's log in a data directory.
pub(crate) fn shard_path(path: &Path) -> PathBuf {
    path.join(SHARD)
}

/// Writes a small file, whole or not at all.
fn write_whole(path: &Path, disk: &RealDisk, name: &str, text: &str) -> io::Result<()> {
    let new = format!("{name}.new");
    let mut file = create(&path.join(&new))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    disk.rename(&new, name)?;
    disk.sync_dir()
}

/// Draws an identity and writes it, whole or not at all.
fn make_identity(path: &Path, disk: &RealDisk) -> Result<u128, DataDirError> {
    if path.join(SHARD).exists() {
        return Err(DataDirError::Identity {
            path: path.join(IDENTITY),
            problem: format!(
                "it is missing although {SHARD} exists; bring it back, or name an empty directory"
            ),
        });
    }
    let log_id = random::u128();
    let text = format!("{HEADER}\nlog {log_id:032x}\n");
    write_whole(path, disk, IDENTITY, &text).map_err(|source| DataDirError::Io {
        path: path.to_owned(),
        action: "write the identity of",
        source,
    })?;
    Ok(log_id)
}

/// A leftover of an earlier try is written over.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

fn parse(text: &str) -> Result<u128, String> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    if header != HEADER {
        return Err(format!(
            "its first line is {header:?}, expected {HEADER:?}: not a data directory, or of \
             another version"
        ));
    }
    let line = lines.next().unwrap_or_default();
    line.strip_prefix("log ")
        .and_then(|hex| u128::from_str_radix(hex, 16).ok())
        .ok_or_else(|| format!("its second line is {line:?}, expected \"log\" and 32 hex digits"))
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path } => write!(
                f,
                "another tanda process uses the data directory {}; stop it, or choose another \
                 --data-dir",
                path.display()
            ),
            Self::Io {
                path,
                action,
                source,
            } => write!(
                f,
                "cannot {action} the data directory {}: {source}",
                path.display()
            ),
            Self::Identity { path, problem } => write!(f, "{}: {problem}", path.display()),
            Self::NodeKey { path, problem } => write!(f, "{}: {problem}", path.display()),
        }
    }
}

impl std::error::Error for DataDirError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::InUse { .. } | Self::Identity { .. } | Self::NodeKey { .. } => None,
        }
    }
}
