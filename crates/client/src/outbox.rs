//! Bytes on their way to a socket.
//!
//! Owns: what was appended and not yet sent. Refuses to know: frames.

/// What the buffer may keep allocated when it is empty, and how much of it may be sent already
/// before the rest is moved to its front.
const KEEP_BYTES: usize = 2 * 1024 * 1024;

/// Output that is appended at the back and sent from the front.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// `0 <= sent <= bytes.len()`.
    sent: usize,
}

impl Outbox {
    /// What is to be sent.
    pub(crate) fn unsent(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Where to append.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// So many bytes of [`unsent`](Self::unsent) were sent.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(
            self.sent <= self.bytes.len(),
            "no more is sent than there was"
        );
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP_BYTES);
            self.sent = 0;
        } else if self.sent >= KEEP_BYTES && self.sent >= self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}
