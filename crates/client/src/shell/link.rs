//! One connection on its stream.
//!
//! Owns: the handshake over a fresh stream, and moving bytes between stream and [`Endpoint`].
//! Refuses to know: requests, and what happens after the connection is lost.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::endpoint::{Endpoint, OpenError};
use super::job::Loss;

/// Room for one read. Payloads are slices of it.
const READ_BYTES: usize = 128 * 1024;
/// With less room than this a new buffer is taken.
const READ_BYTES_MIN: usize = 16 * 1024;

/// A stream, and the bytes read from it that are not a whole frame yet.
#[derive(Debug)]
pub(super) struct Link<S> {
    stream: S,
    input: BytesMut,
    is_flushed: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// Shakes hands over a fresh stream.
    pub(super) async fn open<E: Endpoint>(
        stream: S,
        config: &E::Config,
        now_ms: u64,
    ) -> Result<(Self, E), E::OpenError> {
        let mut connection = E::begin(config, now_ms)?;
        let mut link = Self {
            stream,
            input: BytesMut::with_capacity(READ_BYTES),
            is_flushed: true,
        };
        loop {
            let bytes = connection.output().len();
            if bytes > 0 {
                link.stream.write_all(connection.output()).await?;
                link.stream.flush().await?;
                connection.on_sent(bytes, now_ms);
            }
            if link.stream.read_buf(&mut link.input).await? == 0 {
                let error = io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server closed the connection before it answered the handshake",
                );
                return Err(error.into());
            }
            let received = connection.receive(now_ms, &mut link.input);
            if connection.is_accepted()? {
                return Ok((link, connection));
            }
            received.map_err(|error| E::OpenError::foreign(error.to_string()))?;
        }
    }

    /// Sends what the stream takes of the output. `true`: some was sent.
    pub(super) fn poll_send<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut E,
        now_ms: u64,
    ) -> Result<bool, Loss> {
        let mut has_sent = false;
        while !connection.output().is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, connection.output()) {
                Poll::Pending => return Ok(has_sent),
                Poll::Ready(Ok(0)) => return Err(Loss::new("the connection takes no more bytes")),
                Poll::Ready(Ok(bytes)) => connection.on_sent(bytes, now_ms),
                Poll::Ready(Err(error)) => return Err(Loss::new(error.to_string())),
            }
            has_sent = true;
            self.is_flushed = false;
        }
        if !self.is_flushed {
            match Pin::new(&mut self.stream).poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => return Err(Loss::new(error.to_string())),
            }
        }
        Ok(has_sent)
    }

    /// Reads once and hands the bytes to the connection. `true`: some came.
    pub(super) fn poll_receive<E: Endpoint>(
        &mut self,
        cx: &mut Context<'_>,
        connection: &mut E,
        now_ms: u64,
    ) -> Result<bool, Loss> {
        let missing = connection.missing_bytes(&self.input).max(READ_BYTES_MIN);
        if self.input.capacity() - self.input.len() < missing {
            self.input.reserve(missing.max(READ_BYTES));
        }
        match pin!(self.stream.read_buf(&mut self.input)).poll(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => Err(Loss::new("the server closed the connection")),
            Poll::Ready(Ok(_)) => {
                let received = connection.receive(now_ms, &mut self.input);
                received
                    .map(|()| true)
                    .map_err(|error| Loss::new(error.to_string()))
            }
            Poll::Ready(Err(error)) => Err(Loss::new(error.to_string())),
        }
    }

    /// Tells the peer that no more comes. The connection is over, so a failure changes nothing.
    pub(super) async fn shutdown(mut self) {
        drop(self.stream.shutdown().await);
    }
}
