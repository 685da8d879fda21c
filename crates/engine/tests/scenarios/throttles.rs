//! Throttles: at most N deliveries in any window of W, as one queue and several see it.

use tanda_engine::{
    KeyKind, KeyPart, LeaseMode, MissingThrottleKey, Ordering, QueueSpec, Request, Settlement,
    SubId, SubscribeError, SubscribeSpec, ThrottleLimit, ThrottleSpec,
};

use crate::broker::{Broker, fail, job, jobs, queue};
use crate::harness::Msg;

/// `name`: at most `max` deliveries in any `window_ms`.
pub(crate) fn per(name: &str, max: u64, window_ms: u64) -> ThrottleSpec {
    ThrottleSpec {
        name: name.to_owned(),
        limits: vec![ThrottleLimit {
            window_ms,
            max_deliveries: max,
        }],
        key: Vec::new(),
        missing: MissingThrottleKey::SharedBucket,
    }
}

/// The same, also limited so.
pub(crate) fn and(mut throttle: ThrottleSpec, max: u64, window_ms: u64) -> ThrottleSpec {
    throttle.limits.push(ThrottleLimit {
        window_ms,
        max_deliveries: max,
    });
    throttle
}

/// The same, for each value of a header.
pub(crate) fn by_header(mut throttle: ThrottleSpec, name: &str) -> ThrottleSpec {
    throttle.key.push(KeyPart {
        kind: KeyKind::Header,
        name: name.to_owned(),
    });
    throttle
}

/// The same, for each fairness key.
pub(crate) fn by_key(mut throttle: ThrottleSpec) -> ThrottleSpec {
    throttle.key.push(KeyPart {
        kind: KeyKind::FairnessKey,
        name: String::new(),
    });
    throttle
}

/// The same; messages without the key are not limited.
pub(crate) fn or_free(mut throttle: ThrottleSpec) -> ThrottleSpec {
    throttle.missing = MissingThrottleKey::Unthrottled;
    throttle
}

/// A queue whose leases last.
pub(crate) fn patient(name: &str) -> QueueSpec {
    QueueSpec {
        lease_ms: 86_400_000,
        ..queue(name)
    }
}

/// A message under a fairness key.
pub(crate) fn of(key: &str, name: &str) -> Msg {
    job(name).key(key)
}

#[test]
fn at_most_so_many_go_in_any_window() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[per("api", 2, 1_000)]);
    b.send(&jobs(["a"]));
    assert_eq!(b.got(), ["w: a"]);
    b.advance(600);
    b.send(&jobs(["b", "c", "d", "e"]));
    assert_eq!(b.got(), ["w: b"]);
    // The window slides: the first left it, the second did not.
    b.advance(399);
    assert_eq!(b.got(), [""; 0]);
    b.advance(1);
    assert_eq!(b.got(), ["w: c"]);
    b.advance(599);
    assert_eq!(b.got(), [""; 0]);
    b.advance(1);
    assert_eq!(b.got(), ["w: d"]);
    b.advance(400);
    assert_eq!(b.got(), ["w: e"]);
}

