//! Lua hooks of queues: a script in, a decision out.
//!
//! Owns sandboxed Luau states, their limits on time and memory, and the form in which messages go
//! in and results come out. Refuses to know queues, threads and what becomes of a result.
//!
//! ```text
//!  Host ── one state per queue and hook ──► Hook ──► lua/on_enqueue.lua ──► the script's function
//!    │  drops states that broke, or that          ◄── result checked there ◄──
//!    └─ were used least recently
//! ```
//!
//! `docs/scripts.md` is the page for those who write scripts.

mod deadline;
mod enqueue;
mod error;
mod failure;
mod hook;
mod host;
mod limits;
mod packed;
mod sandbox;

pub use deadline::thread_cpu_time;
pub use enqueue::{Classification, EnqueueCall};
pub use error::{ERROR_BYTES_MAX, ScriptError};
pub use failure::{Decision, FailureCall, Reason};
pub use hook::HookKind;
pub use host::{Host, Script};
pub use limits::{
    ATTRIBUTE_BYTES_MAX, ATTRIBUTES_MAX, DELAY_MS_MAX, KEY_BYTES_MAX, Limits, SOURCE_BYTES_MAX,
};
pub use sandbox::Runtime;
