//! A WebSocket that carries a protocol of frames with their length in front.
//!
//! Each frame is one binary message, without its length: that is taken off what is written and put
//! before what is read, so that whoever reads and writes sees the bytes of a socket. Messages,
//! their masks and fragments, pings and the closing handshake are `tungstenite`'s business.
//!
//! ```text
//!  socket ─► context ─► incoming: length, message ─► reader
//!  socket ◄─ outgoing: head, message ◄─────────────── writer
//!                  ▲── control (pongs, close), between two messages
//! ```

use std::{
    future::poll_fn,
    io::{self, Cursor, Read, Write},
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut, buf::Chain};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tungstenite::{
    Error, Message,
    error::{CapacityError, ProtocolError},
    protocol::{
        CloseFrame, Role, WebSocketConfig, WebSocketContext,
        frame::{
            FrameHeader,
            coding::{CloseCode, Data, OpCode},
        },
    },
};

use super::Socket;

/// Bytes of the length before a frame.
const LENGTH_BYTES: usize = 4;
/// Bytes read from the socket at a time.
const READ_BYTES: usize = 16 << 10;
/// Bytes taken from the writer before the socket has taken them.
const OUT_BYTES_MAX: usize = 64 << 10;
/// Answers to pings that wait; over it nothing is read.
const CONTROL_BYTES_MAX: usize = 4 << 10;
/// Bytes of a control frame from a client beside its contents: two, and the mask.
const CONTROL_HEAD_BYTES: usize = 6;

/// How large messages may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageLimits {
    /// Until the peer is known, in bytes.
    pub(crate) stranger_bytes_max: usize,
    /// From then on, in bytes.
    pub(crate) bytes_max: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct WebSocket {
    socket: Socket,
    context: WebSocketContext,
    limits: MessageLimits,
    /// Not from a web page, or from one that is trusted.
    is_trusted: bool,
    /// What was read of the newest message, and not passed on.
    incoming: Chain<Cursor<[u8; LENGTH_BYTES]>, Bytes>,
    /// Bytes that came since the last message.
    unfinished: usize,
    /// Messages may be in `context` or `incoming` of which the socket does not tell.
    unread: bool,
    /// Why nothing more is read.
    end: Option<CloseCode>,
    outgoing: Outgoing,
    /// Frames that go between two messages.
    control: Vec<u8>,
    /// All is said; what comes is dropped.
    is_shut: bool,
}

/// Messages on their way to the socket.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: BytesMut,
    /// What was taken of the length of the next frame.
    length: Vec<u8>,
    /// What is not taken of the frame that was begun.
    missing: usize,
}

