//! A queue: what was pushed is popped, what was acked is never popped again.

use std::{cell::RefCell, collections::BTreeSet, time::Instant};

use serde_json::{Value, json};

use super::peer::{Outcome, Peer};

const LEASE_MS: u64 = 2_000;

/// What its clients know of it.
#[derive(Debug, Default)]
pub(super) struct Queue(RefCell<Known>);

#[derive(Debug, Default)]
struct Known {
    next: u64,
    /// By id.
    confirmed: BTreeSet<String>,
    popped: BTreeSet<String>,
    acked: BTreeSet<String>,
}

impl Queue {
    /// Makes it; once it is made, it stays.
    pub(super) async fn make(&self, peer: &mut Peer) {
        let settings = json!({"queue": "work", "max_attempts": 1_000_000, "backoff": "none"});
        let is_first = self.0.borrow().next == 0;
        match peer.run("queue.create", settings).await {
            Outcome::Done(_) => assert!(is_first, "the queue was lost"),
            Outcome::Refused(code) => assert!(!is_first && code == "EXISTS", "{code}"),
            Outcome::Unknown => panic!("the server ended by itself"),
        }
        self.0.borrow_mut().next += 1;
    }

    pub(super) async fn push(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        loop {
            let next = self.0.borrow().next;
            self.0.borrow_mut().next += 2;
            let messages = json!([{"payload": next}, {"payload": next + 1}]);
            let push = json!({"queue": "work", "messages": messages});
            let Outcome::Done(result) = peer.run("queue.push", push).await else {
                return;
            };
            let mut known = self.0.borrow_mut();
            for message in result["messages"].as_array().unwrap() {
                known.confirmed.insert(text(&message["id"]));
            }
        }
    }

    pub(super) async fn pop(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        while self.pop_some(&mut peer, 60_000).await.is_some() {}
    }

    /// Pops and acks; how many there were. `None` when the connection ended.
    async fn pop_some(&self, peer: &mut Peer, wait_ms: u64) -> Option<usize> {
        let pop = json!({"queue": "work", "max": 7, "wait_ms": wait_ms, "lease_ms": LEASE_MS});
        let Outcome::Done(result) = peer.run("queue.pop", pop).await else {
            return None;
        };
        let messages = result["messages"].as_array().unwrap();
        let ids: Vec<String> = messages.iter().map(|it| text(&it["id"])).collect();
        for id in &ids {
            let mut known = self.0.borrow_mut();
            assert!(!known.acked.contains(id), "{id} was acked and came again");
            known.popped.insert(id.clone());
        }
        if ids.is_empty() {
            return Some(0);
        }
        let ack = json!({"queue": "work", "ids": ids});
        let Outcome::Done(result) = peer.run("queue.ack", ack).await else {
            return None;
        };
        let mut known = self.0.borrow_mut();
        for one in result["results"].as_array().unwrap() {
            // Its lease may have ended meanwhile.
            if one["ok"] == true {
                known.acked.insert(text(&one["id"]));
            }
        }
        Some(ids.len())
    }

    /// Pops the rest and accounts for everything.
    pub(super) async fn drain(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        let mut progress_at = Instant::now();
        loop {
            if self.pop_some(&mut peer, 200).await.unwrap() > 0 {
                progress_at = Instant::now();
            }
            let Outcome::Done(stats) = peer.run("queue.stats", json!({"queue": "work"})).await
            else {
                panic!("the server ended by itself");
            };
            if stats["depth"] == 0 && stats["in_flight"] == 0 {
                break;
            }
            assert!(progress_at.elapsed().as_secs() < 60, "it is stuck: {stats}");
        }
        let known = self.0.borrow();
        assert!(
            !known.confirmed.is_empty(),
            "nothing was pushed: the test tests nothing"
        );
        let lost: Vec<_> = known.confirmed.difference(&known.popped).collect();
        assert!(lost.is_empty(), "confirmed and lost: {lost:?}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
