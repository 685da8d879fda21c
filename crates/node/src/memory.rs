//! How near the memory limit is.
//!
//! Owns the thresholds and how often memory is counted; refuses to know what is counted.

use tanda_engine::Millis;

/// Memory is counted no more often than this: what a fast publisher adds meanwhile must fit between
/// short and full.
const EVERY_MS: u64 = 5;
/// Memory that was short is counted this often although nothing comes.
const AGAIN_MS: u64 = 100;
/// Once the limit is reached, publishes are taken again below this share of it.
const LOW_PERCENT: u64 = 95;
/// Memory runs short at this share of the limit, and does so until it is below the other: who can
/// be asked to wait should, before anybody has to be refused.
const SHORT_PERCENT: u64 = 90;
const EASED_PERCENT: u64 = 85;

/// See the module.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    /// 0 = none.
    pub(crate) limit_bytes: u64,
    /// The limit is reached: publishes are refused.
    pub(crate) is_full: bool,
    /// The limit is near.
    pub(crate) is_short: bool,
    /// What scripts take outside of the node.
    pub(crate) script_bytes: u64,
    /// When memory was counted.
    at: Option<Millis>,
}

impl MemoryWatch {
    pub(crate) const fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            is_full: false,
            is_short: false,
            script_bytes: 0,
            at: None,
        }
    }

    /// Whether memory is to be counted now.
    pub(crate) fn is_due(&self, now: Millis) -> bool {
        let due = self.at.map(|at| at.after_ms(EVERY_MS));
        self.limit_bytes > 0 && due.is_none_or(|due| now >= due)
    }

    /// Takes what was counted.
    pub(crate) const fn note(&mut self, now: Millis, used_bytes: u64) {
        self.at = Some(now);
        let short_percent = if self.is_short {
            EASED_PERCENT
        } else {
            SHORT_PERCENT
        };
        self.is_short = used_bytes > self.share(short_percent);
        self.is_full = if self.is_full {
            used_bytes > self.share(LOW_PERCENT)
        } else {
            used_bytes > self.limit_bytes
        };
    }

    const fn share(&self, percent: u64) -> u64 {
        self.limit_bytes / 100 * percent
    }

    /// When memory that was short is counted again although nothing comes.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let at = self.at.filter(|_| self.is_short || self.is_full);
        at.map(|at| at.after_ms(AGAIN_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_comes_before_full_and_each_ends_below_where_it_began() {
        let mut watch = MemoryWatch::new(1000);
        assert!(watch.is_due(Millis(5)));
        let used = [900, 901, 1000, 1001, 951, 950, 851, 850, 900];
        let states = used.map(|bytes| {
            watch.note(Millis(5), bytes);
            (watch.is_short, watch.is_full, watch.next_deadline())
        });
        let again = Some(Millis(105));
        let expected = [
            (false, false, None),
            (true, false, again),
            (true, false, again),
            (true, true, again),
            (true, true, again),
            (true, false, again),
            (true, false, again),
            (false, false, None),
            (false, false, None),
        ];
        assert_eq!(states, expected);
        assert!(!watch.is_due(Millis(9)) && watch.is_due(Millis(10)));
        assert!(!MemoryWatch::new(0).is_due(Millis(1)), "no limit");
    }
}
