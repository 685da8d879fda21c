//! The client's end of one connection: frames in both directions.

use std::collections::BTreeMap;

use bytes::{Buf, BytesMut};
use tanda_wire::fila::continuation::{Reassembler, ReassemblyLimits};
use tanda_wire::fila::control::{Handshake, HandshakeOk};
use tanda_wire::fila::frame::{
    FrameHeader, effective_max_frame, split_frame, write_body, write_frame_split,
};
use tanda_wire::fila::{Body, Capabilities, EncodeError, Opcode, PROTOCOL_VERSION};

use crate::failure::Violation;
use crate::history::{Holder, Right};
use crate::invariants::protocol;

/// What a client says of itself when it connects.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub(crate) holder: Holder,
    pub(crate) secret: Option<String>,
    /// To connect.
    pub(crate) right: Right,
}

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
    /// Who it says it is.
    pub(crate) holder: Holder,
    /// To connect.
    pub(crate) right: Right,
    /// Bytes of frames that were taken.
    taken_bytes: u64,
    /// Where bodies begin whose frames have not all come.
    begun: BTreeMap<u32, u64>,
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
    /// The byte of the connection at which its first frame began.
    pub(crate) begins_at: u64,
}

impl Peer {
    /// Connects and says hello.
    pub(crate) fn new(conn: u64, hello: &Hello) -> Self {
        let mut peer = Self {
            conn,
            out: Vec::new(),
            is_open: false,
            has_ended: false,
            holder: hello.holder,
            right: hello.right,
            taken_bytes: 0,
            begun: BTreeMap::new(),
            inbox: BytesMut::new(),
            reassembler: Reassembler::new(ReassemblyLimits::default()),
            next_id: 0,
            max_frame_size: 0,
        };
        let handshake = Handshake {
            protocol_version: PROTOCOL_VERSION,
            api_key: hello.secret.as_deref(),
            client_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
        };
        peer.body(0, &handshake);
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
            let begins_at = *self
                .begun
                .entry(header.request_id)
                .or_insert(self.taken_bytes);
            let whole = self.reassembler.push(header, frame.body);
            let whole = whole.map_err(|error| Violation {
                invariant: protocol::NAME,
                what: error.to_string(),
            })?;
            let body = whole.map(std::borrow::Cow::into_owned);
            self.inbox.advance(consumed);
            self.taken_bytes += consumed as u64;
            let Some(body) = body else { continue };
            self.begun.remove(&header.request_id);
            let incoming = Incoming {
                opcode: header.opcode,
                request_id: header.request_id,
                body,
                begins_at,
            };
            if let Some(incoming) = self.on_frame(incoming)? {
                return Ok(Some(incoming));
            }
        }
    }

    fn on_frame(&mut self, frame: Incoming) -> Result<Option<Incoming>, Violation> {
        if frame.opcode == Opcode::Ping {
            self.body(frame.request_id, &tanda_wire::fila::control::Pong {});
            return Ok(None);
        }
        if frame.opcode == Opcode::HandshakeOk {
            let answer = HandshakeOk::decode(&frame.body)
                .map_err(|error| protocol::bad_body(frame.opcode, error))?;
            self.max_frame_size = answer.max_frame_size;
            self.is_open = true;
            return Ok(None);
        }
        Ok(Some(frame))
    }

    const fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }
}
