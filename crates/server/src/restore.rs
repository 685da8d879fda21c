//! `tanda restore`: a data directory from a backup.
//!
//! Owns making the directory under another name and giving it its own when it is complete, so that
//! a broker never serves from a part.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use tanda_node::{
    Node, NodeConfig, OpenError, Restore, StreamError, StreamHeader, StreamKind, StreamReader,
};

use crate::{
    clock::wall_now,
    data_dir::{DataDir, DataDirError},
};

/// What is added to the name of a directory that is not complete.
const PARTIAL_SUFFIX: &str = ".restoring";

/// What was restored.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    /// What the backup says of itself.
    pub header: StreamHeader,
    /// Its records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why a backup was not restored. The named directory is as it was.
#[derive(Debug)]
pub enum RestoreFailure {
    /// The backup cannot be read to its end.
    Archive(StreamError),
    /// The directory exists and is not empty.
    Exists(PathBuf),
    /// An earlier restore was interrupted, or is under way.
    LeftBehind(PathBuf),
    /// The new directory cannot be used.
    DataDir(DataDirError),
    /// The records cannot be written.
    Write(tanda_node::RestoreError),
    /// The records were written and make no sense to this build.
    Open(Box<OpenError>),
    /// The system refused something.
    Io {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Reads a backup to its end and returns its records.
///
/// # Errors
/// When it is not whole.
pub fn check_backup(backup: impl Read) -> Result<u64, StreamError> {
    let mut archive = open(backup)?;
    while archive.next_record()?.is_some() {}
    Ok(archive.records())
}

/// A snapshot has the same form and not everything inside.
fn open<R: Read>(backup: R) -> Result<StreamReader<R>, StreamError> {
    let archive = StreamReader::open(backup)?;
    match archive.header().kind {
        StreamKind::Backup => Ok(archive),
        StreamKind::Snapshot => Err(StreamError::NotAStream),
    }
}

/// Makes the data directory `data_dir`, which must not exist or be empty, from a backup.
///
/// # Errors
/// See [`RestoreFailure`].
pub fn restore(backup: impl Read, data_dir: &Path) -> Result<Restored, RestoreFailure> {
    let mut archive = open(backup).map_err(RestoreFailure::Archive)?;
    let partial = partial_path(data_dir);
    check_free(data_dir, &partial)?;
    let outcome = fill(&mut archive, &partial);
    let bytes = match outcome {
        Ok(bytes) => bytes,
        Err(failure) => {
            // Only what was made here; when even that fails, the next restore names it.
            drop(fs::remove_dir_all(&partial));
            return Err(failure);
        }
    };
    publish(&partial, data_dir)?;
    Ok(Restored {
        header: archive.header(),
        records: archive.records(),
        bytes,
    })
}

pub(crate) fn partial_path(data_dir: &Path) -> PathBuf {
    let mut name = data_dir.as_os_str().to_owned();
    name.push(PARTIAL_SUFFIX);
    PathBuf::from(name)
}

pub(crate) fn check_free(data_dir: &Path, partial: &Path) -> Result<(), RestoreFailure> {
    if partial.exists() {
        return Err(RestoreFailure::LeftBehind(partial.to_owned()));
    }
    match fs::read_dir(data_dir).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(RestoreFailure::Exists(data_dir.to_owned())),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(RestoreFailure::Io {
            action: format!("look at {}", data_dir.display()),
            source,
        }),
    }
}

/// Writes all records into a new directory and opens it once, so that a backup that makes no sense
/// is refused now. Returns the bytes of records.
fn fill<R: Read>(archive: &mut StreamReader<R>, partial: &Path) -> Result<u64, RestoreFailure> {
    let dir = DataDir::open(partial).map_err(RestoreFailure::DataDir)?;
    let disk = Arc::new(dir.shard().map_err(RestoreFailure::DataDir)?);
    let config = NodeConfig::new(dir.log_id());
    let mut log =
        Restore::begin(Arc::clone(&disk), config.log.clone()).map_err(RestoreFailure::Write)?;
    let mut bytes = 0;
    while let Some(record) = archive.next_record().map_err(RestoreFailure::Archive)? {
        log.push(record).map_err(RestoreFailure::Write)?;
        bytes += record.len() as u64;
    }
    log.finish().map_err(RestoreFailure::Write)?;
    let opened = Node::open(disk, config, wall_now());
    opened.map_err(|error| RestoreFailure::Open(Box::new(error)))?;
    Ok(bytes)
}

/// The complete directory gets its name, for good.
pub(crate) fn publish(partial: &Path, data_dir: &Path) -> Result<(), RestoreFailure> {
    let failed = |source| RestoreFailure::Io {
        action: format!("rename {} to {}", partial.display(), data_dir.display()),
        source,
    };
    fs::rename(partial, data_dir).map_err(failed)?;
    let parent = data_dir.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))
        .and_then(|parent| parent.sync_all())
        .map_err(failed)
}

impl fmt::Display for RestoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive(error) => write!(f, "the backup cannot be used: {error}"),
            Self::Exists(path) => write!(
                f,
                "{} exists and is not empty; name a directory that does not exist",
                path.display()
            ),
            Self::LeftBehind(path) => write!(
                f,
                "{} exists: another restore is under way, or was interrupted; remove it if none is",
                path.display()
            ),
            Self::DataDir(error) => error.fmt(f),
            Self::Write(error) => write!(f, "cannot write the new data directory: {error}"),
            Self::Open(error) => write!(
                f,
                "the backup is whole, and this build cannot use it: {error}"
            ),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
        }
    }
}

impl std::error::Error for RestoreFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Archive(error) => Some(error),
            Self::DataDir(error) => Some(error),
            Self::Write(error) => Some(error),
            Self::Open(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Exists(_) | Self::LeftBehind(_) => None,
        }
    }
}
