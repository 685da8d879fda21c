//! Events on their way from the shard's thread to the mailboxes of connections.

use std::{collections::HashMap, sync::Arc};

use tanda_engine::{ConnId, Event, KeyAnswer, ReplyTo, Request};

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

    /// A connection is gone. What it took out of no mailbox any more goes back to the engine by
    /// these requests: items of lists, locks, and messages that were popped.
    pub(super) fn close(&mut self, conn: ConnId) -> Vec<Request> {
        let mut left = Vec::new();
        if let Some(outbox) = self.by_conn.remove(&conn) {
            outbox.mailbox.take(&mut left);
            left.extend(outbox.gathered);
        }
        // The newest first.
        let events = left.into_iter().rev();
        events.filter_map(|event| given_back(conn, event)).collect()
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

fn given_back(conn: ConnId, event: Event) -> Option<Request> {
    if let Event::Keys {
        token,
        vhost,
        result,
    } = event
    {
        let answer = (*result).ok().filter(KeyAnswer::is_taken)?;
        return Some(Request::KeysUndelivered {
            reply: ReplyTo { conn, token },
            vhost,
            answer: Box::new(answer),
        });
    }
    // Messages of subscriptions go back with them, or stay leased.
    if let Event::Got { result, .. } = event {
        let batch = Box::new(result.ok()?.batch?);
        return Some(Request::GotUndelivered { conn, batch });
    }
    None
}

#[cfg(test)]
mod tests {
    use tanda_engine::{KeyError, VhostId};

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
        assert!(outboxes.close(a).is_empty());
        outboxes.deliver(&mut vec![(a, event(6))]);
        assert!(tokens(&mailboxes[0]).is_empty());
    }

    #[test]
    fn what_was_taken_for_who_is_gone_goes_back_newest_first() {
        let mut outboxes = Outboxes::default();
        let (conn, mailbox) = (ConnId(1), Arc::new(Mailbox::default()));
        outboxes.open(conn, Arc::clone(&mailbox));
        let keys = |token, result| Event::Keys {
            token,
            vhost: VhostId::DEFAULT,
            result: Box::new(result),
        };
        let locked = |token| {
            Ok(KeyAnswer::Locked {
                key: "k".into(),
                token,
                expires_at: tanda_engine::Millis(9),
                waited: true,
            })
        };
        outboxes.deliver(&mut vec![
            (conn, keys(1, locked(1))),
            (conn, keys(2, Err(KeyError::NotFound))),
            (conn, event(3)),
        ]);
        outboxes.deliver(&mut vec![(conn, keys(4, locked(2)))]);
        let tokens = outboxes.close(conn).into_iter().map(|request| {
            let Request::KeysUndelivered { reply, .. } = request else {
                panic!("{request:?}")
            };
            reply.token
        });
        assert_eq!(tokens.collect::<Vec<_>>(), [4, 1]);
        assert!(outboxes.close(conn).is_empty());
    }
}
