//! Who the peer is, what it may do, and what it loses when its key goes.
//!
//! The session decides on a table of keys that the driver hands it whenever it has changed, without
//! asking the engine. A key that is revoked or expires leaves the connection as it was before AUTH:
//! its subscriptions and waits end, and it may log in again.

use std::sync::Arc;

use tanda_engine::{Caller, KeyTable, Millis, Permission};
use tanda_wire::amaquet::ErrorCode;
use tanda_wire::amaquet::command::{self, Command};
use tanda_wire::amaquet::envelope::Failure;

use super::active::Stop;
use super::fields::Fields;
use super::link::Link;
use super::outbound::Asked;
use crate::audit::{AuditEvent, AuditOutcome};
use crate::login::Authentication;

/// Denials that wait to be written down; more are forgotten.
const DENIALS_MAX: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Authority {
    /// As last told.
    pub(super) keys: Arc<KeyTable>,
    /// `None`: nobody has logged in.
    pub(super) caller: Option<Caller>,
    /// To be written down.
    pub(super) audit: Vec<AuditEvent>,
}

impl Authority {
    pub(super) fn new(authentication: Authentication) -> Self {
        let caller = match authentication {
            Authentication::Off => Some(Caller::Anyone),
            Authentication::On => None,
        };
        Self {
            keys: Arc::default(),
            caller,
            audit: Vec::new(),
        }
    }

    /// When the key expires.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let key = self.caller.as_ref().and_then(Caller::key);
        key.and_then(|key| key.expires_at)
    }

    fn note(&mut self, event: AuditEvent) {
        if !event.is_denial() || self.audit.len() < DENIALS_MAX {
            self.audit.push(event);
        }
    }

    pub(super) fn may(&self, permission: Permission, name: &str) -> bool {
        let caller = self.caller.as_ref();
        caller.is_some_and(|caller| caller.may(permission, name))
    }
}

impl Link {
    /// Answers AUTH.
    ///
    /// # Errors
    /// The payload makes no sense, or the key is no good.
    pub(super) fn on_auth(&mut self, asked: Asked, payload: &[u8]) -> Result<(), Failure> {
        let secret = Fields::read(payload)?.text("api_key")?;
        if self.config.authentication == Authentication::Off {
            self.outbound.result(asked, |out| {
                out.object(|out| {
                    out.key("key_id").null();
                    out.key("name").str("anonymous");
                    out.key("superadmin").bool(true);
                });
            });
            return Ok(());
        }
        let authority = &mut self.authority;
        let found = authority
            .keys
            .authenticate(Some(secret.as_bytes()), self.now);
        let key = match found {
            Ok(key) => Arc::clone(key),
            Err(error) => {
                let by = error.key().and_then(|key| authority.keys.find(key));
                let event = AuditEvent::new(by, "AUTH", "", AuditOutcome::Denied(error));
                authority.note(event);
                let text = error.to_string();
                return Err(Failure::new(ErrorCode::Unauthenticated, text));
            }
        };
        authority.caller = Some(Caller::Key(Arc::clone(&key)));
        self.connect();
        self.outbound.result(asked, |out| {
            out.object(|out| {
                out.key("key_id").str(&key.id.to_string());
                out.key("name").str(&key.name);
                out.key("superadmin").bool(key.is_superadmin);
            });
        });
        self.heed_caller();
        Ok(())
    }

    /// Looks whether the key is still good, and what it may do now. Call it when the table of keys
    /// or the time has changed.
    pub(super) fn check_key(&mut self) {
        let Some(Caller::Key(key)) = &self.authority.caller else {
            return;
        };
        let newest = self.authority.keys.find(key.id);
        let Some(newest) = newest.filter(|newest| !newest.is_expired(self.now)) else {
            self.authority.caller = None;
            self.stop_all(Stop::KeyLost);
            self.end_forbidden_subscriptions();
            return;
        };
        if !Arc::ptr_eq(newest, key) {
            self.authority.caller = Some(Caller::Key(Arc::clone(newest)));
            self.heed_caller();
        }
    }

    /// Ends what the caller may not do any more.
    fn heed_caller(&mut self) {
        let authority = &self.authority;
        let tokens = self
            .active
            .waiting(|wait| !authority.may(wait.permission, &wait.name));
        for token in tokens {
            self.stop(token, Stop::Forbidden);
        }
        self.end_forbidden_subscriptions();
    }

    /// Whether the caller may run a command.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn demand(&mut self, command: &Command<'_>) -> Result<(), Failure> {
        let spec = command.spec();
        let permission = match spec.permission {
            command::Permission::Nothing => return Ok(()),
            command::Permission::Read => Permission::Consume,
            command::Permission::Write => Permission::Produce,
            command::Permission::Admin => Permission::Admin,
        };
        let Some(caller) = &self.authority.caller else {
            return Ok(());
        };
        if caller.is_superadmin() {
            return Ok(());
        }
        let mut refused = None;
        if spec.on.is_empty() {
            let is_scan = permission == Permission::Consume;
            if !is_scan && !caller.may_administer_all() {
                refused = Some("*".to_owned());
            }
        } else {
            command.tell_names(&mut |name| {
                if refused.is_none() && !caller.may(permission, name) {
                    refused = Some(name.to_owned());
                }
            });
        }
        match refused {
            None => Ok(()),
            Some(name) => Err(self.forbid(spec.name, permission, &name)),
        }
    }

    /// Notes that the caller may not do something, and says so.
    pub(super) fn forbid(&mut self, action: &str, permission: Permission, name: &str) -> Failure {
        let by = self.authority.caller.as_ref().and_then(Caller::key);
        let event = AuditEvent::new(by, action, name, AuditOutcome::Forbidden);
        self.authority.note(event);
        let permission = match permission {
            Permission::Produce => "produce",
            Permission::Consume => "consume",
            Permission::Admin => "admin",
        };
        let text = format!("{action} needs the permission {permission} on {name:?}");
        Failure::new(ErrorCode::Forbidden, text)
    }
}
