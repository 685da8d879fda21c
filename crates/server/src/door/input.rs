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
}

impl Default for Input {
    fn default() -> Self {
        Self {
            bytes: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
        }
    }
}

impl Input {
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
    /// `Ok(Some(0))`: the peer sends no more. `announced` is the length of the frame whose
    /// beginning is there; `None` when it is not known or not allowed (the session will say so).
    ///
    /// # Errors
    /// What the system says.
    pub(super) async fn read(
        &mut self,
        stream: &mut Stream,
        announced: Option<usize>,
    ) -> std::io::Result<Option<usize>> {
        let room = self.room(announced);
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
    fn room(&self, announced: Option<usize>) -> usize {
        let Some(announced) = announced else {
            return self.read_bytes;
        };
        let missing = announced.saturating_sub(self.bytes.len());
        let come = self.bytes.len();
        let ahead = come.saturating_mul(ROOM_FACTOR).min(ROOM_AHEAD_BYTES_MAX);
        missing.min(come.max(ahead)).max(self.read_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(come: usize, announced: usize) -> usize {
        let mut input = Input::default();
        input.bytes.resize(come, 0);
        input.room(Some(announced))
    }

    #[test]
    fn room_for_a_large_frame_grows_with_what_has_come() {
        let announced = (16 << 20) + 4;
        assert_eq!(room(4, announced), READ_BYTES_MIN);
        assert_eq!(room(32 << 10, announced), 512 << 10);
        assert_eq!(room(2 << 20, announced), 2 << 20);
        assert_eq!(room(15 << 20, announced), (1 << 20) + 4);
    }

    #[test]
    fn a_frame_that_is_not_announced_gets_no_room() {
        let mut input = Input::default();
        input.bytes.resize(4, 0xff);
        assert_eq!(input.room(None), READ_BYTES_MIN);
    }

    #[test]
    fn memory_goes_when_nothing_is_left() {
        let mut input = Input::default();
        input.bytes.resize(1000, 0);
        input.bytes.clear();
        input.release_if_empty();
        assert_eq!(input.bytes.capacity(), 0);
    }
}
