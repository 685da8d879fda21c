//! The scheduler against a naive model: whatever mix of operations, both show the same.
//!
//! After each operation every answer, every delivery (who got which message in which order, with
//! which counts and times), the statistics and an explanation are compared. Longer runs:
//! `TANDA_MODEL_CASES=100000 TANDA_MODEL_SEED=7 cargo test --release -p tanda-engine --test model`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at what it does not expect"
)]

mod administer;
mod apply;
mod compare;
mod fairness;
#[path = "../harness/mod.rs"]
mod harness;
mod log;
mod model;
mod ops;
mod requests;
mod schedule;
mod throttled;
mod world;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test runs is not the engine's business"
)]
fn setting(name: &str, default: u32) -> u32 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

#[test]
fn any_history_shows_what_the_model_shows() {
    let cases = setting("TANDA_MODEL_CASES", 3_000);
    let seed = setting("TANDA_MODEL_SEED", 1);
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_be_bytes());
    let config = Config {
        cases,
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&ops::history(60), |(setup, ops)| {
        world::play(setup, &ops);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("seed {seed}: {error}");
    }
}
