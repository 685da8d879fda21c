//! When to look after the log: idle markers, a full disk, segments that nobody needs.
//!
//! Decides only when; [`crate::Node`] does it. Nothing here happens on every pass.

use tanda_engine::{Lsn, Millis};

/// A log that got no record for this long is idle and may write a marker.
const IDLE_MS: u64 = 300;

/// While the disk is full, how often the log may look for space again.
const ROOM_RETRY_MS: u64 = 500;

/// While the log grows by less than a segment, how often the engine is asked what it still needs.
const RELEASE_MS: u64 = 1_000;

/// The node's timers for its log.
pub(crate) struct Upkeep {
    segment_bytes: u64,
    /// The log's end when `note_end` last looked.
    seen_end: Lsn,
    /// When the log counts as idle; `None` when that is known and done.
    idle_at: Option<Millis>,
    /// When to look for space again; `None` while there is room.
    room_retry_at: Option<Millis>,
    /// The log's end after the engine was last asked what it needs.
    asked_end: Lsn,
    /// The engine's floor when it was last asked, and the newest one it told of.
    asked_floor: Lsn,
    floor: Lsn,
    /// Not before this, unless the log grew by a segment or shrank.
    ask_at: Millis,
    /// The log has lost segments since the engine was asked.
    shrank: bool,
    /// The oldest position when `note_oldest` last looked.
    seen_oldest: Lsn,
    release: Option<Release>,
}

/// Segments that may go soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Release {
    /// Nothing below is needed ..
    before: Lsn,
    /// .. once the log is durable up to here.
    once_durable: Lsn,
}

impl Upkeep {
    pub(crate) fn new(now: Millis, segment_bytes: u64, end: Lsn, oldest: Lsn) -> Self {
        Self {
            segment_bytes,
            seen_end: end,
            // Recovery may have left something to prove.
            idle_at: Some(now.after_ms(IDLE_MS)),
            room_retry_at: None,
            asked_end: end,
            asked_floor: Lsn::ZERO,
            floor: Lsn::ZERO,
            ask_at: now.after_ms(RELEASE_MS),
            // What was dead before the restart can go now.
            shrank: true,
            seen_oldest: oldest,
            release: None,
        }
    }

    /// The log now ends at `end`.
    pub(crate) fn note_end(&mut self, now: Millis, end: Lsn) {
        if end != self.seen_end {
            self.seen_end = end;
            self.idle_at = Some(now.after_ms(IDLE_MS));
        }
    }

    /// A flush is done and the log now starts at `oldest`.
    pub(crate) fn note_oldest(&mut self, oldest: Lsn) {
        self.shrank |= oldest != self.seen_oldest;
        self.seen_oldest = oldest;
    }

    /// The engine needs nothing below `floor`. It rises without the log growing when
    /// deduplication keys are forgotten.
    pub(crate) fn note_floor(&mut self, floor: Lsn) {
        self.floor = self.floor.max(floor);
    }

    /// Whether the disk has room, as of the last flush.
    pub(crate) fn note_room(&mut self, now: Millis, has_room: bool) {
        if has_room {
            self.room_retry_at = None;
        } else if self.room_retry_at.is_none() {
            self.room_retry_at = Some(now.after_ms(ROOM_RETRY_MS));
        }
    }

    /// True when the log is to be told that it is idle, or to look for room again.
    #[must_use]
    pub(crate) fn take_idle(&mut self, now: Millis) -> bool {
        let is_idle = take_due(&mut self.idle_at, now);
        let is_retry = self.room_retry_at.is_some_and(|at| at <= now);
        if is_retry {
            self.room_retry_at = Some(now.after_ms(ROOM_RETRY_MS));
        }
        is_idle || is_retry
    }

    /// True when the engine is to be asked what it still needs of the log.
    #[must_use]
    pub(crate) fn should_ask(&self, now: Millis) -> bool {
        let grown = self.seen_end.0.saturating_sub(self.asked_end.0);
        self.release.is_none()
            && (self.shrank
                || grown >= self.segment_bytes
                || (self.has_news() && now >= self.ask_at))
    }

    /// The engine's answer may be another one than last time.
    fn has_news(&self) -> bool {
        self.seen_end > self.asked_end || self.floor > self.asked_floor
    }

