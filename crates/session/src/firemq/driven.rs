//! The driver's contract, fulfilled by what [`FireSession`] has of its own.

use std::sync::Arc;

use tanda_engine::{Millis, VhostId};
use tanda_wire::firemq::frame::{LENGTH_BYTES, Split, split_frame};

use super::{FireSession, State};
use crate::Session;
use crate::audit::AuditEvent;
use crate::login::{Identity, Login, LoginError};
use crate::session::own_methods;

impl Session for FireSession {
    own_methods!();

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

    fn on_overload(&mut self, now: Millis) {
        Self::on_overload(self, now);
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
}
