//! What every state of a connection works with: identity, bounds, and both outgoing sides.

use std::sync::Arc;

use bytes::Bytes;
use tanda_engine::{AdminRequest, ConnId, Held, Millis, ReplyTo, Request, SubId};
use tanda_wire::cursor::{DecodeError, Reader};
use tanda_wire::fila::error::META_RETRY_AFTER_MS;
use tanda_wire::fila::{Body, ErrorCode, Opcode};

use super::SessionConfig;
use super::authority::Authority;
use super::outbound::Outbound;
use super::requests::Requests;
use super::slots::{Kind, Slots};

/// A request of the peer, complete and not yet decoded.
#[derive(Debug)]
pub(super) struct Call {
    /// What it is.
    pub(super) opcode: Opcode,
    /// The client's request ID.
    pub(super) request_id: u32,
    /// Its whole body.
    pub(super) body: Bytes,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) config: Arc<SessionConfig>,
    /// The newest time the session was told.
    pub(super) now: Millis,
    pub(super) slots: Slots,
    pub(super) requests: Requests,
    pub(super) outbound: Outbound,
    pub(super) authority: Authority,
    /// The handshake is done, so the engine was or will be told of the connection.
    pub(super) is_connected: bool,
}

impl Link {
    /// Whether another frame may be decoded.
    pub(super) fn has_room(&self) -> bool {
        self.slots.waiting() < self.config.requests_in_flight_max
            && self.slots.admin_waiting() < self.config.admin_in_flight_max
            && self.outbound.unwritten_replies() <= self.config.reply_bytes_max
    }

    /// Answers `Error` with `InvalidFrame`.
    pub(super) fn invalid_frame(&mut self, request_id: u32, problem: &str) {
        self.outbound
            .error(request_id, ErrorCode::InvalidFrame, problem, &[]);
    }

    /// Answers `Error` with `ChannelFull`.
    pub(super) fn channel_full(&mut self, request_id: u32) {
        let retry_after_ms = self.config.retry_after_ms.to_string();
        self.outbound.error(
            request_id,
            ErrorCode::ChannelFull,
            "the server is overloaded: try again later",
            &[(META_RETRY_AFTER_MS, &retry_after_ms)],
        );
    }

    /// Decodes the body of a call, or answers what is wrong with it.
    pub(super) fn decode<'a, B: Body<'a>>(&mut self, call: &'a Call) -> Option<B> {
        match B::read(&mut Reader::new(&call.body)) {
            Ok(body) => Some(body),
            Err(error) => {
                self.bad_body(call, error);
                None
            }
        }
    }

    /// Answers that a body does not follow its layout.
    pub(super) fn bad_body(&mut self, call: &Call, error: DecodeError) {
        let problem = format!("{}: {error}", call.opcode);
        self.invalid_frame(call.request_id, &problem);
    }

    /// Takes a slot for a call, or answers that there is none.
    pub(super) fn slot(&mut self, request_id: u32, kind: Kind) -> Option<u32> {
        let token = self.slots.insert(request_id, kind);
        if token.is_none() {
            self.channel_full(request_id);
        }
        token
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
    pub(super) fn ask(&mut self, request_id: u32, kind: Kind, request: AdminRequest) {
        if let Some(token) = self.slot(request_id, kind) {
            let reply = self.reply_to(token);
            self.requests.push(Request::Admin { reply, request });
        }
    }

    /// Ends all subscriptions, on the peer's word or because the connection closes.
    pub(super) fn cancel_all(&mut self) {
        for request_id in self.slots.subscribed_ids() {
            self.cancel(request_id);
        }
    }

    /// Ends the subscription of a request ID; unknown ones are ignored.
    pub(super) fn cancel(&mut self, request_id: u32) {
        if let Some(token) = self.slots.cancel(request_id) {
            let sub = self.sub_id(token);
            self.requests.push(Request::Unsubscribe {
                sub,
                held: Held::Requeue,
            });
        }
    }
}
