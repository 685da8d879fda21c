//! Calls every connection when something changes that concerns all: API keys and users, deleted
//! virtual hosts, what runs short, the end of the process.
//!
//! One task waits for these changes, so that a connection waits for its mailbox alone: to wait for
//! four more things took a tenth of what an Amaquet command costs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use tanda_engine::ConnId;
use tokio::sync::watch;

use super::{
    Shard,
    mailbox::{Mailbox, lock},
};

/// Who is called. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crier {
    mailboxes: Arc<Mutex<BTreeMap<ConnId, Arc<Mailbox>>>>,
}

/// A connection that is called, until this is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    crier: Crier,
    conn: ConnId,
}

impl Crier {
    /// A connection is called from now on. What changed before, it has to look at itself.
    pub(crate) fn listen(&self, conn: ConnId, mailbox: Arc<Mailbox>) -> Listener {
        lock(&self.mailboxes).insert(conn, mailbox);
        Listener {
            crier: self.clone(),
            conn,
        }
    }

    /// Calls as often as something changes.
    pub(crate) async fn run(self, shard: Shard, mut stop: watch::Receiver<bool>) {
        let mut principals = shard.principals();
        let mut vhosts_gone = shard.vhosts_gone();
        let mut alarms = shard.alarms().subscribe();
        loop {
            tokio::select! {
                Ok(()) = principals.changed() => {}
                Ok(()) = vhosts_gone.changed() => {}
                Ok(()) = alarms.changed() => {}
                Ok(()) = stop.changed() => {}
                else => return,
            }
            self.call_all();
        }
    }

    fn call_all(&self) {
        for mailbox in lock(&self.mailboxes).values() {
            mailbox.call();
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.crier.mailboxes).remove(&self.conn);
    }
}
