//! Conversations of AMQP sessions.

use super::{Seed, byte_of, seed, short};
use crate::amqp_session::Step;

const TARGET: &str = "amqp_session";

fn step(step: Step) -> u8 {
    byte_of(&Step::ALL, &step)
}

/// All of them.
pub(super) fn all() -> Vec<Seed> {
    let answer = [step(Step::Answer), 0, 100, 100, 100];
    let read = [step(Step::Read), 0xFF, 0xFF];
    let deliver = [step(Step::Delivery), 0, 0, 2, 0, 0, 0, 0, 0, 0];
    let message = |flags: u8, body: &[u8]| {
        let mut out = vec![step(Step::Message), 1, flags, 0];
        out.extend(short(body));
        out.push(40);
        out
    };
    let methods = [2_u8, 14, 7, 6, 0, 0xF6, 1, 0x31, 5, 4, 3, 11, 13, 8, 9, 10];
    let turn = |which: u8, flags: u8| {
        let mut out = vec![step(Step::Known), which];
        out.extend(answer);
        out.extend(deliver);
        out.extend(message(flags, b"body"));
        out.extend(answer);
        out.extend(read);
        out
    };
    let mut whole = vec![7];
    whole.extend(methods.iter().flat_map(|which| turn(*which, 2)));
    // Each method alone, and again while the answer to the first is missing.
    let alone = methods.iter().map(|which| {
        let mut out = vec![7];
        out.extend(turn(*which, 3));
        out.extend([step(Step::Known), *which, step(Step::Known), *which]);
        out.extend(read);
        seed(TARGET, &format!("method-{which}"), out)
    });
    let mut seeds: Vec<_> = alone.collect();
    let mut transactions = vec![7, step(Step::Known), 8];
    transactions.extend(message(3, b"in a transaction"));
    transactions.extend(answer);
    transactions.extend([step(Step::Known), 9]);
    transactions.extend(answer);
    transactions.extend(read);
    let mut refused = vec![0, step(Step::Refuse), 3];
    refused.extend(message(0, b"refused"));
    refused.extend([step(Step::Wait), 0, 10, step(Step::Alarm), 0]);
    refused.extend(message(0, b"waits"));
    refused.extend([step(Step::Alarm), 1, step(Step::End), 0]);
    refused.extend(read);
    let mut greeting = vec![8, step(Step::Bytes)];
    greeting.extend(short(b"AMQP\0\0\x09\x01"));
    greeting.extend([step(Step::Login), 0]);
    greeting.extend(read);
    let cut = greeting.iter().copied().take(6).collect();
    seeds.extend([
        seed(TARGET, "conversation", whole),
        seed(TARGET, "transactions", transactions),
        seed(TARGET, "refused", refused),
        seed(TARGET, "greeting", greeting),
        seed(TARGET, "greeting-cut", cut),
    ]);
    seeds
}
