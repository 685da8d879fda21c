//! Base64 (RFC 4648, section 4).

#[cfg(test)]
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes it with or without padding; `None` when it is none.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(value);
        }
        let whole = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            // Six bits are no byte.
            _ => return None,
        };
        let [_, three @ ..] = (word << (6 * (4 - group.len()))).to_be_bytes();
        bytes.extend(three.iter().take(whole));
    }
    Some(bytes)
}

/// Encodes with padding.
#[cfg(test)]
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        for (to, from) in three.iter_mut().zip(group) {
            *to = *from;
        }
        let [a, b, c] = three;
        let word = u32::from_be_bytes([0, a, b, c]);
        for at in 0..4 {
            let digit = word >> (18 - 6 * at) & 63;
            let digit = usize::try_from(digit).ok().and_then(|it| DIGITS.get(it));
            let digit = digit.filter(|_| at <= group.len()).unwrap_or(&b'=');
            text.push(char::from(*digit));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(decode("Zm9vYmE").as_deref(), Some(&b"fooba"[..]));
        assert_eq!(decode("+/+/"), Some(vec![0xfb, 0xff, 0xbf]));
        assert_eq!(encode(&[0xfb, 0xff, 0xbf]), "+/+/");
        for bad in ["Z", "Zm9vY", "Zm9 v", "Z-==", "\u{e9}"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
