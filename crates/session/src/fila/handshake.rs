//! The first frame of a connection.

use tanda_engine::{ConnLimits, Millis, Request};
use tanda_wire::fila::control::{Handshake, HandshakeOk};
use tanda_wire::fila::error::META_MAX_VERSION;
use tanda_wire::fila::frame::FrameHeader;
use tanda_wire::fila::{Capabilities, ErrorCode, Opcode, PROTOCOL_VERSION};

use super::link::{Call, Link};
use super::open::Open;

/// What this server offers.
const SERVER_CAPABILITIES: Capabilities = Capabilities::CREDIT_FLOW_CONTROL;

/// Nothing but a handshake may come.
#[derive(Debug)]
pub(super) struct AwaitHandshake {
    /// When the peer has waited too long.
    pub(super) deadline: Millis,
}

impl AwaitHandshake {
    pub(super) fn new(link: &Link) -> Self {
        Self {
            deadline: link.now.after_ms(link.config.handshake_timeout_ms),
        }
    }

    /// Looks at a header as soon as it is there, before its body is waited for. Answers and
    /// returns false when it cannot begin a connection.
    pub(super) fn accepts(link: &mut Link, header: FrameHeader) -> bool {
        let problem = if header.opcode != Opcode::Handshake {
            format!(
                "{}: the first frame of a connection must be a Handshake",
                header.opcode
            )
        } else if header.request_id != 0 {
            format!("a Handshake has request ID 0, not {}", header.request_id)
        } else if header.flags != 0 {
            format!("a Handshake has no flags, not 0x{:02X}", header.flags)
        } else {
            return true;
        };
        link.invalid_frame(header.request_id, &problem);
        false
    }

    /// Takes the handshake. `None`: refused and answered, close.
    pub(super) fn on_handshake(link: &mut Link, call: &Call) -> Option<Open> {
        let handshake: Handshake<'_> = link.decode(call)?;
        let Some(negotiated_version) = negotiate(handshake.protocol_version) else {
            refuse_version(link, handshake.protocol_version);
            return None;
        };
        if !link.authenticate(handshake.api_key) {
            return None;
        }
        let active = handshake.client_capabilities & SERVER_CAPABILITIES;
        let config = &link.config;
        let limits = ConnLimits {
            outbound_bytes_max: config.outbound_bytes_max,
            subscriptions_max: config.subscriptions_max,
        };
        let answer = HandshakeOk {
            negotiated_version,
            node_id: 0,
            max_frame_size: u32::try_from(link.outbound.frame_bytes_max()).unwrap_or(u32::MAX),
            server_capabilities: SERVER_CAPABILITIES,
        };
        link.outbound.body(0, &answer);
        link.requests.push(Request::Connect {
            conn: link.conn,
            limits,
        });
        link.is_connected = true;
        let has_credit = active.contains(Capabilities::CREDIT_FLOW_CONTROL);
        Some(Open::new(link, has_credit))
    }
}

/// The highest version of both sides.
const fn negotiate(client_max: u16) -> Option<u16> {
    if client_max < PROTOCOL_VERSION {
        None
    } else {
        Some(PROTOCOL_VERSION)
    }
}

fn refuse_version(link: &mut Link, client_max: u16) {
    let max_version = PROTOCOL_VERSION.to_string();
    link.outbound.error(
        0,
        ErrorCode::UnsupportedVersion,
        &format!("protocol version {client_max} is not supported: use {PROTOCOL_VERSION}"),
        &[(META_MAX_VERSION, &max_version)],
    );
}
