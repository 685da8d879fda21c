//! What every state of a connection works with: identity, bounds, and both outgoing sides.

use std::collections::VecDeque;
use std::sync::Arc;

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Event, Millis, ReplyTo, Request, VhostId,
};
use tanda_wire::amaquet::envelope::Failure;
use tanda_wire::amaquet::json::Writer;
use tanda_wire::amaquet::{ErrorCode, Opcode};

use super::active::{Active, Stop};
use super::authority::Authority;
use super::claims::Claim;
use super::config::AmaquetConfig;
use super::fields::Fields;
use super::outbound::{Asked, Outbound};
use super::subs::Subs;
use crate::pending::CONSUMER_BIT;
use crate::requests::Requests;

/// The name of the virtual host that is always there.
const DEFAULT_VHOST: &str = "/";

/// Of the question which virtual host it is. No command has it, and no subscription.
pub(super) const VHOST_TOKEN: u32 = CONSUMER_BIT;

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) config: Arc<AmaquetConfig>,
    /// The newest time the session was told.
    pub(super) now: Millis,
    pub(super) active: Active,
    pub(super) requests: Requests,
    pub(super) outbound: Outbound,
    pub(super) authority: Authority,
    pub(super) vhost: Vhost,
    pub(super) subs: Subs,
    /// Answers for which the peer has to read first.
    pub(super) deferred: VecDeque<Event>,
    /// Rough bytes of them.
    pub(super) deferred_bytes: usize,
    /// The engine was or will be told of the connection.
    pub(super) is_connected: bool,
    /// The same of a connection that is gone.
    pub(super) was_connected: bool,
}

/// The virtual host that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vhost {
    /// It is this one.
    Known(VhostId),
    /// The engine is asked which it is.
    Asked,
    /// There is none of this name.
    Missing,
}

impl Link {
    /// Whether another frame may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.vhost != Vhost::Asked
            && !self.subs.are_starting()
            && self.outbound.unwritten() <= self.config.limits.reply_bytes_max
            && !self.requests.is_held_up()
    }

    /// Where an answer with this token goes.
    pub(super) const fn reply_to(&self, token: u32) -> ReplyTo {
        ReplyTo {
            conn: self.conn,
            token,
        }
    }

    /// Tells the engine of the connection: the peer has shown that it is one.
    pub(super) fn connect(&mut self) {
        if core::mem::replace(&mut self.is_connected, true) {
            return;
        }
        let limits = &self.config.limits;
        let limits = ConnLimits {
            outbound_bytes_max: limits.outbound_bytes_max,
            subscriptions_max: u32::MAX,
        };
        let conn = self.conn;
        self.requests.push(Request::Connect { conn, limits });
        if self.config.vhost == DEFAULT_VHOST {
            self.vhost = Vhost::Known(VhostId::DEFAULT);
        } else {
            self.vhost = Vhost::Asked;
            let name = self.config.vhost.clone();
            let reply = self.reply_to(VHOST_TOKEN);
            let request = AdminRequest::OpenVhost { name };
            self.requests.push(Request::Admin { reply, request });
        }
    }

    /// The answer to the question which virtual host it is.
    pub(super) fn on_vhost(&mut self, reply: &AdminReply) {
        self.vhost = if let AdminReply::Vhost(Ok(vhost)) = reply {
            Vhost::Known(*vhost)
        } else {
            Vhost::Missing
        };
    }

    /// The virtual host that commands are about.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn vhost(&self) -> Result<VhostId, Failure> {
        match self.vhost {
            Vhost::Known(vhost) => Ok(vhost),
            Vhost::Asked | Vhost::Missing => {
                let name = &self.config.vhost;
                let text = format!("the virtual host {name:?} that this door serves is not there");
                Err(Failure::new(ErrorCode::NotFound, text))
            }
        }
    }

    /// Does what a request asks for, or begins to.
    ///
    /// # Errors
    /// What the peer is told that is wrong with it.
    pub(super) fn serve(
        &mut self,
        asked: Asked,
        payload: &[u8],
        reserved: Claim,
    ) -> Result<(), Failure> {
        let is_before_auth = matches!(asked.opcode, Opcode::Hello | Opcode::Auth);
        if !is_before_auth && self.authority.caller.is_none() {
            let text = "nobody has logged in on this connection: send AUTH with an API key";
            return Err(Failure::new(ErrorCode::Unauthenticated, text.to_owned()));
        }
        if !matches!(asked.opcode, Opcode::Unknown(_)) {
            self.refuse_duplicate(asked, payload)?;
        }
        match asked.opcode {
            Opcode::Command => self.on_command(asked.request_id, payload, reserved),
            Opcode::Hello => self.on_hello(asked, payload),
            Opcode::Auth => self.on_auth(asked, payload),
            Opcode::Cancel => self.on_cancel(asked, payload),
            Opcode::Subscribe => self.on_subscribe(asked, payload),
            Opcode::Unsubscribe => self.on_unsubscribe(asked, payload),
            Opcode::Unknown(number) => {
                let text = format!("there is no opcode {number}; they are 1 to 6");
                Err(Failure::new(ErrorCode::UnknownOpcode, text))
            }
        }
    }

    fn refuse_duplicate(&self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let request_id = asked.request_id;
        let text = if self.active.token_of(request_id).is_some() {
            format!("a command with the request ID {request_id} is not answered yet")
        } else if self.is_subscription(asked, payload) {
            format!("the request ID {request_id} is that of a subscription")
        } else {
            return Ok(());
        };
        Err(Failure::new(ErrorCode::DuplicateRequest, text))
    }

    /// Answers CANCEL.
    fn on_cancel(&mut self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let target = Fields::read(payload)?.u64("request_id")?;
        let token = self.active.token_of(target);
        if let Some(token) = token {
            self.stop(token, Stop::Cancelled);
        }
        self.outbound.result(asked, |out| {
            out.object(|out| {
                out.key("request_id").u64(target);
                out.key("cancelled").bool(token.is_some());
            });
        });
        Ok(())
    }

    /// Tells a command not to wait any longer. One that does not wait goes on.
    pub(super) fn stop(&mut self, token: u32, why: Stop) {
        let Some(entry) = self.active.entry(token) else {
            return;
        };
        if entry.wait.is_some() && entry.stopped.is_none() {
            entry.stopped = Some(why);
            let reply = self.reply_to(token);
            self.requests.push(Request::CancelWait { reply });
        }
    }

    /// Tells all commands not to wait any longer.
    pub(super) fn stop_all(&mut self, why: Stop) {
        for token in self.active.waiting(|_| true) {
            self.stop(token, why);
        }
    }

    /// Answers with an object of a few fields.
    pub(super) fn say_object(&mut self, asked: Asked, write: impl FnOnce(&mut Writer<'_>)) {
        self.outbound.result(asked, |out| out.object(write));
    }

    /// Tells the engine what has left, at once when it is much.
    pub(super) fn report_drained(&mut self) {
        if self.is_connected {
            let bytes = self.outbound.take_drained();
            let at_once = self.config.limits.outbound_bytes_max / 4;
            self.requests.on_drained(self.now, bytes, at_once);
        }
    }

    /// Says that there is no room now.
    pub(super) fn overloaded(&self, text: impl Into<String>) -> Failure {
        Failure {
            retry_after_ms: Some(self.config.limits.retry_after_ms),
            ..Failure::new(ErrorCode::Overloaded, text.into())
        }
    }
}
