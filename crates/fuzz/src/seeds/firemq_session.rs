//! Conversations of FireMQ sessions.

use super::{Seed, byte_of, seed, short};
use crate::firemq_session::Step;

const TARGET: &str = "firemq_session";
/// Wide bounds, and the connection is open.
const OPEN: u8 = 7;

fn step(step: Step) -> u8 {
    byte_of(&Step::ALL, &step)
}

/// All of them.
pub(super) fn all() -> Vec<Seed> {
    let answer = [step(Step::Answer), 0, 100, 100, 100];
    let read = [step(Step::Read), 0xFF, 0xFF];
    let deliver = [step(Step::Delivery), 0, 0, 2, 0, 0, 0, 0, 0, 0];
    let message = |flags: u8, headers: &[u8], body: &[u8]| {
        let mut out = vec![step(Step::Message), flags, 0, 0];
        out.extend(short(headers));
        out.extend(short(body));
        out
    };
    let turn = |which: u8, flags: u8| {
        let mut out = vec![step(Step::Known), which];
        out.extend(answer);
        out.extend(deliver);
        out.extend(message(flags, b"\x81\xA6x-delay\x07", b"body"));
        out.extend(answer);
        out.extend(read);
        out
    };
    // Each op alone, and again while the answer to the first is missing.
    let alone = (0..16).map(|which| {
        let mut out = vec![OPEN];
        out.extend(turn(0x40, 2));
        out.extend(turn(which, 3));
        out.extend([step(Step::Known), which, step(Step::Known), which]);
        out.extend(read);
        seed(TARGET, &format!("op-{which}"), out)
    });
    let mut seeds: Vec<_> = alone.collect();
    let mut whole = vec![OPEN];
    whole.extend((0..15).flat_map(|which| turn(which, which)));
    let mut refused = vec![0, step(Step::Refuse), 3];
    refused.extend(message(0, b"", b"refused"));
    refused.extend([step(Step::Wait), 0, 10, step(Step::Alarm), 0]);
    refused.extend(message(0, b"", b"waits"));
    refused.extend([step(Step::Alarm), 1, step(Step::End), 0]);
    refused.extend(read);
    let mut greeting = vec![8, step(Step::Known), 14, step(Step::Known), 13];
    greeting.extend([step(Step::Login), 1]);
    greeting.extend(answer);
    greeting.extend(read);
    let mut turned_away = greeting.clone();
    if let Some(which) = turned_away.get_mut(6) {
        *which = 0;
    }
    let cut = greeting.iter().copied().take(5).collect();
    let mut leaves = vec![OPEN];
    leaves.extend(message(2, b"", b"before the close"));
    leaves.extend([step(Step::Known), 15]);
    leaves.extend(answer);
    leaves.extend(read);
    let vectors = include_str!("../../../../test-vectors/firemq/frames.json");
    let mut stream = vec![OPEN];
    for hex in vectors.split("\"frame\": \"").skip(1) {
        let frame = super::unhex(hex.split('"').next().unwrap_or_default());
        if frame.len() < 256 {
            stream.push(step(Step::Bytes));
            stream.extend(short(&frame));
        }
    }
    stream.extend(read);
    seeds.extend([
        seed(TARGET, "conversation", whole),
        seed(TARGET, "refused", refused),
        seed(TARGET, "greeting", greeting),
        seed(TARGET, "greeting-cut", cut),
        seed(TARGET, "turned-away", turned_away),
        seed(TARGET, "leaves", leaves),
        seed(TARGET, "vectors", stream),
    ]);
    seeds
}
