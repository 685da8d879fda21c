//! Numbers: integers of 64 bits, exactly, and doubles.

use super::scan::Scanner;
use super::{Json, JsonError, JsonKind, JsonProblem, NUMBER_BYTES_MAX};

/// A number, by how it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Neither fraction nor exponent, not below zero.
    Unsigned(u64),
    /// Neither fraction nor exponent, below zero.
    Negative(i64),
    /// With a fraction or an exponent; finite.
    Double(f64),
}

impl Number {
    fn of(text: &str) -> Option<Self> {
        if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let double: f64 = text.parse().ok()?;
            return double.is_finite().then_some(Self::Double(double));
        }
        match text.parse() {
            Ok(unsigned) => Some(Self::Unsigned(unsigned)),
            Err(_) => match text.parse().ok()? {
                0 => Some(Self::Unsigned(0)),
                value => Some(Self::Negative(value)),
            },
        }
    }

    /// As a double. `None` for an integer that a double cannot hold: it would be another number.
    #[must_use]
    pub fn double(self) -> Option<f64> {
        const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
        let (sign, size) = match self {
            Self::Double(double) => return Some(double),
            Self::Unsigned(size) => (1.0, size),
            Self::Negative(value) => (-1.0, value.unsigned_abs()),
        };
        // What is behind the 53 highest digits must be zero.
        let digits = u64::BITS - size.leading_zeros();
        let behind = digits.saturating_sub(f64::MANTISSA_DIGITS);
        let is_exact = size < EXACT || size.trailing_zeros() >= behind;
        #[expect(clippy::cast_precision_loss, reason = "just seen to be exact")]
        is_exact.then_some(sign * size as f64)
    }
}

impl Json<'_> {
    /// The number that it is, if it is one.
    #[must_use]
    pub fn as_number(self) -> Option<Number> {
        let number = (self.kind() == JsonKind::Number).then_some(self.0)?;
        Number::of(number)
    }

    /// The integer that it is, if it is one that is not below zero.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self.as_number()? {
            Number::Unsigned(value) => Some(value),
            Number::Negative(_) | Number::Double(_) => None,
        }
    }

    /// The integer that it is, if it is one of 64 bits with a sign.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.as_number()? {
            Number::Unsigned(value) => i64::try_from(value).ok(),
            Number::Negative(value) => Some(value),
            Number::Double(_) => None,
        }
    }
}

/// Goes over a number.
pub(super) fn skip(scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
    let start = *scanner;
    if scanner.peek() == Some(b'-') {
        scanner.at += 1;
    }
    match scanner.peek() {
        Some(b'0') => scanner.at += 1,
        _ => digits(scanner)?,
    }
    if scanner.peek() == Some(b'.') {
        scanner.at += 1;
        digits(scanner)?;
    }
    if let Some(b'e' | b'E') = scanner.peek() {
        scanner.at += 1;
        if let Some(b'+' | b'-') = scanner.peek() {
            scanner.at += 1;
        }
        digits(scanner)?;
    }
    let number = scanner.bytes.get(start.at..scanner.at).unwrap_or_default();
    if number.len() > NUMBER_BYTES_MAX {
        return Err(start.problem(JsonProblem::NumberLength));
    }
    let text = core::str::from_utf8(number).unwrap_or_default();
    match Number::of(text) {
        Some(_) => Ok(()),
        None => Err(start.problem(JsonProblem::NumberRange)),
    }
}

/// At least one.
fn digits(scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
    match scanner.peek() {
        None => return Err(scanner.problem(JsonProblem::End)),
        Some(found) if !found.is_ascii_digit() => return Err(scanner.unexpected(found)),
        Some(_) => {}
    }
    while scanner.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        scanner.at += 1;
    }
    Ok(())
}
