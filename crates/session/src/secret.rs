//! Secrets of API keys: made here of random bytes that come from outside, shown once, kept nowhere.

use core::fmt;

use tanda_engine::KeyHash;

/// What every secret begins with, so that programs that look for leaked keys can find it.
pub const SECRET_PREFIX: &str = "tanda_";

/// Digits of 256 bits in base 62.
const DIGITS: usize = 43;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Where random bytes come from.
pub trait Entropy: fmt::Debug + Send + Sync {
    /// 256 bits that nobody can foresee; `None` when there are none.
    fn draw(&self) -> Option<[u8; 32]>;
}

/// The text of a secret. It shows itself only where it is asked to.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret of 256 random bits: the prefix, then 43 letters and digits.
    #[must_use]
    pub fn of(mut bits: [u8; 32]) -> Self {
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            // Divides the number by 62, from its highest byte on.
            let mut rest = 0_u32;
            for byte in &mut bits {
                let value = rest << 8 | u32::from(*byte);
                *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
                rest = value % 62;
            }
            *digit = ALPHABET.get(rest as usize).copied().unwrap_or(b'0');
        }
        let digits = digits.iter().copied().map(char::from);
        Self(SECRET_PREFIX.chars().chain(digits).collect())
    }

    /// What is kept of it.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(self.0.as_bytes())
    }

    /// The text, to be shown to who asked for the key and to nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_its_bits_in_base_62() {
        let text = |bits| Secret::of(bits).reveal().to_owned();
        assert_eq!(text([0; 32]), format!("tanda_{}", "0".repeat(43)));
        let mut bits = [0; 32];
        bits[31] = 61;
        assert!(text(bits).ends_with("00z"));
        bits[31] = 62;
        assert!(text(bits).ends_with("010"));
        // Computed with Python: 2**256 - 1 in base 62.
        let most = "tanda_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1";
        assert_eq!(text([0xff; 32]), most);
    }

    #[test]
    fn it_does_not_show_itself() {
        let secret = Secret::of([7; 32]);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(secret.hash(), KeyHash::of(secret.reveal().as_bytes()));
    }
}
