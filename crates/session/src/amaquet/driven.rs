//! The driver's contract, fulfilled by what [`AmaquetSession`] has of its own.

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{Event, KeyTable, Millis, Request, VhostId};
use tanda_wire::amaquet::frame::HEADER_BYTES;
use tanda_wire::amaquet::{Sender, Split, split_frame};

use super::{AmaquetSession, Vhost};
use crate::Session;
use crate::audit::AuditEvent;

impl Session for AmaquetSession {
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
        let max = self.link.config.limits.max_payload;
        match split_frame(input, Sender::Client, max).ok()? {
            Split::Frame(frame) => Some(frame.consumed()),
            Split::Incomplete { header, .. } => Some(HEADER_BYTES + header?.payload_bytes as usize),
        }
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
        Self::begin_shutdown(self, now);
    }

    fn on_end(&mut self, now: Millis) {
        Self::on_end(self, now);
    }

    fn close(&mut self) {
        Self::close(self);
    }

    fn on_keys(&mut self, now: Millis, keys: &Arc<KeyTable>) {
        self.tell(now);
        self.link.authority.keys = Arc::clone(keys);
        self.link.check_key();
    }

    fn take_audit(&mut self) -> Vec<AuditEvent> {
        core::mem::take(&mut self.link.authority.audit)
    }

    fn vhost(&self) -> Option<(VhostId, &str)> {
        match self.link.vhost {
            Vhost::Known(vhost) => Some((vhost, &self.link.config.vhost)),
            Vhost::Asked | Vhost::Missing => None,
        }
    }

    fn assert_invariants(&self) {
        Self::assert_invariants(self);
    }
}
