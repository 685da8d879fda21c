//! Delivery credit of one subscription (`Flow Control`).
//!
//! Owns: how much credit the server may still be given, so that no more than the prefetch is
//! unsettled, and when it is worth a frame. Refuses to know: frames and messages.
//!
//! With `delivered` the messages that came, `released` those settled or dropped since, and
//! `granted` the credit given in all, `granted <= prefetch + released` holds, save for one message
//! after a reconnect (see [`CreditWindow::reopen`]). What is missing to equality is due to the
//! server. It is granted when half of the prefetch is due, or when the consumer waits while the
//! server has no credit left: waiting for more releases could then be waiting for ever. A
//! subscription that asked for a number of messages in all is granted no more than that.
//!
//! The counters are atomic, because messages are settled on any task while one task owns the
//! connection.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The credit of one subscription with a prefetch.
#[derive(Debug)]
pub struct CreditWindow {
    prefetch: u64,
    /// The most credit to grant in all.
    total_max: u64,
    /// Messages due that are worth a `Credit` frame; `1 <= batch <= prefetch`.
    batch: u64,
    released: AtomicU64,
    granted: AtomicU64,
    /// The count of releases at which a frame is worth it.
    grant_at: AtomicU64,
    /// The consumer waits and the server has no credit.
    is_starved: AtomicBool,
}

impl CreditWindow {
    /// A window whose whole prefetch has been granted, as `Consume` does. A prefetch of 0 counts
    /// as 1, because on the wire 0 means unlimited.
    #[must_use]
    pub fn new(prefetch: u32) -> Self {
        let prefetch = u64::from(prefetch.max(1));
        let batch = prefetch.div_ceil(2);
        Self {
            prefetch,
            total_max: u64::MAX,
            batch,
            released: AtomicU64::new(0),
            granted: AtomicU64::new(prefetch),
            grant_at: AtomicU64::new(batch),
            is_starved: AtomicBool::new(false),
        }
    }

    /// A window that asks for at most so many messages in all, so that none is delivered that the
    /// consumer will not read. 0 counts as 1.
    #[must_use]
    pub fn with_total(prefetch: u32, messages: u64) -> Self {
        let messages = messages.max(1);
        let prefetch = u32::try_from(messages).map_or(prefetch, |messages| messages.min(prefetch));
        Self {
            total_max: messages,
            ..Self::new(prefetch)
        }
    }

    /// The credit of the `Consume` request.
    #[must_use]
    pub fn prefetch(&self) -> u32 {
        u32::try_from(self.prefetch).unwrap_or(u32::MAX)
    }

    /// Records that so many messages were settled or dropped. `true`: the owner of the connection
    /// should now call [`take_grant`](Self::take_grant).
    #[must_use]
    pub fn release(&self, messages: u64) -> bool {
        let before = self.released.fetch_add(messages, Ordering::SeqCst);
        let grant_at = self.grant_at.load(Ordering::SeqCst);
        let reached = before < grant_at && before.saturating_add(messages) >= grant_at;
        reached || self.is_starved.load(Ordering::SeqCst)
    }

    /// Records that the consumer waits with nothing buffered, after it took `taken` messages in
    /// all. `true`: the owner of the connection should now call [`take_grant`](Self::take_grant).
    #[must_use]
    pub fn wait(&self, taken: u64) -> bool {
        let granted = self.granted.load(Ordering::SeqCst);
        if granted > taken {
            return false;
        }
        // Set before looking at the releases, while `release` counts before it looks at this:
        // one of the two sees the other.
        self.is_starved.store(true, Ordering::SeqCst);
        self.due(granted) > 0
    }

    /// The credit to grant now, which counts as granted from here on. Call it from one task only.
    #[must_use]
    pub fn take_grant(&self) -> Option<u32> {
        let granted = self.granted.load(Ordering::SeqCst);
        let mut total = 0;
        loop {
            let due = self.due(granted + total);
            total += due;
            if due == 0 {
                break;
            }
            self.set_granted(granted + total);
            // A release between `due` and `set_granted` saw the old mark; look again.
            if self.due(granted + total) < self.batch {
                break;
            }
        }
        let grant = u32::try_from(total).unwrap_or(u32::MAX);
        (grant > 0).then_some(grant)
    }

    /// The credit for subscribing again after a reconnect, given the messages delivered so far:
    /// what the lost connection had not delivered is granted anew.
    ///
    /// When all of the prefetch is unsettled this is 1 and not 0, which would mean unlimited; that
    /// one message is taken off the next grant.
    #[must_use]
    pub fn reopen(&self, delivered: u64) -> u32 {
        let credit = self.due(delivered).max(1);
        self.set_granted(delivered + credit);
        u32::try_from(credit).unwrap_or(u32::MAX)
    }

    /// The credit granted in all.
    pub(crate) fn granted(&self) -> u64 {
        self.granted.load(Ordering::SeqCst)
    }

    /// Credit that is missing when `granted` was granted.
    fn due(&self, granted: u64) -> u64 {
        let wanted = self.prefetch + self.released.load(Ordering::SeqCst);
        wanted.min(self.total_max).saturating_sub(granted)
    }

