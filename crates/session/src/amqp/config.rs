//! The bounds of AMQP connections, and what the server says of itself.

use std::sync::Arc;

use crate::secret::Entropy;

/// What every AMQP connection of a server is told.
#[derive(Clone, Debug)]
pub struct AmqpConfig {
    /// `product` of the server's properties. Clients choose semantics by it (Kombu: what a
    /// prefetch of a channel means), so it names the broker whose semantics these are.
    pub product: String,
    /// `version` of the server's properties: of that product.
    pub version: String,
    /// `platform` of the server's properties: what this server really is.
    pub platform: String,
    /// `cluster_name` of the server's properties.
    pub cluster_name: String,
    /// Channels of a connection; offered as `channel_max`.
    pub channel_max: u16,
    /// Largest frame in either direction, in bytes; offered as `frame_max`. At least 4096.
    pub frame_max: u32,
    /// Offered as `heartbeat`, in seconds; 0 = none. What the client answers counts.
    pub heartbeat_s: u16,
    /// From the first byte of silence to the end of the opening handshake.
    pub handshake_timeout_ms: u64,
    /// How long the server waits for the answer to its `connection.close`.
    pub close_timeout_ms: u64,
    /// A message's body (`limits.max_message`), in bytes.
    pub max_message_bytes: u64,
    /// Parts of unfinished messages, all channels together, in bytes.
    pub partial_bytes_max: usize,
    /// What a transaction may hold of messages, in bytes.
    pub tx_bytes_max: usize,
    /// Deliveries on their way to the peer, in budget bytes; the engine keeps to it.
    pub outbound_bytes_max: u64,
    /// Answers not yet written, in bytes; above it no further frame is decoded.
    pub reply_bytes_max: u64,
    /// Consumers of a connection.
    pub consumers_max: u32,
    /// Deliveries that a channel's peer has not settled. A consumer without prefetch limit has
    /// this one.
    pub unacked_max: u32,
    /// How long a delivery may wait for its acknowledgement; `None` = for ever.
    pub ack_timeout_ms: Option<u64>,
    /// Requests the engine has not answered; at this number no further frame is decoded.
    pub requests_in_flight_max: usize,
    /// Bytes of messages in those requests.
    pub publish_bytes_in_flight_max: usize,
    /// Whether clients may log in with their TLS certificate (`EXTERNAL`).
    pub external: bool,
    /// Where names that nobody can foresee come from; without it they can be foreseen.
    pub entropy: Option<Arc<dyn Entropy>>,
}

impl Default for AmqpConfig {
    fn default() -> Self {
        Self {
            product: "RabbitMQ".to_owned(),
            version: "4.1.0".to_owned(),
            platform: concat!("Tanda ", env!("CARGO_PKG_VERSION")).to_owned(),
            cluster_name: "tanda".to_owned(),
            channel_max: 2047,
            frame_max: 131_072,
            heartbeat_s: 60,
            handshake_timeout_ms: 10_000,
            close_timeout_ms: 10_000,
            max_message_bytes: 128 << 20,
            partial_bytes_max: 256 << 20,
            tx_bytes_max: 128 << 20,
            outbound_bytes_max: 8 << 20,
            reply_bytes_max: 4 << 20,
            consumers_max: 65_536,
            unacked_max: 1_000_000,
            ack_timeout_ms: Some(30 * 60 * 1_000),
            requests_in_flight_max: 1_024,
            publish_bytes_in_flight_max: 8 << 20,
            external: false,
            entropy: None,
        }
    }
}
