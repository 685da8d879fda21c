//! Fairness: weighted turns between keys, exact in every window.

use tanda_engine::{Backoff, EngineConfig, QueueSpec};

use crate::broker::{Broker, job, jobs, queue};
use crate::harness::{Harness, Msg};

/// `count` messages of one key, each named after it.
fn load(key: &str, weight: u32, count: usize) -> Vec<Msg> {
    (0..count)
        .map(|n| job(&format!("{key}{n}")).key(key).weight(weight))
        .collect()
}

/// The first letter of each delivered message.
fn keys(b: &mut Broker) -> String {
    b.order()
        .iter()
        .map(|name| name.chars().next().unwrap())
        .collect()
}

#[test]
fn weights_hold_within_one_round_in_every_window() {
    let mut b = Broker::with(queue("jobs"));
    let weights = [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)];
    for (key, weight) in weights {
        b.send(&load(key, weight, 60 * weight as usize));
    }
    let w = b.worker("w", "jobs", Some(1));
    // Credit in odd portions: turns must not depend on how consumers ask.
    for portion in [1, 2, 7, 14, 15, 16, 100, 333].iter().cycle() {
        b.grant(w, *portion);
        if b.counts("jobs").depth == 0 {
            break;
        }
    }
    let seen: Vec<char> = keys(&mut b).chars().collect();
    assert_eq!(seen.len(), 900);
    let round = 15;
    for start in 0..seen.len() {
        for rounds in [1, 2, 5, 20] {
            let Some(window) = seen.get(start..start + rounds * round) else {
                continue;
            };
            for (key, weight) in weights {
                let key = key.chars().next().unwrap();
                let got = window.iter().filter(|k| **k == key).count();
                let (fair, slack) = (rounds * weight as usize, weight as usize);
                assert!(
                    got + slack >= fair && got <= fair + slack,
                    "{key} got {got} of {} from {start}, fair is {fair}",
                    window.len()
                );
            }
        }
    }
    // Whole rounds are exact.
    for round in seen.chunks(15) {
        for (key, weight) in weights {
            let key = key.chars().next().unwrap();
            assert_eq!(round.iter().filter(|k| **k == key).count(), weight as usize);
        }
    }
}

#[test]
fn a_new_key_waits_one_round_at_most() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&load("a", 3, 50));
    b.send(&load("b", 2, 50));
    let w = b.worker("w", "jobs", Some(4));
    assert_eq!(keys(&mut b), "aaab");
    b.send(&load("n", 1, 2));
    b.grant(w, 12);
    assert_eq!(keys(&mut b), "baaanbbaaanb");
}

#[test]
fn an_emptied_key_loses_what_is_left_of_its_turn() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&load("a", 5, 2));
    b.send(&load("b", 1, 20));
    let w = b.worker("w", "jobs", Some(4));
    assert_eq!(keys(&mut b), "aabb");
    // Back again: a fresh turn of five, no credit from before.
    b.send(&load("a", 5, 20));
    b.grant(w, 12);
    assert_eq!(keys(&mut b), "baaaaabaaaaa");
}

#[test]
fn a_weight_counts_no_more_than_the_bound() {
    let mut config = EngineConfig::default();
    config.limits.weight_max = 3;
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(queue("jobs"));
    b.send(&load("a", u32::MAX, 8));
    b.send(&load("b", 1, 3));
    // What is shown and delivered is the weight that was sent.
    assert_eq!(b.stats("jobs").keys[0].weight, u32::MAX);
    b.worker("w", "jobs", None);
    assert_eq!(keys(&mut b), "aaabaaabaab");
}

#[test]
fn weight_zero_means_one() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&load("a", 0, 4));
    b.send(&load("b", 1, 4));
    b.worker("w", "jobs", None);
    assert_eq!(keys(&mut b), "abababab");
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 8));
}

