//! The Fila door: one task per connection.

mod connection;
mod door;
mod input;
mod memory;

pub(crate) use door::Door;
pub(crate) use memory::Memory;
