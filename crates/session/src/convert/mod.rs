//! Messages of one door in the terms of another.
//!
//! Bodies are never touched, and nothing is converted before somebody takes the message.

mod to_amqp;

pub(crate) use to_amqp::{Message, Scratch, to_amqp};
