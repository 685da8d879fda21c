//! The bounds of FireMQ connections, and what the server says of itself.

use tanda_wire::firemq::frame::MAX_FRAME_DEFAULT;

/// What every FireMQ connection of a server is told.
#[derive(Clone, Debug)]
pub struct FireConfig {
    /// `server.name` of `welcome`: the broker whose protocol this is.
    pub server_name: String,
    /// `server.version` of `welcome`.
    pub server_version: String,
    /// Largest frame in either direction, in bytes as `len` counts them; said in `welcome`.
    pub max_frame: u32,
    /// The server's heartbeat interval in seconds; 0 = what the client wants. The smaller of both
    /// counts, and none when the client wants none.
    pub heartbeat_s: u16,
    /// From the first byte of silence to `welcome`.
    pub handshake_timeout_ms: u64,
    /// How long the server waits for the answer to its `close`.
    pub close_timeout_ms: u64,
    /// A message's body (`limits.max_message`), in bytes.
    pub max_message_bytes: u64,
    /// Deliveries on their way to the peer, in budget bytes; the engine keeps to it.
    pub outbound_bytes_max: u64,
    /// Answers not yet written, in bytes; above it no further frame is decoded.
    pub reply_bytes_max: u64,
    /// Subscriptions of a connection.
    pub subscriptions_max: u32,
    /// Deliveries that the peer has not settled, whatever credit it grants.
    pub unacked_max: u32,
    /// How long a delivery may wait for its acknowledgement; `None` = for ever.
    pub ack_timeout_ms: Option<u64>,
    /// Requests the engine has not answered; at this number no further frame is decoded.
    pub requests_in_flight_max: usize,
    /// Bytes of messages in those requests.
    pub publish_bytes_in_flight_max: usize,
    /// Whether clients may log in with their TLS certificate: `auth.mech` "external", which the
    /// document does not have.
    pub external: bool,
}

impl Default for FireConfig {
    fn default() -> Self {
        Self {
            server_name: "firemq".to_owned(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            max_frame: MAX_FRAME_DEFAULT,
            heartbeat_s: 60,
            handshake_timeout_ms: 10_000,
            close_timeout_ms: 10_000,
            max_message_bytes: 128 << 20,
            outbound_bytes_max: 8 << 20,
            reply_bytes_max: 4 << 20,
            subscriptions_max: 65_536,
            unacked_max: 1_000_000,
            ack_timeout_ms: Some(30 * 60 * 1_000),
            requests_in_flight_max: 1_024,
            publish_bytes_in_flight_max: 8 << 20,
            external: false,
        }
    }
}
