//! The FireMQ protocol, version 1, as bytes.
//!
//! Owns: frames in a stream and in WebSocket messages, the header of every op in both directions,
//! the code tables, and connection URLs. Refuses to know: connections and their state, whether a
//! value is allowed, and what a request does.
//!
//! A header struct borrows from the bytes it was decoded from. The rules of the specification, and
//! where it is silent ours:
//!
//! - A field that is left out, and one that is nil, has its zero value; one that is zero is not
//!   written. Unknown keys are ignored, but must be well-formed. Of a repeated key the last counts.
//! - Integers come in any encoding, signed ones too when they are not negative. Floats are no
//!   integers, bin is no str, and 1 is no bool.
//! - Keys of the header, of `props`, `auth` and `server` are text. `headers`, `args` and `client`
//!   may have keys of any type, stay the bytes they came in, and are checked: well-formed, all text
//!   UTF-8 (a client that cannot read it would get it), at most [`DEPTH_MAX`] arrays and maps
//!   inside each other.
//! - Nothing is allocated for a count before the bytes for it are there.
//!
//! | module | ops and their structs |
//! |---|---|
//! | [`session`] | `hello`, `welcome`, `ping`, `pong`, `close`, `flow` |
//! | [`reply`] | `ok`: [`reply::OkReply`], `error`: [`reply::ErrorReply`] |
//! | [`topology`] | `declare_exchange` to `unbind` |
//! | [`publish`] | `publish`, `confirm`, `return`: [`publish::Returned`] |
//! | [`consume`] | `subscribe` to `get_ok` |
//! | [`message`] | all of them, as [`message::ToServer`] and [`message::ToClient`] |
//!
//! Cost, November 2026, one core of two under load, release build with thin LTO, best of 200 runs:
//! a `publish` of a persistent message without props or headers is split off and decoded in 54 ns,
//! with two props and three headers in 207 ns; an `ack` in 34 ns. The head of a `deliver` of these
//! is written in 29 ns and 66 ns, a `confirm` in 13 ns.
//!
//! Struct names equal op names where nothing else is said. Shared parts: [`props`] (the properties
//! of a message), [`value`] (raw maps and arrays), [`writer`] (making them).

mod field;
mod header_struct;
mod table;
mod token;

pub mod capability;
pub mod consume;
pub mod frame;
pub mod message;
pub mod op;
pub mod props;
pub mod publish;
pub mod reply;
pub mod reply_code;
pub mod session;
pub mod syntax;
pub mod topology;
pub mod url;
pub mod value;
pub mod writer;

pub use field::peek_uint;
pub use op::{Direction, Op};
pub use props::{Properties, Props};
pub use reply_code::ReplyCode;
pub use syntax::{SyntaxError, SyntaxErrorKind};
pub use token::DEPTH_MAX;
pub use url::{Scheme, Url, UrlError};
pub use value::{RawArray, RawMap, Value};

/// The only protocol version there is.
pub const PROTOCOL_VERSION: u64 = 1;

/// A struct that is the whole header of one op.
#[expect(private_bounds, reason = "only this module has headers")]
pub trait Header<'a>: field::Fields<'a> {
    /// The op of its frame.
    const OP: Op;
}
