//! The same by the Amaquet door: whatever a command was answered is so after SIGKILL.
//! `TANDA_KILL_ROUNDS` sets the number of rounds (20).

mod items;
mod lock;
mod peer;
mod queue;
mod things;

use std::time::Duration;

use tokio::time::timeout;

use super::server::{self, Server};
use items::Items;
use lock::Lock;
use peer::Peer;
use queue::Queue;
use things::Thing;

const OWNERS: u64 = 3;
/// Longer than the test.
const LONG_MS: u64 = 86_400_000;

#[test]
fn what_a_command_was_answered_is_so_after_a_crash() {
    let rounds = std::env::var("TANDA_KILL_ROUNDS").map_or(20, |rounds| rounds.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let dir = server::fresh_dir("kill9-keys");
    let mut known = Known::default();
    for round in 0..rounds {
        let mut server = Server::start(&dir);
        runtime.block_on(async {
            let addr = server.amaquet.clone();
            known.check(&addr).await;
            // Each round dies at another moment of its life.
            let life = Duration::from_millis(40 + (round * 67) % 400);
            timeout(life, known.change(&addr)).await.unwrap_err();
            server.kill();
        });
    }
    let mut server = Server::start(&dir);
    runtime.block_on(async {
        let addr = server.amaquet.clone();
        known.check(&addr).await;
        known.items.drain(&addr).await;
        known.queue.drain(&addr).await;
    });
    server.kill();
    let confirmed: u64 = known.things.iter().flatten().map(|it| it.confirmed).sum();
    assert!(
        confirmed > 0,
        "nothing was confirmed: the test tests nothing"
    );
    println!(
        "{rounds} rounds: {confirmed} changes of keys; {:?}",
        known.lock
    );
}

/// What the clients know.
struct Known {
    things: Vec<Vec<Thing>>,
    lock: Lock,
    items: Items,
    queue: Queue,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            things: (0..OWNERS).map(Thing::one_of_each).collect(),
            lock: Lock::default(),
            items: Items::default(),
            queue: Queue::default(),
        }
    }
}

impl Known {
    async fn check(&mut self, addr: &str) {
        let mut peer = Peer::connect(addr).await;
        for thing in self.things.iter_mut().flatten() {
            thing.check(&mut peer).await;
        }
        self.lock.check(&mut peer).await;
        self.items.on_restart();
        self.queue.make(&mut peer).await;
    }

    /// All at once; only ends when the server does.
    async fn change(&mut self, addr: &str) {
        let [a, b, c] = self.things.get_disjoint_mut([0, 1, 2]).unwrap();
        tokio::join!(
            change_things(addr, a),
            change_things(addr, b),
            change_things(addr, c),
            self.lock.change(addr),
            self.items.push(addr),
            self.items.pop(addr),
            self.items.pop(addr),
            self.queue.push(addr),
            self.queue.pop(addr),
            std::future::pending::<()>(),
        );
    }
}

async fn change_things(addr: &str, things: &mut [Thing]) {
    let mut peer = Peer::connect(addr).await;
    loop {
        for thing in things.iter_mut() {
            if !thing.step(&mut peer).await {
                return;
            }
        }
    }
}