#[test]
fn all_limits_of_a_throttle_hold() {
    let mut b = Broker::with(queue("jobs"));
    let throttle = and(per("api", 2, 1_000), 3, 10_000);
    b.throttled("w", "jobs", None, &[throttle]);
    b.send(&jobs(["a", "b", "c", "d"]));
    assert_eq!(b.got(), ["w: a b"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: c"]);
    b.advance(8_999);
    assert_eq!(b.got(), [""; 0]);
    b.advance(1);
    assert_eq!(b.got(), ["w: d"]);
}

#[test]
fn a_large_limit_is_counted_in_slots_and_never_exceeded() {
    let mut b = Broker::with(patient("jobs"));
    // 1025 is more than are counted one by one; a slot of 102,400 ms is 100 ms.
    b.throttled("w", "jobs", None, &[per("api", 1_025, 102_400)]);
    let names: Vec<_> = (0..1_030).map(|n| format!("m{n}")).collect();
    let all: Vec<_> = names.iter().map(|name| job(name)).collect();
    b.send(&all);
    assert_eq!(b.order().len(), 1_025);
    // Delivered at 1,000,000 ms, in a slot that ends 100 ms later.
    b.advance(102_400);
    assert_eq!(b.order(), [""; 0]);
    b.advance(98);
    assert_eq!(b.order(), [""; 0]);
    b.advance(1);
    assert_eq!(b.order(), ["m1025", "m1026", "m1027", "m1028", "m1029"]);
}

#[test]
fn it_applies_to_every_message_whoever_takes_it() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("plain", "jobs", Some(1));
    b.throttled("w", "jobs", Some(0), &[per("api", 1, 1_000)]);
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.got(), ["plain: a"]);
    let plain = b.worker("other", "jobs", None);
    assert_eq!(b.got(), [""; 0]);
    b.advance(1_000);
    assert_eq!(b.got(), ["other: b"]);
    b.unsubscribe(plain);
}

#[test]
fn a_throttled_message_has_no_lease_no_attempt_and_costs_no_credit() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", Some(2), &[per("api", 1, 1_000)]);
    b.send(&jobs(["a", "b"]));
    assert_eq!(b.got(), ["w: a"]);
    let counts = b.counts("jobs");
    assert_eq!((counts.depth, counts.throttled, counts.ready), (1, 1, 0));
    assert_eq!(counts.in_flight, 1);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: b"]);
    assert_eq!(b.held("jobs"), (0, 2));
}

#[test]
fn a_redelivery_counts_as_a_delivery() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[per("api", 2, 1_000)]);
    b.send(&jobs(["a"]));
    b.settle("jobs", &[("a", fail(Some(0)))]);
    b.send(&jobs(["b"]));
    assert_eq!(b.got(), ["w: a", "w: a#2"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn one_name_is_one_set_of_buckets_on_all_queues() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("mails"));
    b.throttled("j", "jobs", None, &[per("api", 2, 1_000)]);
    b.throttled("m", "mails", None, &[per("api", 2, 1_000)]);
    b.send(&jobs(["a", "b"]));
    b.send(&[Msg::to("mails").payload("x"), job("c")]);
    assert_eq!(b.got(), ["j: a b"]);
    // Whose turn it is changes with every window, so that both move on.
    let mut order = Vec::new();
    for _ in 0..2 {
        b.send(&[Msg::to("mails").payload(&format!("y{}", order.len()))]);
        b.advance(1_000);
        order.extend(b.order());
    }
    order.sort_unstable();
    assert_eq!(order, ["c", "x", "y0", "y2"]);
}

#[test]
fn a_queue_without_consumers_keeps_no_room_from_another() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("mails"));
    let j = b.throttled("j", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    b.throttled("m", "mails", None, &[by_header(per("api", 1, 1_000), "to")]);
    let to = |queue: &str, name: &str| Msg::to(queue).payload(name).header("to", "x");
    b.send(&[to("jobs", "a"), to("jobs", "b"), to("mails", "c")]);
    assert_eq!(b.got(), ["j: a"]);
    // Nobody takes what was woken first.
    b.h.create(queue("idle"));
    b.throttled(
        "i",
        "jobs",
        Some(0),
        &[by_header(per("api", 1, 1_000), "to")],
    );
    b.unsubscribe(j);
    b.advance(1_000);
    assert_eq!(b.got(), ["m: c"]);
}

