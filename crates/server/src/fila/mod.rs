//! The Fila door: a TCP listener and one task per connection.

mod connection;
mod input;
mod listener;

pub(crate) use listener::{Door, Listening};
