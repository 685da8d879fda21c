//! `value.*`: single values with versions.

use super::argument::{Key, TtlMs};
use super::table::commands;
use crate::amaquet::Payload;

commands! {
    /// Sets a value.
    ValueSet<'a> = "value.set", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The value.
        must value: Payload<'a>,
        /// How long it lives, in milliseconds; left out = for ever.
        may ttl_ms: TtlMs,
        /// Only if the key is not there; otherwise EXISTS (default false).
        or if_absent: bool = false,
        /// Only if this is its version, 0 = if it is not there; otherwise CONFLICT.
        may if_version: u64,
    } -> {
        /// Its version: the next one, and never one that a value of this name had before.
        version: U64,
    }

    /// Reads a value.
    ValueGet<'a> = "value.get", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// The value.
        value: Payload,
        /// Its version.
        version: U64,
    }

    /// Reads several values as of one moment.
    ValueGetMany<'a> = "value.get_many", Read(keys) {
        /// The keys.
        must keys: Vec<Key<'a>>,
    } -> {
        /// An array in the order of the keys: `{"value","version"}`, or `null` for a key that is
        /// not there.
        values: Object,
    }

    /// Removes a value.
    ValueDelete<'a> = "value.delete", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// Only if this is its version; otherwise CONFLICT.
        may if_version: u64,
    } -> {
        /// `false` when it was not there.
        deleted: Bool,
    }

    /// Sets a value and returns the one before.
    ValueSwap<'a> = "value.swap", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The new value.
        must value: Payload<'a>,
        /// How long it lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// The value before; `null` when there was none.
        previous: Payload,
        /// The version of the new one.
        version: U64,
    }
}
