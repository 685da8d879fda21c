//! The published Amaquet frames, those to be refused too, and the commands.

use tanda_wire::amaquet::command::COMMANDS;
use tanda_wire::amaquet::frame::write_frame;
use tanda_wire::amaquet::{Header, Opcode};

use super::{Seed, seed, unhex};

const TARGET: &str = "amaquet_decode";
/// A limit of 64 KiB.
const LIMITS: u8 = 2;

pub(super) fn all() -> Vec<Seed> {
    let text = include_str!("../../../../test-vectors/amaquet/frames.json");
    let hex = text.split("\"frame\": \"").skip(1);
    let frames = hex.filter_map(|rest| rest.split('"').next()).map(unhex);
    let mut seeds = Vec::new();
    let mut stream = vec![LIMITS];
    for (n, frame) in frames.enumerate() {
        // The kind of the frame says who sends it.
        let sender = if frame.get(5) == Some(&1) { 0 } else { 4 };
        let input = [&[LIMITS | sender], frame.as_slice()].concat();
        seeds.push(seed(TARGET, &format!("frame-{n}"), input));
        stream.extend_from_slice(&frame);
    }
    seeds.push(seed(TARGET, "all-frames", stream));
    seeds.extend(commands());
    seeds
}

/// Each command with all its arguments, of a type that is right for some of them.
fn commands() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for spec in COMMANDS {
        for (n, value) in ["1", "\"a\"", "[\"a\",1]", "{\"payload\":1}"]
            .iter()
            .enumerate()
        {
            let mut request = format!("{{\"command\":\"{}\"", spec.name);
            for argument in spec.arguments {
                request.push_str(&format!(",\"{}\":{value}", argument.name));
            }
            request.push('}');
            let mut input = vec![LIMITS];
            let header = Header::request(Opcode::Command, 1);
            let written = write_frame(&mut input, header, 1 << 16, |out| {
                out.extend_from_slice(request.as_bytes());
            });
            if written.is_ok() {
                seeds.push(seed(TARGET, &format!("{}-{n}", spec.name), input));
            }
        }
    }
    seeds
}
