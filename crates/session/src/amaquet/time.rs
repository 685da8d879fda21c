//! Times as texts (RFC 3339).

use tanda_engine::Millis;

/// Milliseconds since 1970 as a text in UTC.
pub(super) fn rfc3339(at: Millis) -> String {
    const DAY_MS: u64 = 86_400_000;
    let (days, ms) = (at.0 / DAY_MS, at.0 % DAY_MS);
    let (year, month, day) = civil(days);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a number of days since 1970. Years begin in March here, so that the day
/// that is not in every year is the last of one; 400 of them always have the same days.
const fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    const FROM_0000_03_01: u64 = 719_468;
    let days = days.saturating_add(FROM_0000_03_01);
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (400 * era + year + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_what_other_programs_say() {
        // By date(1).
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Millis(ms)), text);
        }
        assert!(rfc3339(Millis(u64::MAX)).ends_with('Z'));
    }
}
