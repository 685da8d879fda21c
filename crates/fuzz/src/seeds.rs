//! Inputs to begin with, made from the published test vectors and from scripts.
//!
//! They are made anew each time instead of being stored, so they cannot grow stale; `fuzz/corpus`
//! stores what fuzzers found beyond them.

mod amaquet;
mod amaquet_session;
mod amqp;
mod amqp_session;
mod firemq;
mod firemq_session;
mod scripts;
mod settings;

use tanda_wire::fila::frame::{FrameHeader, split_frame};
use tanda_wire::fila::{Direction, Opcode, continuation};

use crate::damage::Damage;
use crate::engine_replay::Source;
use crate::log_recovery::Write;
use crate::session_input::{KEYS_BYTE, Step};

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The target's name.
    pub target: &'static str,
    /// Of the file it is written to.
    pub name: String,
    /// The input.
    pub input: Vec<u8>,
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Seed> {
    let mut seeds = frames();
    seeds.extend(amaquet::all());
    seeds.extend(amaquet_session::all());
    seeds.extend(amqp::all());
    seeds.extend(amqp_session::all());
    seeds.extend(sessions());
    seeds.extend(logs());
    seeds.extend(records());
    seeds.extend(directories());
    seeds.extend(settings::all());
    seeds.extend(scripts::all());
    seeds.extend(firemq::all());
    seeds.extend(firemq_session::all());
    seeds
}

fn seed(target: &'static str, name: &str, input: Vec<u8>) -> Seed {
    let name = format!("seed-{name}");
    Seed {
        target,
        name,
        input,
    }
}

/// The frames of the test vectors.
fn vectors() -> Vec<Vec<u8>> {
    let text = include_str!("../../../test-vectors/fila/frames.json");
    let hex = text.split("\"frame\": \"").skip(1);
    hex.filter_map(|rest| rest.split('"').next())
        .map(unhex)
        .collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let pairs = digits.chunks_exact(2);
    pairs
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect()
}

/// The place of a value in the list of its kind, as the byte of a script.
fn byte_of<T: PartialEq>(all: &[T], value: &T) -> u8 {
    let at = all.iter().position(|other| other == value);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or_default()
}

/// Bytes behind their length.
fn short(bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    let mut out = vec![len];
    out.extend_from_slice(bytes.get(..usize::from(len)).unwrap_or_default());
    out
}

fn frames() -> Vec<Seed> {
    const TARGET: &str = "frame_decode";
    let vectors = vectors();
    let mut seeds: Vec<Seed> = vectors
        .iter()
        .enumerate()
        .map(|(n, frame)| {
            seed(
                TARGET,
                &format!("vector-{n:02}"),
                [&[0x0F], &frame[..]].concat(),
            )
        })
        .collect();
    // The same in frames of a few bytes, two bodies at a time.
    let mut cut = vec![0x00];
    for (n, frame) in vectors.iter().enumerate().take(12) {
        let Ok(Some(frame)) = split_frame(frame, 1 << 20) else {
            continue;
        };
        let request_id = u32::try_from(n / 2 + 1).unwrap_or(1);
        let header = FrameHeader::new(frame.header.opcode, request_id);
        continuation::write_split(&mut cut, header, 32, frame.body);
    }
    seeds.push(seed(TARGET, "continued", cut));
    seeds.push(seed(
        TARGET,
        "stream",
        [&[0x05], &vectors.concat()[..]].concat(),
    ));
    seeds
}

