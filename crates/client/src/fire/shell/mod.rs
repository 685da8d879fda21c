//! The tokio side of FireMQ: what one task does with the commands of handles and the events of its
//! connection. The task itself, streams and reconnecting are shared with Fila ([`crate::shell`]).
//!
//! Owns: the order of requests, pauses, settlement of deliveries by connection, and bringing back
//! what was declared. Refuses to know: the protocol's states, which are [`super::core`]'s.

mod connection;
pub(super) mod driver;
pub(super) mod handle;
pub(super) mod job;
mod restore;
pub(super) mod subscriptions;

#[cfg(test)]
mod tests;
