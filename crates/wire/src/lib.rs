//! Tanda's protocols as bytes.
//!
//! Owns: cursors over byte slices, the code tables of each protocol, and one codec per frame.
//! Refuses to know: sockets, connections, what a request means, and the broker behind it.
//! Everything here is pure: bytes in, values out, and no input can make it panic.

pub mod amaquet;
pub mod amqp;
pub mod base64;
pub mod cursor;
pub mod fila;
pub mod firemq;
pub mod mapping;