#[test]
fn the_newest_messages_weight_counts() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&load("b", 1, 20));
    b.send(&load("a", 1, 6));
    b.send(&[job("a").key("a").weight(3)]);
    assert_eq!(
        b.stats("jobs")
            .keys
            .iter()
            .map(|key| key.weight)
            .collect::<Vec<_>>(),
        [3, 1]
    );
    // The same after a restart.
    b.restart(0);
    let stats = b.stats("jobs");
    let keys_of: Vec<_> = stats
        .keys
        .iter()
        .map(|k| (&*k.key, k.pending, k.weight))
        .collect();
    assert_eq!(keys_of, [("a", 7, 3), ("b", 20, 1)]);
    let w = b.worker("w", "jobs", Some(4));
    assert_eq!(keys(&mut b), "baaa");
    b.send(&[job("b!").key("b").weight(2)]);
    b.grant(w, 7);
    assert_eq!(keys(&mut b), "bbaaabb");
    // A delivered message shows its own weight, not the key's.
    b.send(&[job("c1").key("c").weight(7), job("c2").key("c").weight(9)]);
    b.grant(w, 30);
    let batches = b.batches();
    let items = batches.iter().flat_map(|batch| {
        let of = |item| (batch.fairness_key(item).to_owned(), item.weight);
        batch.items.iter().map(of).collect::<Vec<_>>()
    });
    let weights: Vec<_> = items
        .filter(|(key, _)| key == "c")
        .map(|(_, weight)| weight)
        .collect();
    assert_eq!(weights, [7, 9]);
}

#[test]
fn what_cannot_go_blocks_nobody() {
    let mut b = Broker::with(QueueSpec {
        backoff_initial_ms: 1_000,
        ..queue("jobs")
    });
    b.send(&[job("a!").key("a").delay(1_000)]);
    b.send(&load("a", 1, 2));
    b.send(&load("b", 1, 3));
    let w = b.worker("w", "jobs", None);
    // The delayed first message of `a` holds neither `a` nor `b`.
    assert_eq!(b.order(), ["a0", "b0", "a1", "b1", "b2"]);
    b.nack("jobs", "b0");
    b.send(&jobs(["c0", "c1"]));
    assert_eq!(b.order(), ["c0", "c1"]);
    b.advance(1_000);
    assert_eq!(b.order(), ["a!", "b0"]);
    b.unsubscribe(w);
}

#[test]
fn the_unkeyed_group_is_one_among_the_others() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&load("", 2, 4));
    b.send(&load("a", 1, 3));
    let stats = b.stats("jobs");
    let shown: Vec<_> = stats.keys.iter().map(|k| (&*k.key, k.pending)).collect();
    assert_eq!(shown, [("", 4), ("a", 3)]);
    assert_eq!(stats.counts.active_fairness_keys, 2);
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), ["0", "1", "a0", "2", "3", "a1", "a2"]);
}

#[test]
fn the_quantum_multiplies_turns() {
    let config = EngineConfig {
        quantum: 3,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(queue("jobs"));
    b.send(&load("a", 1, 8));
    b.send(&load("b", 2, 12));
    assert_eq!(b.stats("jobs").quantum, 3);
    b.worker("w", "jobs", None);
    assert_eq!(keys(&mut b), "aaabbbbbbaaabbbbbbaa");
}

#[test]
fn a_returned_message_waits_for_its_keys_turn_in_its_old_place() {
    let mut b = Broker::with(QueueSpec {
        backoff: Some(Backoff::None),
        ..queue("jobs")
    });
    b.send(&load("a", 1, 4));
    b.send(&load("b", 1, 4));
    let w = b.worker("w", "jobs", Some(2));
    assert_eq!(b.order(), ["a0", "b0"]);
    b.nack("jobs", "a0");
    b.grant(w, 5);
    assert_eq!(b.order(), ["a0", "b1", "a1", "b2", "a2"]);
}

#[test]
fn many_keys_take_turns() {
    let mut b = Broker::with(queue("jobs"));
    for key in 0..1_000 {
        b.send(&load(&format!("k{key}-"), 1, 2));
    }
    b.worker("w", "jobs", None);
    let order = b.order();
    let first: Vec<_> = (0..1_000).map(|key| format!("k{key}-0")).collect();
    assert_eq!(order[..1_000], first);
    let second: Vec<_> = (0..1_000).map(|key| format!("k{key}-1")).collect();
    assert_eq!(order[1_000..], second);
}
