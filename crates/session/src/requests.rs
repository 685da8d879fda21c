//! Requests on their way to the engine, in order.
//!
//! A client of this protocol is never told to repeat something, so nothing is given up when the
//! engine's channel is full: what was refused waits, everything behind it too, and no more frames
//! are decoded meanwhile.

use std::collections::VecDeque;

use tanda_engine::{ConnId, Millis, Request};

/// How long refused requests wait before they are offered again.
const RETRY_MS: u64 = 2;

/// The queue of one connection.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    queue: VecDeque<Request>,
    /// Refused, in order; ahead of `queue`.
    kept: VecDeque<Request>,
    retry_at: Option<Millis>,
}

impl Requests {
    /// Adds a request behind all others.
    pub(crate) fn push(&mut self, request: Request) {
        self.queue.push_back(request);
    }

    /// The next request, in the order of `push`. Nothing while refused ones wait for their time.
    pub(crate) fn pop(&mut self, now: Millis) -> Option<Request> {
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

    /// When `pop` has something to offer again.
    pub(crate) const fn retry_at(&self) -> Option<Millis> {
        self.retry_at
    }

    /// Whether refused requests wait.
    pub(crate) const fn is_held_up(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Whether nothing waits, refused requests aside.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The connection is gone: drops what has no meaning without it, and says `Disconnect` last,
    /// unless the engine never heard of the connection.
    pub(crate) fn on_gone(&mut self, conn: ConnId) {
        self.unkeep();
        if matches!(self.queue.front(), Some(Request::Connect { .. })) {
            self.queue.clear();
            return;
        }
        self.queue.retain(|request| {
            !matches!(
                request,
                Request::Grant { .. } | Request::Drained { .. } | Request::Pool { .. }
            )
        });
        self.queue.push_back(Request::Disconnect { conn });
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
        let mut requests = Requests::default();
        requests.keep(Millis(10), drained(1));
        requests.keep(Millis(11), drained(2));
        requests.push(drained(3));
        assert!(requests.is_held_up());
        assert_eq!(names(&mut requests, 11), Vec::<String>::new());
        assert_eq!(requests.retry_at(), Some(Millis(12)));
        let all: Vec<String> = (1..=3).map(|n| format!("{:?}", drained(n))).collect();
        assert_eq!(names(&mut requests, 12), all);
        assert!(!requests.is_held_up() && requests.is_empty());
    }

    #[test]
    fn a_disconnect_comes_last_and_only_for_a_connection_that_was_known() {
        let mut requests = Requests::default();
        let limits = tanda_engine::ConnLimits {
            outbound_bytes_max: 1,
            subscriptions_max: 1,
        };
        requests.push(Request::Connect { conn: CONN, limits });
        requests.on_gone(CONN);
        assert!(requests.is_empty());
        requests.keep(Millis(0), drained(1));
        let settle = Request::Disconnect { conn: ConnId(2) };
        requests.push(settle.clone());
        requests.on_gone(CONN);
        let left = [settle, Request::Disconnect { conn: CONN }];
        let left: Vec<String> = left.iter().map(|request| format!("{request:?}")).collect();
        assert_eq!(names(&mut requests, 0), left);
    }
}
