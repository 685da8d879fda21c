//! Clients as seeded state machines that speak Fila bytes.
//!
//! Each has a random stream of its own. They know what they sent and saw; what it proves is the
//! history's to say.

mod admin;
mod consumer;
mod peer;
mod producer;
mod settle;

use tanda_engine::Millis;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::{ErrorCode, Opcode};

use crate::failure::{Check, Violation};
use crate::history::History;
use crate::invariants::protocol;
use crate::random::Random;
use crate::trace::Trace;

pub(crate) use admin::{Admin, Counters, SCRIPT};
pub(crate) use consumer::{Consumer, Manner};
pub(crate) use peer::{Incoming, Peer};
pub(crate) use producer::Producer;

/// What a client reaches while it acts.
pub(crate) struct Cx<'a> {
    pub(crate) now: Millis,
    pub(crate) history: &'a mut History,
    pub(crate) trace: &'a mut Trace,
}

/// What a client does for a living.
pub(crate) enum Role {
    Producer(Producer),
    Consumer(Consumer),
    Admin(Admin),
}

/// One client.
pub(crate) struct Client {
    pub(crate) role: Role,
    /// Its connection, if it has one.
    pub(crate) peer: Option<Peer>,
    pub(crate) random: Random,
    /// It starts nothing new.
    pub(crate) is_resting: bool,
}

impl Client {
    pub(crate) const fn new(role: Role, random: Random) -> Self {
        Self {
            role,
            peer: None,
            random,
            is_resting: false,
        }
    }

    /// It has a connection now.
    pub(crate) fn connect(&mut self, conn: u64) {
        self.peer = Some(Peer::new(conn));
    }

    /// One step of its own accord.
    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        let Some(peer) = self
            .peer
            .as_mut()
            .filter(|peer| peer.is_open && !peer.has_ended)
        else {
            return;
        };
        if self.is_resting {
            return;
        }
        match &mut self.role {
            Role::Producer(producer) => producer.act(&mut self.random, peer, cx),
            Role::Consumer(consumer) => consumer.act(&mut self.random, peer, cx),
            Role::Admin(admin) => admin.act(&mut self.random, peer, cx),
        }
    }

    /// Bytes came from the broker.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], cx: &mut Cx<'_>) -> Check {
        let Some(peer) = &mut self.peer else {
            return Ok(());
        };
        peer.receive(bytes);
        while let Some(frame) = peer.next_frame()? {
            let Incoming {
                opcode, request_id, ..
            } = frame;
            if opcode == Opcode::Error {
                let error = ErrorFrame::decode(&frame.body)
                    .map_err(|error| protocol::bad_body(opcode, error))?;
                cx.trace
                    .note(cx.now, || format!("  {error:?} for {request_id}"));
                if !peer.is_open && request_id == 0 {
                    // The handshake came too late; the broker closes.
                    continue;
                }
                refusal(&error)?;
                match &mut self.role {
                    Role::Producer(producer) => producer.on_error(request_id, &error, cx)?,
                    Role::Consumer(consumer) => consumer.on_error(request_id, &error)?,
                    Role::Admin(admin) => admin.on_error(request_id),
                }
                continue;
            }
            match &mut self.role {
                Role::Producer(producer) => producer.on_frame(&mut self.random, &frame, cx)?,
                Role::Consumer(consumer) => consumer.on_frame(&frame, cx)?,
                Role::Admin(admin) => admin.on_frame(&frame, cx)?,
            }
        }
        Ok(())
    }

    /// The connection is gone.
    pub(crate) fn on_lost(&mut self, cx: &mut Cx<'_>) -> Check {
        self.peer = None;
        match &mut self.role {
            Role::Producer(producer) => producer.on_lost(&mut self.random, cx),
            Role::Consumer(consumer) => {
                consumer.on_lost(&mut self.random, cx);
                Ok(())
            }
            Role::Admin(admin) => {
                admin.on_lost();
                Ok(())
            }
        }
    }
}

/// Errors that a correct client may meet.
fn refusal(error: &ErrorFrame<'_>) -> Result<(), Violation> {
    if is_refusal(error) || error.error_code == ErrorCode::StorageError {
        return Ok(());
    }
    Err(protocol::unexpected(error.message, error.error_code))
}

/// Nothing was done; else the outcome is unknown.
fn is_refusal(error: &ErrorFrame<'_>) -> bool {
    matches!(
        error.error_code,
        ErrorCode::ChannelFull | ErrorCode::QueueNotFound
    )
}
