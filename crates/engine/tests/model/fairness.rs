//! Exact weights, as the documents promise them, of what the engine delivers.

use proptest::prelude::*;
use tanda_engine::{QueueSpec, Request};

use crate::harness::{CONN, Harness, Msg, deliveries};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        rng_algorithm: proptest::test_runner::RngAlgorithm::ChaCha,
        ..ProptestConfig::default()
    })]

    /// While every key has messages, any window of whole rounds holds of each key what its weight
    /// says, however credit comes: every round is like the one before.
    #[test]
    fn weights_are_exact_within_one_round_in_every_window(
        weights in prop::collection::vec(1..6_u32, 2..5),
        portions in prop::collection::vec(1..12_u32, 4..12),
    ) {
        let mut h = Harness::new();
        h.create(QueueSpec { name: "q".to_owned(), ..QueueSpec::default() });
        let round: u32 = weights.iter().sum();
        let rounds = 8;
        for (n, weight) in weights.iter().enumerate() {
            let messages: Vec<_> = (0..weight * (rounds + 1))
                .map(|_| Msg::to("q").key(&n.to_string()).weight(*weight))
                .collect();
            h.publish(&messages);
        }
        let sub = h.subscribe(CONN, "q", Some(0));
        let mut seen: Vec<usize> = Vec::new();
        for portion in portions.iter().cycle() {
            h.handle(Request::Grant { sub, credit: *portion });
            for (_, batch) in deliveries(&h.run()) {
                let keys = batch.items.iter().map(|item| batch.fairness_key(item));
                seen.extend(keys.map(|key| key.parse::<usize>().unwrap()));
            }
            if seen.len() >= (round * rounds) as usize {
                break;
            }
        }
        seen.truncate((round * rounds) as usize);
        for window_rounds in 1..=rounds {
            for window in seen.windows((window_rounds * round) as usize) {
                for (key, weight) in weights.iter().enumerate() {
                    let got = window.iter().filter(|k| **k == key).count();
                    let fair = (window_rounds * weight) as usize;
                    prop_assert_eq!(got, fair, "key {} in {:?}", key, window);
                }
            }
        }
    }
}
