//! Events on their way from the shard's thread to the mailboxes of connections.

use std::{collections::HashMap, sync::Arc};

use tanda_engine::{ConnId, Event};

use super::mailbox::Mailbox;

/// Gathers the events of one batch by connection, so that each connection's mailbox is locked, and
/// its task woken, once per batch.
#[derive(Debug, Default)]
pub(super) struct Outboxes {
    by_conn: HashMap<ConnId, Outbox>,
    /// Connections with gathered events.
    touched: Vec<ConnId>,
}

#[derive(Debug)]
struct Outbox {
    mailbox: Arc<Mailbox>,
    gathered: Vec<Event>,
}

impl Outboxes {
    pub(super) fn open(&mut self, conn: ConnId, mailbox: Arc<Mailbox>) {
        let gathered = Vec::new();
        self.by_conn.insert(conn, Outbox { mailbox, gathered });
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        self.by_conn.remove(&conn);
    }

    /// Delivers all of `released`, in order per connection. Events of closed connections are
    /// dropped.
    pub(super) fn deliver(&mut self, released: &mut Vec<(ConnId, Event)>) {
        for (conn, event) in released.drain(..) {
            if let Some(outbox) = self.by_conn.get_mut(&conn) {
                if outbox.gathered.is_empty() {
                    self.touched.push(conn);
                }
                outbox.gathered.push(event);
            }
        }
        for conn in self.touched.drain(..) {
            if let Some(outbox) = self.by_conn.get_mut(&conn) {
                outbox.mailbox.deliver(&mut outbox.gathered);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(token: u32) -> Event {
        Event::StorageFailed { token }
    }

    fn tokens(mailbox: &Mailbox) -> Vec<u32> {
        let mut events = Vec::new();
        mailbox.take(&mut events);
        let token = |event| {
            let Event::StorageFailed { token } = event else {
                panic!("{event:?}")
            };
            token
        };
        events.into_iter().map(token).collect()
    }

    #[test]
    fn keeps_order_per_connection_and_drops_what_nobody_hears() {
        let mut outboxes = Outboxes::default();
        let mailboxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        outboxes.open(ConnId(1), Arc::clone(&mailboxes[0]));
        outboxes.open(ConnId(2), Arc::clone(&mailboxes[1]));
        let (a, b, gone) = (ConnId(1), ConnId(2), ConnId(3));
        outboxes.deliver(&mut vec![
            (a, event(1)),
            (b, event(2)),
            (gone, event(3)),
            (a, event(4)),
        ]);
        outboxes.deliver(&mut vec![(a, event(5))]);
        assert_eq!(tokens(&mailboxes[0]), [1, 4, 5]);
        assert_eq!(tokens(&mailboxes[1]), [2]);
        outboxes.close(a);
        outboxes.deliver(&mut vec![(a, event(6))]);
        assert!(tokens(&mailboxes[0]).is_empty());
    }
}
