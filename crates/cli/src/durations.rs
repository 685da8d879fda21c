//! Durations as they are typed and shown.

use std::time::Duration;

/// Units from long to short, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads `250ms`, `30s`, `1h30m`: whole numbers with units, each unit at most once, longest first.
///
/// # Errors
/// Says what is wrong and what a duration looks like.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total_ms = 0_u64;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let (_, unit_ms) = units
            .by_ref()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| problem(unit))?;
        let number: u64 = number.parse().map_err(|_error| problem(unit))?;
        total_ms = number
            .checked_mul(*unit_ms)
            .and_then(|ms| total_ms.checked_add(ms))
            .ok_or("the duration is too long")?;
        rest = after;
    }
    if text.is_empty() {
        return Err(problem(text));
    }
    Ok(Duration::from_millis(total_ms))
}

fn problem(unit: &str) -> String {
    let what = if unit.is_empty() {
        "the unit is missing"
    } else {
        "this is no duration"
    };
    format!("{what}; write it like 250ms, 30s, 5m or 1h30m")
}

/// The shortest text that [`parse`] reads as the same duration.
pub(crate) fn exact(ms: u64) -> String {
    if ms == 0 {
        return "0s".to_owned();
    }
    let mut left_ms = ms;
    let mut text = String::new();
    for (unit, unit_ms) in UNITS {
        let number = left_ms / unit_ms;
        left_ms %= unit_ms;
        if number > 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    text
}

/// A span for people, to about three digits.
pub(crate) fn rough(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        3_600_000..86_400_000 => {
            format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000)
        }
        _ => format!("{} d {} h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read() {
        let cases = [
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
            assert_eq!(exact(ms), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bad = [
            "", "30", "s", "-1s", "1.5s", "1s1s", "1s1m", "30 s", "5M", "1w", "1ß",
        ];
        for text in bad {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("99999999999999999999s").is_err());
        assert!(parse("18446744073709551615d").is_err());
    }

    #[test]
    fn spans_read_well() {
        let cases = [
            (7, "7 ms"),
            (12_345, "12.3 s"),
            (61_000, "1 min 1 s"),
            (5_400_000, "1 h 30 min"),
            (90_000_000, "1 d 1 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(rough(ms), text);
        }
    }
}
