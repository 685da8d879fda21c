//! The Fila door: one task per connection.

mod connection;
mod door;
mod input;

pub(crate) use door::Door;
