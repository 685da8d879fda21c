//! A connection's mailbox: events from the shard's thread to the connection's task.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tanda_engine::Event;

/// Events that wait for one connection. What may wait is bounded by the session: it limits the
/// requests that are unanswered and the bytes of deliveries on their way.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    /// Something has changed that is no event of this connection.
    called: bool,
    /// The task, while it waits.
    waiting: Option<Waker>,
}

impl Mailbox {
    /// Adds all of `events` in order and wakes the connection once.
    pub(crate) fn deliver(&self, events: &mut Vec<Event>) {
        let mut state = lock(&self.state);
        if state.events.is_empty() {
            std::mem::swap(&mut state.events, events);
        } else {
            state.events.append(events);
        }
        wake(state);
    }

    /// Wakes the connection although nothing came for it.
    pub(super) fn call(&self) {
        let mut state = lock(&self.state);
        state.called = true;
        wake(state);
    }

    /// Takes everything that waits; `into` must be empty, its memory is used next.
    pub(crate) fn take(&self, into: &mut Vec<Event>) {
        debug_assert!(into.is_empty(), "events taken before must have been used");
        std::mem::swap(&mut lock(&self.state).events, into);
    }

    /// Ready when events wait, or after a call. One task may wait at a time.
    pub(crate) fn poll_arrived(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.called) || !state.events.is_empty() {
            return Poll::Ready(());
        }
        match &mut state.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            None => state.waiting = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Waits as [`Mailbox::poll_arrived`] says.
    pub(crate) async fn arrived(&self) {
        poll_fn(|cx| self.poll_arrived(cx)).await;
    }
}

/// Wakes after the lock is gone, so that the task does not wake only to wait for it.
fn wake(mut state: MutexGuard<'_, State>) {
    let waiting = state.waiting.take();
    drop(state);
    if let Some(waiting) = waiting {
        waiting.wake();
    }
}

/// Locks; a panic elsewhere while it was held does not matter, because every critical section
/// here leaves whole values.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_comes_wakes_once_and_is_there_until_it_is_taken() {
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let woken = || wakes.0.swap(0, Ordering::Relaxed);
        let mailbox = Mailbox::default();
        let event = || vec![Event::StorageFailed { token: 1 }];
        let mut taken = Vec::new();

        // Before anybody waits, twice.
        mailbox.deliver(&mut event());
        mailbox.deliver(&mut event());
        assert!(mailbox.poll_arrived(&cx).is_ready());
        mailbox.take(&mut taken);
        assert_eq!((taken.len(), woken()), (2, 0));
        taken.clear();

        // While somebody waits.
        assert!(mailbox.poll_arrived(&cx).is_pending());
        assert!(mailbox.poll_arrived(&cx).is_pending());
        mailbox.deliver(&mut event());
        mailbox.deliver(&mut event());
        assert_eq!(woken(), 1);
        assert!(mailbox.poll_arrived(&cx).is_ready());
        mailbox.take(&mut taken);
        assert_eq!(taken.len(), 2);
    }

    #[test]
    fn a_call_is_heard_once() {
        let wakes = Arc::<Wakes>::default();
        let waker = Waker::from(Arc::clone(&wakes));
        let cx = Context::from_waker(&waker);
        let mailbox = Mailbox::default();
        mailbox.call();
        assert!(mailbox.poll_arrived(&cx).is_ready());
        assert!(mailbox.poll_arrived(&cx).is_pending());
        mailbox.call();
        mailbox.call();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.poll_arrived(&cx).is_ready());
        assert!(mailbox.poll_arrived(&cx).is_pending());
    }
}
