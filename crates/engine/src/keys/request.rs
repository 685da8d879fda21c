//! What is asked and answered about keys.

use std::sync::Arc;

use super::{ApiKey, ApiKeyId, Grant, KeyHash};
use crate::Millis;

/// A key to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey {
    /// A name for people: at most 255 bytes without control characters.
    pub name: String,
    /// From then on it is no good; `None` = never. May be past.
    pub expires_at: Option<Millis>,
    /// It may do everything.
    pub is_superadmin: bool,
    /// The hash of its secret, which has 256 random bits.
    pub hash: KeyHash,
}

/// A key as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyInfo {
    /// Its id.
    pub id: ApiKeyId,
    /// Its name.
    pub name: Arc<str>,
    /// When it was made.
    pub created_at: Millis,
    /// From then on it is no good; `None` = never.
    pub expires_at: Option<Millis>,
    /// It may do everything.
    pub is_superadmin: bool,
}

impl From<&ApiKey> for ApiKeyInfo {
    fn from(key: &ApiKey) -> Self {
        Self {
            id: key.id,
            name: Arc::clone(&key.name),
            created_at: key.created_at,
            expires_at: key.expires_at,
            is_superadmin: key.is_superadmin,
        }
    }
}

/// What a key may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclOf {
    /// The key.
    pub key: ApiKeyInfo,
    /// Its permissions, as they were set.
    pub grants: Arc<[Grant]>,
}

/// What became of the bootstrap key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrapped {
    /// It was made; an earlier one with another secret is gone.
    Made {
        /// The new key.
        key: ApiKeyInfo,
        /// The key in whose place it came.
        replaced: Option<ApiKeyId>,
    },
    /// It was made before, and revoked or not, that stays as it is.
    Known {
        /// Whether it was revoked.
        is_revoked: bool,
    },
}

/// Why no key was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateApiKeyError {
    /// The name is too long, or has control characters.
    BadName {
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// Another key has this secret.
    SecretInUse,
    /// There are as many keys as may be.
    TooMany {
        /// The most that may be.
        max: u32,
    },
    /// The disk is full.
    Storage,
}

/// Why permissions were not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetAclError {
    /// No key of that id.
    NotFound,
    /// More permissions than a key may have.
    TooMany {
        /// The most that may be.
        max: usize,
    },
    /// A pattern is empty or too long.
    BadPattern {
        /// Its length in bytes.
        len: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// The patterns of all keys together would be too long.
    TooManyBytes {
        /// The most that is allowed.
        max: usize,
    },
}

/// No key of that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiKeyNotFound;
