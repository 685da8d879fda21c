//! Asks the shard, as one connection shared by all who are no connection of their own: HTTP
//! requests, logins, definitions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tanda_engine::{AdminReply, AdminRequest, ConnId, ConnLimits, Event, ReplyTo, Request};
use tokio::{sync::oneshot, time::timeout};

use crate::shard::{Mailbox, Shard};

/// Questions under way at a time.
const QUESTIONS_MAX: usize = 64;
/// How long an answer may take. It waits for the disk like any other.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskError {
    /// Too much waits for the shard.
    Busy,
    /// The broker is about to end, or hangs.
    Stopped,
    /// The log failed.
    StorageFailed,
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    shard: Shard,
    conn: ConnId,
    pending: Arc<Mutex<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    next_token: u32,
    answers: HashMap<u32, oneshot::Sender<Event>>,
}

impl Asker {
    /// Connects to the shard. `serve` must run for answers to come.
    pub(crate) fn connect(shard: &Shard) -> (Self, Arc<Mailbox>) {
        let conn = shard.new_conn();
        let mailbox = Arc::new(Mailbox::default());
        shard.open(conn, Arc::clone(&mailbox));
        let limits = ConnLimits {
            outbound_bytes_max: 0,
            subscriptions_max: 0,
        };
        shard.try_send(&mut vec![Request::Connect { conn, limits }]);
        let asker = Self {
            shard: shard.clone(),
            conn,
            pending: Arc::default(),
        };
        (asker, mailbox)
    }

    /// Hands answers to those who asked, for as long as the process lives.
    pub(crate) async fn serve(self, mailbox: Arc<Mailbox>) {
        let mut events = Vec::new();
        loop {
            mailbox.arrived().await;
            mailbox.take(&mut events);
            let mut pending = self.pending();
            for event in events.drain(..) {
                self.heed(&event);
                let answer = token_of(&event).and_then(|token| pending.answers.remove(&token));
                if let Some(answer) = answer {
                    // Whoever asked may have given up.
                    drop(answer.send(event));
                }
            }
        }
    }

    /// What connections must know, whoever asked for it and has given up.
    fn heed(&self, event: &Event) {
        if let Event::Admin { reply, .. } = event
            && let AdminReply::VhostDeleted(Ok(id)) = **reply
        {
            self.shard.note_vhost_gone(id);
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, request: AdminRequest) -> Result<AdminReply, AskError> {
        let (answer, coming) = oneshot::channel();
        let token = self.register(answer).ok_or(AskError::Busy)?;
        let reply = ReplyTo {
            conn: self.conn,
            token,
        };
        let mut requests = vec![Request::Admin { reply, request }];
        self.shard.try_send(&mut requests);
        if !requests.is_empty() {
            self.pending().answers.remove(&token);
            return Err(AskError::Busy);
        }
        match timeout(ANSWER_TIMEOUT, coming).await {
            Ok(Ok(Event::Admin { reply, .. })) => Ok(*reply),
            Ok(Ok(Event::StorageFailed { .. })) => Err(AskError::StorageFailed),
            Ok(_) | Err(_) => {
                self.pending().answers.remove(&token);
                Err(AskError::Stopped)
            }
        }
    }

    fn register(&self, answer: oneshot::Sender<Event>) -> Option<u32> {
        let mut pending = self.pending();
        if pending.answers.len() >= QUESTIONS_MAX {
            return None;
        }
        let token = pending.next_token;
        pending.next_token = token.wrapping_add(1);
        pending.answers.insert(token, answer);
        Some(token)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn token_of(event: &Event) -> Option<u32> {
    match event {
        Event::Admin { token, .. } | Event::StorageFailed { token } => Some(*token),
        Event::Committed { .. }
        | Event::Keys { .. }
        | Event::Watching { .. }
        | Event::Watched { .. }
        | Event::WatchEnded { .. }
        | Event::Got { .. }
        | Event::Published { .. }
        | Event::Settled { .. }
        | Event::Subscribed { .. }
        | Event::SubscribeFailed { .. }
        | Event::Delivery { .. }
        | Event::SubscriptionEnded { .. } => None,
    }
}
