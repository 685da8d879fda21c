//! The bounds of Amaquet connections, and what the session asks of the world around it.

use core::fmt;
use std::sync::Arc;

use tanda_wire::amaquet::frame::PAYLOAD_BYTES_DEFAULT;

use super::claims::AmaquetShared;
use crate::login::Authentication;

/// What every Amaquet connection of a server is told.
#[derive(Clone, Debug)]
pub struct AmaquetConfig {
    /// The virtual host that is served, by name.
    pub vhost: String,
    /// Whether peers must show a key. If so, the session needs to be told of the keys
    /// ([`crate::Session::on_keys`]) before the first bytes.
    pub authentication: Authentication,
    /// The bounds.
    pub limits: AmaquetLimits,
    /// What all connections of the door use together.
    pub shared: Arc<AmaquetShared>,
    /// Who this node is.
    pub node: Arc<dyn NodeIdentity>,
    /// What the server knows of itself.
    pub facts: Arc<dyn ServerFacts>,
}

/// The bounds of Amaquet connections.
#[derive(Clone, Debug)]
pub struct AmaquetLimits {
    /// Largest payload that is taken, in bytes; told in HELLO. At most
    /// [`tanda_wire::amaquet::frame::PAYLOAD_BYTES_HARD_MAX`].
    pub max_payload: u32,
    /// From the first byte of a frame to its last one; a second more for each 64 KiB that came.
    pub partial_frame_timeout_ms: u64,
    /// Commands of one connection that are not answered. At most 65,000.
    pub active_per_connection: usize,
    /// Commands of all connections that are not answered.
    pub active_total: usize,
    /// Bytes of payloads, declared or in commands that are not answered, of all connections.
    pub payload_reservation: u64,
    /// Longest `wait_ms`.
    pub max_wait_ms: u64,
    /// A message's body (`limits.max_message`), in bytes.
    pub max_message_bytes: u64,
    /// Popped messages and events on their way to the peer, in budget bytes; the engine keeps to
    /// it.
    pub outbound_bytes_max: u64,
    /// Bytes not yet written; above it no further frame is taken.
    pub reply_bytes_max: u64,
    /// Subscriptions of a connection.
    pub subscriptions_max: u32,
    /// Told with OVERLOADED.
    pub retry_after_ms: u64,
    /// How long a connection that the server closes waits for answers under way.
    pub close_timeout_ms: u64,
}

impl Default for AmaquetLimits {
    fn default() -> Self {
        Self {
            max_payload: PAYLOAD_BYTES_DEFAULT,
            partial_frame_timeout_ms: 10_000,
            active_per_connection: 256,
            active_total: 16_384,
            payload_reservation: 256 << 20,
            max_wait_ms: 300_000,
            max_message_bytes: 128 << 20,
            outbound_bytes_max: 8 << 20,
            reply_bytes_max: 4 << 20,
            subscriptions_max: 1_024,
            retry_after_ms: 100,
            close_timeout_ms: 5_000,
        }
    }
}

/// The identity of a node: an Ed25519 key pair, made at its first start.
pub trait NodeIdentity: fmt::Debug + Send + Sync {
    /// The node's name: letters, digits and dashes.
    fn node_id(&self) -> &str;

    /// The public key.
    fn public_key(&self) -> [u8; 32];

    /// Signs bytes with the private key.
    fn sign(&self, bytes: &[u8]) -> [u8; 64];
}

/// What the engine cannot know of the server.
pub trait ServerFacts: fmt::Debug + Send + Sync {
    /// The version of the broker.
    fn version(&self) -> &str;

    /// Milliseconds since its start.
    fn uptime_ms(&self) -> u64;

    /// Connections of all doors but HTTP.
    fn connections(&self) -> u64;

    /// Bytes of memory in use.
    fn memory_bytes(&self) -> u64;
}
