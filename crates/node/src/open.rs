//! Opening a node: recovery, and why it can fail.

use core::fmt;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use tanda_engine::{Engine, Lsn, Millis};
use tanda_wal::{Disk, Log};

use crate::{Node, NodeConfig};

/// How far recovery has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryProgress {
    /// Records applied so far.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Position of the newest of them.
    pub at: Lsn,
}

/// Why a node could not be opened. Nothing was thrown away; serving from this state would lose
/// messages.
#[derive(Debug)]
pub enum OpenError {
    /// The log does not hold what was written to it.
    Corrupt(tanda_wal::OpenError),
    /// A record passed its checksum but makes no sense to the engine.
    Record {
        /// Its position.
        at: Lsn,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer build wrote this log.
    NewerVersion(tanda_wal::OpenError),
    /// The log could not be used: in use by another process, a disk call failed, wrong settings.
    Log(tanda_wal::OpenError),
}

impl OpenError {
    /// What an operator can do about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Corrupt(_) => {
                "copy the data directory before anything else; docs/recovery.md says what can be \
                 done"
            }
            Self::Record { .. } => {
                "start the build that wrote this log, or a newer one; if that is this build, the \
                 log is damaged: copy the data directory and see docs/recovery.md"
            }
            Self::NewerVersion(_) => "start the build that wrote this log, or a newer one",
            Self::Log(_) => "correct the cause and start again; nothing was changed",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(e) | Self::NewerVersion(e) | Self::Log(e) => e.fmt(f)?,
            Self::Record { at, problem } => write!(
                f,
                "the record at log position {:#x} cannot be applied: {problem}",
                at.0
            )?,
        }
        write!(f, "; {}", self.help())
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Corrupt(e) | Self::NewerVersion(e) | Self::Log(e) => e.source(),
            Self::Record { .. } => None,
        }
    }
}

impl<D: Disk> Node<D> {
    /// Recovers the node that `disk` holds; an empty directory becomes a new node.
    ///
    /// # Errors
    /// See [`OpenError`]. Do not serve, and do not create a new node in its place.
    pub fn open(disk: Arc<D>, config: NodeConfig, now: Millis) -> Result<Self, OpenError> {
        Self::open_with_progress(disk, config, now, &mut |_| ())
    }

    /// Like [`Self::open`]; tells `progress` about every 16 MiB or 65,536 records, and at the end.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_with_progress(
        disk: Arc<D>,
        config: NodeConfig,
        now: Millis,
        progress: &mut dyn FnMut(RecoveryProgress),
    ) -> Result<Self, OpenError> {
        let mut engine_config = config.engine;
        engine_config.segment_shift = config.log.segment_bytes.trailing_zeros();
        let segment_bytes = config.log.segment_bytes;
        let mut engine = Engine::new(engine_config);
        let mut replay = Replay {
            done: RecoveryProgress::default(),
            told: RecoveryProgress::default(),
        };
        let mut log = Log::open(disk, config.log, tanda_wal::Lsn(0), &mut |at, record| {
            let at = Lsn(at.0);
            engine.replay(at, record).map_err(refusal)?;
            replay.note(at, record.len(), progress);
            Ok(())
        })
        .map_err(classify)?;
        log.keep_segments(&BTreeSet::new()).map_err(classify)?;
        progress(replay.done);
        let at = replay.done.at;
        Self::start(engine, log, segment_bytes, now).map_err(|error| OpenError::Record {
            at,
            problem: error.problem,
        })
    }
}

struct Replay {
    done: RecoveryProgress,
    told: RecoveryProgress,
}

impl Replay {
    fn note(&mut self, at: Lsn, len: usize, progress: &mut dyn FnMut(RecoveryProgress)) {
        const TELL_BYTES: u64 = 16 << 20;
        const TELL_RECORDS: u64 = 65_536;
        self.done.records += 1;
        self.done.bytes += len as u64;
        self.done.at = at;
        if self.done.bytes - self.told.bytes >= TELL_BYTES
            || self.done.records - self.told.records >= TELL_RECORDS
        {
            self.told = self.done;
            progress(self.done);
        }
    }
}

fn refusal(error: tanda_engine::ReplayError) -> tanda_wal::ReplayError {
    tanda_wal::ReplayError(error.problem.into())
}

fn classify(error: tanda_wal::OpenError) -> OpenError {
    use tanda_wal::OpenError as LogError;
    match error {
        LogError::Replay { at, source } => OpenError::Record {
            at: Lsn(at.0),
            problem: source.to_string(),
        },
        LogError::Corrupt(_)
        | LogError::MissingSegment { .. }
        | LogError::MissingKept { .. }
        | LogError::EndsEarly { .. } => OpenError::Corrupt(error),
        LogError::UnknownVersion { .. } => OpenError::NewerVersion(error),
        LogError::Config(_)
        | LogError::Locked
        | LogError::Disk(_)
        | LogError::WrongLog { .. }
        | LogError::SegmentBytesChanged { .. } => OpenError::Log(error),
    }
}
