//! The Amaquet protocol, version 1, as bytes.
//!
//! Owns: frames, the code tables, JSON as far as the protocol needs it, payloads, the envelope of
//! answers, and the table of commands. Refuses to know: connections and their state, permissions of
//! callers, and what a command does.
//!
//! ```text
//!  bytes ──► frame ──► json ──► command::Command ──► session
//!  bytes ◄── frame ◄── envelope ◄── json::Writer ◄── session
//! ```
//!
//! Where the specification is silent:
//!
//! - Header fields are looked at in their order, so a frame with two faults is refused for the
//!   first one; an unknown opcode is no fault of the frame.
//! - JSON: at most [`json::DEPTH_MAX`] arrays and objects inside each other; of a field that is
//!   there twice the last counts; half of a surrogate pair is no text. A number without fraction
//!   and exponent is a 64-bit integer or refused, any other must be in the range of a double.
//! - What a `json` payload holds stays the text that came.
//! - Base64 is the standard alphabet with padding, and its unused bits are zero.

pub mod command;
pub mod envelope;
pub mod error_code;
pub mod frame;
pub mod json;
pub mod opcode;
pub mod payload;

pub use error_code::ErrorCode;
pub use frame::{Frame, FrameError, FrameFault, Header, Kind, Sender, Split, split_frame};
pub use json::{Json, JsonError};
pub use opcode::Opcode;
pub use payload::Payload;

/// The only protocol version there is.
pub const PROTOCOL_VERSION: u8 = 1;
