//! `list.*`: payloads in a row.

use super::argument::{Key, Side, TtlMs, WaitMs};
use super::table::commands;
use crate::amaquet::Payload;

commands! {
    /// Adds to a list. What is pushed to the front stands in reverse order there, as if pushed one
    /// by one.
    ListPush<'a> = "list.push", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// What to add.
        must values: Vec<Payload<'a>>,
        /// Where (default back).
        or side: Side = Side::Back,
        /// How long the list lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// How many items it has then, before those who wait take theirs.
        length: U64,
    }

    /// Takes an item of a list. Who waits gets an item in the order of arrival; an item for a
    /// client that is gone returns to its place.
    ListPop<'a> = "list.pop", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// Where (default front).
        or side: Side = Side::Front,
        /// How long to wait for one, in milliseconds (default 0). None then: TIMEOUT.
        or wait_ms: WaitMs = WaitMs(0),
    } -> {
        /// The item.
        value: Payload,
    }

    /// Reads a part of a list.
    ListRange<'a> = "list.range", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The first item: from 0, or from the end below zero.
        must start: i64,
        /// The last one.
        must stop: i64,
    } -> {
        /// The items.
        values: Payloads,
    }

    /// Counts the items of a list.
    ListLength<'a> = "list.length", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// How many there are.
        length: U64,
    }

    /// Keeps a part of a list only. One that is not there has no item before and after.
    ListTrim<'a> = "list.trim", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The first item: from 0, or from the end below zero.
        must start: i64,
        /// The last one.
        must stop: i64,
    } -> {
        /// How many are left.
        length: U64,
    }
}
