//! Messages of one door in the terms of another.
//!
//! Bodies are never touched, and nothing is converted before somebody takes the message.

pub(crate) mod to_amaquet;
mod to_amqp;
mod to_fila;
mod to_fire;

#[cfg(test)]
mod tests;

pub(crate) use to_amqp::{Message, Scratch, to_amqp};
pub(crate) use to_fila::to_fila;
pub(crate) use to_fire::{FireForm, FireScratch, fire_form, to_fire};
