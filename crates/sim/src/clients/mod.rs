//! Clients as seeded state machines that speak Fila, AMQP, FireMQ or Amaquet bytes.
//!
//! Each has a random stream of its own. They know what they sent and saw; what it proves is the
//! history's to say.

mod admin;
mod amaquet;
mod amqp;
mod consumer;
mod key_admin;
mod peer;
mod producer;
mod settle;

use tanda_engine::Millis;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::{ErrorCode, Opcode};

use crate::failure::{Check, Violation};
use crate::history::History;
use crate::invariants::{authority, protocol};
use crate::random::Random;
use crate::trace::Trace;

pub(crate) use admin::{Admin, Counters, SCRIPT};
pub(crate) use amaquet::AmaquetClient;
pub(crate) use amqp::{AmqpClient, Job, Taking};
pub(crate) use consumer::{Consumer, Manner};
pub(crate) use peer::{Hello, Incoming, Peer};
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
    Amqp(Box<AmqpClient>),
    Amaquet(Box<AmaquetClient>),
}

impl Role {
    /// An error frame came.
    fn on_error(&mut self, peer: &Peer, frame: &Incoming, cx: &mut Cx<'_>) -> Check {
        let request_id = frame.request_id;
        let error = ErrorFrame::decode(&frame.body)
            .map_err(|error| protocol::bad_body(frame.opcode, error))?;
        cx.trace
            .note(cx.now, || format!("  {error:?} for {request_id}"));
        if error.error_code == ErrorCode::Unauthorized {
            authority::on_unauthorized(&cx.history.keys, peer.holder, cx.now)?;
            cx.history.counts.turned_away += u64::from(request_id == 0 || !peer.is_open);
        }
        // The handshake was refused or came too late, or the connection is over without a request:
        // the broker closes.
        let is_end = error.error_code == ErrorCode::Unauthorized || !peer.is_open;
        if request_id == 0 && is_end {
            return Ok(());
        }
        refusal(&error)?;
        match self {
            Self::Producer(producer) => producer.on_error(request_id, &error, cx),
            Self::Consumer(consumer) => consumer.on_error(request_id, &error, cx),
            Self::Admin(admin) => {
                admin.on_error(request_id, &error, cx);
                Ok(())
            }
            Self::Amqp(_) | Self::Amaquet(_) => Ok(()),
        }
    }

    /// It shows the configured key, which may do everything.
    pub(crate) const fn is_root(&self) -> bool {
        match self {
            Self::Admin(_) => true,
            Self::Consumer(consumer) => consumer.is_drainer(),
            Self::Producer(_) | Self::Amqp(_) | Self::Amaquet(_) => false,
        }
    }
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
    pub(crate) fn connect(&mut self, conn: u64, hello: &Hello) {
        self.peer = Some(Peer::new(conn, hello));
    }

    /// It has no connection.
    pub(crate) const fn is_away(&self) -> bool {
        match &self.role {
            Role::Amqp(client) => client.link.is_none(),
            Role::Amaquet(client) => client.line.is_none(),
            Role::Producer(_) | Role::Consumer(_) | Role::Admin(_) => self.peer.is_none(),
        }
    }

    /// Its connection, and what it has said there.
    pub(crate) fn outgoing(&mut self) -> Option<(u64, &mut Vec<u8>)> {
        match &mut self.role {
            Role::Amqp(client) => {
                let link = client.link.as_mut()?;
                Some((link.line.conn, &mut link.line.out))
            }
            Role::Amaquet(client) => {
                let line = client.line.as_mut()?;
                Some((line.conn, &mut line.out))
            }
            Role::Producer(_) | Role::Consumer(_) | Role::Admin(_) => {
                let peer = self.peer.as_mut()?;
                Some((peer.conn, &mut peer.out))
            }
        }
    }

    /// It ends its sending side.
    pub(crate) fn end(&mut self) {
        if let Role::Amqp(client) = &mut self.role {
            if let Some(link) = &mut client.link {
                link.line.has_ended = true;
            }
        } else if let Role::Amaquet(client) = &mut self.role {
            if let Some(line) = &mut client.line {
                line.has_ended = true;
            }
        } else if let Some(peer) = &mut self.peer {
            peer.has_ended = true;
        }
    }

    /// A change of the key it shows was answered, when so many bytes had been sent to it.
    pub(crate) fn on_key_changed(&mut self, sent_bytes: u64, cx: &mut Cx<'_>) {
        if let (Role::Consumer(consumer), Some(peer)) = (&mut self.role, &self.peer) {
            consumer.on_key_changed(sent_bytes, peer.holder, cx);
        }
    }

    /// One step of its own accord.
    pub(crate) fn act(&mut self, cx: &mut Cx<'_>) {
        if let Role::Amqp(client) = &mut self.role {
            if !self.is_resting {
                client.act(&mut self.random, cx);
            }
            return;
        }
        if let Role::Amaquet(client) = &mut self.role {
            if !self.is_resting {
                client.act(&mut self.random, cx);
            }
            return;
        }
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
            Role::Amqp(_) | Role::Amaquet(_) => {}
        }
    }

    /// Bytes came from the broker.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8], cx: &mut Cx<'_>) -> Check {
        if let Role::Amqp(client) = &mut self.role {
            return client.on_bytes(bytes, cx);
        }
        if let Role::Amaquet(client) = &mut self.role {
            return client.on_bytes(bytes, cx);
        }
        let Some(peer) = &mut self.peer else {
            return Ok(());
        };
        peer.receive(bytes);
        while let Some(frame) = peer.next_frame()? {
            if frame.opcode == Opcode::Error {
                self.role.on_error(peer, &frame, cx)?;
                continue;
            }
            match &mut self.role {
                Role::Producer(producer) => producer.on_frame(&mut self.random, &frame, cx)?,
                Role::Consumer(consumer) => consumer.on_frame(&frame, cx)?,
                Role::Admin(admin) => admin.on_frame(&frame, cx)?,
                Role::Amqp(_) | Role::Amaquet(_) => {}
            }
        }
        if peer.is_open && cx.history.keys.are_asked_for {
            authority::on_allowed(&cx.history.keys, &peer.right, "to connect")?;
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
                admin.on_lost(cx);
                Ok(())
            }
            Role::Amqp(client) => {
                client.on_lost(cx);
                Ok(())
            }
            Role::Amaquet(client) => {
                client.on_lost(cx);
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
        ErrorCode::ChannelFull
            | ErrorCode::QueueNotFound
            | ErrorCode::Unauthorized
            | ErrorCode::Forbidden
    )
}
