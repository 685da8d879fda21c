//! Small changes of an input, from a seed: what a fuzzer does first, without its feedback.

use crate::random::Random;

/// The longest input that a change makes longer, in bytes.
const GROWN_BYTES_MAX: usize = 8 << 10;

/// `input` with a few bytes changed, moved, doubled, removed, or taken from `other`.
#[must_use]
pub fn mutate(seed: u64, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        change(&mut random, &mut bytes, other);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(bytes.len());
    let end = bytes.len().min(at + 1 + random.below(16));
    match random.below(7) {
        0 | 1 => {
            let value = random.byte();
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        2 => {
            let bit = 1 << random.below(8);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bit;
            }
        }
        3 if at < end => drop(bytes.drain(at..end)),
        4 if bytes.len() < GROWN_BYTES_MAX => {
            let more: Vec<u8> = (0..=random.below(6)).map(|_| random.byte()).collect();
            bytes.splice(at..at, more);
        }
        5 if at < end && bytes.len() < GROWN_BYTES_MAX => {
            let copy = bytes.get(at..end).unwrap_or_default().to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        _ => {
            let from = random.below(other.len());
            let len = 1 + random.below(24);
            let part = other.get(from..).unwrap_or_default();
            let part = part.get(..len).unwrap_or(part).to_vec();
            bytes.splice(at..end.max(at), part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_change() {
        let input: Vec<u8> = (0..100).collect();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let first = mutate(seed, &input, b"other");
            assert_eq!(first, mutate(seed, &input, b"other"));
            seen.insert(first);
        }
        assert!(seen.len() > 190, "{} different inputs", seen.len());
        for seed in 0..200 {
            assert!(mutate(seed, &[], &[]).len() < 100);
        }
    }
}
