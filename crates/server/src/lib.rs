//! The broker as a process: listeners, threads, the real disk and clock, configuration.
//!
//! Owns everything that touches the outside world and hands it to the deterministic crates below:
//! bytes from sockets to sessions, requests to the shard's node, log writes to the disk. It refuses
//! to know what a queue is.
//!
//! ```text
//!  socket ⇄ connection task (session) ──requests──► shard thread (node) ──► sync thread (disk)
//!                  ▲                                    │
//!                  └──────────── mailbox ◄──────────────┘
//! ```

mod alarms;
mod ask;
mod audit;
mod clock;
pub mod config;
mod data_dir;
mod definitions;
mod disk;
mod door;
mod freed_memory;
mod http;
mod keys;
mod listen;
mod listing;
mod logging;
mod node_key;
mod process;
mod random;
mod read_only_disk;
mod repair;
mod restore;
mod run;
mod script;
mod server;
mod settings;
mod shard;
mod tally;
mod tls;
mod users;

pub use data_dir::{DataDir, DataDirError};
pub use disk::{DirLock, RealDisk, RealFile};
pub use keys::BootstrapError;
pub use node_key::NodeKeyProblem;
pub use read_only_disk::{ReadOnlyDisk, ReadOnlyFile};
pub use repair::{Inspection, RepairError, Verdict};
pub use restore::{RestoreFailure, Restored, check_backup, restore};
pub use run::{RunError, run};
pub use server::{Server, StartError};
pub use tls::{TlsFileError, TlsFileProblem, check_tls_files};

/// What a survey of a directory says, and what a rescue did; see [`Inspection`].
pub mod rescue {
    pub use tanda_engine::record_kind;
    pub use tanda_node::Salvaged;
    pub use tanda_wal::inspect::{
        BatchReport, Fault, FileReport, FileState, SegmentReport, Survey,
    };
}
