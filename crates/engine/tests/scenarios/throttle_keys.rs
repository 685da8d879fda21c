//! Which messages share a bucket, and that one without room holds no other.

use tanda_engine::{
    AdminReply, AdminRequest, EngineConfig, KeyKind, KeyPart, LeaseMode, MaxLength,
    MissingThrottleKey, Overflow, QueueSpec, SubscribeSpec, VhostId,
};

use crate::broker::{Broker, job, queue};
use crate::harness::{CONN, Harness, Msg};
use crate::scripted::{Scripted, classified, msg};
use crate::throttles::{by_header, by_key, of, or_free, patient, per};

fn to(name: &str, to: &str) -> Msg {
    job(name).header("to", to)
}

/// Pages of four messages from the ninth of a lane on.
fn paged() -> Broker {
    paged_with(1 << 20)
}

fn paged_with(throttled_hot: u32) -> Broker {
    let config = EngineConfig {
        segment_shift: 12,
        page_messages: 4,
        lane_hot: 8,
        throttled_hot,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(patient("jobs"));
    b
}

#[test]
fn each_value_has_a_bucket_and_none_holds_another() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    b.send(&[
        to("a", "x"),
        to("b", "x"),
        to("c", "y"),
        to("d", "x"),
        to("e", "z"),
    ]);
    assert_eq!(b.got(), ["w: a c e"]);
    b.send(&[to("f", "y"), to("g", "q")]);
    assert_eq!(b.got(), ["w: g"]);
    b.advance(1_000);
    // Within a bucket in their order; a new one does not overtake.
    b.send(&[to("h", "x")]);
    assert_eq!(b.got(), ["w: b f"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: d"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: h"]);
}

#[test]
fn the_fairness_key_holds_its_lane_as_a_whole() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_key(per("api", 2, 1_000))]);
    b.send(&[
        of("x", "a"),
        of("x", "b"),
        of("x", "c"),
        of("y", "d"),
        of("y", "e"),
    ]);
    assert_eq!(b.got(), ["w: a d b e"]);
    assert_eq!(b.counts("jobs").throttled, 1);
    b.send(&[of("z", "f"), of("x", "g")]);
    assert_eq!(b.got(), ["w: f"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: c g"]);
}

#[test]
fn a_missing_key_means_one_shared_bucket_or_no_limit() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    b.send(&[job("a"), job("b"), to("c", "")]);
    // An empty value is a value.
    assert_eq!(b.got(), ["w: a c"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: b"]);
    b.unsubscribe(w);
    let free = or_free(by_header(per("free", 1, 1_000), "to"));
    b.throttled("v", "jobs", None, &[free]);
    b.send(&[job("d"), job("e"), to("f", "x"), to("g", "x")]);
    assert_eq!(b.got(), ["v: d e f"]);
    // A declaration that wants the shared bucket wins.
    b.throttled(
        "u",
        "jobs",
        Some(0),
        &[by_header(per("free", 1, 1_000), "to")],
    );
    b.send(&[job("h"), job("i")]);
    assert_eq!(b.got(), ["v: h"]);
}

#[test]
fn without_a_fairness_key_a_lane_shares_the_bucket_of_the_missing() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_key(per("api", 1, 1_000))]);
    b.send(&[job("a"), job("b"), of("x", "c")]);
    assert_eq!(b.got(), ["w: a c"]);
    b.advance(1_000);
    assert_eq!(b.got(), ["w: b"]);
}

#[test]
fn one_tenant_cannot_take_a_shared_bucket() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let tenant = |tenant: &str, name: &str| to(name, "x").key(tenant);
    let names: Vec<_> = (0..20).map(|n| format!("a{n}")).collect();
    let large: Vec<_> = names.iter().map(|name| tenant("large", name)).collect();
    b.send(&large);
    b.send(&[tenant("small", "s0"), tenant("small", "s1")]);
    let mut order = b.order();
    for _ in 0..4 {
        b.advance(1_000);
        order.extend(b.order());
    }
    assert_eq!(order, ["a0", "a1", "s0", "a2", "s1"]);
}