#[test]
fn limits_of_all_declarations_apply() {
    let mut b = Broker::with(queue("jobs"));
    let strict = b.throttled("s", "jobs", Some(0), &[per("api", 1, 1_000)]);
    b.throttled("w", "jobs", None, &[per("api", 3, 1_000)]);
    b.send(&jobs(["a", "b", "c", "d"]));
    assert_eq!(b.got(), ["w: a"]);
    // Without the strict one there is room at once.
    b.unsubscribe(strict);
    assert_eq!(b.got(), ["w: b c"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: d"]);
}

#[test]
fn it_applies_while_one_subscriber_declares_it_and_its_history_stays() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.throttled("w", "jobs", Some(5), &[per("api", 1, 10_000)]);
    b.worker("plain", "jobs", Some(5));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.order(), ["a"]);
    b.unsubscribe(w);
    assert_eq!(b.order(), ["b", "c"]);
    // What went without it is not counted; what went under it is.
    b.throttled("again", "jobs", Some(5), &[per("api", 1, 10_000)]);
    b.send(&jobs(["d"]));
    assert_eq!(b.order(), [""; 0]);
    b.advance(9_999);
    assert_eq!(b.order(), [""; 0]);
    b.advance(1);
    assert_eq!(b.order(), ["d"]);
}

#[test]
fn several_throttles_charge_a_message_together_or_not_at_all() {
    let mut b = Broker::with(queue("jobs"));
    let small = by_header(per("small", 1, 10_000), "to");
    let large = by_header(per("large", 2, 1_000), "from");
    b.throttled("w", "jobs", None, &[small, large]);
    let mail = |name: &str, to: &str| job(name).header("to", to).header("from", "me");
    b.send(&[
        mail("a", "x"),
        mail("b", "x"),
        mail("c", "y"),
        mail("d", "z"),
    ]);
    // `b` waits for `x` and has not used up the room of `me`, which `c` takes.
    assert_eq!(b.got(), ["w: a c"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: d"]);
    b.advance(9_000);
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn a_throttled_head_holds_its_ordering_group_and_nothing_else() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Key {
            key: vec![KeyPart {
                kind: KeyKind::Header,
                name: "account".to_owned(),
            }],
            missing: tanda_engine::MissingOrderingKey::Unordered,
        },
        ..queue("jobs")
    });
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let of =
        |name: &str, account: &str, to: &str| job(name).header("account", account).header("to", to);
    b.send(&[
        of("a", "1", "x"),
        of("b", "2", "x"),
        of("c", "2", "y"),
        of("d", "3", "z"),
    ]);
    assert_eq!(b.got(), ["w: a d"]);
    assert_eq!(b.counts("jobs").behind, 1);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: b"]);
    b.settle("jobs", &[("b", Settlement::Ack)]);
    assert_eq!(b.got(), ["w: c"]);
}

#[test]
fn what_never_left_is_not_counted() {
    let mut b = Broker::with(queue("jobs"));
    b.h.holds_deliveries = true;
    let w = b.throttled("w", "jobs", None, &[per("api", 2, 1_000)]);
    b.send(&jobs(["a", "b", "c"]));
    b.undelivered(w);
    b.disconnect(w);
    let v = b.throttled("v", "jobs", None, &[per("api", 2, 1_000)]);
    assert_eq!(b.order(), ["a", "b"]);
    b.unsubscribe(v);
}

#[test]
fn the_window_begins_when_a_delivery_leaves() {
    let mut b = Broker::with(queue("jobs"));
    b.h.holds_deliveries = true;
    b.throttled("w", "jobs", None, &[per("api", 1, 1_000)]);
    b.send(&jobs(["a", "b"]));
    b.advance(500);
    let mut out = core::mem::take(&mut b.out);
    b.h.release(&mut out);
    b.advance(999);
    assert_eq!(b.order(), [""; 0]);
    b.advance(1);
    assert_eq!(b.order(), ["b"]);
}

fn refusal(b: &mut Broker, throttles: &[ThrottleSpec]) -> Option<SubscribeError> {
    let sub = SubId {
        conn: crate::broker::CLIENT,
        token: b.h.token(),
    };
    let spec = SubscribeSpec {
        queue: "jobs".to_owned(),
        credit: None,
        lease: LeaseMode::Timed,
        throttles: throttles.to_vec(),
        ..SubscribeSpec::default()
    };
    match b.h.handle(Request::Subscribe { sub, spec }).remove(0).event {
        tanda_engine::Event::SubscribeFailed { error, .. } => Some(error),
        _ => None,
    }
}

