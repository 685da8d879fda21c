//! The published FireMQ frames, those to be refused too.

use super::{Seed, seed, unhex};

/// Limits of 64 KiB for frames and for what becomes of messages.
const LIMITS: u8 = 0b1010;

pub(super) fn all() -> Vec<Seed> {
    let text = include_str!("../../../../test-vectors/firemq/frames.json");
    let hex = text.split("\"frame\": \"").skip(1);
    let frames = hex.filter_map(|rest| rest.split('"').next()).map(unhex);
    let mut seeds = Vec::new();
    let mut stream = vec![LIMITS];
    for (n, frame) in frames.enumerate() {
        let input = [&[LIMITS], frame.as_slice()].concat();
        seeds.push(seed("firemq_decode", &format!("frame-{n}"), input));
        stream.extend_from_slice(&frame);
    }
    seeds.push(seed("firemq_decode", "all-frames", stream));
    seeds
}
