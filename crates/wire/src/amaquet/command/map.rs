//! `map.*`: payloads by the names of fields.

use super::argument::{Key, Member, TtlMs};
use super::table::commands;
use crate::amaquet::Payload;

commands! {
    /// Sets a field of a map.
    MapSet<'a> = "map.set", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The field.
        must field: Member<'a>,
        /// Its value.
        must value: Payload<'a>,
        /// How long the map lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// `false` when the field was there before.
        created: Bool,
    }

    /// Reads a field of a map.
    MapGet<'a> = "map.get", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The field.
        must field: Member<'a>,
    } -> {
        /// Its value.
        value: Payload,
    }

    /// Removes a field of a map.
    MapRemove<'a> = "map.remove", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The field.
        must field: Member<'a>,
    } -> {
        /// `false` when it was not there.
        removed: Bool,
    }

    /// Reads a whole map.
    MapAll<'a> = "map.all", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// The payload of each field.
        fields: Object,
    }

    /// Counts the fields of a map.
    MapLength<'a> = "map.length", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// How many there are.
        length: U64,
    }

    /// Adds to a field of a map that holds an integer (of type json); one that is not there begins
    /// at 0, one that holds something else is WRONG_TYPE.
    MapAdd<'a> = "map.add", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The field.
        must field: Member<'a>,
        /// How much (default 1). A sum beyond 64 bits: CONFLICT, and nothing changes.
        or by: i64 = 1,
        /// How long the map lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// The sum.
        value: I64,
    }
}