#[test]
fn weights_hold_within_a_bucket() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let all: Vec<_> = (0..8)
        .flat_map(|n| {
            let light = to(&format!("l{n}"), "x").key("light");
            [light, to(&format!("h{n}"), "x").key("heavy").weight(3)]
        })
        .collect();
    b.send(&all);
    let mut heavy = 0;
    b.order();
    for _ in 0..8 {
        b.advance(1_000);
        heavy += b
            .order()
            .iter()
            .filter(|name| name.starts_with('h'))
            .count();
    }
    assert_eq!(heavy, 6);
}

#[test]
fn a_long_lane_that_waits_stays_in_its_pages() {
    let mut b = paged();
    b.throttled("w", "jobs", None, &[by_key(per("api", 1, 1_000))]);
    let names: Vec<_> = (0..40).map(|n| format!("m{n}")).collect();
    let all: Vec<_> = names.iter().map(|name| of("x", name)).collect();
    b.send(&all);
    b.send(&[of("y", "other")]);
    assert_eq!(b.order(), ["m0", "other"]);
    let counts = b.counts("jobs");
    assert_eq!((counts.throttled, counts.ready), (39, 0));
    let pages = b.h.journal.pages.iter().flatten().count();
    assert!(pages >= 6, "{pages}");
    for name in names.iter().skip(1) {
        b.advance(1_000);
        assert_eq!(b.order(), [name.as_str()]);
    }
}

#[test]
fn what_waits_by_itself_is_taken_from_pages_up_to_a_bound() {
    let mut b = paged_with(10);
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let names: Vec<_> = (0..40).map(|n| format!("m{n}")).collect();
    let all: Vec<_> = names.iter().map(|name| to(name, "x")).collect();
    b.send(&all);
    b.send(&[to("other", "y")]);
    assert_eq!(b.order(), ["m0"]);
    let pages = b.h.journal.pages.iter().flatten().count();
    assert!(pages >= 4, "{pages}");
    let mut order = Vec::new();
    for _ in 0..45 {
        b.advance(1_000);
        order.extend(b.order());
    }
    let last = order.iter().position(|name| name == "other").unwrap();
    assert!(last < 39, "it does not wait for all others");
    order.remove(last);
    assert_eq!(order, names[1..]);
}

#[test]
fn without_a_bound_a_page_holds_nothing_up() {
    let mut b = paged();
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let names: Vec<_> = (0..40).map(|n| format!("m{n}")).collect();
    let mut all: Vec<_> = names.iter().map(|name| to(name, "x")).collect();
    all.push(to("other", "y"));
    b.send(&all);
    assert_eq!(b.order(), ["m0", "other"]);
    for name in names.iter().skip(1) {
        b.advance(1_000);
        assert_eq!(b.order(), [name.as_str()]);
    }
}

#[test]
fn headers_beyond_the_first_bytes_of_a_content_are_found() {
    let mut b = Broker::over(Harness::with_config(EngineConfig::default()));
    b.h.create(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    let long = "v".repeat(5_000);
    let far = |name: &str, value: &str| job(name).header("long", &long).header("to", value);
    b.send(&[far("a", "x"), far("b", "x"), far("c", "y")]);
    assert_eq!(b.order(), ["a", "c"]);
}

#[test]
fn a_content_that_cannot_be_read_is_looked_at_again() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[by_header(per("api", 1, 1_000), "to")]);
    b.h.journal.contents_unreadable = true;
    b.send(&[to("a", "x")]);
    assert_eq!(b.order(), [""; 0]);
    b.h.journal.contents_unreadable = false;
    b.advance(999);
    assert_eq!(b.order(), [""; 0]);
    b.advance(1);
    assert_eq!(b.order(), ["a"]);
}

