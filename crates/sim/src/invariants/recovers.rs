//! The broker opens again after every fault it promises to survive, and comes to rest.
//!
//! Source: `docs/formats/log.md`, "Recovery" and "Errors": a torn tail is not corruption; a failed
//! write or sync poisons the log until restart; a full disk is an alarm.

use tanda_node::{NodeStats, OpenError};

use crate::failure::Violation;
use crate::host::StartError;

pub(crate) const NAME: &str = "the broker recovers";

/// A start may fail while the disk fails calls; it may never see corruption.
pub(crate) fn on_start_failed(error: &StartError, disk_is_sound: bool) -> Result<(), Violation> {
    let is_disk = match error {
        StartError::Open(error) => {
            matches!(error, OpenError::Log(tanda_wal::OpenError::Disk(_)))
        }
        StartError::Keys => true,
    };
    if is_disk && !disk_is_sound {
        return Ok(());
    }
    Err(Violation {
        invariant: NAME,
        what: format!("the node does not open: {error}"),
    })
}

/// At the end, with nothing left, publishes are taken again.
pub(crate) fn has_room(stats: &NodeStats) -> Result<(), Violation> {
    if !stats.memory_full && !stats.storage_full {
        return Ok(());
    }
    Err(Violation {
        invariant: NAME,
        what: format!("an empty broker refuses publishes: {stats:?}"),
    })
}

pub(crate) fn stuck(what: &str) -> Violation {
    Violation {
        invariant: NAME,
        what: what.to_owned(),
    }
}
