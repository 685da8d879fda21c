//! Opening byte streams to the server.
//!
//! Owns: name resolution and TCP; anything else is the caller's, through [`Dial`].
//! Refuses to know: what is sent over the stream.

use std::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Opens streams to one server: TCP by default, or whatever a program brings along, such as a
/// Unix socket, TLS, or a pipe in a test.
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
