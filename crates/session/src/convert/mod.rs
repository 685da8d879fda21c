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

use tanda_wire::firemq::frame::FrameTooLarge;
use tanda_wire::mapping::MapError;

/// A message does not fit the frames of who is to get it, or has no form in its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

impl From<MapError> for Unfit {
    fn from(_: MapError) -> Self {
        Self
    }
}

impl From<FrameTooLarge> for Unfit {
    fn from(_: FrameTooLarge) -> Self {
        Self
    }
}
