//! The error frame (`Error Frame`), which refuses a request as a whole.

use super::error_code::ErrorCode;
use super::wire_struct::wire_struct;

/// Metadata key of `NotLeader`: where the leader is, as `host:port`.
pub const META_LEADER_ADDR: &str = "leader_addr";
/// Metadata key of `ChannelFull`: milliseconds to wait, in decimal.
pub const META_RETRY_AFTER_MS: &str = "retry_after_ms";
/// Metadata key of `UnsupportedVersion`: the highest version there is, in decimal.
pub const META_MAX_VERSION: &str = "max_version";
/// Metadata key of `CreditExhausted`: the server's balance, in decimal.
pub const META_SERVER_CREDIT: &str = "server_credit";

wire_struct! {
    /// A refusal, with the request ID of what it refuses.
    pub struct ErrorFrame<'a>: Error {
        /// Why, for programs.
        error_code: ErrorCode,
        /// Why, for people; cut at 65,535 bytes when encoded.
        message: &'a str as clipped,
        /// More for programs; keys without a known meaning are kept.
        metadata: Vec<(&'a str, &'a str)> as list_u16,
    }
}

impl<'a> ErrorFrame<'a> {
    /// The value of the first metadata entry with this key.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&'a str> {
        self.metadata
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }
}
