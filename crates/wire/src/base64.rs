//! Base64 (RFC 4648, section 4): the standard alphabet.
//!
//! Amaquet wants padding, and unused bits zero, so that every text that is taken is given back as
//! it came. HTTP and hashes of passwords from elsewhere are taken as they come.

use core::fmt;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Why a text is no base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base64Error {
    /// Its length is no multiple of four.
    Length {
        /// The length in bytes.
        len: usize,
    },
    /// A byte that is no digit, or padding where none may be.
    Digit {
        /// Where, in bytes.
        at: usize,
    },
    /// Bits of the last digit that stand for nothing are set.
    UnusedBits,
}

impl fmt::Display for Base64Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len } => write!(
                f,
                "{len} characters of base64 are no multiple of 4 (padding is wanted)"
            ),
            Self::Digit { at } => write!(f, "no digit of standard base64 at character {at}"),
            Self::UnusedBits => f.write_str("the unused bits of the last digit are not zero"),
        }
    }
}

impl core::error::Error for Base64Error {}

/// Decodes it.
///
/// # Errors
/// `Base64Error` when it is none.
pub fn decode(text: &str) -> Result<Vec<u8>, Base64Error> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return Err(Base64Error::Length { len: text.len() });
    }
    let digits = text.strip_suffix(b"=").unwrap_or(text);
    let digits = digits.strip_suffix(b"=").unwrap_or(digits);
    match bytes_of(digits) {
        Ok((bytes, true)) => Ok(bytes),
        Ok((_, false)) => Err(Base64Error::UnusedBits),
        Err(at) => Err(Base64Error::Digit { at }),
    }
}

/// Decodes it with or without padding, whatever its unused bits are; `None` when it is none.
#[must_use]
pub fn decode_leniently(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    bytes_of(digits.as_bytes()).ok().map(|(bytes, _)| bytes)
}

/// What digits without padding stand for, and whether bits that stand for nothing are all zero; or
/// where there is no digit, or one too many.
fn bytes_of(digits: &[u8]) -> Result<(Vec<u8>, bool), usize> {
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(4) * 3);
    let mut is_exact = true;
    for (group, digits) in digits.chunks(4).enumerate() {
        let mut word = 0_u32;
        for (at, digit) in digits.iter().enumerate() {
            let value = value_of(*digit).ok_or(group * 4 + at)?;
            word = word << 6 | u32::from(value);
        }
        // Six bits are no byte.
        let whole = digits.len() - 1;
        if whole == 0 {
            return Err(group * 4);
        }
        let [_, three @ ..] = (word << (6 * (4 - digits.len()))).to_be_bytes();
        is_exact &= three.iter().skip(whole).all(|byte| *byte == 0);
        bytes.extend(three.iter().take(whole));
    }
    Ok((bytes, is_exact))
}

const fn value_of(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Appends its text.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        for (to, from) in three.iter_mut().zip(group) {
            *to = *from;
        }
        let [a, b, c] = three;
        let word = u32::from_be_bytes([0, a, b, c]);
        for at in 0..4 {
            let digit = (word >> (18 - 6 * at) & 63) as usize;
            let digit = DIGITS.get(digit).filter(|_| at <= group.len());
            out.push(digit.copied().unwrap_or(b'='));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(&mut out, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_examples_of_its_standard() {
        // RFC 4648, section 10.
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Ok(bytes.as_bytes()), "{text}");
            assert_eq!(encoded(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn other_texts_are_none() {
        for (text, error) in [
            ("Zg", Base64Error::Length { len: 2 }),
            ("Zg=", Base64Error::Length { len: 3 }),
            ("====", Base64Error::Digit { at: 0 }),
            ("Z===", Base64Error::Digit { at: 1 }),
            ("Zg==Zg==", Base64Error::Digit { at: 2 }),
            ("Zm9v\n", Base64Error::Length { len: 5 }),
            ("Zm-_", Base64Error::Digit { at: 2 }),
            ("Zh==", Base64Error::UnusedBits),
            ("Zm9=", Base64Error::UnusedBits),
        ] {
            assert_eq!(decode(text), Err(error), "{text}");
        }
    }

    #[test]
    fn padding_may_be_left_out_where_it_does_not_matter() {
        for (text, bytes) in [
            ("Zm9vYmE", "fooba"),
            ("Zg=", "f"),
            ("Zh", "f"),
            ("Zg====", "f"),
        ] {
            let bytes = Some(bytes.as_bytes());
            assert_eq!(decode_leniently(text).as_deref(), bytes, "{text}");
        }
        assert_eq!(decode_leniently("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
        for bad in ["Z", "Zm9vY", "Zm9 v", "Z-==", "\u{e9}"] {
            assert_eq!(decode_leniently(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>) {
            let text = encoded(&bytes);
            let bare = decode_leniently(text.trim_end_matches('='));
            prop_assert_eq!(bare.as_ref(), Some(&bytes));
            prop_assert_eq!(decode(&text), Ok(bytes));
        }

        #[test]
        fn what_is_taken_is_given_back(text in "[A-Za-z0-9+/=]{0,12}") {
            if let Ok(bytes) = decode(&text) {
                prop_assert_eq!(encoded(&bytes), text);
            }
        }
    }
}
