//! The segmented log of one shard, over a [`Disk`].
//!
//! Owns: positions, batches, segment files, group commit, recovery, reading records back, disk
//! space. Refuses to know: what a record means, time, threads, real files.
//!
//! ```text
//!  append ──> open batch ──seal──> sealed batches ──take_flush──> FlushJob
//!    │        (chunks: the log's own buffers)                         │ run (sync thread):
//!    └─> Lsn                           │                              │ pwrite, fdatasync,
//!                      read <── write cache                           │ next segment, spares
//!                       └──evicted: read back, checked                v
//!                                                     on_flushed ──> durable
//! ```
//!
//! - [`Log::append`] copies a record into the open batch. Nothing waits.
//! - [`Log::take_flush`] seals what is pending into a [`FlushJob`]; at most one is out. It runs
//!   on the shard's sync thread, or inline in a simulator, while appends go on.
//! - [`Log::on_flushed`] moves [`Log::durable`]; effects up to there may be released.
//! - [`Log::open`] recovers: it tells a torn tail (cut) from corruption (refused), replays every
//!   record, and begins a new epoch.
//!
//! The bytes on disk and the reasoning of recovery are in `docs/formats/log.md`.
//!
//! Later: snapshots let the caller call [`Log::truncate_before`] further ahead (they may refer to
//! positions below [`Log::proven`] only); copying reclaim moves the survivors of an old segment by
//! appending them again and truncating after that is durable.

mod cache;
mod config;
mod disk;
mod error;
mod flush;
mod format;
mod log;
mod lsn;
pub mod mem_disk;
mod recover;
mod segments;
mod slots;
mod tail;

pub use config::{Config, ConfigError, RECORD_BYTES_MAX};
pub use disk::{Disk, DiskCall, DiskError, DiskFile};
pub use error::{AppendError, Corruption, OpenError, Poisoned, ReadError, ReplayError};
pub use flush::{FlushJob, FlushOutcome};
pub use log::{Log, LogStats, Replay, Room};
pub use lsn::{Lsn, SegmentIndex};
