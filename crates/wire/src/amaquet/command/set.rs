//! `set.*`: texts, each once.

use super::argument::{Key, Member, TtlMs};
use super::table::commands;

commands! {
    /// Adds to a set.
    SetAdd<'a> = "set.add", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// What to add.
        must members: Vec<Member<'a>>,
        /// How long the set lives if this makes the key, in milliseconds.
        may ttl_ms: TtlMs,
    } -> {
        /// How many were not there before.
        added: U64,
    }

    /// Removes from a set.
    SetRemove<'a> = "set.remove", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// What to remove.
        must members: Vec<Member<'a>>,
    } -> {
        /// How many were there.
        removed: U64,
    }

    /// Whether a set has a member.
    SetContains<'a> = "set.contains", Read(key) {
        /// The key.
        must key: Key<'a>,
        /// The member.
        must member: Member<'a>,
    } -> {
        /// It has.
        contains: Bool,
    }

    /// Reads a whole set.
    SetMembers<'a> = "set.members", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// The members, sorted by their bytes.
        members: Strings,
    }

    /// Counts the members of a set.
    SetLength<'a> = "set.length", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// How many there are.
        length: U64,
    }
}
