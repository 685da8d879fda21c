//! API keys and their permissions.

use super::error_code::ErrorCode;
use super::wire_struct::wire_struct;

/// The permission to enqueue.
pub const PERMISSION_PRODUCE: &str = "produce";
/// The permission to consume, ack, nack and extend.
pub const PERMISSION_CONSUME: &str = "consume";
/// The permission to administer.
pub const PERMISSION_ADMIN: &str = "admin";

wire_struct! {
    /// Makes an API key.
    pub struct CreateApiKey<'a>: CreateApiKey {
        /// A name for people.
        name: &'a str,
        /// Unix time in milliseconds; 0 = never.
        expires_at_ms: u64,
        /// Whether the key may do everything.
        is_superadmin: bool,
    }

    /// Answers `CreateApiKey`.
    pub struct CreateApiKeyResult<'a>: CreateApiKeyResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The key's ID.
        key_id: &'a str,
        /// The secret, shown this once.
        key: &'a str,
        /// Whether the key may do everything.
        is_superadmin: bool,
    }

    /// Ends an API key.
    pub struct RevokeApiKey<'a>: RevokeApiKey {
        /// The key's ID.
        key_id: &'a str,
    }

    /// Answers `RevokeApiKey`.
    pub struct RevokeApiKeyResult: RevokeApiKeyResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Asks for all API keys.
    pub struct ListApiKeys: ListApiKeys {}

    /// Answers `ListApiKeys`.
    pub struct ListApiKeysResult<'a>: ListApiKeysResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The keys, without their secrets.
        keys: Vec<ApiKeyInfo<'a>>,
    }

    /// One API key of a listing.
    pub struct ApiKeyInfo<'a> {
        /// Its ID.
        key_id: &'a str,
        /// Its name for people.
        name: &'a str,
        /// Unix time in milliseconds.
        created_at_ms: u64,
        /// Unix time in milliseconds; 0 = never.
        expires_at_ms: u64,
        /// Whether it may do everything.
        is_superadmin: bool,
    }

    /// Replaces all permissions of a key.
    pub struct SetAcl<'a>: SetAcl {
        /// The key's ID.
        key_id: &'a str,
        /// The new permissions.
        permissions: Vec<Permission<'a>>,
    }

    /// One grant.
    pub struct Permission<'a> {
        /// [`PERMISSION_PRODUCE`], [`PERMISSION_CONSUME`] or [`PERMISSION_ADMIN`].
        kind: &'a str,
        /// A glob over queue names.
        pattern: &'a str,
    }

    /// Answers `SetAcl`.
    pub struct SetAclResult: SetAclResult {
        /// `Ok`, or why nothing changed.
        error_code: ErrorCode,
    }

    /// Asks for the permissions of a key.
    pub struct GetAcl<'a>: GetAcl {
        /// The key's ID.
        key_id: &'a str,
    }

    /// Answers `GetAcl`.
    pub struct GetAclResult<'a>: GetAclResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The key's ID.
        key_id: &'a str,
        /// Whether the key may do everything.
        is_superadmin: bool,
        /// Its permissions.
        permissions: Vec<Permission<'a>>,
    }
}
