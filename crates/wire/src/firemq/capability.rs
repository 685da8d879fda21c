//! The capabilities of `hello.caps` and `welcome.caps`, which are names.

/// Every publish with a `seq` is confirmed.
pub const CONFIRMS: &str = "confirms";
/// The server sends no more than the credit it was given.
pub const CREDIT: &str = "credit";
/// A mandatory message that no queue received comes back.
pub const MANDATORY: &str = "mandatory";
/// Exchanges can be bound to exchanges.
pub const EXCHANGE_BINDINGS: &str = "exchange-bindings";
/// Rejected and expired messages go to the queue's dead-letter exchange.
pub const DEAD_LETTER: &str = "dead-letter";
/// Messages and queues can expire.
pub const TTL: &str = "ttl";

/// What a server of version 1 sends, in this order. Source: `welcome`.
pub const VERSION_1: [&str; 6] = [
    CONFIRMS,
    CREDIT,
    MANDATORY,
    EXCHANGE_BINDINGS,
    DEAD_LETTER,
    TTL,
];

/// Names kept for later versions; no side of version 1 sends them.
/// Source: `Reserved for later versions`.
pub const RESERVED: [&str; 3] = ["streams", "zstd", "scram"];
