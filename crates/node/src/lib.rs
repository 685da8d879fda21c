//! The deterministic heart: one shard of engine and log, driven by requests, finished flushes and
//! time.
//!
//! Owns the order of things: what the engine decides is appended to the log, effects wait until the
//! log is durable up to their position, delivered contents are read back, what never left is given
//! back to the engine, dead segments are given back to the disk. It refuses to know threads,
//! clocks, sockets and protocols; its caller runs flush jobs wherever it likes.
//!
//! ```text
//!  Request ─► handle ─► Engine ──records──► Log ─► take_flush ─► FlushJob ─┐ run elsewhere
//!                         │                  │                             │
//!                         └─outputs─► EffectQueue ◄─durable─ on_flushed ◄──┘
//!                                            │
//!                                            └─► drain_released ─► (ConnId, Event)
//! ```
//!
//! Later: several shards, requests routed to them, a publish that joins their confirms.

mod background;
mod backup;
mod config;
mod copying;
mod delivery;
mod delivery_notes;
mod effects;
mod keys;
mod log_journal;
mod look_after;
mod memory;
mod node;
mod open;
mod pages;
mod reclaim;
mod refuse;
mod restore;
mod returns;
mod salvage;
mod scripts;
mod snapshot;
mod stats;
mod stream;
mod upkeep;

pub use background::{BackgroundJob, BackgroundOutcome};
pub use backup::{BackupError, BackupRefused, BackupSource};
pub use config::{NodeConfig, ReclaimThresholds};
pub use node::Node;
pub use open::{OpenError, RecoveryProgress};
pub use reclaim::Pinned;
pub use restore::{Restore, RestoreError};
pub use salvage::{SalvageError, Salvaged, examine, salvage};
pub use snapshot::Published;
pub use stats::NodeStats;
pub use stream::{StreamError, StreamHeader, StreamKind, StreamReader, StreamWriter};