    fn set_granted(&self, granted: u64) {
        self.is_starved.store(false, Ordering::SeqCst);
        self.granted.store(granted, Ordering::SeqCst);
        self.grant_at.store(
            granted.saturating_sub(self.prefetch) + self.batch,
            Ordering::SeqCst,
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn grants_come_in_halves_of_the_prefetch() {
        let window = CreditWindow::new(100);
        let mut grants = Vec::new();
        for _ in 0..1_000 {
            if window.release(1) {
                grants.extend(window.take_grant());
            }
        }
        assert_eq!(grants, [50; 20]);
    }

    #[test]
    fn a_batch_that_jumps_over_the_mark_is_granted_whole() {
        let window = CreditWindow::new(100);
        assert!(!window.release(49));
        assert!(window.release(40));
        assert_eq!(window.take_grant(), Some(89));
        assert_eq!(window.take_grant(), None);
        assert!(!window.release(49));
        assert!(window.release(1));
    }

    #[test]
    fn a_prefetch_of_one_grants_each() {
        for prefetch in [0, 1] {
            let window = CreditWindow::new(prefetch);
            assert_eq!(window.prefetch(), 1);
            assert!(window.release(1));
            assert_eq!(window.take_grant(), Some(1));
        }
    }

    #[test]
    fn a_waiting_consumer_gets_less_than_a_batch() {
        let window = CreditWindow::new(100);
        assert!(!window.wait(99), "the server may still send one");
        assert!(!window.wait(100), "nothing was released, so nothing is due");
        assert!(
            window.release(1),
            "the consumer waits, and the server has no credit"
        );
        assert_eq!(window.take_grant(), Some(1));
        assert!(!window.release(1), "the server has credit again");
        assert!(window.wait(101), "one was released before");
        assert_eq!(window.take_grant(), Some(1));
    }

    #[test]
    fn a_total_is_never_passed() {
        let window = CreditWindow::with_total(4, 7);
        assert_eq!(window.prefetch(), 4);
        assert!(!window.release(1));
        assert!(window.release(1));
        assert_eq!(window.take_grant(), Some(2));
        assert!(!window.release(1));
        assert!(window.release(1));
        assert_eq!(window.take_grant(), Some(1), "seven in all");
        for _ in 0..3 {
            let _asked = window.release(1);
            assert_eq!(window.take_grant(), None);
        }
        assert!(!window.wait(7), "nothing more is due");
        assert_eq!(CreditWindow::with_total(100, 3).prefetch(), 3);
    }

    #[test]
    fn a_reconnect_grants_what_is_not_unsettled() {
        let window = CreditWindow::new(10);
        assert!(!window.release(3));
        // 7 delivered, 3 released: 4 are unsettled, 6 may come.
        assert_eq!(window.reopen(7), 6);
        assert_eq!(window.take_grant(), None);
        assert!(!window.release(4));
        assert!(window.release(1));
        assert_eq!(window.take_grant(), Some(5));
    }

    #[test]
    fn a_reconnect_with_all_unsettled_borrows_one() {
        let window = CreditWindow::new(2);
        assert_eq!(window.reopen(2), 1);
        assert!(!window.release(1));
        assert_eq!(
            window.take_grant(),
            None,
            "the borrowed message is paid back"
        );
        assert!(window.release(1));
        assert_eq!(window.take_grant(), Some(1));
    }

    /// A server that spends credit, a reader that keeps the first messages for itself, and workers
    /// that settle the others in any order: all messages come, and never more than the prefetch
    /// are unsettled. What is kept leaves less to settle than a batch.
    #[test]
    fn no_interleaving_stalls_or_passes_the_prefetch() {
        for prefetch in [1, 2, 3, 10, 64] {
            deliver_all(prefetch, 5_000);
        }
    }

    fn deliver_all(prefetch: u32, messages: u64) {
        let window = &CreditWindow::new(prefetch);
        let kept = u64::from(prefetch / 2 + 1).min(u64::from(prefetch) - 1);
        let released = &AtomicU64::new(0);
        let (tell, told) = mpsc::channel();
        let (deliver, delivered) = mpsc::channel();
        std::thread::scope(move |scope| {
            let reader_tell = tell.clone();
            scope.spawn(move || {
                let workers: Vec<mpsc::Sender<()>> = (0..3)
                    .map(|_| {
                        let (work, todo) = mpsc::channel();
                        let tell = tell.clone();
                        scope.spawn(move || {
                            while todo.recv().is_ok() {
                                released.fetch_add(1, Ordering::SeqCst);
                                // The server is gone once all messages are delivered.
                                if window.release(1) && tell.send(()).is_err() {
                                    return;
                                }
                            }
                        });
                        work
                    })
                    .collect();
                for (taken, worker) in (0..messages).zip((0..3).cycle()) {
                    if delivered.try_recv().is_err() {
                        if window.wait(taken) {
                            reader_tell.send(()).unwrap();
                        }
                        delivered.recv().unwrap();
                    }
                    if taken >= kept {
                        workers[worker].send(()).unwrap();
                    }
                }
            });
            let mut credit = window.prefetch();
            let mut sent = 0;
            while sent < messages {
                while credit > 0 && sent < messages {
                    sent += 1;
                    credit -= 1;
                    let unsettled = sent - released.load(Ordering::SeqCst);
                    assert!(
                        unsettled <= u64::from(prefetch),
                        "{unsettled} of {prefetch}"
                    );
                    deliver.send(()).unwrap();
                }
                if sent < messages {
                    let patience = std::time::Duration::from_secs(10);
                    told.recv_timeout(patience)
                        .expect("nobody asks for credit: it stalls");
                    credit += window.take_grant().unwrap_or(0);
                }
            }
        });
    }
}
