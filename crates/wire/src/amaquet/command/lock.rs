//! `lock.*`: locks with fencing tokens.

use super::argument::{Key, TtlMs, WaitMs};
use super::table::commands;

commands! {
    /// Takes a lock. It ends after its time, or when it is released; a disconnect does not release
    /// it.
    LockAcquire<'a> = "lock.acquire", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// How long to hold it, in milliseconds.
        must ttl_ms: TtlMs,
        /// How long to wait for it while it is held, in milliseconds (default 0). Still held:
        /// CONFLICT, after a wait TIMEOUT.
        or wait_ms: WaitMs = WaitMs(0),
    } -> {
        /// The fencing token: higher than all before it, also across restarts.
        token: U64,
        /// When it ends, in milliseconds since 1970.
        expires_at: U64,
    }

    /// Holds a lock for longer. Another token: CONFLICT; nobody holds it: NOT_FOUND.
    LockRenew<'a> = "lock.renew", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The token it was taken with.
        must token: u64,
        /// How long from now on, in milliseconds.
        must ttl_ms: TtlMs,
    } -> {
        /// When it ends, in milliseconds since 1970.
        expires_at: U64,
    }

    /// Gives a lock back. Another token: CONFLICT; nobody holds it: NOT_FOUND.
    LockRelease<'a> = "lock.release", Write(key) {
        /// The key.
        must key: Key<'a>,
        /// The token it was taken with.
        must token: u64,
    } -> {
        /// `true`.
        released: Bool,
    }
}
