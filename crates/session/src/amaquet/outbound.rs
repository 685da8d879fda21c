//! Frames on their way to the peer.

use std::ops::{Deref, DerefMut};

use tanda_wire::amaquet::envelope::{Failure, write_failure, write_result};
use tanda_wire::amaquet::frame::{PAYLOAD_BYTES_HARD_MAX, PayloadTooLarge};
use tanda_wire::amaquet::json::Writer;
use tanda_wire::amaquet::{ErrorCode, Header, Opcode};

use super::undelivered::Lot;
use crate::outflow::Outflow;

/// The outbound side of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    flow: Outflow<Lot>,
}

impl Deref for Outbound {
    type Target = Outflow<Lot>;

    fn deref(&self) -> &Self::Target {
        &self.flow
    }
}

impl DerefMut for Outbound {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.flow
    }
}

/// Which request is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) opcode: Opcode,
    pub(super) request_id: u64,
}

impl Asked {
    /// A command.
    pub(super) const fn command(request_id: u64) -> Self {
        let opcode = Opcode::Command;
        Self { opcode, request_id }
    }

    pub(super) const fn header(self) -> Header {
        Header::response(self.opcode, self.request_id)
    }
}

impl Outbound {
    /// Answers that it went well, or that the answer is too large.
    pub(super) fn result(&mut self, asked: Asked, write: impl FnOnce(&mut Writer<'_>)) {
        let mut written = Ok(());
        self.raw(|out| written = write_result(out, asked.header(), PAYLOAD_BYTES_HARD_MAX, write));
        if let Err(error) = written {
            self.failure(asked, &too_large(error));
        }
    }

    /// Answers what went wrong.
    pub(super) fn failure(&mut self, asked: Asked, failure: &Failure) {
        self.raw(|out| write_failure(out, asked.header(), failure));
    }
}

/// An answer that does not fit a frame.
pub(super) fn too_large(error: PayloadTooLarge) -> Failure {
    Failure::new(ErrorCode::PayloadTooLarge, error.to_string())
}