#[test]
fn what_waits_is_purged_dropped_and_redriven() {
    let mut b = Broker::with(QueueSpec {
        max_length: Some(MaxLength {
            messages: 3,
            overflow: Overflow::DropHead,
        }),
        ..queue("jobs")
    });
    let keyed = by_header(per("api", 1, 1_000), "to");
    b.throttled("w", "jobs", None, std::slice::from_ref(&keyed));
    b.send(&[to("a", "x")]);
    b.send(&[to("b", "x"), to("c", "x"), to("d", "x")]);
    assert_eq!(b.order(), ["a"]);
    b.send(&[to("e", "x")]);
    assert_eq!(b.counts("jobs").depth, 3);
    b.advance(1_000);
    assert_eq!(b.order(), ["c"]);
    let purge = AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    };
    assert_eq!(b.admin(purge), AdminReply::Purged(Ok(2)));
    assert_eq!(b.counts("jobs").depth, 0);
    for name in ["a", "c"] {
        b.settle("jobs", &[(name, tanda_engine::Settlement::Reject)]);
    }
    b.throttled("d", "jobs.dlq", None, &[by_key(per("dead", 1, 1_000))]);
    assert_eq!(b.order(), ["a"]);
    assert_eq!(b.redrive("jobs.dlq", 0), 1);
    b.advance(1_000);
    assert_eq!(b.order(), ["c"]);
}

#[test]
fn a_purge_takes_lanes_that_wait_as_a_whole() {
    let mut b = paged();
    b.throttled("w", "jobs", None, &[by_key(per("api", 1, 1_000))]);
    let all: Vec<_> = (0..60)
        .map(|n| of(["x", "y"][n % 2], &format!("m{n}")))
        .collect();
    b.send(&all);
    assert_eq!(b.order(), ["m0", "m1"]);
    let purge = AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    };
    assert_eq!(b.admin(purge), AdminReply::Purged(Ok(58)));
    b.send(&[of("x", "new")]);
    b.advance(1_000);
    assert_eq!(b.order(), ["new"]);
}

#[test]
fn a_deleted_queue_leaves_nothing_that_waits() {
    let mut b = Broker::with(queue("jobs"));
    b.h.create(queue("mails"));
    let keyed = by_header(per("api", 1, 1_000), "to");
    b.throttled("w", "jobs", None, &[keyed.clone(), per("all", 5, 1_000)]);
    b.throttled("m", "mails", None, &[keyed]);
    b.send(&[to("a", "x"), to("b", "x")]);
    let mail = Msg::to("mails").payload("c").header("to", "x");
    b.send(&[mail]);
    assert_eq!(b.order(), ["a"]);
    let delete = AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    };
    assert_eq!(b.admin(delete), AdminReply::Deleted(Ok(())));
    b.out.clear();
    b.advance(1_000);
    assert_eq!(b.order(), ["c"]);
}

#[test]
fn an_attribute_of_the_script_can_be_the_key_also_after_a_restart() {
    let mut throttle = per("api", 1, 60_000);
    throttle.key.push(KeyPart {
        kind: KeyKind::Attribute,
        name: "tier".to_owned(),
    });
    throttle.missing = MissingThrottleKey::Unthrottled;
    let spec = || SubscribeSpec {
        queue: "jobs".to_owned(),
        credit: None,
        lease: LeaseMode::Timed,
        throttles: vec![throttle.clone()],
        ..SubscribeSpec::default()
    };
    let mut s = Scripted::with(classified("jobs", "v1"));
    let tier = |name: &str, tier: &str| msg(name).header("@tier", tier);
    s.publish(&[tier("a", "x"), tier("b", "x"), tier("c", "y"), msg("d")]);
    s.h.subscribe_with(CONN, spec());
    assert_eq!(s.run(), ["jobs: a@(*1)", "jobs: c@(*1)", "jobs: d(*1)"]);
    s.h.restart(0);
    s.publish(&[tier("e", "z"), tier("f", "y")]);
    s.h.subscribe_with(CONN, spec());
    assert_eq!(s.run(), ["jobs: e@(*1)"]);
}
