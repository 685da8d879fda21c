//! Random bytes into every decoder: no panic, and what is accepted encodes and reads back.

use tanda_wire::fila::Opcode;
use tanda_wire::fila::frame::{MAX_FRAME_DEFAULT, split_frame};

use crate::registry::decode;
use crate::vectors::vectors;

/// A small generator (xorshift64*), so that a failure repeats from its seed alone.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound).unwrap()
    }

    /// Mostly small numbers, as lengths and counts are, so that decoders get past them. Of
    /// `2^sparse` bytes about one is not 0.
    fn byte(&mut self, sparse: u32) -> u8 {
        let [kind, low, raw, ..] = self.next().to_be_bytes();
        match kind.trailing_zeros() {
            zeros if zeros < sparse => 0,
            zeros if zeros.is_multiple_of(2) => low % 4,
            _ => raw,
        }
    }
}

fn check(opcode: Opcode, body: &[u8]) -> bool {
    let Ok(first) = decode(opcode, body) else {
        return false;
    };
    assert!(
        body.starts_with(&first.encoded) || opcode == Opcode::Error,
        "{opcode}: {body:02x?}"
    );
    let second = decode(opcode, &first.encoded).unwrap();
    assert_eq!(first.fields, second.fields, "{opcode}: {body:02x?}");
    true
}

#[test]
fn random_bodies() {
    for opcode in Opcode::ALL {
        let mut rng = Rng(0x9E37_79B9_7F4A_7C15 ^ u64::from(opcode.to_wire()));
        let mut accepted = 0;
        for _ in 0..3000 {
            let len = rng.below(120);
            let sparse = u32::from(rng.byte(0) % 6);
            let body: Vec<u8> = (0..len).map(|_| rng.byte(sparse)).collect();
            accepted += usize::from(check(*opcode, &body));
        }
        assert!(
            accepted > 0,
            "{opcode}: nothing was accepted, so the inputs test little"
        );
    }
}

#[test]
fn mutated_bodies() {
    for (n, vector) in vectors().iter().enumerate() {
        let mut rng = Rng(0xD1B5_4A32_D192_ED03 ^ n as u64);
        for _ in 0..1000 {
            let mut body = vector.body().to_vec();
            for _ in 0..=rng.below(4) {
                let at = rng.below(body.len() as u64 + 1);
                match (rng.below(3), body.get_mut(at)) {
                    (0, Some(byte)) => *byte = rng.byte(1),
                    (1, Some(_)) => drop(body.remove(at)),
                    (_, _) => body.insert(at, rng.byte(1)),
                }
            }
            check(vector.opcode, &body);
        }
    }
}

#[test]
fn random_streams() {
    let mut rng = Rng(42);
    for _ in 0..20_000 {
        let len = rng.below(40);
        let stream: Vec<u8> = (0..len).map(|_| rng.byte(1)).collect();
        let mut rest = &stream[..];
        while let Ok(Some(frame)) = split_frame(rest, MAX_FRAME_DEFAULT) {
            assert!(frame.consumed >= 10 && frame.consumed == frame.body.len() + 10);
            rest = &rest[frame.consumed..];
        }
    }
}
