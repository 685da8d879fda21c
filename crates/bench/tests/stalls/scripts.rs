//! Scripts that try to run for longer than they may.

use std::time::Duration;

use tanda_script::{EnqueueCall, Host, Limits, Script, thread_cpu_time};

/// A call of each, and how long it took at most.
#[test]
#[ignore = "a measurement"]
fn hostile_scripts() {
    let many = |count: usize, statement: &str| statement.repeat(count);
    let strings = "local a, b = ('a'):rep(200000) .. 'b', ('a'):rep(200000) .. 'c'\n";
    let bodies = [
        ("a plain script", "return nil".to_owned()),
        ("an endless loop", "while true do end".to_owned()),
        (
            "an empty string repeated",
            "return (''):rep(2^31 - 1)".to_owned(),
        ),
        (
            "2,000 comparisons of long strings",
            format!("{strings} local _ {}", many(2000, "_=a<b ")),
        ),
        (
            "60,000 comparisons of long strings",
            format!("{strings} local _ {}", many(60_000, "_=a<b ")),
        ),
        (
            "2,000 concatenations of long strings",
            format!("{strings} local _ {}", many(2000, "_=a..b ")),
        ),
        (
            "60,000 concatenations of long strings",
            format!("{strings} local _ {}", many(60_000, "_=a..b ")),
        ),
    ];
    for (what, body) in bodies {
        let source = format!("function on_enqueue(msg)\n{body}\nend");
        let mut host = Host::new(Limits::default());
        let script = Script {
            version: 1,
            queue: "q",
            source: &source,
        };
        let call = EnqueueCall {
            content: &[0, 0],
            payload_bytes: 0,
            fairness_key: None,
            weight: 1,
        };
        let (mut results, mut longest) = (Vec::new(), Duration::ZERO);
        for _ in 0..3 {
            let began = thread_cpu_time();
            host.on_enqueue(&script, [call], Duration::ZERO, &mut results);
            longest = longest.max(thread_cpu_time().saturating_sub(began));
        }
        let ms = longest.as_secs_f64() * 1000.0;
        println!("| {what} | {ms:.2} | {:?} |", results.last());
    }
}