fn sessions() -> Vec<Seed> {
    const TARGET: &str = "session_input";
    let step = |step: Step| byte_of(&Step::ALL, &step);
    let hello = [step(Step::Handshake), 0, 0];
    let answer = [step(Step::Answer), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let read = [step(Step::Read), 0xFF, 0xFF];
    let requests: Vec<Vec<u8>> = vectors()
        .into_iter()
        .filter(|frame| is_request(frame) && frame.len() < 250)
        .collect();
    let mut seeds = Vec::new();
    let mut whole = vec![0x0F];
    whole.extend_from_slice(&hello);
    for (n, frame) in requests.iter().enumerate() {
        let sent = [&[step(Step::Bytes)], &short(frame)[..]].concat();
        let one = [&[0x00], &hello[..], &sent, &answer, &read].concat();
        seeds.push(seed(TARGET, &format!("request-{n:02}"), one));
        whole.extend_from_slice(&[&sent[..], &answer, &read].concat());
    }
    seeds.push(seed(TARGET, "conversation", whole));
    seeds.extend(with_keys(&requests));
    seeds.push(seed(TARGET, "subscription", subscription(&hello)));
    seeds
}

/// The same requests where keys are needed, by keys that may do all, some, and are gone; each is
/// answered by what an engine may answer to it.
fn with_keys(requests: &[Vec<u8>]) -> Vec<Seed> {
    let step = |step: Step| byte_of(&Step::ALL, &step);
    let answers = [[192_u8], [193]];
    let mut seeds = Vec::new();
    for (at, name) in ["root", "some", "late", "none"].into_iter().enumerate() {
        let mut input = vec![0x1F, step(Step::Handshake), 0];
        input.extend(short(name.as_bytes()));
        for (n, frame) in requests.iter().enumerate() {
            let sent = [&[step(Step::Bytes)], &short(frame)[..]].concat();
            let said = answers.get(n % 2).map_or(&[][..], |it| it);
            let answer = [&[step(Step::Answer), 0], said, &[1, b'k', 1, 0, 2]].concat();
            input.extend([&sent[..], &answer, &[step(Step::Read), 0xFF, 0xFF]].concat());
            if n % 10 == 9 {
                let table = 2 + u8::from(n > 20) + u8::from(at % 2 == 0);
                input.extend([KEYS_BYTE, table, step(Step::Wait), 0, 50]);
            }
        }
        seeds.push(seed("session_input", &format!("as-{name}"), input));
    }
    seeds
}

/// A subscription: consumed, delivered, partly read, refused, closed.
fn subscription(hello: &[u8]) -> Vec<u8> {
    let step = |step: Step| byte_of(&Step::ALL, &step);
    let consume = byte_of(Opcode::ALL, &Opcode::Consume);
    let credit = byte_of(Opcode::ALL, &Opcode::Credit);
    [
        &[0x01][..],
        hello,
        &[
            step(Step::Frame),
            consume,
            0,
            1,
            9,
            0,
            1,
            b'q',
            0,
            0,
            0,
            9,
            0,
            0,
        ],
        &[step(Step::Answer), 0, 5, 0, 0, 0, 0, 0, 0, 0, 4],
        &[
            step(Step::Delivery),
            0,
            4,
            1,
            0,
            3,
            7,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            1,
        ],
        &[step(Step::Read), 0, 20, step(Step::Refuse), 2],
        &[step(Step::Frame), credit, 0, 1, 4, 0, 0, 0, 5],
        &[step(Step::Wait), 0, 200, step(Step::Read), 1, 0],
        &[
            step(Step::Shutdown),
            step(Step::Read),
            9,
            9,
            step(Step::Close),
        ],
    ]
    .concat()
}

fn is_request(frame: &[u8]) -> bool {
    let Ok(Some(frame)) = split_frame(frame, 1 << 20) else {
        return false;
    };
    matches!(
        frame.header.opcode.direction(),
        Direction::ToServer | Direction::Either
    )
}

fn logs() -> Vec<Seed> {
    const TARGET: &str = "log_recovery";
    let write = |write: Write| byte_of(&Write::ALL, &write);
    let commit = |len: u16| [&[write(Write::Commit)], &len.to_be_bytes()[..]].concat();
    let begins = [
        ("short", [1].to_vec()),
        ("commits", [vec![2], commit(30).repeat(7)].concat()),
        (
            "large",
            [
                vec![3],
                commit(9_000),
                commit(19_000),
                commit(4_000),
                commit(0),
            ]
            .concat(),
        ),
        (
            "crashes",
            [
                vec![4],
                commit(3_000).repeat(3),
                vec![write(Write::Append), 0x20, 0, write(Write::Crash), 2],
                commit(3_000).repeat(3),
                vec![write(Write::Idle), write(Write::Kill)],
                commit(10),
            ]
            .concat(),
        ),
        (
            "started",
            [
                vec![5],
                commit(4_000).repeat(6),
                vec![write(Write::Start), 0, 4],
                commit(4_000).repeat(6),
                vec![write(Write::Idle)],
            ]
            .concat(),
        ),
    ];
    let harms = harms();
    let mut seeds = Vec::new();
    for (begin, bytes) in &begins {
        for (harm, damages) in &harms {
            let input = [&bytes[..], &[write(Write::End)], damages].concat();
            seeds.push(seed(TARGET, &format!("{begin}-{harm}"), input));
        }
    }
    seeds
}

fn harms() -> [(&'static str, Vec<u8>); 12] {
    let damage = |damage: Damage| byte_of(&Damage::ALL, &damage);
    [
        ("whole", vec![]),
        ("flip", vec![damage(Damage::Flip), 0, 0x10, 0x50, 4]),
        ("flip-header", vec![damage(Damage::Flip), 1, 0, 9, 1]),
        ("zero", vec![damage(Damage::Zero), 0, 0x20, 0, 0x10, 0]),
        ("cut", vec![damage(Damage::Cut), 0, 0x20, 0x10]),
        ("longer", vec![damage(Damage::Extend), 0, 2, 7, 7]),
        (
            "copy",
            vec![damage(Damage::Copy), 0, 1, 0x10, 0, 0x10, 0, 7],
        ),
        ("swap", vec![damage(Damage::Swap), 0, 1]),
        ("rename", vec![damage(Damage::Rename), 0, 7]),
        ("double", vec![damage(Damage::Double), 0, 7]),
        ("remove", vec![damage(Damage::Remove), 1]),
        ("add", vec![damage(Damage::Add), 7, 3, 1, 2, 3]),
    ]
}

/// Each damage, to each file of the directory of `snapshot_open`.
fn directories() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (harm, mut damages) in harms() {
        for file in 0..8 {
            if let Some(byte) = damages.get_mut(1) {
                *byte = file;
            }
            let name = format!("{harm}-of-{file}");
            seeds.push(seed("snapshot_open", &name, damages.clone()));
        }
    }
    seeds
}

fn records() -> Vec<Seed> {
    const TARGET: &str = "engine_replay";
    let source = |source: Source| byte_of(&Source::ALL, &source);
    let next = source(Source::Next);
    let changes: [(&str, Vec<u8>); 9] = [
        ("whole", vec![]),
        ("skip", vec![source(Source::Skip)]),
        ("again", vec![source(Source::Any), 9]),
        ("change", vec![source(Source::Change), 30, 1]),
        (
            "number",
            vec![source(Source::Number), 26, 0, 0, 0, 0, 0, 0, 1, 0],
        ),
        ("cut", vec![source(Source::Cut), 40]),
        ("longer", vec![source(Source::Longer), 1, 0]),
        (
            "made",
            vec![source(Source::Made), 11, 0, 21, 0, 0, 0, 9, 0, 0, 0, 0, 0],
        ),
        ("jump", vec![source(Source::Jump), 0, 1, 0, 0]),
    ];
    let mut seeds = Vec::new();
    for (name, change) in changes {
        for before in [2, 20, 50] {
            let end = [next, 63, next, 63, next, 63, next, 63];
            let input = [&[before][..], &[next, before], &change, &end].concat();
            seeds.push(seed(TARGET, &format!("{name}-after-{before}"), input));
        }
    }
    seeds
}
