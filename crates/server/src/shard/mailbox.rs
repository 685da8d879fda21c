//! A connection's mailbox: events from the shard's thread to the connection's task.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tanda_engine::Event;
use tokio::sync::Notify;

/// Events that wait for one connection. What may wait is bounded by the session: it limits the
/// requests that are unanswered and the bytes of deliveries on their way.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    events: Mutex<Vec<Event>>,
    arrived: Notify,
}

impl Mailbox {
    /// Adds all of `events` in order and wakes the connection once.
    pub(crate) fn deliver(&self, events: &mut Vec<Event>) {
        {
            let mut waiting = lock(&self.events);
            if waiting.is_empty() {
                std::mem::swap(&mut *waiting, events);
            } else {
                waiting.append(events);
            }
        }
        self.arrived.notify_one();
    }

    /// Takes everything that waits; `into` must be empty, its memory is used next.
    pub(crate) fn take(&self, into: &mut Vec<Event>) {
        debug_assert!(into.is_empty(), "events taken before must have been used");
        std::mem::swap(&mut *lock(&self.events), into);
    }

    /// Returns when something may have arrived since the last call.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

/// Locks; a panic elsewhere while it was held does not matter, because every critical section
/// here leaves whole values.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
