//! Bodies of transient messages: in memory only, and counted.

use bytes::Bytes;

use super::Queue;
use super::entries::Slot;

impl Queue {
    /// Keeps the body of a transient message.
    pub(crate) fn keep_body(&mut self, slot: Slot, body: Bytes) {
        self.transient_bytes += body.len() + size_of::<(Slot, Bytes)>();
        self.transient.insert(slot, body);
    }

    /// Takes the body of a transient message.
    pub(crate) fn take_body(&mut self, slot: Slot) -> Option<Bytes> {
        let body = self.transient.remove(&slot)?;
        self.transient_bytes -= body.len() + size_of::<(Slot, Bytes)>();
        Some(body)
    }
}
