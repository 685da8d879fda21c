//! Points in time for people.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::durations;

const MS_PER_DAY: u64 = 86_400_000;

/// The wall clock in Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// A time in Unix milliseconds as `2026-11-30 02:17:20.123 UTC`.
pub(crate) fn utc(ms: u64) -> String {
    let (day, ms_of_day) = (ms / MS_PER_DAY, ms % MS_PER_DAY);
    let (year, month, day) = civil(day);
    let (seconds, ms) = (ms_of_day / 1_000, ms_of_day % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03} UTC")
}

/// "in 12.3 s (at ...)", or "now" when the time is over.
pub(crate) fn ahead(ms: u64, now_ms: u64) -> String {
    match ms.checked_sub(now_ms) {
        Some(left) if left > 0 => format!("in {} (at {})", durations::rough(left), utc(ms)),
        Some(_) | None => "now".to_owned(),
    }
}

/// Year, month and day of a day since 1970-01-01, in the Gregorian calendar: a year begins in
/// March here, so that the leap day is its last, and months have 153 days in five.
const fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        let cases = [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00.000 UTC"),
            (1_709_251_199_999, "2024-02-29 23:59:59.999 UTC"),
            (1_796_005_040_123, "2026-11-30 02:17:20.123 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000 UTC"),
        ];
        for (ms, text) in cases {
            assert_eq!(utc(ms), text);
        }
    }

    #[test]
    fn what_is_over_is_now() {
        assert_eq!(ahead(5, 5), "now");
        assert_eq!(ahead(5, 6), "now");
        assert_eq!(ahead(1_500, 0), "in 1.5 s (at 1970-01-01 00:00:01.500 UTC)");
    }
}