impl WebSocket {
    /// The server's end after the handshake. `read` is what came with that.
    pub(crate) fn new(socket: Socket, read: &[u8], limits: MessageLimits, trusted: bool) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(limits.stranger_bytes_max))
            .max_frame_size(Some(limits.stranger_bytes_max));
        let read = read.to_vec();
        Self {
            socket,
            unfinished: read.len(),
            context: WebSocketContext::from_partially_read(read, Role::Server, Some(config)),
            limits,
            is_trusted: trusted,
            incoming: exhausted(),
            unread: true,
            end: None,
            outgoing: Outgoing::default(),
            control: Vec::new(),
            is_shut: false,
        }
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn trusted_addr(&self) -> Option<SocketAddr> {
        self.is_trusted.then(|| self.socket.peer_addr())?
    }

    pub(super) fn on_introduced(&mut self) {
        let bytes_max = Some(self.limits.bytes_max);
        self.context.set_config(|config| {
            config.max_message_size = bytes_max;
            config.max_frame_size = bytes_max;
        });
    }

    pub(super) const fn unfinished_bytes(&self) -> usize {
        self.unfinished
    }

    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.control.len() > CONTROL_BYTES_MAX {
            // Until they are written, which is waited for elsewhere.
            return Poll::Pending;
        }
        if self.unread {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_readable(cx)
    }

    /// Fills the buffer with what is there; nothing, and ready: no more comes.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_shut {
            return Pin::new(&mut self.socket).poll_read(cx, buffer);
        }
        let before = buffer.filled().len();
        loop {
            pass_on(&mut self.incoming, buffer);
            if buffer.remaining() == 0 {
                self.unread = true;
                return Poll::Ready(Ok(()));
            }
            if self.end.is_some() {
                // The socket may never tell again, and the end is to be seen.
                self.unread = true;
                return Poll::Ready(Ok(()));
            }
            let backlog = self.control.len() > CONTROL_BYTES_MAX;
            if backlog || self.receive(cx)?.is_pending() {
                self.unread = backlog;
                return if buffer.filled().len() > before {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                };
            }
        }
    }

    /// Reads one message, whatever it is.
    fn receive(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let mut pipe = Pipe {
            source: Some((&mut self.socket, cx)),
            came: &mut self.unfinished,
            control: &mut self.control,
        };
        match self.context.read(&mut pipe) {
            Ok(Message::Binary(frame)) => self.begin_frame(frame),
            Ok(Message::Ping(contents) | Message::Pong(contents)) => {
                let bytes = contents.len() + CONTROL_HEAD_BYTES;
                self.unfinished = self.unfinished.saturating_sub(bytes);
            }
            Ok(Message::Text(_)) => self.end = Some(CloseCode::Unsupported),
            Ok(Message::Close(_)) => self.end = Some(CloseCode::Normal),
            // Made by writers only.
            Ok(Message::Frame(_)) => {}
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Poll::Pending);
            }
            Err(Error::Io(error)) => return Err(error),
            Err(error) => self.on_broken(&error),
        }
        Ok(Poll::Ready(()))
    }

    fn begin_frame(&mut self, frame: Bytes) {
        self.unfinished = 0;
        // No message is longer than its limit, which is a u32's.
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.incoming = Buf::chain(Cursor::new(length.to_be_bytes()), frame);
    }

    fn on_broken(&mut self, error: &Error) {
        tracing::debug!(%error, "a WebSocket broke its rules");
        self.unfinished = 0;
        self.end = Some(match error {
            Error::Capacity(too_long) => {
                if let CapacityError::MessageTooLong { size, .. } = too_long {
                    // Whoever reads is to say so in its own words.
                    let length = u32::try_from(*size).unwrap_or(u32::MAX);
                    self.incoming = Buf::chain(Cursor::new(length.to_be_bytes()), Bytes::new());
                }
                CloseCode::Size
            }
            Error::Utf8(_) => CloseCode::Invalid,
            // Nobody is there to be told.
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::ConnectionClosed
            | Error::AlreadyClosed => CloseCode::Normal,
            Error::Protocol(_)
            | Error::Io(_)
            | Error::Tls(_)
            | Error::WriteBufferFull(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::Http(_)
            | Error::HttpFormat(_) => CloseCode::Protocol,
        });
    }

    pub(super) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_flush()?;
        let taken = self.outgoing.take(bytes, &mut self.control)?;
        match self.try_flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            Ok(()) | Err(_) => Ok(taken),
        }
    }

    pub(super) fn try_flush(&mut self) -> io::Result<()> {
        self.outgoing.take_control(&mut self.control);
        let bytes = &mut self.outgoing.bytes;
        while !bytes.is_empty() {
            match self.socket.try_write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes.advance(count),
            }
        }
        *bytes = BytesMut::new();
        self.socket.try_flush()
    }

    pub(super) fn is_flushed(&self) -> bool {
        let control = self.control.is_empty() || !self.outgoing.is_between();
        control && self.outgoing.bytes.is_empty() && self.socket.is_flushed()
    }

    /// Says goodbye, or answers the peer's.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        self.say_goodbye();
        loop {
            match self.try_flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => {
                    other?;
                    break;
                }
            }
            poll_fn(|cx| self.socket.poll_writable(cx)).await?;
        }
        self.is_shut = true;
        self.socket.shutdown().await
    }

    fn say_goodbye(&mut self) {
        let mut pipe = Pipe {
            source: None,
            came: &mut self.unfinished,
            control: &mut self.control,
        };
        let goodbye = CloseFrame {
            code: self.end.unwrap_or(CloseCode::Normal),
            reason: "".into(),
        };
        // An answer to the peer's goodbye ends with an error that says so.
        drop(self.context.close(&mut pipe, Some(goodbye)));
    }
}

fn exhausted() -> Chain<Cursor<[u8; LENGTH_BYTES]>, Bytes> {
    let mut length = Cursor::new([0; LENGTH_BYTES]);
    length.advance(LENGTH_BYTES);
    Buf::chain(length, Bytes::new())
}

fn pass_on(incoming: &mut impl Buf, buffer: &mut ReadBuf<'_>) {
    while incoming.has_remaining() && buffer.remaining() > 0 {
        let chunk = incoming.chunk();
        let count = chunk.len().min(buffer.remaining());
        buffer.put_slice(chunk.get(..count).unwrap_or_default());
        incoming.advance(count);
    }
}

