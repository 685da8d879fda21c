//! `tanda repair`: looking at a data directory, and saving what can be read of it.
//!
//! Owns keeping the broker out meanwhile and the directory as it is: everything is opened for
//! reading.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tanda_node::{Node, NodeConfig, SalvageError, Salvaged, examine, salvage};
use tanda_wal::{
    Disk, DiskError,
    inspect::{Overlay, Survey},
};

use crate::{
    clock::wall_now,
    data_dir::{DataDir, DataDirError, read_identity, shard_path},
    disk::DirLock,
    read_only_disk::ReadOnlyDisk,
    restore::{RestoreFailure, check_free, partial_path, publish},
};

/// A data directory that no broker uses, and that nothing here changes.
#[derive(Debug)]
pub struct Inspection {
    shard: PathBuf,
    disk: Arc<ReadOnlyDisk>,
    identity: Result<u128, String>,
    _lock: DirLock,
}

/// What is wrong with a data directory.
#[derive(Debug)]
pub struct Verdict {
    /// What can be read and what cannot.
    pub found: Salvaged,
    /// What is wrong with the identity file.
    pub identity: Option<String>,
    /// Why a broker would not start with it.
    pub refusal: Option<String>,
}

impl Verdict {
    /// Whether a broker starts with it and everything in it can be read.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.identity.is_none() && self.refusal.is_none() && self.found.is_whole()
    }
}

/// Why a data directory cannot be looked at, or nothing could be saved.
#[derive(Debug)]
pub enum RepairError {
    /// A broker has it.
    InUse(PathBuf),
    /// The system refused something.
    Io {
        /// What was tried.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be listed.
    Disk(DiskError),
    /// Nothing could be saved.
    Salvage(SalvageError),
    /// The new directory cannot be made.
    New(RestoreFailure),
    /// What was saved cannot be opened.
    Open(String),
}

impl Inspection {
    /// Keeps brokers out of the directory for as long as this lives.
    ///
    /// # Errors
    /// `InUse`, or `Io` when there is no such directory.
    pub fn open(path: &Path) -> Result<Self, RepairError> {
        let shard = shard_path(path);
        let failed = |source| RepairError::Io {
            action: format!("read the data directory {}", path.display()),
            source,
        };
        let lock = ReadOnlyDisk::open(path).map_err(failed)?.lock();
        let lock = lock.map_err(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                return RepairError::InUse(path.to_owned());
            }
            failed(error)
        })?;
        Ok(Self {
            disk: Arc::new(ReadOnlyDisk::open(&shard).map_err(failed)?),
            identity: read_identity(path),
            shard,
            _lock: lock,
        })
    }

    /// What is wrong with the identity file.
    #[must_use]
    pub fn identity_problem(&self) -> Option<&str> {
        self.identity.as_ref().err().map(String::as_str)
    }

    /// Reads all files of the log.
    ///
    /// # Errors
    /// `Disk` when the directory cannot be listed.
    pub fn survey(&self) -> Result<Survey<ReadOnlyDisk>, RepairError> {
        Survey::of(&*self.disk, self.log_id()).map_err(RepairError::Disk)
    }

    /// Reads everything, checks every checksum, and opens the directory as a broker would, with
    /// what it would write kept in memory.
    ///
    /// # Errors
    /// When the directory cannot be listed or what is in it makes no sense at all.
    pub fn verify(&self) -> Result<Verdict, RepairError> {
        let survey = self.survey()?;
        let mut config = NodeConfig::new(survey.log_id());
        config.log.segment_bytes = survey.segment_bytes();
        let chunk_max = usize::try_from(survey.segment_bytes()).unwrap_or(usize::MAX);
        config.log.chunk_bytes = config.log.chunk_bytes.min(chunk_max);
        let found = examine(&self.disk, &survey, config.engine.clone());
        drop(survey);
        Ok(Verdict {
            found: found.map_err(RepairError::Salvage)?,
            identity: self.identity_problem().map(str::to_owned),
            refusal: self.try_to_open(config).err(),
        })
    }

    fn try_to_open(&self, config: NodeConfig) -> Result<(), String> {
        let disk = ReadOnlyDisk::open(&self.shard).map_err(|error| error.to_string())?;
        let overlay = Overlay::new(disk).map_err(|error| error.to_string())?;
        let opened = Node::open(Arc::new(overlay), config, wall_now());
        opened.map(drop).map_err(|error| error.to_string())
    }

    /// Writes everything that can be read into a new data directory, which must not exist or be
    /// empty.
    ///
    /// # Errors
    /// See [`RepairError`]; no directory of that name is left then.
    pub fn salvage(&self, to: &Path) -> Result<Salvaged, RepairError> {
        let partial = partial_path(to);
        check_free(to, &partial).map_err(RepairError::New)?;
        let outcome = self.fill(&partial);
        let salvaged = match outcome {
            Ok(salvaged) => salvaged,
            Err(error) => {
                // Only what was made here; when even that fails, the next try names it.
                drop(fs::remove_dir_all(&partial));
                return Err(error);
            }
        };
        publish(&partial, to).map_err(RepairError::New)?;
        Ok(salvaged)
    }

    fn fill(&self, partial: &Path) -> Result<Salvaged, RepairError> {
        let failed = |error: DataDirError| RepairError::New(RestoreFailure::DataDir(error));
        let dir = DataDir::open(partial).map_err(failed)?;
        let disk = Arc::new(dir.shard().map_err(failed)?);
        let config = NodeConfig::new(dir.log_id());
        let to = (Arc::clone(&disk), config.clone());
        let salvaged = salvage(&self.disk, self.log_id(), to).map_err(RepairError::Salvage)?;
        let opened = Node::open(disk, config, wall_now());
        opened.map_err(|error| RepairError::Open(error.to_string()))?;
        Ok(salvaged)
    }

    fn log_id(&self) -> Option<u128> {
        self.identity.as_ref().ok().copied()
    }
}

impl fmt::Display for RepairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "a broker uses the data directory {}; stop it first, or name a copy",
                path.display()
            ),
            Self::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Self::Disk(error) => error.fmt(f),
            Self::Salvage(error) => error.fmt(f),
            Self::New(error) => error.fmt(f),
            Self::Open(error) => write!(
                f,
                "what was saved cannot be opened, which is a bug of this build: {error}"
            ),
        }
    }
}

impl std::error::Error for RepairError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Disk(error) => Some(error),
            Self::Salvage(error) => Some(error),
            Self::New(error) => Some(error),
            Self::InUse(_) | Self::Open(_) => None,
        }
    }
}
