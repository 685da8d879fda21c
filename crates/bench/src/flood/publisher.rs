//! A connection that publishes.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::consumer::Reader;
use super::{Dialect, Flood, QueueShape};
use crate::error::BenchError;

/// Bytes of one write.
const WRITE_BYTES: usize = 256 << 10;
/// How long to wait for the consumers at a time.
const PAUSE: Duration = Duration::from_micros(100);

/// What is published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of each body.
    pub(crate) payload_bytes: usize,
    /// Messages sent and not confirmed; `None`: nothing is confirmed.
    pub(crate) window: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Publisher<D> {
    dialect: D,
    frames: Vec<u8>,
    frame_bytes: usize,
    /// Messages in `frames`.
    batch: u64,
    window: Option<u64>,
}

impl<D: Dialect> Publisher<D> {
    pub(crate) fn new(mut dialect: D, queue: &QueueShape, load: Load) -> Result<Self, BenchError> {
        let window = load.window;
        if window.is_some() {
            dialect.confirm()?;
        }
        // Not one byte repeated: nothing on the way may gain from that.
        let payload: Vec<u8> = (0_u8..=250).cycle().take(load.payload_bytes).collect();
        let load = (payload.as_slice(), load.window.is_some());
        let frame_bytes = D::publishes(queue, load, 1).len().max(1);
        let batch = (WRITE_BYTES / frame_bytes).max(1);
        Ok(Self {
            dialect,
            frames: D::publishes(queue, load, batch),
            frame_bytes,
            batch: batch as u64,
            window,
        })
    }

    pub(crate) const fn dialect(&self) -> &D {
        &self.dialect
    }

    /// Publishes until it is told to stop or all is published and confirmed; gives the connection
    /// back.
    pub(crate) fn run(mut self, flood: &Flood) -> Result<D, BenchError> {
        let mut reader = Reader::new(self.dialect.take_rest());
        let (mut sent, mut confirmed) = (0_u64, 0_u64);
        while !flood.is_stopping() {
            let room = self.window.map_or(u64::MAX, |max| max - (sent - confirmed));
            let count = flood.reserve(self.batch.min(room));
            if count > 0 {
                self.send(sent, count)?;
                sent += count;
            }
            if self.window.is_some() && sent > confirmed && (count == 0 || count == room) {
                let seen = reader.read::<D>(self.dialect.stream())?;
                if seen.confirmed_to > confirmed {
                    let more = seen.confirmed_to - confirmed;
                    flood.confirmed.fetch_add(more, Ordering::Relaxed);
                    confirmed = seen.confirmed_to;
                }
            } else if count == 0 {
                if flood.is_spent() {
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(self.dialect)
    }

    fn send(&mut self, sent: u64, count: u64) -> Result<(), BenchError> {
        let bytes = usize::try_from(count).unwrap_or(usize::MAX) * self.frame_bytes;
        let frames = self.frames.get_mut(..bytes).unwrap_or_default();
        if self.window.is_some() {
            D::number(frames, self.frame_bytes, sent + 1);
        }
        let mut stream = self.dialect.stream();
        stream
            .write_all(frames)
            .map_err(BenchError::io("publishing"))
    }
}
