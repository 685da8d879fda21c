//! API keys and their permissions. For superadmins.

use std::fmt;

use tanda_wire::fila::keys::{
    CreateApiKey, CreateApiKeyResult, GetAcl, GetAclResult, ListApiKeys, ListApiKeysResult,
    PERMISSION_ADMIN, PERMISSION_CONSUME, PERMISSION_PRODUCE, Permission as WirePermission,
    RevokeApiKey, RevokeApiKeyResult, SetAcl, SetAclResult,
};

use super::{Admin, check, read};
use crate::error::RequestError;
use crate::shell::handle::Repeat;

/// When a key stops working.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApiKeyExpiry {
    /// Only when it is revoked.
    #[default]
    Never,
    /// At this time in Unix milliseconds.
    AtMs(u64),
}

impl ApiKeyExpiry {
    const fn from_wire(at_ms: u64) -> Self {
        if at_ms == 0 {
            Self::Never
        } else {
            Self::AtMs(at_ms)
        }
    }

    const fn to_wire(self) -> u64 {
        match self {
            Self::Never => 0,
            Self::AtMs(at_ms) => at_ms,
        }
    }
}

/// A key that was just made.
#[derive(Clone, PartialEq, Eq)]
pub struct CreatedApiKey {
    /// Its ID.
    pub key_id: String,
    /// The credential. The server tells it only now.
    pub key: String,
    /// Whether it may do everything.
    pub is_superadmin: bool,
}

impl fmt::Debug for CreatedApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The credential does not belong into logs.
        f.debug_struct("CreatedApiKey")
            .field("key_id", &self.key_id)
            .field("is_superadmin", &self.is_superadmin)
            .finish_non_exhaustive()
    }
}

/// A key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyInfo {
    /// Its ID.
    pub key_id: String,
    /// Its name for people.
    pub name: String,
    /// When it was made, in Unix milliseconds.
    pub created_at_ms: u64,
    /// When it stops working.
    pub expiry: ApiKeyExpiry,
    /// Whether it may do everything.
    pub is_superadmin: bool,
}

/// What a grant allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionKind {
    /// To enqueue.
    Produce,
    /// To consume, ack, nack and extend.
    Consume,
    /// To administer.
    Admin,
    /// A kind this version does not know.
    Other(String),
}

impl PermissionKind {
    /// Its name in the protocol.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Produce => PERMISSION_PRODUCE,
            Self::Consume => PERMISSION_CONSUME,
            Self::Admin => PERMISSION_ADMIN,
            Self::Other(name) => name,
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            PERMISSION_PRODUCE => Self::Produce,
            PERMISSION_CONSUME => Self::Consume,
            PERMISSION_ADMIN => Self::Admin,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// What it allows.
    pub kind: PermissionKind,
    /// On which queues: a glob over their names.
    pub pattern: String,
}

impl Permission {
    /// A grant on the queues that match a glob.
    pub fn new(kind: PermissionKind, pattern: impl Into<String>) -> Self {
        Self {
            kind,
            pattern: pattern.into(),
        }
    }
}

/// The permissions of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAcl {
    /// The key's ID.
    pub key_id: String,
    /// Whether it may do everything, whatever the grants say.
    pub is_superadmin: bool,
    /// Its grants.
    pub permissions: Vec<Permission>,
}

impl Admin {
    /// Makes an API key without grants; a superadmin needs none.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn create_api_key(
        &self,
        name: &str,
        expiry: ApiKeyExpiry,
        is_superadmin: bool,
    ) -> Result<CreatedApiKey, RequestError> {
        let request = CreateApiKey {
            name,
            expires_at_ms: expiry.to_wire(),
            is_superadmin,
        };
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        let answer = read(CreateApiKeyResult::decode(&body))?;
        check(answer.error_code)?;
        Ok(CreatedApiKey {
            key_id: answer.key_id.to_owned(),
            key: answer.key.to_owned(),
            is_superadmin: answer.is_superadmin,
        })
    }

    /// Ends an API key at once, also for connections that use it.
    ///
    /// # Errors
    /// `ApiKeyNotFound`, `Forbidden`.
    pub async fn revoke_api_key(&self, key_id: &str) -> Result<(), RequestError> {
        let body = self
            .handle
            .call(&RevokeApiKey { key_id }, Repeat::Harmful)
            .await?;
        check(read(RevokeApiKeyResult::decode(&body))?.error_code)
    }

    /// All API keys, without their credentials.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn list_api_keys(&self) -> Result<Vec<ApiKeyInfo>, RequestError> {
        let body = self.handle.call(&ListApiKeys {}, Repeat::Harmless).await?;
        let answer = read(ListApiKeysResult::decode(&body))?;
        check(answer.error_code)?;
        let keys = answer.keys.iter().map(|key| ApiKeyInfo {
            key_id: key.key_id.to_owned(),
            name: key.name.to_owned(),
            created_at_ms: key.created_at_ms,
            expiry: ApiKeyExpiry::from_wire(key.expires_at_ms),
            is_superadmin: key.is_superadmin,
        });
        Ok(keys.collect())
    }

    /// Replaces all grants of a key.
    ///
    /// # Errors
    /// `ApiKeyNotFound`, `InvalidConfigValue` for a kind the server does not know, `Forbidden`.
    pub async fn set_acl(
        &self,
        key_id: &str,
        permissions: &[Permission],
    ) -> Result<(), RequestError> {
        let permissions = permissions.iter().map(|permission| WirePermission {
            kind: permission.kind.name(),
            pattern: &permission.pattern,
        });
        let request = SetAcl {
            key_id,
            permissions: permissions.collect(),
        };
        let body = self.handle.call(&request, Repeat::Harmful).await?;
        check(read(SetAclResult::decode(&body))?.error_code)
    }

    /// The grants of a key.
    ///
    /// # Errors
    /// `ApiKeyNotFound`, `Forbidden`.
    pub async fn acl(&self, key_id: &str) -> Result<KeyAcl, RequestError> {
        let body = self
            .handle
            .call(&GetAcl { key_id }, Repeat::Harmless)
            .await?;
        let answer = read(GetAclResult::decode(&body))?;
        check(answer.error_code)?;
        let permissions = answer.permissions.iter().map(|permission| Permission {
            kind: PermissionKind::from_name(permission.kind),
            pattern: permission.pattern.to_owned(),
        });
        Ok(KeyAcl {
            key_id: answer.key_id.to_owned(),
            is_superadmin: answer.is_superadmin,
            permissions: permissions.collect(),
        })
    }
}
