//! The tokio side of Amaquet: what one task does with the commands of handles and the events of its
//! connection. The task itself and reconnecting are shared with Fila ([`crate::shell`]).
//!
//! Owns: the order of requests, which subscription an event is for, and subscribing again.
//! Refuses to know: the protocol's states, which are [`super::core`]'s.

mod connection;
pub(super) mod driver;
pub(super) mod handle;
pub(super) mod subscriptions;

#[cfg(test)]
mod tests;
