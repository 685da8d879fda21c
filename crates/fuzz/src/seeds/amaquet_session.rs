//! Conversations of Amaquet sessions.

use super::{Seed, byte_of, seed, short};
use crate::amaquet_session::Step;

const TARGET: &str = "amaquet_session";
/// Wide bounds, and nobody has to log in.
const OPEN: u8 = 3;

fn step(step: Step) -> u8 {
    byte_of(&Step::ALL, &step)
}

fn answer(how: u8) -> [u8; 6] {
    [step(Step::Answer), 0, how, how, how, how]
}

fn read() -> [u8; 3] {
    [step(Step::Read), 0xFF, 0xFF]
}

fn command(which: u8, id: u8) -> [u8; 3] {
    [step(Step::Command), which, id]
}

fn known(which: u8, id: u8) -> [u8; 3] {
    [step(Step::Known), which, id]
}

/// Each command, answered well and badly.
fn commands() -> impl Iterator<Item = Seed> {
    (0..24).map(|which| {
        let mut out = vec![OPEN];
        for how in [6, 100, 200] {
            out.extend(command(which, 1));
            out.extend(command(which, 1));
            out.extend(known(8, 2));
            out.extend(answer(how));
            out.extend(answer(how));
        }
        out.extend(read());
        seed(TARGET, &format!("command-{which}"), out)
    })
}

/// All of them.
pub(super) fn all() -> Vec<Seed> {
    let mut seeds: Vec<_> = commands().collect();
    let mut subscribed = vec![OPEN];
    for id in [3, 3, 4] {
        subscribed.extend(known(5, id));
        subscribed.extend(answer(7));
        subscribed.extend([step(Step::Watched), 0, 0, 0, 1, 1, b'c']);
        subscribed.extend([0; 9]);
        subscribed.extend(read());
    }
    subscribed.extend(known(7, 5));
    subscribed.extend(read());
    let mut with_keys = vec![OPEN | 4];
    for which in [0, 3, 5] {
        with_keys.extend(command(4, 1));
        with_keys.extend(known(which, 2));
        with_keys.extend(command(9, 3));
        with_keys.extend(answer(1));
    }
    for table in 0..5 {
        with_keys.extend([step(Step::Keys), table]);
        with_keys.extend(read());
    }
    let mut refused = vec![0, step(Step::Refuse), 3];
    refused.extend(command(9, 1));
    refused.extend(known(8, 2));
    refused.extend([step(Step::Wait), 0, 10, step(Step::End), 0]);
    refused.extend(read());
    let mut slow = vec![0];
    for id in 1..7 {
        slow.extend(command(12, id));
    }
    for _ in 0..6 {
        slow.extend(answer(18));
    }
    slow.extend([step(Step::Read), 0, 20, step(Step::Close)]);
    slow.extend(answer(18));
    let mut elsewhere = vec![OPEN | 8];
    elsewhere.extend(command(4, 1));
    elsewhere.extend(answer(0));
    elsewhere.extend(command(4, 1));
    elsewhere.extend(read());
    let mut frames = vec![OPEN, step(Step::Frame), 2, 1];
    frames.extend(short(b"{}"));
    frames.push(step(Step::Bytes));
    frames.extend(short(
        b"AMQT\x01\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\x09\0\0\0\x05{",
    ));
    frames.extend([step(Step::Wait), 0, 200]);
    frames.extend(read());
    seeds.extend([
        seed(TARGET, "subscribed", subscribed),
        seed(TARGET, "with-keys", with_keys),
        seed(TARGET, "refused", refused),
        seed(TARGET, "slow", slow),
        seed(TARGET, "elsewhere", elsewhere),
        seed(TARGET, "frames", frames),
    ]);
    seeds
}
