//! Which message is the oldest that could go.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{EngineConfig, QueueSpec, Settlement, Take};

use crate::broker::{Broker, CLIENT, job, queue};
use crate::harness::Harness;

/// Pages of four messages from the ninth of a lane on.
fn broker() -> Broker {
    let mut b = Broker::over(Harness::with_config(EngineConfig {
        segment_shift: 12,
        page_messages: 4,
        lane_hot: 8,
        ..EngineConfig::default()
    }));
    b.h.create(QueueSpec {
        lease_ms: 3_600_000,
        ..queue("jobs")
    });
    b
}

impl Broker {
    /// The names of what is shown or leased, without how often it was delivered.
    fn taken(&mut self, take: Take) -> Vec<String> {
        self.ask_once((CLIENT, "p"), "jobs", take);
        let said = self.got();
        let names = said.iter().flat_map(|line| line.split(' ').skip(2));
        let names = names.filter(|name| *name != "nothing");
        let without_count = |name: &str| name.split('#').next().unwrap_or_default().to_owned();
        names.map(without_count).collect()
    }
}

const fn pop(max: u32) -> Take {
    Take::Leased {
        max,
        lease_ms: None,
        wait_ms: 0,
    }
}

#[test]
fn it_is_shown_whatever_comes_next() {
    let mut b = broker();
    assert!(b.taken(Take::Oldest).is_empty());
    b.send(&[job("a1").key("a"), job("a2").key("a"), job("b1").key("b")]);
    assert_eq!(b.taken(Take::Oldest), ["a1"]);
    assert_eq!(b.taken(pop(1)), ["a1"]);
    // The turn is the other key's.
    assert_eq!(b.taken(Take::Look { max: 1 }), ["b1"]);
    assert_eq!(b.taken(Take::Oldest), ["a2"]);
    assert_eq!(b.held("jobs"), (2, 1), "nothing was taken");
    // What waits for its time could not go.
    assert_eq!(b.taken(pop(2)), ["b1", "a2"]);
    b.send(&[job("later").delay(1000), job("b2").key("b")]);
    assert_eq!(b.taken(Take::Oldest), ["b2"]);
    // What comes back is as old as it was.
    b.settle("jobs", &[("a2", Settlement::Requeue)]);
    assert_eq!(b.taken(Take::Oldest), ["a2"]);
}

/// Against a set of what is ready, with backlogs that are in pages, and restarts.
#[test]
fn it_is_the_first_of_all_that_are_ready() {
    let mut b = broker();
    let mut random: u64 = 11;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let (mut sent, mut ready) = (0, BTreeSet::new());
    let mut numbers = BTreeMap::new();
    let mut pages = 0;
    for round in 0..200 {
        for _ in 0..draw(if round < 100 { 12 } else { 6 }) {
            sent += 1;
            let name = format!("m{sent}");
            let key = ["a", "b", "c", ""][usize::try_from(draw(4)).unwrap()];
            b.send(&[job(&name).key(key)]);
            numbers.insert(name, sent);
            ready.insert(sent);
        }
        pages = pages.max(b.h.journal.pages.iter().flatten().count());
        let first = ready.first().map(|number| format!("m{number}"));
        assert_eq!(b.taken(Take::Oldest).pop(), first, "round {round}");
        for name in b.taken(pop(u32::try_from(draw(8)).unwrap())) {
            ready.remove(&numbers[&name]);
            if draw(3) == 0 {
                b.settle("jobs", &[(&name, Settlement::Requeue)]);
                ready.insert(numbers[&name]);
            } else {
                b.settle("jobs", &[(&name, Settlement::Ack)]);
            }
        }
        if draw(40) == 0 {
            b.restart(1);
        }
    }
    assert!(pages > 10, "{pages} pages are not enough to show anything");
}
