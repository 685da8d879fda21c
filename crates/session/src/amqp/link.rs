//! What every state of a connection works with: identity, bounds, and both outgoing sides.

use std::sync::Arc;

use tanda_engine::{AdminRequest, ConnId, FrameLimit, Millis, ReplyTo, Request, SubId, VhostId};
use tanda_wire::amqp::{ShortStr, channel, connection};

use super::config::AmqpConfig;
use super::fault::Fault;
use super::outbound::Outbound;
use super::pending::{Pending, Waiting};
use crate::audit::AuditEvent;
use crate::login::{Identity, Login, Permission};
use crate::pending::NO_ANSWER;
use crate::permits::Permits;
use crate::requests::Requests;

/// Denials that wait to be written down; more are forgotten.
pub(super) const DENIALS_MAX: usize = 16;

/// What the client said it can bear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// A `connection.close` when its login is refused.
    pub(super) authentication_failure_close: bool,
    /// `basic.cancel` from the server.
    pub(super) consumer_cancel_notify: bool,
    /// `connection.blocked`.
    pub(super) connection_blocked: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) config: Arc<AmqpConfig>,
    /// The newest time the session was told.
    pub(super) now: Millis,
    pub(super) pending: Pending,
    pub(super) requests: Requests,
    pub(super) outbound: Outbound,
    /// Who the peer is; before it logged in, nobody.
    pub(super) identity: Arc<dyn Identity>,
    /// A new secret is being checked.
    pub(super) is_renewing: bool,
    /// A login that nobody has looked at.
    pub(super) login: Option<Login>,
    pub(super) vhost: VhostId,
    pub(super) vhost_name: String,
    pub(super) capabilities: Capabilities,
    /// Agreed on, in bytes.
    pub(super) frame_max: u32,
    /// Agreed on.
    pub(super) channel_max: u16,
    /// To be written down.
    pub(super) audit: Vec<AuditEvent>,
    /// The engine was or will be told of the connection.
    pub(super) is_connected: bool,
    pub(super) names_made: u64,
}

impl Link {
    /// What the engine is told of the agreed size of frames.
    pub(super) const fn frame_limit(&self) -> FrameLimit {
        FrameLimit::amqp(self.frame_max)
    }

    /// Whether another frame may be decoded.
    pub(super) fn has_room(&self) -> bool {
        self.pending.len() < self.config.requests_in_flight_max
            && self.pending.published_bytes() < self.config.publish_bytes_in_flight_max
            && self.outbound.unwritten_replies() <= self.config.reply_bytes_max
            && !self.requests.is_held_up()
    }

    /// Tells the engine what has left, at once when it is much.
    pub(super) fn report_drained(&mut self) {
        if self.is_connected {
            let bytes = self.outbound.take_drained();
            let at_once = self.config.outbound_bytes_max / 4;
            self.requests.on_drained(self.now, bytes, at_once);
        }
    }

    /// Where an answer with this token goes.
    pub(super) const fn reply_to(&self, token: u32) -> ReplyTo {
        ReplyTo {
            conn: self.conn,
            token,
        }
    }

    /// The subscription with this token.
    pub(super) const fn sub_id(&self, token: u32) -> SubId {
        SubId {
            conn: self.conn,
            token,
        }
    }

    /// Asks the engine something rare.
    pub(super) fn ask(&mut self, waiting: Waiting, request: AdminRequest) {
        let token = self.pending.insert(waiting);
        let reply = self.reply_to(token);
        self.requests.push(Request::Admin { reply, request });
    }

    /// Tells the engine something rare; nobody waits for the answer.
    pub(super) fn tell(&mut self, request: AdminRequest) {
        let reply = self.reply_to(NO_ANSWER);
        self.requests.push(Request::Admin { reply, request });
    }

    /// What the peer may do.
    pub(super) fn permits(&self) -> Permits<'_> {
        Permits {
            identity: &*self.identity,
            vhost: &self.vhost_name,
        }
    }

    /// Whether the peer may do something to an exchange or queue.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn demand(
        &self,
        permission: Permission,
        kind: &str,
        name: &str,
    ) -> Result<(), Fault> {
        let demanded = self.permits().demand(permission, kind, name);
        demanded.map_err(Fault::refused)
    }

    /// Says why the connection ends.
    pub(super) fn close_connection(&mut self, fault: &Fault) {
        let text = fault.reply_text();
        let close = connection::Close {
            reply_code: fault.code.to_wire(),
            reply_text: ShortStr::clip(&text),
            class_id: fault.method.class,
            method_id: fault.method.method,
        };
        self.outbound.method(0, close);
    }

    /// Says why a channel ends.
    pub(super) fn close_channel(&mut self, channel: u16, fault: &Fault) {
        let text = fault.reply_text();
        let close = channel::Close {
            reply_code: fault.code.to_wire(),
            reply_text: ShortStr::clip(&text),
            class_id: fault.method.class,
            method_id: fault.method.method,
        };
        self.outbound.method(channel, close);
    }
}
