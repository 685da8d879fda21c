//! Damage on the disk is refused, or was not needed: it never passes for an empty place.
//!
//! Source: `docs/formats/log.md`, "Errors": what was synced and does not check is corruption, and
//! a start refuses it.

use tanda_engine::MessagePlace;
use tanda_node::OpenError;

use crate::failure::{Check, ensure};
use crate::history::History;
use crate::invariants::one_place::must_be_there;
use crate::world::Places;

pub(crate) const NAME: &str = "damage is told";

/// A sound disk is not blamed for what its bytes say.
pub(crate) fn on_refused(error: &OpenError) -> Check {
    let is_disk = matches!(error, OpenError::Log(tanda_wal::OpenError::Disk(_)));
    ensure(!is_disk, NAME, || {
        format!("damage was taken for a disk that fails: {error}")
    })
}

/// It started all the same: everything is there.
pub(crate) fn when_opened(
    history: &History,
    places: &Places,
    (file, offset): (&str, usize),
) -> Check {
    for (id, [main, dead_letters]) in places {
        let is_there = *main != MessagePlace::Unknown || *dead_letters != MessagePlace::Unknown;
        let message = history.message(*id)?;
        ensure(is_there || !must_be_there(history, *id), NAME, || {
            format!(
                "a bit of {file} turned at {offset}; the node started without a word, and \
                 {id:032x} (message {}) is gone",
                message.tag
            )
        })?;
    }
    Ok(())
}
