//! Opening, keeping and closing a connection (`Connection Lifecycle`).

use super::capability::Capabilities;
use super::wire_struct::wire_struct;

wire_struct! {
    /// The first frame of a connection, with request ID 0. Its layout is frozen.
    pub struct Handshake<'a>: Handshake {
        /// The highest version the client speaks.
        protocol_version: u16,
        /// The client's credential.
        api_key: Option<&'a str>,
        /// What the client offers.
        client_capabilities: Capabilities,
    }

    /// The server's answer to a handshake.
    pub struct HandshakeOk: HandshakeOk {
        /// The version both sides use from now on.
        negotiated_version: u16,
        /// 0 on a single node.
        node_id: u64,
        /// The largest frame body the server takes, in bytes; 0 = 16 MiB.
        max_frame_size: u32,
        /// What the server offers.
        server_capabilities: Capabilities,
    }

    /// Asks the peer to show that it is alive.
    pub struct Ping: Ping {}

    /// Answers a ping with its request ID.
    pub struct Pong: Pong {}

    /// Announces a close after the answers in flight.
    pub struct Disconnect: Disconnect {}
}
