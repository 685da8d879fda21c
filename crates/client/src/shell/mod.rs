//! The tokio side: one task per client that owns the connection, and the handles that talk to it.
//!
//! Owns: sockets, time, reconnecting, and which request goes into which frame.
//! Refuses to know: the protocol's states, which are [`crate::core`]'s.
//!
//! ```text
//!   Producer ─┐                         ┌─ gather ─► Connection ─► output ─► socket
//!   Consumer ─┼─ commands (channel) ─► Driver
//!   Admin    ─┘                         └─ replies, deliveries ◄── events ◄── socket
//! ```
//!
//! Commands that wait together go out in one write; sends, acks, nacks and extensions among them
//! share frames. A command is bounded by the permit it holds (see [`handle`]), so the channel needs
//! no bound of its own.

pub(crate) mod budget;
mod connection;
pub(crate) mod dial;
pub(crate) mod driver;
pub(crate) mod endpoint;
mod gather;
pub(crate) mod handle;
pub(crate) mod job;
pub(crate) mod link;
#[cfg(test)]
pub(crate) mod pipe;
mod results;
pub(crate) mod subscriptions;
mod task;

#[cfg(test)]
mod tests;

pub(crate) use handle::Handle;
pub(crate) use task::{TaskConfig, start};
