//! Who the peer is, what it may do, and what it loses when its key goes.
//!
//! The session decides on a table of keys that the driver hands it whenever it has changed
//! ([`FilaSession::on_keys`]), without asking the engine. A key that is revoked or expires
//! ends its subscriptions at once; the next request is refused and the connection closes.

use std::sync::Arc;

use tanda_engine::{
    Caller, CredentialError, KeyTable, Millis, Permission, PublishError, PublishItem,
    PublishTarget, SettleError, SettleItem, SettleQueue, Settlement,
};
use tanda_wire::fila::ErrorCode;

use super::config::Authentication;
use super::link::{Call, Link};
use super::unsent::Lot;
use super::{FilaSession, State};
use crate::audit::{AuditEvent, AuditOutcome};

/// How long a connection whose key is gone waits for its next request before it closes without.
const LOST_KEY_MS: u64 = 2_000;

/// Denials that wait to be written down; more are forgotten.
const DENIALS_MAX: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Authority {
    /// As last told.
    pub(super) keys: Arc<KeyTable>,
    /// Before the handshake: anyone, who cannot do anything yet.
    pub(super) caller: Caller,
    /// The caller's key is gone.
    pub(super) lost: Option<Lost>,
    /// To be written down.
    pub(super) audit: Vec<AuditEvent>,
}

/// A key that is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) error: CredentialError,
    /// When the connection closes, without a request too.
    pub(super) close_at: Millis,
}

impl Authority {
    pub(super) fn new() -> Self {
        Self {
            keys: Arc::default(),
            caller: Caller::Anyone,
            lost: None,
            audit: Vec::new(),
        }
    }

    /// Whether every request passes unseen.
    fn is_unrestricted(&self) -> bool {
        self.caller.is_superadmin()
    }

    /// When something happens by itself.
    pub(super) fn deadline(&self) -> Option<Millis> {
        match self.lost {
            Some(lost) => Some(lost.close_at),
            None => self.caller.key().and_then(|key| key.expires_at),
        }
    }

    fn note(&mut self, event: AuditEvent) {
        if !event.is_denial() || self.audit.len() < DENIALS_MAX {
            self.audit.push(event);
        }
    }
}

impl FilaSession {
    /// Takes the newest table of keys, with authentication on. What it takes from the peer is in
    /// force when this returns; call it before the bytes and events that come after the change.
    pub fn on_keys(&mut self, now: Millis, keys: &Arc<KeyTable>) {
        self.tell(now);
        self.link.authority.keys = Arc::clone(keys);
        self.check_key();
        self.after_output();
        self.after_input();
    }

    /// What is to be written down of keys and of who was turned away, oldest first. Pull it after
    /// every other call; a few denials are kept, more are forgotten.
    pub fn take_audit(&mut self) -> Vec<AuditEvent> {
        core::mem::take(&mut self.link.authority.audit)
    }

    /// A connection that is closing has no subscriptions and takes no requests.
    pub(super) fn check_key(&mut self) {
        if matches!(self.state, State::Open(_)) {
            self.link.check_key();
        }
    }
}

impl Link {
    /// Takes the key of a handshake. False: it is no good; answered.
    pub(super) fn authenticate(&mut self, secret: Option<&str>) -> bool {
        if self.config.authentication == Authentication::Off {
            return true;
        }
        let authority = &mut self.authority;
        let secret = secret.map(str::as_bytes);
        match authority.keys.authenticate(secret, self.now) {
            Ok(key) => {
                authority.caller = Caller::Key(Arc::clone(key));
                true
            }
            Err(error) => {
                let by = error.key().and_then(|key| authority.keys.find(key));
                let outcome = AuditOutcome::Denied(error);
                let event = AuditEvent::new(by, "Handshake", "", outcome);
                authority.note(event);
                self.unauthorized(0, error);
                false
            }
        }
    }

    /// Answers `Error` with `Unauthorized`.
    pub(super) fn unauthorized(&mut self, request_id: u32, error: CredentialError) {
        let text = error.to_string();
        self.outbound
            .error(request_id, ErrorCode::Unauthorized, &text, &[]);
    }

    /// Looks whether the key is still good, and what it may do now. Call it when the table of keys
    /// or the time has changed.
    pub(super) fn check_key(&mut self) {
        let Some(key) = self.authority.caller.key() else {
            return;
        };
        if self.authority.lost.is_some() {
            return;
        }
        let id = key.id;
        let newest = self.authority.keys.find(id);
        let error = match newest {
            None => CredentialError::Revoked { key: id },
            Some(newest) if newest.is_expired(self.now) => CredentialError::Expired { key: id },
            Some(newest) if Arc::ptr_eq(newest, key) => return,
            Some(newest) => {
                self.authority.caller = Caller::Key(Arc::clone(newest));
                return self.end_forbidden_subscriptions();
            }
        };
        self.lose_key(error);
    }

