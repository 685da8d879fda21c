//! A connection that consumes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use super::{Dialect, Flood, Seen, Settling};
use crate::error::BenchError;

/// Room for one read.
const READ_BYTES: usize = 256 << 10;

/// Bytes of the server that are not whole frames yet.
#[derive(Debug)]
pub(crate) struct Reader {
    bytes: Vec<u8>,
    filled: usize,
}

impl Reader {
    pub(crate) fn new(rest: Vec<u8>) -> Self {
        let filled = rest.len();
        let mut bytes = rest;
        bytes.resize(filled + READ_BYTES, 0);
        Self { bytes, filled }
    }

    /// Reads once and looks through what came.
    pub(crate) fn read<D: Dialect>(&mut self, mut stream: &TcpStream) -> Result<Seen, BenchError> {
        let room = self.bytes.get_mut(self.filled..).unwrap_or_default();
        let count = stream.read(room).map_err(BenchError::io("receiving"))?;
        if count == 0 {
            let text = "the server closed the connection".to_owned();
            return Err(BenchError::Protocol(text));
        }
        self.filled += count;
        self.scan::<D>()
    }

    fn scan<D: Dialect>(&mut self) -> Result<Seen, BenchError> {
        let seen = D::scan(self.bytes.get(..self.filled).unwrap_or_default())?;
        self.bytes.copy_within(seen.taken..self.filled, 0);
        self.filled -= seen.taken;
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.filled * 2, 0);
        }
        Ok(seen)
    }
}

/// Consumes until the socket ends.
pub(crate) fn run<D: Dialect>(
    mut dialect: D,
    settling: Settling,
    flood: &Flood,
) -> Result<(), BenchError> {
    let mut reader = Reader::new(dialect.take_rest());
    let mut held = 0;
    let mut out = Vec::new();
    let mut seen = reader.scan::<D>()?;
    while !flood.is_stopping() {
        if seen.delivered > 0 {
            flood.delivered.fetch_add(seen.delivered, Ordering::Relaxed);
            held += seen.delivered;
        }
        if let Settling::Window(window) = settling
            && held >= u64::from(window / 2)
        {
            out.clear();
            D::settle(&mut out, seen.last_tag, held);
            let mut stream = dialect.stream();
            stream.write_all(&out).map_err(BenchError::io("settling"))?;
            held = 0;
        }
        seen = reader.read::<D>(dialect.stream())?;
    }
    Ok(())
}
