//! Who asks, and what they may do.

use core::fmt;
use std::sync::Arc;

use super::{ApiKey, ApiKeyId, Permission};

/// Who asks.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Anybody: authentication is off.
    Anyone,
    /// The holder of a key.
    Key(Arc<ApiKey>),
}

impl Caller {
    /// Whether they may do this with the queue of this name.
    #[must_use]
    pub fn may(&self, permission: Permission, queue: &str) -> bool {
        match self {
            Self::Anyone => true,
            Self::Key(key) => key.may(permission, queue),
        }
    }

    /// Whether they may do anything with the queue of this name.
    #[must_use]
    pub fn may_touch(&self, queue: &str) -> bool {
        match self {
            Self::Anyone => true,
            Self::Key(key) => key.may_touch(queue),
        }
    }

    /// Whether they may do what concerns the whole broker: `admin` on `*`.
    #[must_use]
    pub fn may_administer_all(&self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Key(key) => key.may_administer_all(),
        }
    }

    /// Whether they may do everything, keys included.
    #[must_use]
    pub fn is_superadmin(&self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Key(key) => key.is_superadmin,
        }
    }

    /// Their key.
    #[must_use]
    pub const fn key(&self) -> Option<&Arc<ApiKey>> {
        match self {
            Self::Anyone => None,
            Self::Key(key) => Some(key),
        }
    }
}

/// Why a secret is no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialError {
    /// There was none.
    Missing,
    /// It belongs to no key, or to one that was revoked.
    Unknown,
    /// Its key has expired.
    Expired {
        /// The key.
        key: ApiKeyId,
    },
    /// Its key was revoked while it was in use.
    Revoked {
        /// The key.
        key: ApiKeyId,
    },
}

impl CredentialError {
    /// One word, for logs.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Expired { .. } => "expired",
            Self::Revoked { .. } => "revoked",
        }
    }

    /// The key, where it is known.
    #[must_use]
    pub const fn key(self) -> Option<ApiKeyId> {
        match self {
            Self::Missing | Self::Unknown => None,
            Self::Expired { key } | Self::Revoked { key } => Some(key),
        }
    }
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("this broker wants an API key, and none was given"),
            Self::Unknown => f.write_str("the API key is unknown or was revoked"),
            Self::Expired { key } => write!(f, "the API key {key} has expired"),
            Self::Revoked { key } => write!(f, "the API key {key} was revoked"),
        }
    }
}

impl core::error::Error for CredentialError {}
