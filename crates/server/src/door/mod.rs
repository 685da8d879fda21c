//! The doors that speak a protocol over a socket: one task per connection, the same for all.

mod connection;
mod fila;
mod input;
mod login;
mod memory;
mod shared;

pub(crate) use fila::Fila;
pub(crate) use login::Authenticator;
pub(crate) use memory::Memory;
pub(crate) use shared::Door;
