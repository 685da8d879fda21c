//! The Fila Binary Protocol, version 1, as bytes.
//!
//! Owns: the layout of every frame in both directions, the code tables, splitting a byte stream
//! into frames and bodies into continuation frames. Refuses to know: connections and their state,
//! whether a value is allowed, and what a request does.
//!
//! A body struct borrows from the bytes it was decoded from. `decode` ignores trailing bytes, as
//! schema evolution demands. Fields with a fixed set of values stay `u8` beside an enum that names
//! them, because an unknown value is the server's to answer, not a malformed frame.
//!
//! | module | opcodes and their structs |
//! |---|---|
//! | [`control`] | `Handshake`, `HandshakeOk`, `Ping`, `Pong`, `Disconnect` |
//! | [`enqueue`] | `Enqueue`: [`enqueue::EnqueueBatch`] reads, [`enqueue::EnqueueWriter`] writes;
//! `EnqueueResult`: [`enqueue::EnqueueResult`], [`enqueue::EnqueueResultWriter`] |
//! | [`consume`] | `Consume`, `ConsumeOk`, `Credit`, `CancelConsume` |
//! | [`delivery`] | `Delivery`: [`delivery::DeliveryBatch`] reads, [`delivery::DeliveryWriter`]
//! writes |
//! | [`settle`] | `Ack`, `Nack`, `ExtendLease`: `AckBatch`, `AckWriter` and so on; `AckResult`,
//! `NackResult`, `ExtendLeaseResult` with `CodesWriter`, `ExtendResultWriter` |
//! | [`queue_admin`] | `CreateQueue`, `UpdateQueue`, `DeleteQueue`, `ListQueues` and their results
//! |
//! | [`stats`] | `GetStats`, `GetStatsResult`, and `ThrottleSummary` |
//! | [`config`] | `SetConfig`, `GetConfig`, `ListConfig` and their results |
//! | [`redrive`] | `Redrive`, `RedriveResult` |
//! | [`keys`] | `CreateApiKey`, `RevokeApiKey`, `ListApiKeys`, `SetAcl`, `GetAcl` and their results
//! |
//! | [`throttle`] | `GetThrottleStats`, `GetThrottleBucket` and their results |
//! | [`cluster`] | `GetRoutes`, `DrainNode`, `MoveQueueLeader`, `SetRebalancing`,
//! `GetClusterStatus` and their results |
//! | [`error`] | `Error`: [`error::ErrorFrame`] |
//!
//! Struct names equal opcode names where nothing else is said. Shared parts: [`headers`] (the
//! headers map of a message), [`property_key`] (the `key` primitive).

use core::fmt;

mod layout;
mod table;
mod wire_struct;

pub mod batch;
pub mod capability;
pub mod cluster;
pub mod config;
pub mod consume;
pub mod continuation;
pub mod control;
pub mod delivery;
pub mod enqueue;
pub mod error;
pub mod error_code;
pub mod field;
pub mod frame;
pub mod headers;
pub mod keys;
pub mod opcode;
pub mod property_key;
pub mod queue_admin;
pub mod redrive;
pub mod settle;
pub mod stats;
pub mod throttle;

pub use capability::Capabilities;
pub use error_code::ErrorCode;
pub use field::{EncodeError, STRING_BYTES_MAX};
pub use headers::Headers;
pub use opcode::{Direction, Opcode};

/// The only protocol version there is.
pub const PROTOCOL_VERSION: u16 = 1;

/// The TCP port of the protocol.
pub const DEFAULT_PORT: u16 = 5555;

/// A message ID: a UUIDv7 in network byte order.
pub type MessageId = [u8; 16];

/// A struct that is the whole body of one opcode.
pub trait Body<'a>: field::Field<'a> {
    /// The opcode of its frame.
    const OPCODE: Opcode;
}

/// A one-byte field holds a number outside its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownValue {
    /// The field's type.
    pub field: &'static str,
    /// The number found.
    pub value: u8,
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no value {}", self.field, self.value)
    }
}

impl core::error::Error for UnknownValue {}
