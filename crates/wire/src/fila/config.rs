//! Runtime configuration: `SetConfig`, `GetConfig`, `ListConfig` and their results.

use super::error_code::ErrorCode;
use super::wire_struct::wire_struct;

wire_struct! {
    /// Sets one key.
    pub struct SetConfig<'a>: SetConfig {
        /// The key.
        key: &'a str,
        /// Its new value.
        value: &'a str,
    }

    /// Answers `SetConfig`.
    pub struct SetConfigResult: SetConfigResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
    }

    /// Reads one key.
    pub struct GetConfig<'a>: GetConfig {
        /// The key.
        key: &'a str,
    }

    /// Answers `GetConfig`.
    pub struct GetConfigResult<'a>: GetConfigResult {
        /// `InvalidConfigValue` when the key is not set.
        error_code: ErrorCode,
        /// The value; empty on an error.
        value: &'a str,
    }

    /// Reads every key that starts with a prefix.
    pub struct ListConfig<'a>: ListConfig {
        /// Empty: every key.
        prefix: &'a str,
    }

    /// Answers `ListConfig`.
    pub struct ListConfigResult<'a>: ListConfigResult {
        /// `Ok`, or why not.
        error_code: ErrorCode,
        /// The keys found.
        entries: Vec<ConfigEntry<'a>>,
    }

    /// One key and its value.
    pub struct ConfigEntry<'a> {
        /// The key.
        key: &'a str,
        /// Its value.
        value: &'a str,
    }
}
