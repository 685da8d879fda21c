//! What is said about queues and messages.

use serde_json::json;

use tanda_client::{
    PropertyKey,
    admin::{BucketId, BucketStats, ThrottleLimit, ThrottleSummary},
};

use super::*;

fn queue(counts: Value, more: Value) -> Vec<String> {
    let mut answer = json!({"name": "q", "counts": counts});
    let fields = answer.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    of(&answer, &[], None, 1_000)
}

#[test]
fn an_empty_queue_has_nothing_to_deliver() {
    let sentences = queue(json!({"depth": 0, "in_flight": 0}), json!({}));
    assert_eq!(
        sentences,
        ["Queue q is empty: there is nothing to deliver."]
    );
}

#[test]
fn without_consumers_it_says_how_to_start_one() {
    let counts = json!({"depth": 3, "ready": 3, "active_fairness_keys": 2});
    let sentences = queue(counts, json!({}));
    assert_eq!(sentences.len(), 2);
    assert_eq!(
        sentences[0],
        "3 messages of 2 fairness keys wait in queue q; all are ready."
    );
    assert!(sentences[1].contains("`tanda consume q --ack`"));
}

#[test]
fn consumers_without_credit_are_named() {
    let counts = json!({"depth": 1, "ready": 1, "active_consumers": 3, "in_flight": 30});
    let more = json!({"consumers_without_credit": 3, "next_lease_end_at_ms": 13_345});
    let sentences = queue(counts, more);
    assert_eq!(sentences[0], "1 message waits in queue q; it is ready.");
    assert!(sentences[1].starts_with("3 consumers, none has credit: "));
    assert!(sentences[2].contains("the next lease ends in 12.3 s (at "));
}

#[test]
fn delays_and_groups_are_told_apart() {
    let counts = json!({"depth": 5, "ready": 0, "delayed": 2, "behind": 3});
    let more = json!({"next_due_at_ms": 13_300, "groups_held": 1});
    let sentences = queue(counts, more);
    assert_eq!(
        sentences[0],
        "5 messages wait in queue q: 0 ready, 2 delayed, 3 behind others of their ordering \
         group."
    );
    assert!(sentences[1].starts_with("The next delayed message is due in 12.3 s"));
    assert!(sentences[2].starts_with("3 messages wait for order: 1 ordering group has its"));
}

#[test]
fn a_message_behind_another_tells_where_that_one_is() {
    let id: MessageId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
    let answer = json!({
        "name": "q",
        "message": {
            "place": "behind",
            "head": "0190163d-8694-739b-aea5-000000000001",
            "head_place": {
                "place": "leased", "expires_at_ms": 31_000, "attempts": 2, "consumer": 7,
            },
        },
    });
    assert_eq!(
        of(&answer, &[], Some(id), 1_000),
        [
            "Message 0190163d-8694-739b-aea5-966c26f8ad91 waits behind message \
             0190163d-8694-739b-aea5-000000000001 of its ordering group: it goes after that \
             one is acknowledged or dead-lettered.",
            "Message 0190163d-8694-739b-aea5-000000000001 is leased to consumer 7 (delivery \
             2); the lease ends in 30.0 s (at 1970-01-01 00:00:31.000 UTC), unless it is \
             settled or extended.",
        ]
    );
}

#[test]
fn a_throttle_is_named_with_its_buckets() {
    let limit = ThrottleLimit {
        max_deliveries: 5,
        window_ms: 60_000,
    };
    let bucket = |id, waiting, next_room_at_ms| BucketStats {
        id,
        counted: vec![5],
        waiting,
        next_room_at_ms,
    };
    let value = |value: &str| BucketId::Values(vec![value.to_owned()]);
    let mut stats = ThrottleStats {
        summary: ThrottleSummary {
            name: "crm".to_owned(),
            limits: vec![limit],
            key: PropertyKey::header("customer"),
            unthrottled_without_key: false,
            declaring_subscribers: 1,
        },
        queues: vec!["q".to_owned()],
        active_buckets: 3,
        buckets_at_limit: 2,
        waiting: 4,
        buckets: vec![
            bucket(value("acme"), 3, 42_200),
            bucket(BucketId::Shared, 1, 3_000),
            bucket(value("beta"), 0, 0),
        ],
    };
    let counts = json!({"depth": 4, "ready": 0, "throttled": 4});
    let answer = json!({"name": "q", "counts": counts});
    assert_eq!(
        of(&answer, &[stats.clone()], None, 1_000),
        [
            "4 messages wait in queue q: 0 ready, 4 throttled.",
            "4 messages wait for throttle crm, at most 5 in 1m for each header:customer: acme has \
             3 waiting and room in 41.2 s (at 1970-01-01 00:00:42.200 UTC); (messages without the \
             key) has 1 waiting and room in 2.0 s (at 1970-01-01 00:00:03.000 UTC).",
        ]
    );
    stats.summary.key = PropertyKey::default();
    stats.buckets = vec![bucket(BucketId::Values(Vec::new()), 4, 0)];
    let sentences = of(&answer, &[stats], None, 1_000);
    assert!(
        sentences[1].ends_with("crm, at most 5 in 1m: there is room now."),
        "{sentences:?}"
    );
    let unknown = of(&answer, &[], None, 1_000);
    assert!(unknown[1].contains("tanda queue inspect q"), "{unknown:?}");
}

