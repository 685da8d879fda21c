//! One connection as the load generator uses it.
//!
//! Owns: the socket without blocking, the bytes not yet sent, the bytes not yet read.
//! Refuses to know: what the frames mean.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use tanda_wire::fila::frame::{MAX_FRAME_DEFAULT, frame_size};

use crate::error::BenchError;

/// Frames of at least this size go to the socket without a copy when nothing waits before them.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// Room for one read.
const INBOX_BYTES: usize = 256 << 10;

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct Link {
    /// The way out.
    pub(crate) outbox: Outbox,
    /// The way in.
    pub(crate) inbox: Inbox,
}

impl Link {
    /// Takes over a socket; the caller decides whether it blocks.
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            outbox: Outbox {
                stream,
                waiting: Vec::new(),
                sent: 0,
            },
            inbox: Inbox {
                bytes: vec![0; INBOX_BYTES],
                filled: 0,
            },
        }
    }
}

/// The socket, and what it did not take yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    stream: TcpStream,
    waiting: Vec<u8>,
    /// Bytes at the front of `waiting` that are gone.
    sent: usize,
}

impl Outbox {
    /// The socket.
    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// A buffer to append frames to; they leave with the next [`Self::flush`].
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Sends a frame, now when it is large, else with the next [`Self::flush`].
    pub(crate) fn send(&mut self, frame: &[u8]) -> Result<(), BenchError> {
        let mut rest = frame;
        if self.is_empty() && frame.len() >= DIRECT_BYTES_MIN {
            let count = write_some(&self.stream, frame)?;
            rest = frame.get(count..).unwrap_or_default();
        }
        self.waiting.extend_from_slice(rest);
        Ok(())
    }

    /// Whether nothing waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends what waits, as far as the socket takes it; says whether nothing is left.
    pub(crate) fn flush(&mut self) -> Result<bool, BenchError> {
        while let Some(rest) = self
            .waiting
            .get(self.sent..)
            .filter(|rest| !rest.is_empty())
        {
            match write_some(&self.stream, rest)? {
                0 => return Ok(false),
                count => self.sent += count,
            }
        }
        self.waiting.clear();
        self.sent = 0;
        Ok(true)
    }
}

/// How many bytes the socket took; 0 when it is full.
fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> Result<usize, BenchError> {
    loop {
        match stream.write(bytes) {
            Ok(0) => {
                let source = io::ErrorKind::WriteZero.into();
                return Err(BenchError::io("sending")(source));
            }
            Ok(count) => return Ok(count),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(e) => return Err(BenchError::io("sending")(e)),
        }
    }
}

/// What came and was not looked at yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    filled: usize,
}

impl Inbox {
    /// Reads once from the socket. 0 bytes: nothing there.
    pub(crate) fn read_from(&mut self, mut stream: &TcpStream) -> Result<usize, BenchError> {
        self.make_room();
        let free = self.bytes.get_mut(self.filled..).unwrap_or_default();
        match stream.read(free) {
            Ok(0) => Err(BenchError::Protocol(
                "the server closed the connection".to_owned(),
            )),
            Ok(count) => {
                self.filled += count;
                Ok(count)
            }
            Err(e)
                if e.kind() == io::ErrorKind::WouldBlock
                    || e.kind() == io::ErrorKind::Interrupted =>
            {
                Ok(0)
            }
            Err(e) => Err(BenchError::io("receiving")(e)),
        }
    }

    /// The bytes that came.
    pub(crate) fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// Forgets bytes at the front.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.bytes.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// The frame at the front must fit, up to the largest frame there can be.
    fn make_room(&mut self) {
        let need = frame_size(self.filled()).unwrap_or_default();
        let need = need.min(MAX_FRAME_DEFAULT as usize + size_of::<u32>());
        if need > self.bytes.len() {
            self.bytes.resize(need, 0);
        }
    }
}
