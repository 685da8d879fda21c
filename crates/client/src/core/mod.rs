//! One Fila connection without sockets, clocks or tasks: bytes and the time come in, bytes and
//! events go out.
//!
//! Owns: the handshake, request IDs and what each of them waits for, continuation frames in both
//! directions, keepalive, and the arithmetic of delivery credit.
//! Refuses to know: sockets, reconnecting, and the meaning of a request; the body of an answer is
//! handed on as bytes together with the context its request was made with.
//!
//! ```text
//!   request() ──► output()          ──► socket
//!   events    ◄── next_event() ◄── receive() ◄── socket
//! ```
//!
//! The rest of the crate drives it with tokio. It is public for those who bring their own I/O.

mod connection;
mod credit;
mod event;
mod inbound;
mod keepalive;

pub use connection::{Connection, ConnectionConfig};
pub use credit::CreditWindow;
pub use event::{Event, Failure, ProtocolError};
pub use keepalive::KeepaliveConfig;