impl Outgoing {
    /// Whether a message could begin: all before are whole.
    const fn is_between(&self) -> bool {
        self.missing == 0 && self.length.is_empty()
    }

    fn take_control(&mut self, control: &mut Vec<u8>) {
        if self.is_between() && !control.is_empty() {
            self.bytes.extend_from_slice(control);
            control.clear();
        }
    }

    /// Takes frames with their length before them, as much as there is room for.
    fn take(&mut self, frames: &[u8], control: &mut Vec<u8>) -> io::Result<usize> {
        let mut rest = frames;
        while !rest.is_empty() && self.bytes.len() < OUT_BYTES_MAX {
            self.take_control(control);
            let wanted = if self.missing == 0 {
                LENGTH_BYTES - self.length.len()
            } else {
                self.missing.min(OUT_BYTES_MAX - self.bytes.len())
            };
            let (piece, after) = rest.split_at(wanted.min(rest.len()));
            rest = after;
            if self.missing > 0 {
                self.bytes.extend_from_slice(piece);
                self.missing -= piece.len();
                continue;
            }
            self.length.extend_from_slice(piece);
            if let Ok(length) = <[u8; LENGTH_BYTES]>::try_from(self.length.as_slice()) {
                self.length.clear();
                self.begin(u32::from_be_bytes(length))?;
            }
        }
        Ok(frames.len() - rest.len())
    }

    fn begin(&mut self, length: u32) -> io::Result<()> {
        let header = FrameHeader {
            opcode: OpCode::Data(Data::Binary),
            ..FrameHeader::default()
        };
        let mut head = Vec::with_capacity(header.len(length.into()));
        header
            .format(length.into(), &mut head)
            .map_err(io::Error::other)?;
        self.bytes.extend_from_slice(&head);
        self.missing = usize::try_from(length).map_err(io::Error::other)?;
        Ok(())
    }
}

/// The socket as `tungstenite` sees it: never waited for, and what it writes is put aside.
struct Pipe<'a, 'b> {
    source: Option<(&'a mut Socket, &'a mut Context<'b>)>,
    /// Counts what is read.
    came: &'a mut usize,
    control: &'a mut Vec<u8>,
}

impl Read for Pipe<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some((socket, cx)) = &mut self.source else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let mut buffer = ReadBuf::new(bytes);
        match Pin::new(&mut **socket).poll_read(cx, &mut buffer) {
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            Poll::Ready(outcome) => {
                outcome?;
                let count = buffer.filled().len();
                *self.came += count;
                Ok(count)
            }
        }
    }
}

impl Write for Pipe<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.control.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes to the socket for frames that come in pieces of this size, with a ping's answer
    /// after the first.
    fn written(frames: &[u8], piece: usize) -> Vec<u8> {
        let mut outgoing = Outgoing::default();
        let mut control = Vec::new();
        let mut written = Vec::new();
        for (number, mut bytes) in frames.chunks(piece).enumerate() {
            if number == 1 {
                control.extend(b"\x8a\x00");
            }
            while !bytes.is_empty() {
                let taken = outgoing.take(bytes, &mut control).unwrap();
                assert!(taken > 0 && outgoing.bytes.len() <= OUT_BYTES_MAX + 16);
                bytes = &bytes[taken..];
                written.extend_from_slice(&outgoing.bytes);
                outgoing.bytes.clear();
            }
        }
        outgoing.take_control(&mut control);
        assert!(outgoing.is_between() && control.is_empty());
        written.extend_from_slice(&outgoing.bytes);
        written
    }

    #[test]
    fn each_frame_is_a_message_however_it_is_cut_and_pongs_go_between() {
        let large = vec![7; 70_000];
        let mut frames = b"\x00\x00\x00\x02ab\x00\x00\x00\x00\x00\x01\x11\x70".to_vec();
        frames.extend(&large);
        let mut messages = vec![b"\x82\x02ab".to_vec(), b"\x82\x00".to_vec()];
        messages.push([&b"\x82\x7f\x00\x00\x00\x00\x00\x01\x11\x70"[..], &large].concat());
        let pong = b"\x8a\x00".to_vec();
        for (piece, place) in [(1, 1), (3, 1), (5, 1), (8, 2), (12, 3), (100_000, 3)] {
            let mut expected = messages.clone();
            if piece < frames.len() {
                expected.insert(place, pong.clone());
            }
            assert!(
                written(&frames, piece) == expected.concat(),
                "in pieces of {piece}"
            );
        }
    }
}
