//! The driver's contract, fulfilled by what [`AmqpSession`] has of its own.

use std::sync::Arc;

use tanda_engine::{Millis, VhostId};
use tanda_wire::amqp::frame::FRAME_OVERHEAD_BYTES;
use tanda_wire::amqp::{Split, split_frame};

use super::{AmqpSession, State};
use crate::Session;
use crate::audit::AuditEvent;
use crate::login::{Identity, Login, LoginError};
use crate::session::own_methods;

impl Session for AmqpSession {
    own_methods!();

    fn wants_input(&self) -> bool {
        Self::wants_input(self)
    }

    fn announced_bytes(&self, input: &[u8]) -> Option<usize> {
        if matches!(self.state, State::Header { .. }) {
            return None;
        }
        match split_frame(input, self.link.frame_max) {
            Ok(Split::Incomplete { need_bytes }) if need_bytes > FRAME_OVERHEAD_BYTES => {
                Some(need_bytes)
            }
            Ok(Split::Frame(frame)) => Some(frame.consumed()),
            Ok(Split::Incomplete { .. }) | Err(_) => None,
        }
    }

    fn on_overload(&mut self, now: Millis) {
        Self::on_overload(self, now);
    }

    fn take_audit(&mut self) -> Vec<AuditEvent> {
        core::mem::take(&mut self.link.audit)
    }

    fn take_login(&mut self) -> Option<Login> {
        self.take_question()
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
