//! What the shard knows of a connection.

use std::sync::Arc;

use tanda_engine::{ConnId, Request};

use crate::shard::{Mailbox, Shard};

/// Remembers that the shard has heard of a connection and not yet that it is gone. Tells it when
/// the connection's task panics or is dropped.
pub(super) struct Registration {
    shard: Shard,
    conn: ConnId,
    known: bool,
}

impl Registration {
    pub(super) fn new(shard: &Shard, conn: ConnId) -> Self {
        Self {
            shard: shard.clone(),
            conn,
            known: false,
        }
    }

    /// A request is about to be sent. True when it is the first: the shard then knows where events
    /// go.
    pub(super) fn note(&mut self, request: &Request, mailbox: &Arc<Mailbox>) -> bool {
        let connects = matches!(request, Request::Connect { .. });
        if connects {
            self.shard.open(self.conn, Arc::clone(mailbox));
            self.known = true;
        } else if matches!(request, Request::Disconnect { .. }) {
            self.known = false;
        }
        connects
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.known {
            let conn = self.conn;
            self.shard.try_send(&mut vec![Request::Disconnect { conn }]);
        }
    }
}
