//! What is kept of a secret.

use core::fmt;

use sha2::{Digest, Sha256};

/// SHA-256 of a key's secret. A secret has 256 random bits, so nothing slower is needed: nobody can
/// try them all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a secret.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Compares in a time that does not depend on where they differ.
    #[must_use]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        let differs = pairs.fold(0, |differs, (a, b)| {
            core::hint::black_box(differs | (a ^ b))
        });
        differs == 0
    }
}

/// The hash of a weak bootstrap key would let others try words against it.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sha_256() {
        // The example of FIPS 180-2, appendix B.1.
        let expected = [
            0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae,
            0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61,
            0xf2, 0x00, 0x15, 0xad,
        ];
        assert_eq!(KeyHash::of(b"abc").bytes(), &expected);
    }

    #[test]
    fn one_bit_makes_a_difference_and_none_is_shown() {
        let hash = KeyHash::of(b"secret");
        assert!(hash.is_same(&KeyHash::of(b"secret")));
        for index in 0..32 {
            let mut bytes = *hash.bytes();
            bytes[index] ^= 0x80;
            assert!(!hash.is_same(&KeyHash(bytes)), "byte {index}");
        }
        assert_eq!(format!("{hash:?}"), "KeyHash(..)");
    }
}
