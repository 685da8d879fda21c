//! One FireMQ connection without sockets, clocks or tasks: bytes and the time come in, bytes and
//! events go out.
//!
//! Owns: the handshake, request ids, sequence numbers of publishes and what becomes of each,
//! heartbeats, and the close. Refuses to know: sockets, reconnecting, and what a program declared;
//! a request and a publish come back with the context they were made with.
//!
//! ```text
//!   request(), publish(), ack(), credit() ──► output()     ──► socket
//!                                  events ◄── next_event() ◄── receive() ◄── socket
//! ```
//!
//! ```
//! use bytes::BytesMut;
//! use tanda_client::fire::core::{Connection, ConnectionConfig, Event};
//! use tanda_wire::firemq::frame::{Framing, write_frame};
//! use tanda_wire::firemq::session::Welcome;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut connection = Connection::<&str>::new(&ConnectionConfig::default(), 0)?;
//! assert!(connection.output().starts_with(b"FMQ1"));
//! connection.on_sent(connection.output().len(), 0);
//!
//! let mut answer = Vec::new();
//! let welcome = Welcome { ver: 1, max_frame: 1 << 20, ..Welcome::default() };
//! write_frame(&mut answer, Framing::Stream, &welcome, u32::MAX)?;
//! connection.receive(5, &mut BytesMut::from(&answer[..]))?;
//! assert!(matches!(connection.next_event(), Some(Event::Ready(_))));
//! assert!(connection.is_open());
//! # Ok(())
//! # }
//! # example().unwrap();
//! ```

mod config;
mod connection;
pub(crate) mod declared;
mod event;
mod heartbeat;
mod outstanding;
mod received;
mod request;

pub use config::ConnectionConfig;
pub use connection::{Connection, Unanswered};
pub use event::{Answer, Event, ProtocolError, Ready};
pub use received::{Content, Received, Returned};
pub use request::{PublishWriter, Request, RequestWriter};
