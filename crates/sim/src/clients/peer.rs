//! The client's end of one connection: frames in both directions.

use bytes::{Buf, BytesMut};
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::control::{Handshake, HandshakeOk};
use tanda_wire::fila::frame::{
    FrameHeader, effective_max_frame, split_frame, write_body, write_frame_split,
};
use tanda_wire::fila::{Body, Capabilities, EncodeError, Opcode, PROTOCOL_VERSION};

use crate::failure::Violation;
use crate::invariants::protocol;

/// One connection as its client sees it.
pub(crate) struct Peer {
    /// The connection's number.
    pub(crate) conn: u64,
    /// Bytes for the broker; the network takes them.
    pub(crate) out: Vec<u8>,
    /// The handshake is answered.
    pub(crate) is_open: bool,
    /// It has ended its sending side: it reads only.
    pub(crate) has_ended: bool,
    inbox: BytesMut,
    reassembler: Reassembler,
    next_id: u32,
    max_frame_size: u32,
}

/// A whole frame from the broker.
pub(crate) struct Incoming {
    pub(crate) opcode: Opcode,
    pub(crate) request_id: u32,
    pub(crate) body: Vec<u8>,
}

impl Peer {
    /// Connects and says hello.
    pub(crate) fn new(conn: u64) -> Self {
        let mut peer = Self {
            conn,
            out: Vec::new(),
            is_open: false,
            has_ended: false,
            inbox: BytesMut::new(),
            reassembler: Reassembler::new(ReassemblyLimits::default()),
            next_id: 0,
            max_frame_size: 0,
        };
        let hello = Handshake {
            protocol_version: PROTOCOL_VERSION,
            api_key: None,
            client_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
        };
        peer.body(0, &hello);
        peer
    }

    /// Sends a request and returns its id.
    pub(crate) fn request<'a, B: Body<'a>>(&mut self, body: &B) -> u32 {
        let id = self.new_id();
        self.body(id, body);
        id
    }

    /// Sends a request whose body `write` appends, and returns its id.
    pub(crate) fn request_with(
        &mut self,
        opcode: Opcode,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> u32 {
        let id = self.new_id();
        let header = FrameHeader::new(opcode, id);
        let written = write_frame_split(&mut self.out, header, self.max_frame_size, write);
        debug_assert!(written.is_ok(), "the simulator's frames are small");
        id
    }

    /// Sends a frame with an id of before.
    pub(crate) fn body<'a, B: Body<'a>>(&mut self, id: u32, body: &B) {
        let written = write_body(&mut self.out, id, self.max_frame_size, body);
        debug_assert!(written.is_ok(), "the simulator's frames are small");
    }

    /// Bytes came.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next whole frame, handshake and pings aside.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Incoming>, Violation> {
        loop {
            let most = effective_max_frame(self.max_frame_size);
            let frame = split_frame(&self.inbox, most).map_err(|error| Violation {
                invariant: protocol::NAME,
                what: error.to_string(),
            })?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let (header, consumed) = (frame.header, frame.consumed);
            let whole = self.reassembler.push(header, frame.body);
            let whole = whole.map_err(|error| Violation {
                invariant: protocol::NAME,
                what: error.to_string(),
            })?;
            let body = whole.map(std::borrow::Cow::into_owned);
            self.inbox.advance(consumed);
            if let Some(body) = body
                && let Some(incoming) = self.on_frame(header, body)?
            {
                return Ok(Some(incoming));
            }
        }
    }

    fn on_frame(
        &mut self,
        header: FrameHeader,
        body: Vec<u8>,
    ) -> Result<Option<Incoming>, Violation> {
        if header.opcode == Opcode::Ping {
            self.body(header.request_id, &tanda_wire::fila::control::Pong {});
            return Ok(None);
        }
        if header.opcode == Opcode::HandshakeOk {
            let answer = HandshakeOk::decode(&body)
                .map_err(|error| protocol::bad_body(header.opcode, error))?;
            self.max_frame_size = answer.max_frame_size;
            self.is_open = true;
            return Ok(None);
        }
        Ok(Some(Incoming {
            opcode: header.opcode,
            request_id: header.request_id,
            body,
        }))
    }

    const fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }
}
