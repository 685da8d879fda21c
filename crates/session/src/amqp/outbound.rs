//! Frames on their way to the peer.

use std::ops::{Deref, DerefMut};

use tanda_wire::amqp::{Method, encode};

use crate::outflow::Outflow;

/// The outbound side of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    flow: Outflow<()>,
}

impl Deref for Outbound {
    type Target = Outflow<()>;

    fn deref(&self) -> &Self::Target {
        &self.flow
    }
}

impl DerefMut for Outbound {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.flow
    }
}

impl Outbound {
    /// Appends a method frame.
    pub(super) fn method<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        let method = method.into();
        self.raw(|out| encode::write_any_method(out, channel, &method));
    }

    /// Appends a heartbeat.
    pub(super) fn heartbeat(&mut self) {
        self.raw(encode::write_heartbeat);
    }
}
