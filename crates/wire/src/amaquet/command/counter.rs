//! `counter.*`: numbers that are added to.

use super::argument::{Key, TtlMs};
use super::table::commands;

commands! {
    /// Adds to a counter; one that is not there begins at 0.
    CounterAdd<'a> = "counter.add", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// How much (default 1). A sum beyond 64 bits: CONFLICT, and nothing changes.
        or by: i64 = 1,
        /// How long it lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// The sum.
        value: I64,
    }

    /// Reads a counter.
    CounterGet<'a> = "counter.get", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// Its value.
        value: I64,
    }

    /// Sets a counter.
    CounterSet<'a> = "counter.set", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// Its value.
        must value: i64,
        /// How long it lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// Its value.
        value: I64,
    }
}
