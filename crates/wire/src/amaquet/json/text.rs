//! Texts in quotes.

use std::borrow::Cow;

use super::scan::Scanner;
use super::{Json, JsonError, JsonKind, JsonProblem};

/// How many bytes at the front stand for themselves: no quote, no backslash, no control character.
/// Eight at a time: texts are gone over once for each level that they are deep.
pub(super) fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // The lowest high bit that is set is that of the first byte below `limit`; those above it may
    // be wrong.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = quote | backslash | below(word, 0x20);
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
    words.len() * 8 + rest.iter().take_while(is_plain).count()
}

/// Goes over a text, from its first quote behind its last one.
pub(super) fn skip(scanner: &mut Scanner<'_>) -> Result<(), JsonError> {
    scanner.at += 1;
    loop {
        scanner.at += plain_bytes(scanner.bytes.get(scanner.at..).unwrap_or_default());
        match scanner.peek() {
            None => return Err(scanner.problem(JsonProblem::End)),
            Some(b'"') => {
                scanner.at += 1;
                return Ok(());
            }
            Some(b'\\') => _ = escape(scanner)?,
            Some(found) => return Err(scanner.unexpected(found)),
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
    // Neither quotes nor control characters are left in it.
    let Some((plain, rest)) = inner
        .split_at_checked(plain_bytes(inner.as_bytes()))
        .filter(|(_, rest)| !rest.is_empty())
    else {
        return Cow::Borrowed(inner);
    };
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

#[cfg(test)]
mod tests {
    use super::plain_bytes;

    #[test]
    fn plain_bytes_end_at_the_first_that_is_not() {
        let plain: Vec<u8> = (0x20..=0xff)
            .filter(|byte| !matches!(byte, b'"' | b'\\'))
            .collect();
        let special = (0..0x20).chain(*b"\"\\");
        for byte in special {
            for at in 0..40 {
                // Others behind it, and plain ones of each kind before it.
                let before = plain.iter().cycle().skip(at * 7).take(at).copied();
                let bytes: Vec<u8> = before.chain([byte]).chain(*b"\"x\x01\\yyyyyyyy").collect();
                assert_eq!(plain_bytes(&bytes), at, "{byte} in {bytes:?}");
            }
        }
        assert_eq!(plain_bytes(&plain), plain.len());
    }
}