    /// The engine was asked: it needs nothing below `needed` once the log is durable up to `end`.
    pub(crate) fn note_asked(&mut self, now: Millis, needed: Lsn, end: Lsn) {
        self.shrank = false;
        self.asked_end = end;
        self.asked_floor = self.floor;
        self.ask_at = now.after_ms(RELEASE_MS);
        if needed > self.seen_oldest {
            self.release = Some(Release {
                before: needed,
                once_durable: end,
            });
        }
        self.note_end(now, end);
    }

    /// Where the log may be cut, if it may now.
    #[must_use]
    pub(crate) fn take_cut(&mut self, now: Millis, durable: Lsn) -> Option<Lsn> {
        let release = self.release.filter(|r| r.once_durable <= durable)?;
        self.release = None;
        // The cut takes effect with the next batch, be it a marker.
        self.idle_at = Some(now.after_ms(IDLE_MS));
        Some(release.before)
    }

    /// When something is due although nothing happens.
    #[must_use]
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let asks = self.release.is_none() && self.has_news();
        let ask_at = asks.then_some(self.ask_at);
        [self.idle_at, self.room_retry_at, ask_at]
            .into_iter()
            .flatten()
            .min()
    }
}

fn take_due(at: &mut Option<Millis>, now: Millis) -> bool {
    at.take_if(|at| *at <= now).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 1000;

    fn upkeep() -> Upkeep {
        let mut upkeep = Upkeep::new(Millis(0), SEGMENT, Lsn(100), Lsn(0));
        assert!(upkeep.should_ask(Millis(0)), "once after start");
        upkeep.note_asked(Millis(0), Lsn(0), Lsn(100));
        upkeep
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
        assert_eq!(upkeep.next_deadline(), Some(Millis(RELEASE_MS)));
        assert!(!upkeep.take_idle(Millis(1000 + IDLE_MS)));
        assert!(upkeep.take_idle(Millis(1100 + IDLE_MS)));
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

    #[test]
    fn the_engine_is_asked_per_segment_or_per_second() {
        let mut upkeep = upkeep();
        assert!(!upkeep.should_ask(Millis(5000)), "nothing was appended");
        upkeep.note_end(Millis(10), Lsn(100 + SEGMENT - 1));
        assert!(!upkeep.should_ask(Millis(10)));
        assert!(upkeep.should_ask(Millis(RELEASE_MS)));
        upkeep.note_end(Millis(11), Lsn(100 + SEGMENT));
        assert!(upkeep.should_ask(Millis(11)));
        upkeep.note_asked(Millis(11), Lsn(0), Lsn(100 + SEGMENT));
        assert!(!upkeep.should_ask(Millis(99_999)));
        upkeep.note_oldest(Lsn(0));
        assert!(!upkeep.should_ask(Millis(99_999)));
        upkeep.note_oldest(Lsn(500));
        assert!(upkeep.should_ask(Millis(12)));
    }

    #[test]
    fn the_engine_is_asked_when_it_needs_less_of_a_log_at_rest() {
        let mut upkeep = upkeep();
        upkeep.note_floor(Lsn(50));
        assert_eq!(upkeep.next_deadline(), Some(Millis(IDLE_MS)));
        assert!(upkeep.take_idle(Millis(IDLE_MS)));
        assert_eq!(upkeep.next_deadline(), Some(Millis(RELEASE_MS)));
        assert!(!upkeep.should_ask(Millis(RELEASE_MS - 1)));
        assert!(upkeep.should_ask(Millis(RELEASE_MS)));
        upkeep.note_asked(Millis(RELEASE_MS), Lsn(0), Lsn(100));
        upkeep.note_floor(Lsn(50));
        assert!(!upkeep.should_ask(Millis(99_999)));
        assert_eq!(upkeep.next_deadline(), None);
    }

    #[test]
    fn the_log_is_cut_when_what_was_moved_is_durable() {
        let mut upkeep = upkeep();
        upkeep.note_end(Millis(5), Lsn(3000));
        upkeep.note_asked(Millis(5), Lsn(2000), Lsn(3100));
        assert!(!upkeep.should_ask(Millis(99_999)), "one at a time");
        assert_eq!(upkeep.take_cut(Millis(6), Lsn(3099)), None);
        assert_eq!(upkeep.take_cut(Millis(6), Lsn(3100)), Some(Lsn(2000)));
        assert_eq!(upkeep.take_cut(Millis(6), Lsn(9000)), None);
        assert_eq!(upkeep.next_deadline(), Some(Millis(6 + IDLE_MS)));
    }
}
