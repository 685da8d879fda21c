//! Opening byte streams to the server.
//!
//! Owns: name resolution, TCP, and TLS over it; anything else is the caller's, through [`Dial`].
//! Refuses to know: what is sent over the stream.

use std::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::tls::Tls;

/// Opens streams to one server: TCP with or without TLS by default, or whatever a program brings
/// along, such as a Unix socket or a pipe in a test.
pub trait Dial: Send + 'static {
    /// The stream it opens.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Opens one. It is called for the first connection and again after each loss.
    fn dial(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// TCP to an address, resolved anew for each connection.
#[derive(Debug)]
pub(crate) struct TcpDial {
    pub(crate) address: String,
}

impl Dial for TcpDial {
    type Stream = TcpStream;

    async fn dial(&mut self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address.as_str()).await?;
        // Output leaves in whole batches, so waiting for more would only delay it.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// TLS over TCP. The server must prove that it is the host of the address, unless the settings
/// name another.
#[derive(Debug)]
pub(crate) struct TlsDial {
    pub(crate) tcp: TcpDial,
    pub(crate) tls: Tls,
}

impl Dial for TlsDial {
    type Stream = TlsStream<TcpStream>;

    async fn dial(&mut self) -> io::Result<Self::Stream> {
        let stream = self.tcp.dial().await?;
        let address = self.tcp.address.as_str();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        self.tls.encrypt(host, stream).await
    }
}