#[test]
fn another_key_under_a_declared_name_is_a_conflict() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("mails"));
    let conflict = Some(SubscribeError::ThrottleConflict {
        name: "api".to_owned(),
    });
    let w = b.throttled("w", "mails", None, &[by_key(per("api", 1, 1_000))]);
    assert_eq!(refusal(&mut b, &[per("api", 1, 1_000)]), conflict);
    assert_eq!(
        refusal(&mut b, &[by_header(per("api", 1, 1_000), "to")]),
        conflict
    );
    // Another policy for the missing key is none.
    assert_eq!(
        refusal(&mut b, &[or_free(by_key(per("api", 2, 1_000)))]),
        None
    );
    let (client, fresh) = (crate::broker::CLIENT, crate::broker::CLIENT);
    b.handle(Request::Disconnect { conn: client });
    b.h.connect(fresh);
    b.unsubscribe(w);
    assert_eq!(refusal(&mut b, &[per("api", 1, 1_000)]), None);
}

#[test]
fn what_cannot_be_declared_is_refused_with_its_reason() {
    let mut b = Broker::with(queue("jobs"));
    let part = |kind, name: &str| KeyPart {
        kind,
        name: name.to_owned(),
    };
    let keyed = |kind, name: &str| ThrottleSpec {
        key: vec![part(kind, name)],
        ..per("api", 1, 1_000)
    };
    let none = ThrottleSpec {
        limits: Vec::new(),
        ..per("api", 1, 1)
    };
    let many = (1..=9).fold(none.clone(), |throttle, n| and(throttle, n, 1_000 << n));
    let cases: Vec<(Vec<ThrottleSpec>, &str)> = vec![
        (vec![none], "1 to 8 limits"),
        (vec![many], "1 to 8 limits"),
        (vec![per("api", 0, 1)], "must be 1 or more"),
        (vec![per("api", 1, 0)], "must be 1 or more"),
        (vec![per("", 1, 1)], "1 to 255 bytes"),
        (vec![per(&"n".repeat(256), 1, 1)], "1 to 255 bytes"),
        (vec![per("api", 1, 1), per("api", 1, 1)], "twice"),
        (
            vec![and(per("api", 60, 60_000), 100, 1_000)],
            "never reached",
        ),
        (
            vec![and(per("api", 20, 1_000), 2_000, 60_000)],
            "never reached",
        ),
        (vec![keyed(KeyKind::Payload, "")], "deduplication"),
        (vec![keyed(KeyKind::Header, "")], "names"),
        (vec![keyed(KeyKind::FairnessKey, "x")], "names"),
        (
            (0..17).map(|n| per(&format!("t{n}"), 1, 1)).collect(),
            "16 are allowed",
        ),
    ];
    for (throttles, reason) in cases {
        match refusal(&mut b, &throttles) {
            Some(SubscribeError::InvalidThrottle { problem, .. }) => {
                assert!(problem.contains(reason), "{problem}");
            }
            other => panic!("{other:?}, not {reason}"),
        }
    }
    // The same limit twice, and limits that each hold at times.
    let fine = and(and(per("api", 20, 1_000), 20, 1_000), 1_000, 60_000);
    assert_eq!(refusal(&mut b, &[fine]), None);
}

#[test]
fn all_declarations_together_have_a_bound() {
    let mut b = Broker::with(queue("jobs"));
    for n in 0..4 {
        let eight = (1..8).fold(per("api", n + 1, 1_000), |throttle, step| {
            and(throttle, (n + 1) << step, 1_000 << (2 * step))
        });
        assert_eq!(refusal(&mut b, &[eight]), None);
    }
    assert!(matches!(
        refusal(&mut b, &[per("api", 99, 1_000)]),
        Some(SubscribeError::InvalidThrottle { .. })
    ));
}
