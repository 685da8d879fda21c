//! `key.*`: keys of every kind.

use std::borrow::Cow;

use super::argument::{Key, ScanLimit, TtlMs};
use super::table::commands;

commands! {
    /// Whether a key is there.
    KeyExists<'a> = "key.exists", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// It is.
        exists: Bool,
    }

    /// What a key is.
    KeyKind<'a> = "key.kind", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// `value`, `counter`, `map`, `list`, `set`, `ranking` or `lock`.
        kind: String,
    }

    /// Removes a key of any kind. A removed lock goes to who waits for it.
    KeyDelete<'a> = "key.delete", Admin(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// `false` when it was not there.
        deleted: Bool,
    }

    /// Sets how long a key lives from now on.
    KeyExpire<'a> = "key.expire", Admin(key) {
        /// The key.
        must key: Key<'a>,
        /// For how long, in milliseconds.
        must ttl_ms: TtlMs,
    } -> {
        /// When it ends, in milliseconds since 1970.
        expires_at: U64,
    }

    /// How long a key lives.
    KeyTtl<'a> = "key.ttl", Read(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// Milliseconds; `null` when it does not expire.
        ttl_ms: U64,
    }

    /// Lets a key live for ever.
    KeyPersist<'a> = "key.persist", Admin(key) {
        /// The key.
        must key: Key<'a>,
    } -> {
        /// `false` when it did not expire before.
        persisted: Bool,
    }

    /// Gives a key another name. Locks cannot be renamed: WRONG_TYPE. What waits for a list of the
    /// new name gets its items.
    KeyRename<'a> = "key.rename", Admin(key, to) {
        /// The key.
        must key: Key<'a>,
        /// Its new name; present: EXISTS.
        must to: Key<'a>,
    } -> {
        /// `true`.
        renamed: Bool,
    }

    /// Lists keys that the caller may read, in no order. Every key that exists from the first call
    /// to the last is returned at least once. A call that looks at many keys without finding enough
    /// of them returns fewer, also none: go on until the cursor is `null`.
    KeyScan<'a> = "key.scan", Read() {
        /// Only names that follow it: `*` stands for any characters, `?` for one.
        may glob: Cow<'a, str>,
        /// That of the answer before; left out = from the beginning.
        may cursor: Cow<'a, str>,
        /// How many at most (default 1000).
        or limit: ScanLimit = super::argument::Bounded(1_000),
    } -> {
        /// Names.
        keys: Strings,
        /// Where to go on; `null` when that was all.
        cursor: String,
    }
}
