//! Queues, runtime configuration, health and bench.

use serde_json::{Value, json};

use crate::broker::{Broker, run};

#[test]
fn a_queue_is_made_looked_at_changed_emptied_and_removed() {
    let broker = Broker::start();
    let made = broker.json(
        "queue create orders --visibility-timeout 1m30s --ordering key \
         --ordering-key header:account,fairness-key --missing-ordering-key unordered \
         --dedup-key header:x,payload --dedup-window 1h --max-attempts 7 --backoff fixed \
         --backoff-initial 250ms --durability fast --reclaim-grace 2s",
    );
    assert_eq!(made["dead_letter_queue"], "orders.dlq");

    let config = &broker.json("queue inspect orders")["config"];
    assert_eq!(config["visibility_timeout_ms"], 90_000);
    assert_eq!(config["ordering"]["by"], "key");
    assert_eq!(config["ordering"]["missing"], "unordered");
    let key = json!([{"kind": "header", "name": "account"}, {"kind": "fairness_key", "name": ""}]);
    assert_eq!(config["ordering"]["key"], key);
    assert_eq!(config["dedup_key"][1]["kind"], "payload");
    assert_eq!(config["dedup_window_ms"], 3_600_000);
    assert_eq!(config["retry"]["max_attempts"], 7);
    assert_eq!(config["retry"]["backoff"], "fixed");
    assert_eq!(config["retry"]["initial_ms"], 250);
    assert_eq!(config["delivery_durability"], "fast");
    assert_eq!(config["reclaim_grace_ms"], 2_000);

    broker.json("queue update orders --max-attempts 9 --backoff exponential --backoff-max 5m");
    let config = &broker.json("queue inspect orders")["config"];
    assert_eq!(config["retry"]["max_attempts"], 9);
    assert_eq!(config["retry"]["backoff"], "exponential");
    assert_eq!(config["retry"]["max_ms"], 300_000);
    assert_eq!(
        config["visibility_timeout_ms"], 90_000,
        "what is not named stays"
    );

    let text = broker.ok("queue inspect orders");
    assert!(
        text.contains("ordering              by header:account,fairness-key"),
        "{text}"
    );
    assert!(text.contains("visibility timeout    1m30s"), "{text}");

    broker.ok("send orders a b c");
    let list = broker.json("queue list");
    let orders = list
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "orders");
    assert_eq!(orders.unwrap()["depth"], 3);
    let table = broker.ok("queue list");
    assert!(table.starts_with("QUEUE"), "{table}");

    assert_eq!(
        broker.json("queue purge orders --yes"),
        json!({"purged": 3})
    );
    assert_eq!(broker.json("queue delete orders --yes")["deleted"], true);
    assert_eq!(broker.run("queue inspect orders").code, 3);
}

#[test]
fn nothing_is_removed_without_a_yes() {
    let broker = Broker::start();
    broker.ok("queue create orders");
    broker.ok("send orders a");
    for line in ["queue delete orders", "queue purge orders"] {
        let ran = broker.run(line);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("--yes"), "{ran:?}");
    }
    assert_eq!(broker.json("queue inspect orders")["counts"]["depth"], 1);
}

#[test]
fn a_name_that_needs_escaping_reaches_the_http_door() {
    let broker = Broker::start();
    let name = "a/b ü?#%";
    for words in [
        ["create"].as_slice(),
        &["inspect"],
        &["explain"],
        &["purge", "--yes"],
    ] {
        let mut command = broker.command("queue");
        command.arg(words[0]).arg(name).args(&words[1..]);
        let ran = run(command, b"");
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
}

#[test]
fn explain_says_what_a_message_waits_for() {
    let broker = Broker::start();
    broker.ok("queue create orders --ordering queue");
    let ids = broker.ok("send orders first second");
    let ids: Vec<&str> = ids.lines().collect();

    let behind = broker.ok(&format!("queue explain orders {}", ids[1]));
    assert!(
        behind.contains(&format!("waits behind message {}", ids[0])),
        "{behind}"
    );
    let place = broker.json(&format!("queue explain orders {}", ids[0]));
    assert_eq!(place["message"]["place"], "ready");

    broker.ok("queue create later");
    let id = broker.ok("send later --delay 1h soon");
    let delayed = broker.ok(&format!("queue explain later {}", id.trim()));
    assert!(
        delayed.contains("was sent with a delay: it is due in 59 min"),
        "{delayed}"
    );
    let queue = broker.ok("queue explain later");
    assert!(
        queue.contains("The next delayed message is due in 59 min"),
        "{queue}"
    );

    let unknown = broker.run("queue explain later 0190163d-8694-739b-aea5-966c26f8ad91");
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(unknown.out.contains("is not in queue later"), "{unknown:?}");
}

#[test]
fn runtime_configuration_is_set_read_and_listed() {
    let broker = Broker::start();
    broker.ok("config set a.x 1");
    broker.ok("config set a.y 2");
    broker.ok("config set b 3");
    assert_eq!(broker.ok("config get a.x"), "1\n");
    assert_eq!(
        broker.json("config get b"),
        json!({"key": "b", "value": "3"})
    );
    let listed = broker.json("config list a.");
    assert_eq!(
        listed,
        json!([{"key": "a.x", "value": "1"}, {"key": "a.y", "value": "2"}])
    );
    assert_eq!(
        broker.ok("config list"),
        "KEY  VALUE\na.x  1\na.y  2\nb    3\n"
    );
    assert_eq!(broker.run("config get none").code, 3);
}

#[test]
fn health_and_bench_answer() {
    let broker = Broker::start();
    assert!(broker.ok("health").starts_with("ok  version "));
    assert_eq!(broker.json("health")["status"], "ok");
    let figures = broker.json("bench --messages 500 --batch 100");
    assert_eq!(figures["messages"], 500);
    assert!(figures["sent_per_second"].as_u64().unwrap() > 0);
    let text = broker.ok("bench --messages 100");
    assert!(text.contains("make bench"), "{text}");
    let left = broker.json("queue list");
    let queues = left.as_array().map(Vec::as_slice);
    assert!(
        queues.is_some_and(|queues| queues.iter().all(|queue| !is_of_bench(queue))),
        "{left}"
    );
}

#[test]
fn top_shows_the_fullest_queues() {
    let broker = Broker::start();
    broker.ok("queue create few");
    broker.ok("queue create many");
    broker.ok("send few a");
    broker.ok("send many a b c");
    let table = broker.ok("top --count 1 --queues 2");
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[1].starts_with("QUEUE"), "{table}");
    assert!(
        rows[2].starts_with("many") && rows[3].starts_with("few"),
        "{table}"
    );
    assert_eq!(rows[4], "and 2 more", "{table}");
    let looks = broker.ok("top --count 2 --interval 1ms --json");
    for line in looks.lines() {
        let look: Value = serde_json::from_str(line).unwrap();
        assert_eq!(look["queues"][2]["name"], "many", "{look}");
        assert_eq!(look["queues"][2]["depth"], 3, "{look}");
    }
    assert_eq!(looks.lines().count(), 2);
}

fn is_of_bench(queue: &Value) -> bool {
    queue["name"]
        .as_str()
        .is_some_and(|name| name.starts_with("tanda-bench"))
}
