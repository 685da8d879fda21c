//! In-memory connections for tests.

use std::io;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

use super::dial::Dial;

/// Bytes each direction of a pipe holds.
const PIPE_BYTES: usize = 64 * 1024;

/// Hands out the ends of pipes that a test made.
pub(crate) struct PipeDial {
    streams: mpsc::UnboundedReceiver<io::Result<DuplexStream>>,
}

impl Dial for PipeDial {
    type Stream = DuplexStream;

    async fn dial(&mut self) -> io::Result<DuplexStream> {
        match self.streams.recv().await {
            Some(stream) => stream,
            None => std::future::pending().await,
        }
    }
}

/// Where a client under test connects to.
pub(crate) struct Network {
    streams: mpsc::UnboundedSender<io::Result<DuplexStream>>,
}

impl Network {
    pub(crate) fn new() -> (Self, PipeDial) {
        let (sender, streams) = mpsc::unbounded_channel();
        (Self { streams: sender }, PipeDial { streams })
    }

    /// Lets the next connection of the client succeed; returns the server's end.
    pub(crate) fn accept(&self) -> DuplexStream {
        let (ours, theirs) = duplex(PIPE_BYTES);
        self.streams.send(Ok(theirs)).unwrap();
        ours
    }

    /// Lets the next connection of the client fail.
    pub(crate) fn refuse(&self) {
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        self.streams.send(Err(error)).unwrap();
    }
}
