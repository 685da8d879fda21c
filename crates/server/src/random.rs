//! Randomness from the system.

use rustix::rand::{GetRandomFlags, getrandom};
use tanda_session::secret::Entropy;

/// Secrets of the system's making; where the system makes none, there are none.
#[derive(Debug)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn draw(&self) -> Option<[u8; 32]> {
        let mut bits = [0; 32];
        let count = getrandom(&mut bits, GetRandomFlags::empty()).ok()?;
        (count == bits.len()).then_some(bits)
    }
}

/// 256 random bits for a secret; `None` where the system makes none.
pub(crate) fn secret() -> Option<[u8; 32]> {
    SystemEntropy.draw()
}

/// 128 random bits.
pub(crate) fn u128() -> u128 {
    u128::from_ne_bytes(bytes())
}

/// Four times 64 random bits.
pub(crate) fn seed() -> [u64; 4] {
    [0; 4].map(|_: u64| u64::from_ne_bytes(bytes()))
}

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Up to 256 bytes the call is whole, and fails only where the kernel has no such call; then
    // the hasher's keys, which the standard library draws from the system, have to do.
    if getrandom(&mut bytes, GetRandomFlags::empty()).is_err() {
        for chunk in bytes.chunks_mut(8) {
            use std::hash::{BuildHasher, Hasher, RandomState};
            let word = RandomState::new().build_hasher().finish().to_ne_bytes();
            for (byte, drawn) in chunk.iter_mut().zip(word) {
                *byte = drawn;
            }
        }
    }
    bytes
}
