//! What a connection of a door reads from and writes to.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{Socket, WebSocket};

/// The bytes of a protocol, whatever carries them.
#[derive(Debug)]
pub(crate) enum Stream {
    /// A socket carries them as they are.
    Socket(Socket),
    /// Each frame is a message of a WebSocket.
    Web(Box<WebSocket>),
}

impl Stream {
    /// The certificate that the peer proved in its handshake of TLS.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Socket(socket) => socket.peer_certificate(),
            // A browser shows its user's certificate whatever page speaks.
            Self::Web(_) => None,
        }
    }

    /// Where the peer is; `None` once the socket is gone.
    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket().peer_addr()
    }

    /// Where the peer is, as far as that says who it is: `None` also when a web page of somebody
    /// else lets a browser speak.
    pub(crate) fn trusted_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(socket) => socket.peer_addr(),
            Self::Web(web) => web.trusted_addr(),
        }
    }

    /// The peer is known and may send frames as large as they get.
    pub(crate) fn on_introduced(&mut self) {
        match self {
            Self::Socket(_) => {}
            Self::Web(web) => web.on_introduced(),
        }
    }

    /// Bytes that have come of a message that is not whole, and so not read yet.
    pub(crate) const fn unfinished_bytes(&self) -> usize {
        match self {
            Self::Socket(_) => 0,
            Self::Web(web) => web.unfinished_bytes(),
        }
    }

    /// Ready when a read may find something.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Socket(socket) => socket.poll_readable(cx),
            Self::Web(web) => web.poll_readable(cx),
        }
    }

    /// Ready when a write may get rid of something.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_writable(cx)
    }

    /// Takes what fits without waiting, at least one byte, or says `WouldBlock`. What was taken may
    /// still wait for the socket: see [`Stream::try_flush`].
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.try_write(bytes),
            Self::Web(web) => web.try_write(bytes),
        }
    }

    /// Writes what earlier writes left, or says `WouldBlock`.
    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.try_flush(),
            Self::Web(web) => web.try_flush(),
        }
    }

    /// Whether [`Stream::try_flush`] has something to do.
    pub(crate) fn is_flushed(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.is_flushed(),
            Self::Web(web) => web.is_flushed(),
        }
    }

    /// Says to the peer that no more comes. What is read afterwards is only fit to be dropped.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.shutdown().await,
            Self::Web(web) => web.shutdown().await,
        }
    }

    const fn socket(&self) -> &Socket {
        match self {
            Self::Socket(socket) => socket,
            Self::Web(web) => web.socket(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Web(web) => web.poll_read(cx, buffer),
        }
    }
}
