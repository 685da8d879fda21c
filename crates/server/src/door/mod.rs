//! The doors that speak a protocol over a socket: one task per connection, the same for all.

mod amaquet;
mod amqp;
mod connection;
mod fila;
mod fire;
mod input;
mod login;
mod long;
mod memory;
mod protocol;
mod registration;

pub(crate) use amaquet::{Amaquet, Facts};
pub(crate) use amqp::Amqp;
pub(crate) use fila::Fila;
pub(crate) use fire::{Fire, FireOverWeb};
pub(crate) use memory::Memory;
pub(crate) use protocol::{Commons, Protocol};