    fn lose_key(&mut self, error: CredentialError) {
        let by = self.authority.caller.key();
        let event = AuditEvent::new(by, "connection", "", AuditOutcome::Denied(error));
        self.authority.note(event);
        let close_at = self.now.after_ms(LOST_KEY_MS);
        self.authority.lost = Some(Lost { error, close_at });
        for request_id in self.slots.subscribed_ids() {
            self.end_subscription(request_id, ErrorCode::Unauthorized, &error.to_string());
        }
        let lots = self.outbound.take_back(|_| false);
        for lot in &lots {
            self.give_back(lot);
        }
    }

    fn end_forbidden_subscriptions(&mut self) {
        for request_id in self.slots.subscribed_ids() {
            let queue = self.slots.queue_of(request_id).unwrap_or_default();
            if self.authority.caller.may(Permission::Consume, queue) {
                continue;
            }
            let queue = queue.to_owned();
            self.note_denial("subscription", &queue);
            let text = format!("this key may not consume from {queue:?} any more");
            self.end_subscription(request_id, ErrorCode::Forbidden, &text);
        }
        let caller = &self.authority.caller;
        let may_leave = |lot: &Lot| caller.may(Permission::Consume, &lot.queue);
        for lot in &self.outbound.take_back(may_leave) {
            self.give_back(lot);
        }
    }

    /// The peer may not do what it asked for.
    pub(super) fn note_denial(&mut self, action: &str, object: &str) {
        let by = self.authority.caller.key();
        let event = AuditEvent::new(by, action, object, AuditOutcome::Forbidden);
        self.authority.note(event);
    }

    /// Something about keys was done, or was not.
    pub(super) fn note_outcome(&mut self, action: &str, object: &str, outcome: AuditOutcome) {
        let by = self.authority.caller.key();
        let event = AuditEvent::new(by, action, object, outcome);
        self.authority.note(event);
    }

    /// Marks what the peer may not produce; the engine passes it by.
    pub(super) fn refuse_publishes(&mut self, call: &Call, items: &mut [PublishItem]) {
        if self.authority.is_unrestricted() {
            return;
        }
        let mut gate = Gate::new(&self.authority.caller, Permission::Produce);
        for item in items {
            if let PublishTarget::Name(queue) = item.target
                && !gate.admits(queue.text(&call.body))
            {
                item.target = PublishTarget::Refused(PublishError::Forbidden);
            }
        }
        if let Some(queue) = gate.refused {
            self.note_denial(call.opcode.name(), queue);
        }
    }

    /// Marks what the peer may not settle; the engine passes it by.
    pub(super) fn refuse_settlements(&mut self, call: &Call, items: &mut [SettleItem]) {
        if self.authority.is_unrestricted() {
            return;
        }
        let mut gate = Gate::new(&self.authority.caller, Permission::Consume);
        for item in items {
            let SettleQueue::Name(queue) = item.queue else {
                continue;
            };
            if !gate.admits(queue.text(&call.body)) {
                item.settlement = Settlement::Refused(SettleError::Forbidden);
            }
        }
        if let Some(queue) = gate.refused {
            self.note_denial(call.opcode.name(), queue);
        }
    }

    /// Ends a subscription and tells the peer why.
    fn end_subscription(&mut self, request_id: u32, code: ErrorCode, text: &str) {
        let Some(token) = self.slots.subscription(request_id) else {
            return;
        };
        self.cancel(request_id);
        // One that the engine has not answered yet is answered then.
        if !self.slots.deny(token, code) {
            self.outbound.error(request_id, code, text, &[]);
        }
    }
}

/// Asks the same of many names, of which most follow their like.
struct Gate<'caller, 'name> {
    caller: &'caller Caller,
    permission: Permission,
    last: Option<(&'name str, bool)>,
    /// The first name that was refused.
    refused: Option<&'name str>,
}

impl<'caller, 'name> Gate<'caller, 'name> {
    const fn new(caller: &'caller Caller, permission: Permission) -> Self {
        Self {
            caller,
            permission,
            last: None,
            refused: None,
        }
    }

    fn admits(&mut self, queue: &'name str) -> bool {
        if let Some((name, verdict)) = self.last
            && name == queue
        {
            return verdict;
        }
        let verdict = self.caller.may(self.permission, queue);
        if !verdict {
            self.refused.get_or_insert(queue);
        }
        self.last = Some((queue, verdict));
        verdict
    }
}
