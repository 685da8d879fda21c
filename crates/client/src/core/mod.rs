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
//!
//! ```
//! use bytes::BytesMut;
//! use tanda_client::core::{Connection, ConnectionConfig, Event};
//! use tanda_wire::fila::Opcode;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut connection = Connection::<&str>::new(&ConnectionConfig::default(), 0)?;
//! let handshake = connection.output().to_vec();
//! connection.on_sent(handshake.len());
//!
//! // What a server answers: version 1, a single node, frames of 16 MiB, credit flow control.
//! let answer = [
//!     0, 0, 0, 24, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
//! ];
//! connection.receive(5, &mut BytesMut::from(&answer[..]))?;
//! assert!(matches!(connection.next_event(), Some(Event::Ready(_))));
//!
//! let listed = connection.request(Opcode::ListQueues, "which request this was", |_, _| Ok(()));
//! assert_eq!(listed, Ok(1));
//! assert_eq!(connection.output(), [0, 0, 0, 6, 0xF7, 0, 0, 0, 0, 1]);
//! # Ok(())
//! # }
//! # example().unwrap();
//! ```

mod connection;
mod credit;
mod event;
mod inbound;
mod keepalive;

pub use connection::{Connection, ConnectionConfig};
pub use credit::CreditWindow;
pub use event::{Event, Failure, ProtocolError};
pub use keepalive::KeepaliveConfig;
