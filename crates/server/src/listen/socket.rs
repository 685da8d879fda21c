//! A socket with or without TLS.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{
    rustls::{ServerConnection, pki_types::CertificateDer},
    server::TlsStream,
};

/// A TCP connection, and what translates its bytes.
#[derive(Debug)]
pub(crate) struct Socket {
    kind: Kind,
    /// Bytes may be there that were taken from the socket and not read yet, so that the socket does
    /// not tell of them.
    unread: bool,
}

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    pub(super) const fn plain(stream: TcpStream) -> Self {
        Self {
            kind: Kind::Plain(stream),
            unread: false,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            kind: Kind::Tls(Box::new(stream)),
            // What came in one packet with the end of the handshake.
            unread: true,
        }
    }

    /// The certificate that the peer proved in its handshake of TLS.
    pub(super) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match &self.kind {
            Kind::Plain(_) => None,
            Kind::Tls(stream) => stream.get_ref().1.peer_certificates()?.first(),
        }
    }

    /// Where the peer is; `None` once the socket is gone.
    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket().peer_addr().ok()
    }

    /// Ready when a read may find something.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unread {
            return Poll::Ready(Ok(()));
        }
        self.socket().poll_read_ready(cx)
    }

    /// Ready when a write may get rid of something.
    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket().poll_write_ready(cx)
    }

    /// Takes what fits without waiting, at least one byte, or says `WouldBlock`. What was taken may
    /// still wait for the socket: see [`Socket::try_flush`].
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.kind {
            Kind::Plain(socket) => socket.try_write(bytes),
            Kind::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                flush(socket, session)?;
                let count = io::Write::write(&mut session.writer(), bytes)?;
                match flush(socket, session) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
                    Ok(()) | Err(_) => Ok(count),
                }
            }
        }
    }

    /// Writes what earlier writes left, or says `WouldBlock`.
    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match &mut self.kind {
            Kind::Plain(_) => Ok(()),
            Kind::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                flush(socket, session)
            }
        }
    }

    /// Whether [`Socket::try_flush`] has something to do.
    pub(crate) fn is_flushed(&self) -> bool {
        match &self.kind {
            Kind::Plain(_) => true,
            Kind::Tls(stream) => !stream.get_ref().1.wants_write(),
        }
    }

    fn socket(&self) -> &TcpStream {
        match &self.kind {
            Kind::Plain(socket) => socket,
            Kind::Tls(stream) => stream.get_ref().0,
        }
    }
}

fn flush(socket: &TcpStream, session: &mut ServerConnection) -> io::Result<()> {
    while session.wants_write() {
        if session.write_tls(&mut NoWait(socket))? == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
    Ok(())
}

/// Writes what the socket takes at once.
struct NoWait<'a>(&'a TcpStream);

impl io::Write for NoWait<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.kind {
            Kind::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Kind::Tls(stream) => {
                let polled = Pin::new(stream.as_mut()).poll_read(cx, buffer);
                self.unread = polled.is_ready() && buffer.remaining() == 0;
                polled
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            Kind::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Kind::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            Kind::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bytes),
            Kind::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            Kind::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Kind::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    /// Says to the peer that no more comes; with TLS that is a `close_notify`.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            Kind::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Kind::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
