//! The driver's contract, fulfilled by what [`FilaSession`] has of its own.

use std::sync::Arc;

use tanda_engine::{KeyTable, Millis};
use tanda_wire::fila::frame::LENGTH_BYTES;

use super::FilaSession;
use crate::Session;
use crate::audit::AuditEvent;
use crate::session::own_methods;

impl Session for FilaSession {
    own_methods!();

    fn announced_bytes(&self, input: &[u8]) -> Option<usize> {
        let length = input.first_chunk::<LENGTH_BYTES>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        (length <= self.link.outbound.frame_bytes_max())
            .then(|| length.saturating_add(LENGTH_BYTES))
    }

    fn on_overload(&mut self, now: Millis) {
        Self::on_overload(self, now);
    }

    fn on_keys(&mut self, now: Millis, keys: &Arc<KeyTable>) {
        Self::on_keys(self, now, keys);
    }

    fn take_audit(&mut self) -> Vec<AuditEvent> {
        Self::take_audit(self)
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
