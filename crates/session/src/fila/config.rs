//! The bounds of Fila connections.

use std::sync::Arc;

pub use crate::login::Authentication;
use crate::secret::Entropy;

/// What every Fila connection of a server is told.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Largest frame body in either direction, in bytes; told to the peer in `HandshakeOk`.
    /// At least [`SessionConfig::MAX_FRAME_SIZE_MIN`]; a smaller value counts as that.
    pub max_frame_size: u32,
    /// Bytes of bodies under reassembly, all of a connection's together (`limits.max_body`).
    pub max_body_bytes: usize,
    /// Bodies under reassembly.
    pub unfinished_max: usize,
    /// A message's headers and payload as they stand in its frame, in bytes.
    pub max_message_bytes: u32,
    /// Items of one batch. It bounds what a batch of empty messages makes the server allocate.
    pub batch_items_max: usize,
    /// Deliveries on their way to the peer, in budget bytes; the engine keeps to it.
    pub outbound_bytes_max: u64,
    /// Answers not yet written, in bytes; above it no further frame is decoded.
    pub reply_bytes_max: u64,
    /// Live subscriptions.
    pub subscriptions_max: u32,
    /// Requests the engine has not answered; at this number no further frame is decoded.
    /// Together with `subscriptions_max` at most 65,000.
    pub requests_in_flight_max: usize,
    /// Of these: rare requests, whose answers may be large.
    pub admin_in_flight_max: usize,
    /// From the first byte of silence before the handshake to the close.
    pub handshake_timeout_ms: u64,
    /// Silence before the server pings.
    pub ping_idle_ms: u64,
    /// From the ping to the close when no pong came. Also the longest wait for answers under way
    /// once a connection is closing.
    pub pong_timeout_ms: u64,
    /// Told with `ChannelFull`.
    pub retry_after_ms: u64,
    /// This node's `host:port` for clients.
    pub advertised_addr: String,
    /// Whether peers must show a key. If so, the session needs to be told of the keys
    /// ([`super::FilaSession::on_keys`]) before the first bytes.
    pub authentication: Authentication,
    /// Where the secrets of new keys come from; without it none can be made.
    pub entropy: Option<Arc<dyn Entropy>>,
}

impl SessionConfig {
    /// The least frame size that lets deliveries and errors through without silly splitting.
    pub const MAX_FRAME_SIZE_MIN: u32 = 1024;

    /// The frame size in force, in bytes.
    pub(super) const fn frame_bytes_max(&self) -> usize {
        if self.max_frame_size < Self::MAX_FRAME_SIZE_MIN {
            Self::MAX_FRAME_SIZE_MIN as usize
        } else {
            self.max_frame_size as usize
        }
    }
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            max_frame_size: 16 << 20,
            max_body_bytes: 256 << 20,
            unfinished_max: 16,
            max_message_bytes: 128 << 20,
            batch_items_max: 1_400_000,
            outbound_bytes_max: 8 << 20,
            reply_bytes_max: 4 << 20,
            subscriptions_max: 1024,
            requests_in_flight_max: 1024,
            admin_in_flight_max: 16,
            handshake_timeout_ms: 30_000,
            ping_idle_ms: 15_000,
            pong_timeout_ms: 30_000,
            retry_after_ms: 100,
            advertised_addr: String::new(),
            authentication: Authentication::Off,
            entropy: None,
        }
    }
}
