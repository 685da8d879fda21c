//! One lock, taken and released again and again.

use serde_json::{Value, json};

use super::{
    LONG_MS,
    peer::{Outcome, Peer},
};

/// What its only client knows of it.
#[derive(Debug, Default)]
pub(super) struct Lock {
    /// Locks that were given up, as a token was lost on its way.
    lost: u64,
    /// The greatest token seen.
    newest: u64,
    held: bool,
    /// A change has no answer.
    open: bool,
}

impl Lock {
    fn arguments(&self) -> Value {
        json!({"key": format!("lock {}", self.lost), "ttl_ms": LONG_MS, "token": self.newest})
    }

    /// Finds out, after a crash, who holds it.
    pub(super) async fn check(&mut self, peer: &mut Peer) {
        let renewed = match peer.run("lock.renew", self.arguments()).await {
            Outcome::Done(_) => true,
            Outcome::Refused(_) => false,
            Outcome::Unknown => panic!("the server ended by itself"),
        };
        let expected = self.held;
        assert!(
            renewed == expected || self.open,
            "{self:?}: renewed {renewed}"
        );
        self.held = renewed;
        if !renewed {
            match peer.run("lock.acquire", self.arguments()).await {
                Outcome::Done(result) => self.on_acquired(&result),
                Outcome::Refused(code) => {
                    assert!(self.open && code == "CONFLICT", "{self:?}: {code}");
                    self.lost += 1;
                    self.newest = 0;
                }
                Outcome::Unknown => panic!("the server ended by itself"),
            }
        }
        self.open = false;
    }

    fn on_acquired(&mut self, result: &Value) {
        let token = result["token"].as_u64().unwrap();
        assert!(token > self.newest, "{self:?}: token {token}");
        self.newest = token;
        self.held = true;
    }

    pub(super) async fn change(&mut self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        loop {
            let command = if self.held {
                "lock.release"
            } else {
                "lock.acquire"
            };
            self.open = true;
            match peer.run(command, self.arguments()).await {
                Outcome::Done(_) if self.held => self.held = false,
                Outcome::Done(result) => self.on_acquired(&result),
                Outcome::Refused(code) => panic!("{command} of {self:?}: {code}"),
                Outcome::Unknown => return,
            }
            self.open = false;
        }
    }
}
