//! What the fuzzers run: bytes in, a panic when a promise does not hold.
//!
//! Owns one function per target, and inputs to begin with. Refuses to know who finds the bytes:
//! `fuzz/` gives these functions to libFuzzer, and the tests of this crate replay the stored
//! inputs and small changes of them, without it (`docs/fuzzing.md`).
//!
//! ```text
//!  fuzz/corpus, fuzz/regressions, seeds::all ──► tests/replay.rs ──► targets
//!  libFuzzer (cargo fuzz) ─────────────────────────────────────────► targets
//! ```
//!
//! An input is a [`script::Script`] rather than raw bytes where a target has steps: each byte
//! decides the next thing, whatever its value, so that any change of an input is an input too.

pub mod amaquet_decode;
pub mod amaquet_session;
pub mod amqp_decode;
pub mod amqp_session;
mod answers;
pub mod config_load;
mod damage;
mod driven;
pub mod engine_replay;
pub mod firemq_decode;
pub mod firemq_session;
pub mod frame_decode;
pub mod log_recovery;
pub mod mutate;
mod random;
pub mod script;
pub mod script_run;
pub mod seeds;
pub mod session_input;
pub mod snapshot_open;

/// A function to be fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folders in `fuzz/`.
    pub name: &'static str,
    /// Takes one input; panics when a promise does not hold.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "frame_decode",
        run: frame_decode::run,
    },
    Target {
        name: "amaquet_decode",
        run: amaquet_decode::run,
    },
    Target {
        name: "amqp_decode",
        run: amqp_decode::run,
    },
    Target {
        name: "amqp_session",
        run: amqp_session::run,
    },
    Target {
        name: "session_input",
        run: session_input::run,
    },
    Target {
        name: "log_recovery",
        run: log_recovery::run,
    },
    Target {
        name: "engine_replay",
        run: engine_replay::run,
    },
    Target {
        name: "snapshot_open",
        run: snapshot_open::run,
    },
    Target {
        name: "config_load",
        run: config_load::run,
    },
    Target {
        name: "script_run",
        run: script_run::run,
    },
    Target {
        name: "firemq_decode",
        run: firemq_decode::run,
    },
    Target {
        name: "firemq_session",
        run: firemq_session::run,
    },
    Target {
        name: "amaquet_session",
        run: amaquet_session::run,
    },
];
