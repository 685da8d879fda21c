//! Opening connections and preparing queues, with blocking calls outside of what is measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tanda_wire::fila::control::{Handshake, HandshakeOk};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{FRAME_OVERHEAD_BYTES, FrameHeader, MAX_FRAME_DEFAULT, write_body};
use tanda_wire::fila::property_key::PropertyKey;
use tanda_wire::fila::queue_admin::{CreateQueue, CreateQueueResult};
use tanda_wire::fila::{Body, Capabilities, Opcode, PROTOCOL_VERSION};

use crate::error::BenchError;
use crate::link::Link;

/// No answer to a preparing request takes longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Longer than any measurement: no lease may end in one.
const LEASE_MS: u64 = 3_600_000;

/// A connection that waits for each answer.
#[derive(Debug)]
pub(crate) struct Door {
    stream: TcpStream,
}

impl Door {
    /// Connects and shakes hands.
    pub(crate) fn connect(addr: SocketAddr) -> Result<Self, BenchError> {
        let stream = TcpStream::connect(addr).map_err(BenchError::io("connecting"))?;
        stream
            .set_nodelay(true)
            .map_err(BenchError::io("connecting"))?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .map_err(BenchError::io("connecting"))?;
        let mut door = Self { stream };
        let hello = Handshake {
            protocol_version: PROTOCOL_VERSION,
            api_key: None,
            client_capabilities: Capabilities::CREDIT_FLOW_CONTROL,
        };
        let body = door.call(0, &hello, Opcode::HandshakeOk, "a handshake")?;
        HandshakeOk::decode(&body)?;
        Ok(door)
    }

    /// Makes a queue with all defaults but the lease, which outlasts every measurement.
    pub(crate) fn create_queue(&mut self, name: &str) -> Result<(), BenchError> {
        self.create_scripted_queue(name, None)
    }

    /// The same, with a script that classifies its messages.
    pub(crate) fn create_scripted_queue(
        &mut self,
        name: &str,
        on_enqueue_script: Option<&str>,
    ) -> Result<(), BenchError> {
        let request = CreateQueue {
            name,
            on_enqueue_script,
            on_failure_script: None,
            visibility_timeout_ms: LEASE_MS,
            ordering: 0,
            ordering_key: PropertyKey::default(),
            when_ordering_key_missing: 0,
            dedup_key: PropertyKey::default(),
            dedup_window_ms: 0,
            script_failure: 0,
            park_dead_letter_after: 0,
            max_attempts: 0,
            backoff: 0,
            backoff_initial_ms: 0,
            backoff_max_ms: 0,
            delivery_durability: 0,
            reclaim_grace_ms: 0,
        };
        let body = self.call(1, &request, Opcode::CreateQueueResult, "a new queue")?;
        let code = CreateQueueResult::decode(&body)?.error_code;
        if code.is_ok() {
            Ok(())
        } else {
            Err(BenchError::Refused {
                what: "a new queue",
                code,
                message: name.to_owned(),
            })
        }
    }

    /// Sends bytes as they are.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> Result<(), BenchError> {
        self.stream
            .write_all(bytes)
            .map_err(BenchError::io("sending"))
    }

    /// Sends a frame and waits for all frames of its answer.
    pub(crate) fn exchange(&mut self, frame: &[u8]) -> Result<(), BenchError> {
        self.send_raw(frame)?;
        loop {
            let (header, _) = self.receive()?;
            if header.opcode != Opcode::Ping && !header.is_continued() {
                return Ok(());
            }
        }
    }

    /// Hands the connection to a load generator.
    pub(crate) fn into_link(self) -> Result<Link, BenchError> {
        self.stream
            .set_nonblocking(true)
            .map_err(BenchError::io("connecting"))?;
        Ok(Link::new(self.stream))
    }

    fn call<'a, B: Body<'a>>(
        &mut self,
        request_id: u32,
        request: &B,
        answer: Opcode,
        what: &'static str,
    ) -> Result<Vec<u8>, BenchError> {
        let mut frame = Vec::new();
        write_body(&mut frame, request_id, 0, request)?;
        self.send_raw(&frame)?;
        let (header, body) = self.receive()?;
        if header.opcode == answer {
            return Ok(body);
        }
        if header.opcode == Opcode::Error {
            let error = ErrorFrame::decode(&body)?;
            return Err(BenchError::Refused {
                what,
                code: error.error_code,
                message: error.message.to_owned(),
            });
        }
        let name = header.opcode.name();
        Err(BenchError::Protocol(format!(
            "the server answered {what} with {name}"
        )))
    }

    fn receive(&mut self) -> Result<(FrameHeader, Vec<u8>), BenchError> {
        let mut head = [0; FRAME_OVERHEAD_BYTES];
        self.stream
            .read_exact(&mut head)
            .map_err(BenchError::io("waiting for an answer"))?;
        let (length, header) = head
            .split_first_chunk()
            .map_or((0, &[][..]), |(a, b)| (u32::from_be_bytes(*a), b));
        let header = FrameHeader::parse(header);
        let body_bytes = (length.min(MAX_FRAME_DEFAULT) as usize)
            .checked_sub(FRAME_OVERHEAD_BYTES - size_of::<u32>());
        let (Some(header), Some(body_bytes)) = (header, body_bytes) else {
            return Err(BenchError::Protocol(format!(
                "the server sent a frame of {length} bytes"
            )));
        };
        let mut body = vec![0; body_bytes];
        self.stream
            .read_exact(&mut body)
            .map_err(BenchError::io("waiting for an answer"))?;
        Ok((header, body))
    }
}
