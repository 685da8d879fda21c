//! One connection as a state machine.
//!
//! Owns: what a peer may say when, which request each of its frames becomes, and how the engine's
//! events look in its protocol. One folder per protocol; the folders know nothing of each other.
//! Refuses to know: sockets, clocks, threads, and how the engine does what it is asked.
//!
//! ```text
//!  socket bytes ──► on_bytes ─► next_request ──► engine
//!  socket bytes ◄── output   ◄─ on_event     ◄── engine
//! ```

pub mod amaquet;
pub mod amqp;
mod answers;
pub mod audit;
mod batch;
mod consumer_args;
mod convert;
mod envelope;
pub mod fila;
pub mod firemq;
mod heartbeat;
pub mod login;
mod outflow;
mod own_settlements;
mod pending;
mod permits;
mod requests;
pub mod secret;
mod session;
#[cfg(test)]
mod test_keys;
mod unacked;

pub use session::Session;
