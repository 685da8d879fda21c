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
//! A caller that writes snapshots opens the log at the position of one and moves the start on with
//! [`Log::set_start`]. What lies in segments before the start stays readable until
//! [`Log::free_segment`]; [`ColdWriter`] copies what is left of a mostly dead one elsewhere.

mod cache;
mod cold;
mod config;
mod disk;
mod error;
mod flush;
mod format;
pub mod inspect;
mod log;
mod lsn;
pub mod mem_disk;
mod recover;
mod segments;
mod slots;
mod tail;

pub use cold::{ColdWriter, ColdWritten};
pub use config::{Config, ConfigError, RECORD_BYTES_MAX};
pub use disk::{Disk, DiskCall, DiskError, DiskFile, read_up_to, write_all_at};
pub use error::{AppendError, ColdError, Corruption, OpenError, Poisoned, ReadError, ReplayError};
pub use flush::{FlushJob, FlushOutcome};
pub use log::{Log, LogReader, LogStats, Replay, Room, SegmentFile};
pub use lsn::{Lsn, SegmentIndex};
