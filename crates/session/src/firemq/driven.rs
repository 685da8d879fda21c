//! The driver's contract, fulfilled by what [`FireSession`] has of its own.

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{Event, Millis, Request, VhostId};
use tanda_wire::firemq::frame::{LENGTH_BYTES, Split, split_frame};

use super::{FireSession, State};
use crate::Session;
use crate::audit::AuditEvent;
use crate::login::{Identity, Login, LoginError};

impl Session for FireSession {
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

    fn wants_input(&self) -> bool {
        Self::wants_input(self)
    }

    fn announced_bytes(&self, input: &[u8]) -> Option<usize> {
        if matches!(self.state, State::Preamble { .. }) {
            return None;
        }
        let (len, _) = input.split_first_chunk::<LENGTH_BYTES>()?;
        split_frame(input, self.link.frame_max)
            .is_ok_and(|split| match split {
                Split::Frame(_) | Split::Incomplete { .. } => true,
            })
            .then(|| LENGTH_BYTES + u32::from_be_bytes(*len) as usize)
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

    fn take_audit(&mut self) -> Vec<AuditEvent> {
        core::mem::take(&mut self.link.audit)
    }

    fn take_login(&mut self) -> Option<Login> {
        self.link.login.take()
    }

    fn on_login(&mut self, now: Millis, answer: Result<Arc<dyn Identity>, LoginError>) {
        self.answer_login(now, answer);
    }

    fn on_identity(&mut self, now: Millis, identity: Arc<dyn Identity>) {
        self.set_identity(now, identity);
    }

    fn on_dismissed(&mut self, now: Millis, why: &str) {
        Self::on_dismissed(self, now, why);
    }

    fn vhost(&self) -> Option<(VhostId, &str)> {
        let is_open = matches!(self.state, State::Open(_));
        is_open.then_some((self.link.vhost, &self.link.vhost_name))
    }

    fn on_alarm(&mut self, now: Millis, reason: Option<&str>) {
        self.set_alarm(now, reason);
    }

    fn assert_invariants(&self) {
        Self::assert_invariants(self);
    }
}
