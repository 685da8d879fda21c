//! What happened to keys and who was turned away, for the operator's log.
//!
//! Sessions say it as values; the driver adds the peer's address and writes it down. Secrets are in
//! none of it.

use std::sync::Arc;

use tanda_engine::{ApiKey, CredentialError};

/// Bytes of a peer's text that are repeated.
const OBJECT_BYTES_MAX: usize = 255;

/// One thing to write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Whose doing it was; `None` when authentication is off, or the key is unknown.
    pub by: Option<Arc<ApiKey>>,
    /// The user whose doing it was, when it was not a key's.
    pub user: Option<String>,
    /// What was asked for, in the protocol's words.
    pub action: String,
    /// With what: a queue's name, or a key's id and name. At most 255 bytes of what the peer said,
    /// which may be anything: escape it.
    pub object: String,
    /// What came of it.
    pub outcome: AuditOutcome,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It was done.
    Done,
    /// It was not done, for this reason.
    Refused(&'static str),
    /// The peer may not do it. Comes as often as peers ask: bound how often it is written down.
    Forbidden,
    /// The peer's credential is no good (any more). Comes as often as peers connect, too.
    Denied(CredentialError),
}

impl AuditEvent {
    /// Makes one; a long object is cut.
    #[must_use]
    pub fn new(
        by: Option<&Arc<ApiKey>>,
        action: impl Into<String>,
        object: &str,
        outcome: AuditOutcome,
    ) -> Self {
        let mut end = object.len().min(OBJECT_BYTES_MAX);
        while !object.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            by: by.cloned(),
            user: None,
            action: action.into(),
            object: object.get(..end).unwrap_or_default().to_owned(),
            outcome,
        }
    }

    /// As the doing of this user.
    #[must_use]
    pub fn by_user(mut self, user: Option<&str>) -> Self {
        self.user = user.map(str::to_owned);
        self
    }

    /// Whether peers can cause it as often as they like.
    #[must_use]
    pub const fn is_denial(&self) -> bool {
        match self.outcome {
            AuditOutcome::Done | AuditOutcome::Refused(_) => false,
            AuditOutcome::Forbidden | AuditOutcome::Denied(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_object_is_cut_between_characters() {
        let object = "\u{e9}".repeat(200);
        let event = AuditEvent::new(None, "Enqueue", &object, AuditOutcome::Forbidden);
        assert_eq!(event.object, "\u{e9}".repeat(127));
        assert!(event.is_denial());
    }
}
