//! A list that one client pushes to and two wait on: nothing confirmed is popped twice or lost,
//! but for what was on its way to somebody who waited when the server died.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::json;

use super::peer::{Outcome, Peer};

/// What its clients know of it.
#[derive(Debug, Default)]
pub(super) struct Items(RefCell<Known>);

#[derive(Debug, Default)]
struct Known {
    next: u64,
    confirmed: BTreeSet<u64>,
    popped: BTreeSet<u64>,
    /// Pops that are not answered yet.
    open: usize,
    /// Pops that never were.
    unknown: usize,
}

impl Items {
    pub(super) fn on_restart(&mut self) {
        let known = self.0.get_mut();
        known.unknown += std::mem::take(&mut known.open);
    }

    pub(super) async fn push(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        loop {
            let item = self.0.borrow().next;
            self.0.borrow_mut().next += 1;
            match peer
                .run("list.push", json!({"key": "items", "values": [item]}))
                .await
            {
                Outcome::Done(_) => self.0.borrow_mut().confirmed.insert(item),
                Outcome::Refused(code) => panic!("{code}"),
                Outcome::Unknown => return,
            };
        }
    }

    pub(super) async fn pop(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        while self.pop_one(&mut peer, 60_000).await {}
    }

    /// False when there was none, or the connection ended.
    async fn pop_one(&self, peer: &mut Peer, wait_ms: u64) -> bool {
        self.0.borrow_mut().open += 1;
        let popped = peer
            .run("list.pop", json!({"key": "items", "wait_ms": wait_ms}))
            .await;
        match popped {
            Outcome::Done(result) => {
                let item = result["value"]["data"].as_u64().unwrap();
                let mut known = self.0.borrow_mut();
                known.open -= 1;
                assert!(item < known.next, "{item} was pushed by nobody");
                assert!(known.popped.insert(item), "{item} was popped twice");
                true
            }
            Outcome::Refused(code) => {
                assert!(["NOT_FOUND", "TIMEOUT"].contains(&code.as_str()), "{code}");
                self.0.borrow_mut().open -= 1;
                false
            }
            Outcome::Unknown => false,
        }
    }

    /// Pops the rest and accounts for everything.
    pub(super) async fn drain(&self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        while self.pop_one(&mut peer, 0).await {}
        let known = self.0.borrow();
        assert!(
            !known.popped.is_empty(),
            "nothing was popped: the test tests nothing"
        );
        let lost = known.confirmed.difference(&known.popped).count();
        let unknown = known.unknown;
        assert!(
            lost <= unknown,
            "{lost} items are lost, {unknown} pops had no answer"
        );
    }
}
