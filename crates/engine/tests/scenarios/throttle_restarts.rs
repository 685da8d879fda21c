//! A restart forgets no delivery that a window still counts.

use tanda_engine::{DeliveryDurability, QueueSpec};

use crate::broker::{Broker, jobs, queue};
use crate::throttles::{by_header, per};

#[test]
fn a_window_goes_on_over_a_restart() {
    let mut b = Broker::with(queue("jobs"));
    b.throttled("w", "jobs", None, &[per("api", 2, 60_000)]);
    b.send(&jobs(["a", "b", "c", "d"]));
    assert_eq!(b.order(), ["a", "b"]);
    b.advance(10_000);
    b.restart(20_000);
    b.throttled("v", "jobs", None, &[per("api", 2, 60_000)]);
    b.advance(29_000);
    assert_eq!(b.order(), [""; 0]);
    b.advance(2_000);
    assert_eq!(b.order(), ["c", "d"]);
}

#[test]
fn also_of_a_fast_queue_and_from_a_snapshot() {
    let mut b = Broker::with(QueueSpec {
        durability: DeliveryDurability::Fast,
        ..queue("jobs")
    });
    let keyed = by_header(per("api", 1, 60_000), "to");
    b.throttled("w", "jobs", None, std::slice::from_ref(&keyed));
    let to = |name: &str, to: &str| crate::broker::job(name).header("to", to);
    b.send(&[to("a", "x"), to("b", "y")]);
    assert_eq!(b.order(), ["a", "b"]);
    b.ack("jobs", ["a", "b"]);
    b.snapshot();
    b.send(&[to("c", "z")]);
    assert_eq!(b.order(), ["c"]);
    b.ack("jobs", ["c"]);
    b.advance(10_000);
    b.restart(20_000);
    b.throttled("v", "jobs", None, &[keyed]);
    b.send(&[to("d", "x"), to("e", "z"), to("f", "y"), to("g", "q")]);
    assert_eq!(b.order(), ["g"]);
    b.advance(29_000);
    assert_eq!(b.order(), [""; 0]);
    b.advance(2_000);
    let mut order = b.order();
    order.sort_unstable();
    assert_eq!(order, ["d", "e", "f"]);
}

#[test]
fn what_is_not_known_to_have_left_counts_from_the_restart() {
    let mut b = Broker::with(queue("jobs"));
    b.h.holds_deliveries = true;
    b.throttled("w", "jobs", None, &[per("api", 1, 60_000)]);
    b.send(&jobs(["a", "b"]));
    b.advance(10_000);
    b.restart(0);
    b.throttled("v", "jobs", None, &[per("api", 1, 60_000)]);
    b.order();
    b.advance(59_000);
    assert!(!b.order().contains(&"b".to_owned()));
    b.advance(1_001);
    assert_eq!(b.order().len(), 1);
}

#[test]
fn what_came_back_is_not_counted_after_a_restart() {
    let mut b = Broker::with(queue("jobs"));
    b.h.holds_deliveries = true;
    let w = b.throttled("w", "jobs", None, &[per("api", 1, 60_000)]);
    b.send(&jobs(["a"]));
    b.undelivered(w);
    b.disconnect(w);
    b.restart(0);
    b.throttled("v", "jobs", None, &[per("api", 1, 60_000)]);
    assert_eq!(b.order(), ["a"]);
}

#[test]
fn what_came_back_to_a_bucket_without_anything_else_is_written_down() {
    let mut b = Broker::with(queue("jobs"));
    b.h.holds_deliveries = true;
    let keyed = by_header(per("api", 1, 60_000), "to");
    let w = b.throttled("w", "jobs", None, std::slice::from_ref(&keyed));
    let to = |name: &str, to: &str| crate::broker::job(name).header("to", to);
    b.send(&[to("a", "x"), to("b", "y")]);
    b.undelivered(w);
    b.disconnect(w);
    b.h.engine.assert_invariants();
    b.restart(0);
    b.throttled("v", "jobs", None, &[keyed]);
    assert_eq!(b.order(), ["a", "b"]);
}
