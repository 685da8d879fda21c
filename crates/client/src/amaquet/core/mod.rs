//! The Amaquet connection as a state machine: bytes in, events out, without sockets, tasks and
//! clocks.
//!
//! Owns: the greeting, the login, frames, and which answer belongs to which request.
//! Refuses to know: what a request asks for, and what happens after a loss.

mod connection;
mod event;
mod greeting;

pub(crate) use connection::{Connection, ConnectionConfig, FIRST_REQUEST_ID, NewConnection};
pub(crate) use event::{Event, ProtocolError};
pub use greeting::{Hello, Login, server_key_of};
