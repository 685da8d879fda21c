//! When to look after the log: idle markers and a full disk.
//!
//! Decides only when; [`crate::Node`] does it. Nothing here happens on every pass.

use tanda_engine::{Lsn, Millis};

/// A log that got no record for this long is idle and may write a marker.
const IDLE_MS: u64 = 300;

/// While the disk is full, how often the log may look for space again.
const ROOM_RETRY_MS: u64 = 500;

/// The node's timers for its log.
pub(crate) struct Upkeep {
    /// The log's end when `note_end` last looked, and when it got there.
    seen_end: Lsn,
    seen_at: Millis,
    /// When the log counts as idle; `None` when that is known and done.
    idle_at: Option<Millis>,
    /// When to look for space again; `None` while there is room.
    room_retry_at: Option<Millis>,
}

impl Upkeep {
    pub(crate) const fn new(now: Millis, end: Lsn) -> Self {
        Self {
            seen_end: end,
            seen_at: now,
            // Recovery may have left something to prove.
            idle_at: Some(now.after_ms(IDLE_MS)),
            room_retry_at: None,
        }
    }

    /// The log now ends at `end`.
    pub(crate) fn note_end(&mut self, now: Millis, end: Lsn) {
        if end != self.seen_end {
            self.seen_end = end;
            self.seen_at = now;
            self.want_marker(now);
        }
    }

    /// Something that the next batch says should be on disk soon: a marker says it when nothing
    /// else comes.
    pub(crate) const fn want_marker(&mut self, now: Millis) {
        self.idle_at = Some(now.after_ms(IDLE_MS));
    }

    /// When the newest record came.
    pub(crate) const fn last_record_at(&self) -> Millis {
        self.seen_at
    }

    /// Whether the disk has room, as of the last flush.
    pub(crate) const fn note_room(&mut self, now: Millis, has_room: bool) {
        if has_room {
            self.room_retry_at = None;
        } else if self.room_retry_at.is_none() {
            self.room_retry_at = Some(now.after_ms(ROOM_RETRY_MS));
        }
    }

    /// True when the log is to be told that it is idle, or to look for room again.
    #[must_use]
    pub(crate) fn take_idle(&mut self, now: Millis) -> bool {
        let is_idle = self.idle_at.take_if(|at| *at <= now).is_some();
        let is_retry = self.room_retry_at.is_some_and(|at| at <= now);
        if is_retry {
            self.room_retry_at = Some(now.after_ms(ROOM_RETRY_MS));
        }
        is_idle || is_retry
    }

    /// When something is due although nothing happens.
    #[must_use]
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        [self.idle_at, self.room_retry_at]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upkeep() -> Upkeep {
        Upkeep::new(Millis(0), Lsn(100))
    }

    #[test]
    fn an_idle_log_is_told_so_once() {
        let mut upkeep = upkeep();
        assert!(upkeep.take_idle(Millis(IDLE_MS)));
        assert!(!upkeep.take_idle(Millis(IDLE_MS * 2)));
        assert_eq!(upkeep.next_deadline(), None);
        upkeep.note_end(Millis(1000), Lsn(200));
        assert!(!upkeep.take_idle(Millis(1000 + IDLE_MS - 1)));
        upkeep.note_end(Millis(1100), Lsn(300));
        assert_eq!(upkeep.last_record_at(), Millis(1100));
        assert!(!upkeep.take_idle(Millis(1000 + IDLE_MS)));
        assert!(upkeep.take_idle(Millis(1100 + IDLE_MS)));
        upkeep.note_end(Millis(9000), Lsn(300));
        assert_eq!(upkeep.next_deadline(), None);
    }

    #[test]
    fn a_full_disk_is_looked_at_again_and_again() {
        let mut upkeep = upkeep();
        assert!(upkeep.take_idle(Millis(IDLE_MS)));
        upkeep.note_room(Millis(1000), false);
        upkeep.note_room(Millis(1200), false);
        assert_eq!(upkeep.next_deadline(), Some(Millis(1000 + ROOM_RETRY_MS)));
        assert!(upkeep.take_idle(Millis(1000 + ROOM_RETRY_MS)));
        assert!(!upkeep.take_idle(Millis(1001 + ROOM_RETRY_MS)));
        assert!(upkeep.take_idle(Millis(1000 + 2 * ROOM_RETRY_MS)));
        upkeep.note_room(Millis(3000), true);
        assert!(!upkeep.take_idle(Millis(9000)));
    }
}
