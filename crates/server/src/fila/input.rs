//! What a connection has read and not yet decoded.

use bytes::BytesMut;
use tokio::io::AsyncReadExt;

use crate::listen::Stream;

/// Room offered to the first read after silence.
const READ_BYTES_MIN: usize = 4 << 10;
/// Room offered to a read at most, while no large frame is known to come.
const READ_BYTES_MAX: usize = 128 << 10;

/// Room for a large frame, as a multiple of what has come of it. What is not written to costs no
/// memory, and each step copies what is there: by doubling, a frame of 1 MiB was copied once.
const ROOM_FACTOR: usize = 16;
/// Beyond this much, only as much room again as has come.
const ROOM_AHEAD_BYTES_MAX: usize = 1 << 20;

/// Bytes read and not yet decoded. It holds no memory while nothing is there.
#[derive(Debug)]
pub(super) struct Input {
    bytes: BytesMut,
    /// Room offered to the next read: doubles while reads fill it, halves while they do not use a
    /// quarter of it.
    read_bytes: usize,
    /// Largest frame the session takes.
    frame_bytes_max: usize,
}

impl Input {
    pub(super) fn new(frame_bytes_max: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
            frame_bytes_max,
        }
    }

    /// What is there, for the session to take whole frames from.
    pub(super) const fn bytes(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gives the memory back if nothing is in it.
    pub(super) fn release_if_empty(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    /// Reads once from a socket that is said to be readable. `Ok(None)`: it was not;
    /// `Ok(Some(0))`: the peer sends no more.
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn read(&mut self, stream: &mut Stream) -> std::io::Result<Option<usize>> {
        let room = self.room();
        self.bytes.reserve(room);
        let offered = self.bytes.capacity() - self.bytes.len();
        let outcome = {
            // Polled once. Unlike `try_read` this tells the runtime of a read that did not fill
            // its buffer, which saves the next one that would only find nothing.
            let mut read = std::pin::pin!(stream.read_buf(&mut self.bytes));
            std::future::poll_fn(|context| std::task::Poll::Ready(read.as_mut().poll(context)))
                .await
        };
        match outcome {
            std::task::Poll::Pending => Ok(None),
            std::task::Poll::Ready(Err(error)) => Err(error),
            std::task::Poll::Ready(Ok(count)) => {
                self.adapt(count, offered);
                Ok(Some(count))
            }
        }
    }

    fn adapt(&mut self, count: usize, offered: usize) {
        if count >= offered {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        } else if count < self.read_bytes / 4 {
            self.read_bytes = (self.read_bytes / 2).max(READ_BYTES_MIN);
        }
    }

    /// Room for the next read. A large frame gets a multiple of what has come of it, so that memory
    /// is taken for bytes that were sent, not for bytes that were announced.
    fn room(&self) -> usize {
        let Some(announced) = self.announced_bytes() else {
            return self.read_bytes;
        };
        let missing = announced.saturating_sub(self.bytes.len());
        let come = self.bytes.len();
        let ahead = come.saturating_mul(ROOM_FACTOR).min(ROOM_AHEAD_BYTES_MAX);
        missing.min(come.max(ahead)).max(self.read_bytes)
    }

    /// Length of the frame whose beginning is there, with its length prefix; `None` when it is not
    /// known or not allowed (the session will say so).
    fn announced_bytes(&self) -> Option<usize> {
        let prefix = self.bytes.first_chunk::<4>()?;
        let body = usize::try_from(u32::from_be_bytes(*prefix)).ok()?;
        (body <= self.frame_bytes_max).then(|| body.saturating_add(prefix.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(bytes: &[u8]) -> Input {
        let mut input = Input::new(16 << 20);
        input.bytes.extend_from_slice(bytes);
        input
    }

    #[test]
    fn room_for_a_large_frame_grows_with_what_has_come() {
        let mut half = (16_u32 << 20).to_be_bytes().to_vec();
        assert_eq!(with(&half).room(), READ_BYTES_MIN);
        half.resize(32 << 10, 0);
        assert_eq!(with(&half).room(), 512 << 10);
        half.resize(2 << 20, 0);
        assert_eq!(with(&half).room(), 2 << 20);
        half.resize(15 << 20, 0);
        assert_eq!(with(&half).room(), (1 << 20) + 4);
    }

    #[test]
    fn a_length_over_the_limit_gets_no_room() {
        assert_eq!(with(&u32::MAX.to_be_bytes()).room(), READ_BYTES_MIN);
    }

    #[test]
    fn memory_goes_when_nothing_is_left() {
        let mut input = with(&[0; 1000]);
        input.bytes.clear();
        input.release_if_empty();
        assert_eq!(input.bytes.capacity(), 0);
    }
}
