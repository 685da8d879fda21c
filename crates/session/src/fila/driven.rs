//! The driver's contract, fulfilled by what [`FilaSession`] has of its own.

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{Event, KeyTable, Millis, Request};
use tanda_wire::fila::frame::LENGTH_BYTES;

use super::FilaSession;
use crate::Session;
use crate::audit::AuditEvent;

impl Session for FilaSession {
    fn on_bytes(&mut self, now: Millis, input: &mut BytesMut) {
        Self::on_bytes(self, now, input);
    }

    fn next_request(&mut self) -> Option<Request> {
        Self::next_request(self)
    }

    fn on_refused(&mut self, request: Request) {
        Self::on_refused(self, request);
    }

    fn on_event(&mut self, now: Millis, event: Event) {
        Self::on_event(self, now, event);
    }

    fn output(&mut self) -> &mut BytesMut {
        Self::output(self)
    }

    fn on_written(&mut self, bytes: usize) {
        Self::on_written(self, bytes);
    }

    fn on_timer(&mut self, now: Millis) {
        Self::on_timer(self, now);
    }

    fn next_deadline(&self) -> Option<Millis> {
        Self::next_deadline(self)
    }

    fn wants_read(&self) -> bool {
        Self::wants_read(self)
    }

    fn announced_bytes(&self, input: &[u8]) -> Option<usize> {
        let length = input.first_chunk::<LENGTH_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        (length <= self.link.outbound.frame_bytes_max())
            .then(|| length.saturating_add(LENGTH_BYTES))
    }

    fn is_closing(&self) -> bool {
        Self::is_closing(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }

    fn begin_shutdown(&mut self, now: Millis) {
        Self::begin_shutdown(self, now);
    }

    fn on_overload(&mut self, now: Millis) {
        Self::on_overload(self, now);
    }

    fn on_end(&mut self, now: Millis) {
        Self::on_end(self, now);
    }

    fn close(&mut self) {
        Self::close(self);
    }

    fn on_keys(&mut self, now: Millis, keys: &Arc<KeyTable>) {
        Self::on_keys(self, now, keys);
    }

    fn take_audit(&mut self) -> Vec<AuditEvent> {
        Self::take_audit(self)
    }

    fn assert_invariants(&self) {
        Self::assert_invariants(self);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tanda_engine::ConnId;

    use super::*;
    use crate::fila::SessionConfig;

    #[test]
    fn a_frame_is_announced_by_its_length_unless_that_is_over_the_limit() {
        let config = Arc::new(SessionConfig::default());
        let session = FilaSession::new(ConnId(1), config, Millis(1));
        assert_eq!(session.announced_bytes(&[0, 0, 0]), None);
        assert_eq!(session.announced_bytes(&[0, 0, 1, 0, 9]), Some(260));
        assert_eq!(session.announced_bytes(&[1, 0, 0, 0]), Some((16 << 20) + 4));
        assert_eq!(session.announced_bytes(&[1, 0, 0, 1]), None);
    }
}