#[test]
fn parked_messages_tell_why_and_what_helps() {
    let counts = json!({
        "depth": 3, "ready": 0, "unclassified": 2, "stopped": 1,
        "oldest_unclassified_at_ms": 0,
    });
    let sentences = queue(counts, json!({"last_script_error": "line 2: no tenant"}));
    assert_eq!(
        sentences[0],
        "3 messages wait in queue q: 0 ready, 2 parked, 1 behind a parked one."
    );
    assert!(sentences[1].contains("The last error was: line 2: no tenant."));
    assert!(sentences[1].contains("tanda queue update q --on-enqueue FILE"));
    assert!(sentences[2].starts_with("1 message waits behind the first parked one"));
}

#[test]
fn a_message_that_a_door_cannot_carry_is_named() {
    let counts = json!({"depth": 1, "ready": 0, "delayed": 1});
    let unfit = json!({"unfit_messages": 2, "first_unfit_message": "0190a1b2"});
    let sentences = queue(counts, unfit);
    let told = "2 messages fit no frame of any consumer of this queue: a consumer with larger \
        frames, or of Fila, takes them. The first of them that is ready is 0190a1b2.";
    assert!(sentences.iter().any(|it| it == told), "{sentences:?}");
}

#[test]
fn every_place_of_a_message_is_told() {
    let id: MessageId = "0190163d-8694-739b-aea5-966c26f8ad91".parse().unwrap();
    let parked = json!({
        "place": "parked", "tries": 3, "error": "took too long", "next_try_at_ms": 5_000,
    });
    let cases = [
        (
            json!({"place": "throttled", "throttle": "crm", "values": ["acme"],
                "next_room_at_ms": 2_000}),
            "waits for throttle crm in its bucket acme: there is room in 1.0 s",
        ),
        (
            json!({"place": "throttled", "throttle": "crm", "shared": true, "values": [],
                "next_room_at_ms": 0}),
            "waits for throttle crm in the bucket of messages without its key: there is room now",
        ),
        (
            parked.clone(),
            "is parked: the on_enqueue script failed on it 3 times (took too long). Next, it is \
             tried again in 4.0 s",
        ),
        (
            json!({"place": "parked", "tries": 1, "error": "x", "next_try_at_ms": null}),
            "failed on it 1 time (x). Next, it is tried again when the script changes.",
        ),
        (
            json!({"place": "deciding", "attempts": 2}),
            "failed 2 times, and the on_failure script",
        ),
        (json!({"place": "redriving"}), "is on its way back"),
        (
            json!({"place": "ready", "unfit": true}),
            "takes turns with it. It fits no frame of any consumer of the queue",
        ),
        (json!({"place": "elsewhere"}), "does not know: elsewhere"),
    ];
    for (place, said) in cases {
        let sentences = of(
            &json!({"name": "q", "message": place}),
            &[],
            Some(id),
            1_000,
        );
        assert!(sentences[0].contains(said), "{sentences:?}");
    }
    let stopped = json!({
        "place": "stopped",
        "first_unclassified": "0190163d-8694-739b-aea5-000000000001",
        "first_place": parked,
    });
    let sentences = of(
        &json!({"name": "q", "message": stopped}),
        &[],
        Some(id),
        1_000,
    );
    assert!(sentences[0].contains("behind message 0190163d-8694-739b-aea5-000000000001"));
    assert!(sentences[1].contains("is parked"), "{sentences:?}");
}
