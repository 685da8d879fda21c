//! What fuzzers found, the inputs to begin with, and small changes of both, through every target.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at what it does not expect"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tanda_fuzz::mutate::mutate;
use tanda_fuzz::{TARGETS, Target, seeds};

/// Changed inputs per target: a few seconds.
const CHANGED: u64 = 4_000;
/// Of scripts, many of which run until their time is over.
const CHANGED_SCRIPTS: u64 = 400;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}

/// The stored inputs of a target, by the path that a failure names.
fn stored(kind: &str, target: &Target) -> BTreeMap<String, Vec<u8>> {
    let folder = folder(kind).join(target.name);
    let Ok(entries) = fs::read_dir(&folder) else {
        return BTreeMap::new();
    };
    let mut inputs = BTreeMap::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let input = fs::read(&path).unwrap();
        inputs.insert(path.display().to_string(), input);
    }
    inputs
}

fn inputs(target: &Target) -> BTreeMap<String, Vec<u8>> {
    let mut inputs = stored("corpus", target);
    inputs.extend(stored("regressions", target));
    let seeds = seeds::all();
    let own = seeds.into_iter().filter(|seed| seed.target == target.name);
    inputs.extend(own.map(|seed| (seed.name, seed.input)));
    inputs
}

fn run(target: &Target, input: &[u8], name: &str) {
    let outcome = std::panic::catch_unwind(|| (target.run)(input));
    if outcome.is_err() {
        let path = std::env::temp_dir().join(format!("failed-{}", target.name));
        fs::write(&path, input).unwrap();
        panic!(
            "{}: {name} fails, as shown above; the input is in {}",
            target.name,
            path.display()
        );
    }
}

fn replay(name: &str) {
    replay_with(name, CHANGED);
}

fn replay_with(name: &str, changed: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let inputs = inputs(target);
    assert!(inputs.len() > 20, "{} inputs of {name}", inputs.len());
    for (name, input) in &inputs {
        run(target, input, name);
    }
    let inputs: Vec<_> = inputs.iter().collect();
    for seed in 0..changed {
        let at = |number: u64| usize::try_from(number).unwrap() % inputs.len();
        let (name, input) = inputs[at(seed)];
        let (_, other) = inputs[at(seed.wrapping_mul(7_919) >> 3)];
        let changed = mutate(seed, input, other);
        run(
            target,
            &changed,
            &format!("{name}, changed by seed {seed},"),
        );
    }
}

#[test]
fn amaquet_decode() {
    replay("amaquet_decode");
}

#[test]
fn amqp_decode() {
    replay("amqp_decode");
}

#[test]
fn frame_decode() {
    replay("frame_decode");
}

#[test]
fn session_input() {
    replay("session_input");
}

#[test]
fn log_recovery() {
    replay("log_recovery");
}

#[test]
fn engine_replay() {
    replay("engine_replay");
}

#[test]
fn snapshot_open() {
    replay("snapshot_open");
}

#[test]
fn config_load() {
    replay("config_load");
}

#[test]
fn script_run() {
    replay_with("script_run", CHANGED_SCRIPTS);
}

#[test]
fn firemq_decode() {
    replay("firemq_decode");
}

#[test]
fn firemq_session() {
    replay("firemq_session");
}

#[test]
fn amaquet_session() {
    replay("amaquet_session");
}

#[test]
fn amqp_session() {
    replay("amqp_session");
}

#[test]
fn every_target_has_a_test_and_a_program() {
    let tests = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay.rs"));
    let tests = tests.unwrap();
    let manifest = fs::read_to_string(folder("Cargo.toml")).unwrap();
    for target in TARGETS {
        let called = ["replay", "replay_with"].map(|call| format!("{call}(\"{}\"", target.name));
        let is_called = called.iter().any(|call| tests.contains(call));
        assert!(is_called, "{} has no test", target.name);
        assert!(manifest.contains(&format!("name = \"{}\"", target.name)));
        let program = folder("fuzz_targets").join(format!("{}.rs", target.name));
        assert!(program.exists(), "{}", program.display());
    }
    for kind in ["corpus", "regressions"] {
        let Ok(folders) = fs::read_dir(folder(kind)) else {
            continue;
        };
        for entry in folders {
            let name = entry.unwrap().file_name();
            let is_known = TARGETS.iter().any(|target| name == target.name);
            assert!(is_known, "{kind}/{} is of no target", name.display());
        }
    }
}
