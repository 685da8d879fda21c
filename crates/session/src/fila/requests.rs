//! Requests on their way to the engine, and what happens when its channel is full.
//!
//! A request the peer can repeat is refused to the peer. What it cannot repeat, because it has no
//! answer (`Grant`, `Unsubscribe`, `Drained`, `Connect`, `Disconnect`), is kept and offered again.

use std::collections::VecDeque;

use tanda_engine::{ConnId, Millis, Request};

/// How long a refused request waits before it is offered again.
const RETRY_MS: u64 = 5;

/// The queue of one connection. The number of kept requests is bounded by the number of
/// subscriptions: equal ones are merged.
#[derive(Debug, Default)]
pub(super) struct Requests {
    queue: VecDeque<Request>,
    kept: VecDeque<Request>,
    retry_at: Option<Millis>,
}

impl Requests {
    /// Adds a request behind all others.
    pub(super) fn push(&mut self, request: Request) {
        self.queue.push_back(request);
    }

    /// The next request, in the order of `push`; kept ones first once their time has come.
    pub(super) fn pop(&mut self, now: Millis) -> Option<Request> {
        if let Some(at) = self.retry_at {
            if at <= now {
                self.retry_at = None;
                while let Some(request) = self.kept.pop_back() {
                    self.queue.push_front(request);
                }
            } else if self.kept.front().is_some_and(holds_all_back)
                || self.queue.front().is_some_and(waits_for_all)
            {
                return None;
            }
        }
        self.queue.pop_front()
    }

    /// Keeps a request the channel had no room for.
    pub(super) fn keep(&mut self, now: Millis, request: Request) {
        self.retry_at.get_or_insert_with(|| now.after_ms(RETRY_MS));
        for kept in &mut self.kept {
            if merge(kept, &request) {
                return;
            }
        }
        self.kept.push_back(request);
    }

    /// When `pop` has something to offer again.
    pub(super) const fn retry_at(&self) -> Option<Millis> {
        self.retry_at
    }

    /// Whether nothing waits, kept requests aside.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The connection is gone: drops what has no meaning without it, and says `Disconnect` last,
    /// unless the engine never heard of the connection.
    pub(super) fn on_gone(&mut self, conn: ConnId) {
        self.retry_at = None;
        while let Some(request) = self.kept.pop_back() {
            self.queue.push_front(request);
        }
        if matches!(self.queue.front(), Some(Request::Connect { .. })) {
            self.queue.clear();
            return;
        }
        self.queue
            .retain(|request| !matches!(request, Request::Grant { .. } | Request::Drained { .. }));
        self.queue.push_back(Request::Disconnect { conn });
    }
}

/// Nothing may overtake the first request of a connection.
const fn holds_all_back(request: &Request) -> bool {
    matches!(request, Request::Connect { .. })
}

/// The last request of a connection may overtake nothing.
const fn waits_for_all(request: &Request) -> bool {
    matches!(request, Request::Disconnect { .. })
}

/// Adds `new` to `kept` when both say the same of the same thing.
fn merge(kept: &mut Request, new: &Request) -> bool {
    match (kept, new) {
        (
            Request::Grant { sub, credit },
            Request::Grant {
                sub: new_sub,
                credit: more,
            },
        ) if sub == new_sub => {
            *credit = credit.saturating_add(*more);
            true
        }
        (Request::Drained { bytes, .. }, Request::Drained { bytes: more, .. }) => {
            *bytes = bytes.saturating_add(*more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tanda_engine::SubId;

    use super::*;

    const CONN: ConnId = ConnId(1);

    fn grant(token: u32, credit: u32) -> Request {
        Request::Grant {
            sub: SubId { conn: CONN, token },
            credit,
        }
    }

    fn names(requests: &mut Requests, now: u64) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(request) = requests.pop(Millis(now)) {
            names.push(match request {
                Request::Grant { sub, credit } => format!("grant {} {credit}", sub.token),
                Request::Drained { bytes, .. } => format!("drained {bytes}"),
                Request::Connect { .. } => "connect".to_owned(),
                Request::Disconnect { .. } => "disconnect".to_owned(),
                Request::Publish { .. }
                | Request::Settle { .. }
                | Request::Subscribe { .. }
                | Request::Unsubscribe { .. }
                | Request::Get { .. }
                | Request::Pool { .. }
                | Request::Transaction { .. }
                | Request::Admin { .. }
                | Request::Keys { .. }
                | Request::CancelWait { .. }
                | Request::KeysUndelivered { .. }
                | Request::GotUndelivered { .. }
                | Request::Watch { .. }
                | Request::Unwatch { .. }
                | Request::WatchDrained { .. }
                | Request::ScriptDone { .. } => panic!("not pushed here: {request:?}"),
            });
        }
        names
    }

    #[test]
    fn kept_requests_merge_and_come_back_first() {
        let mut requests = Requests::default();
        let now = Millis(100);
        requests.keep(now, grant(1, 5));
        requests.keep(
            now,
            Request::Drained {
                conn: CONN,
                bytes: 10,
            },
        );
        requests.keep(now, grant(2, u32::MAX));
        requests.keep(now, grant(1, 6));
        requests.keep(now, grant(2, 1));
        requests.keep(
            now,
            Request::Drained {
                conn: CONN,
                bytes: 11,
            },
        );
        assert_eq!(names(&mut requests, 100), Vec::<String>::new());
        requests.push(grant(3, 1));
        assert_eq!(requests.retry_at(), Some(Millis(105)));
        assert_eq!(
            names(&mut requests, 105),
            [
                "grant 1 11",
                "drained 21",
                &format!("grant 2 {}", u32::MAX),
                "grant 3 1"
            ]
        );
        assert_eq!(requests.retry_at(), None);
    }

    #[test]
    fn nothing_overtakes_a_connect() {
        let mut requests = Requests::default();
        let limits = tanda_engine::ConnLimits {
            outbound_bytes_max: 1,
            subscriptions_max: 1,
        };
        requests.keep(Millis(0), Request::Connect { conn: CONN, limits });
        requests.push(grant(3, 1));
        assert_eq!(names(&mut requests, 4), Vec::<String>::new());
        assert_eq!(names(&mut requests, 5), ["connect", "grant 3 1"]);
    }

    #[test]
    fn a_disconnect_overtakes_nothing() {
        let mut requests = Requests::default();
        requests.push(grant(1, 1));
        requests.on_gone(CONN);
        let kept = Request::Drained {
            conn: CONN,
            bytes: 3,
        };
        // What goes to the engine although the connection is gone, and finds its channel full.
        requests.keep(Millis(0), kept);
        assert_eq!(names(&mut requests, 4), Vec::<String>::new());
        assert_eq!(names(&mut requests, 5), ["drained 3", "disconnect"]);
        requests.on_gone(CONN);
        let disconnect = requests.pop(Millis(9)).unwrap();
        requests.keep(Millis(9), disconnect);
        assert_eq!(names(&mut requests, 13), Vec::<String>::new());
        assert_eq!(names(&mut requests, 14), ["disconnect"]);
    }
}
