//! The driver's contract, fulfilled by what [`AmaquetSession`] has of its own.

use std::sync::Arc;

use tanda_engine::{KeyTable, Millis, VhostId};
use tanda_wire::amaquet::frame::HEADER_BYTES;
use tanda_wire::amaquet::{Sender, Split, split_frame};

use super::{AmaquetSession, Vhost};
use crate::Session;
use crate::audit::AuditEvent;
use crate::session::own_methods;

impl Session for AmaquetSession {
    own_methods!();

    fn announced_bytes(&self, input: &[u8]) -> Option<usize> {
        let max = self.link.config.limits.max_payload;
        match split_frame(input, Sender::Client, max).ok()? {
            Split::Frame(frame) => Some(frame.consumed()),
            Split::Incomplete { header, .. } => Some(HEADER_BYTES + header?.payload_bytes as usize),
        }
    }

    fn on_overload(&mut self, now: Millis) {
        Self::begin_shutdown(self, now);
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
}
