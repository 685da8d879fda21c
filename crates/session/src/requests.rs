//! Requests on their way to the engine, in order.
//!
//! A client of these protocols is never told to repeat something, so nothing is given up when the
//! engine's channel is full: what was refused waits, everything behind it too, and no more frames
//! are decoded meanwhile.
//!
//! That deliveries have left is told together with something else, or when it is much, or after a
//! moment.

use std::collections::VecDeque;

use tanda_engine::{ConnId, Millis, Request};

/// How long refused requests wait before they are offered again.
const RETRY_MS: u64 = 2;

/// How long the engine may wait to hear that deliveries have left, unless something else is said
/// to it meanwhile.
const DRAINED_HOLD_MS: u64 = 20;

/// The queue of one connection.
#[derive(Debug)]
pub(crate) struct Requests {
    conn: ConnId,
    queue: VecDeque<Request>,
    /// Refused, in order; ahead of `queue`.
    kept: VecDeque<Request>,
    retry_at: Option<Millis>,
    /// Budget bytes that have left and were not told.
    drained: u64,
    /// When they must be told at the latest.
    drained_due: Option<Millis>,
}

impl Requests {
    /// Of this connection.
    pub(crate) const fn new(conn: ConnId) -> Self {
        Self {
            conn,
            queue: VecDeque::new(),
            kept: VecDeque::new(),
            retry_at: None,
            drained: 0,
            drained_due: None,
        }
    }

    /// Deliveries of so many budget bytes have left. `at_once` of them are told at once.
    pub(crate) fn on_drained(&mut self, now: Millis, bytes: u64, at_once: u64) {
        self.drained += bytes;
        if self.drained >= at_once {
            self.report_drained();
        } else if self.drained > 0 {
            self.drained_due
                .get_or_insert_with(|| now.after_ms(DRAINED_HOLD_MS));
        }
    }

    fn report_drained(&mut self) {
        self.drained_due = None;
        let bytes = core::mem::take(&mut self.drained);
        if bytes > 0 {
            let conn = self.conn;
            self.queue.push_back(Request::Drained { conn, bytes });
        }
    }

    /// Adds a request behind all others.
    pub(crate) fn push(&mut self, request: Request) {
        self.queue.push_back(request);
    }

    /// The next request, in the order of `push`. Nothing while refused ones wait for their time.
    pub(crate) fn pop(&mut self, now: Millis) -> Option<Request> {
        let is_due = self.drained_due.is_some_and(|at| at <= now);
        if self.drained > 0 && (is_due || !self.queue.is_empty()) {
            self.report_drained();
        }
        if let Some(at) = self.retry_at {
            if at > now {
                return None;
            }
            self.unkeep();
        }
        self.queue.pop_front()
    }

    fn unkeep(&mut self) {
        self.retry_at = None;
        while let Some(request) = self.kept.pop_back() {
            self.queue.push_front(request);
        }
    }

    /// Keeps a request the channel had no room for. Called in the order in which they were popped.
    pub(crate) fn keep(&mut self, now: Millis, request: Request) {
        self.retry_at.get_or_insert_with(|| now.after_ms(RETRY_MS));
        self.kept.push_back(request);
    }

    /// When `pop` has something to offer that it has not now.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        let both = [self.retry_at, self.drained_due];
        both.into_iter().flatten().min()
    }

    /// Whether refused requests wait.
    pub(crate) const fn is_held_up(&self) -> bool {
        self.retry_at.is_some()
    }

    /// The connection is gone: drops what has no meaning without it, and says `Disconnect` last,
    /// unless the engine never heard of the connection: then it is false.
    pub(crate) fn on_gone(&mut self) -> bool {
        self.unkeep();
        self.drained = 0;
        self.drained_due = None;
        if matches!(self.queue.front(), Some(Request::Connect { .. })) {
            self.queue.clear();
            return false;
        }
        self.queue.retain(|request| {
            !matches!(
                request,
                Request::Grant { .. } | Request::Drained { .. } | Request::Pool { .. }
            )
        });
        let conn = self.conn;
        self.queue.push_back(Request::Disconnect { conn });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONN: ConnId = ConnId(1);

    fn drained(bytes: u64) -> Request {
        Request::Drained { conn: CONN, bytes }
    }

    fn names(requests: &mut Requests, now: u64) -> Vec<String> {
        std::iter::from_fn(|| requests.pop(Millis(now)))
            .map(|request| format!("{request:?}"))
            .collect()
    }

    #[test]
    fn refused_requests_hold_up_all_behind_them() {
        let mut requests = Requests::new(CONN);
        requests.keep(Millis(10), drained(1));
        requests.keep(Millis(11), drained(2));
        requests.push(drained(3));
        assert!(requests.is_held_up());
        assert_eq!(names(&mut requests, 11), Vec::<String>::new());
        assert_eq!(requests.deadline(), Some(Millis(12)));
        let all: Vec<String> = (1..=3).map(|n| format!("{:?}", drained(n))).collect();
        assert_eq!(names(&mut requests, 12), all);
        assert!(!requests.is_held_up());
    }

    #[test]
    fn what_has_left_is_told_when_it_is_much_or_with_something_else_or_after_a_moment() {
        let mut requests = Requests::new(CONN);
        let name = |bytes| format!("{:?}", drained(bytes));
        requests.on_drained(Millis(0), 5, 100);
        requests.on_drained(Millis(9), 5, 100);
        assert_eq!(requests.deadline(), Some(Millis(20)));
        assert_eq!(names(&mut requests, 19), Vec::<String>::new());
        assert_eq!(names(&mut requests, 20), [name(10)]);
        requests.on_drained(Millis(30), 99, 100);
        requests.on_drained(Millis(30), 1, 100);
        assert_eq!(names(&mut requests, 30), [name(100)]);
        requests.on_drained(Millis(40), 7, 100);
        requests.push(drained(1));
        assert_eq!(names(&mut requests, 40), [name(1), name(7)]);
        assert_eq!(requests.deadline(), None);
    }

    #[test]
    fn a_disconnect_comes_last_and_only_for_a_connection_that_was_known() {
        let mut requests = Requests::new(CONN);
        let limits = tanda_engine::ConnLimits {
            outbound_bytes_max: 1,
            subscriptions_max: 1,
        };
        requests.push(Request::Connect { conn: CONN, limits });
        requests.on_gone();
        assert_eq!(names(&mut requests, 0), Vec::<String>::new());
        requests.keep(Millis(0), drained(1));
        let settle = Request::Disconnect { conn: ConnId(2) };
        requests.push(settle.clone());
        requests.on_gone();
        let left = [settle, Request::Disconnect { conn: CONN }];
        let left: Vec<String> = left.iter().map(|request| format!("{request:?}")).collect();
        assert_eq!(names(&mut requests, 0), left);
    }
}
