//! Texts in quotes.

use std::borrow::Cow;

use super::scan::Scanner;
use super::{Json, JsonError, JsonKind, JsonProblem};

/// Goes over a text, from its first quote behind its last one.
pub(super) fn skip(scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
    scanner.at += 1;
    loop {
        match scanner.peek() {
            None => return Err(scanner.problem(JsonProblem::End)),
            Some(b'"') => {
                scanner.at += 1;
                return Ok(());
            }
            Some(b'\\') => _ = escape(scanner)?,
            Some(found @ 0..=0x1f) => return Err(scanner.unexpected(found)),
            Some(_) => scanner.at += 1,
        }
    }
}

/// Goes over an escape; says what it stands for.
fn escape(scanner: &mut Scanner<'_>) -> Result<char, JsonError> {
    let start = *scanner;
    scanner.at += 1;
    let Some(byte) = scanner.peek() else {
        return Err(scanner.problem(JsonProblem::End));
    };
    scanner.at += 1;
    Ok(match byte {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = unit(scanner)?;
            let mut second = None;
            if (0xd800..0xdc00).contains(&unit) {
                if scanner.bytes.get(scanner.at..scanner.at + 2) != Some(b"\\u") {
                    return Err(start.problem(JsonProblem::Surrogate));
                }
                scanner.at += 2;
                second = Some(self::unit(scanner)?);
            }
            let mut decoded = char::decode_utf16([Some(unit), second].into_iter().flatten());
            match (decoded.next(), decoded.next()) {
                (Some(Ok(character)), None) => character,
                _ => return Err(start.problem(JsonProblem::Surrogate)),
            }
        }
        _ => return Err(start.problem(JsonProblem::Escape)),
    })
}

/// Four hexadecimal digits.
fn unit(scanner: &mut Scanner<'_>) -> Result<u16, JsonError> {
    let mut unit = 0;
    for _ in 0..4 {
        let Some(byte) = scanner.peek() else {
            return Err(scanner.problem(JsonProblem::End));
        };
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return Err(scanner.problem(JsonProblem::Escape)),
        };
        unit = unit << 4 | u16::from(digit);
        scanner.at += 1;
    }
    Ok(unit)
}

/// What a text that was gone over says, quotes included in it.
pub(super) fn unquote(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let inner = inner.unwrap_or_default();
    let Some(first) = inner.find('\\') else {
        return Cow::Borrowed(inner);
    };
    let (plain, rest) = inner.split_at(first);
    let mut text = String::with_capacity(inner.len());
    text.push_str(plain);
    let mut scanner = Scanner {
        bytes: rest.as_bytes(),
        at: 0,
    };
    while scanner.peek().is_some() {
        // An escape is where the scanner is; it was gone over before.
        let Ok(character) = escape(&mut scanner) else {
            break;
        };
        text.push(character);
        let left = rest.get(scanner.at..).unwrap_or_default();
        let plain = left.find('\\').unwrap_or(left.len());
        text.push_str(left.get(..plain).unwrap_or_default());
        scanner.at += plain;
    }
    Cow::Owned(text)
}

impl<'a> Json<'a> {
    /// The text that it is, if it is one.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == JsonKind::String).then(|| unquote(self.0))
    }
}
