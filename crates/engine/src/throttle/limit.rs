//! One limit of a throttle.

/// At most so many deliveries in any window of this length, wherever the window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThrottleLimit {
    /// Length of the window in milliseconds; at least 1.
    pub window_ms: u64,
    /// Deliveries inside one window; at least 1.
    pub max_deliveries: u64,
}

impl ThrottleLimit {
    /// Whether deliveries that keep this limit never pass `other`: a window of `other` is covered
    /// by so many windows of this one.
    pub(crate) fn implies(self, other: Self) -> bool {
        let windows = other.window_ms.div_ceil(self.window_ms.max(1));
        self.max_deliveries.saturating_mul(windows) <= other.max_deliveries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn limit(max_deliveries: u64, window_ms: u64) -> ThrottleLimit {
        ThrottleLimit {
            window_ms,
            max_deliveries,
        }
    }

    #[test]
    fn a_limit_that_another_one_always_reaches_first_is_implied() {
        let (minute, second) = (60_000, 1_000);
        for (keeps, useless) in [
            (limit(60, minute), limit(100, second)),
            (limit(20, second), limit(2_000, minute)),
            (limit(20, second), limit(1_200, minute)),
            (limit(5, second), limit(6, second)),
            // Three windows cover two and a half.
            (limit(2, second), limit(6, 2_500)),
            (limit(1, 1), limit(u64::MAX, u64::MAX)),
        ] {
            assert!(keeps.implies(useless), "{keeps:?} {useless:?}");
            assert!(!useless.implies(keeps), "{useless:?} {keeps:?}");
        }
        for (a, b) in [
            (limit(20, second), limit(1_000, minute)),
            (limit(2, second), limit(5, 2_500)),
            (limit(u64::MAX, second), limit(u64::MAX - 1, minute)),
        ] {
            assert!(!a.implies(b), "{a:?} {b:?}");
        }
    }
}
