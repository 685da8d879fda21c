//! Throttles as operators see them.

use tanda_engine::{
    AdminReply, AdminRequest, BucketStats, MessagePlace, Millis, MissingThrottleKey,
    ThrottleNotFound, ThrottleStats, ThrottleSummary, VhostId,
};

use crate::broker::{Broker, job, jobs, queue};
use crate::harness::Msg;
use crate::throttles::{and, by_header, by_key, of, patient, per};

impl Broker {
    fn throttle(
        &mut self,
        name: &str,
        top_buckets: u32,
    ) -> Result<ThrottleStats, ThrottleNotFound> {
        let name = name.to_owned();
        match self.admin(AdminRequest::ThrottleStats { name, top_buckets }) {
            AdminReply::Throttle(result) => result,
            other => panic!("not {other:?}"),
        }
    }

    fn bucket(&mut self, name: &str, values: &[&str]) -> Result<BucketStats, ThrottleNotFound> {
        let request = AdminRequest::ThrottleBucket {
            name: name.to_owned(),
            shared: false,
            values: values.iter().map(|it| (*it).to_owned()).collect(),
        };
        match self.admin(request) {
            AdminReply::ThrottleBucket(result) => result,
            other => panic!("not {other:?}"),
        }
    }

    fn explained(&mut self, name: &str) -> MessagePlace {
        let request = AdminRequest::Explain {
            vhost: VhostId::DEFAULT,
            name: "jobs".to_owned(),
            message: Some(self.id(name)),
        };
        match self.admin(request) {
            AdminReply::Explained(Ok(explained)) => explained.message.unwrap(),
            other => panic!("not {other:?}"),
        }
    }
}

fn to(name: &str, to: &str) -> Msg {
    job(name).header("to", to)
}

#[test]
fn the_state_of_a_throttle_and_its_buckets() {
    let mut b = Broker::with(patient("jobs"));
    b.h.create(patient("mails"));
    let keyed = || by_header(and(per("api", 1, 1_000), 5, 60_000), "to");
    b.throttled("w", "jobs", None, &[keyed()]);
    b.throttled("m", "mails", None, &[keyed()]);
    b.throttled("n", "mails", None, &[keyed()]);
    b.send(&[
        to("a", "x"),
        to("b", "x"),
        to("c", "x"),
        to("d", "y"),
        to("e", "y"),
    ]);
    b.send(&[job("f")]);
    b.send(&[Msg::to("mails").payload("g").header("to", "x")]);
    let now = b.now();
    let summary = ThrottleSummary {
        name: "api".to_owned(),
        limits: keyed().limits,
        key: keyed().key,
        missing: MissingThrottleKey::SharedBucket,
        subscribers: 3,
    };
    let bucket = |values: &[&str], waiting| BucketStats {
        shared: values.is_empty(),
        values: values.iter().map(|it| (*it).to_owned()).collect(),
        counted: vec![1, 1],
        waiting,
        next_room_at: now.after_ms(1_000),
    };
    let expected = ThrottleStats {
        summary: summary.clone(),
        queues: vec!["jobs".to_owned(), "mails".to_owned()],
        active_buckets: 3,
        buckets_at_limit: 3,
        waiting: 4,
        buckets: vec![bucket(&["x"], 3), bucket(&["y"], 1)],
    };
    assert_eq!(b.throttle("api", 2), Ok(expected));
    assert_eq!(b.bucket("api", &["x"]), Ok(bucket(&["x"], 3)));
    let none = BucketStats {
        counted: vec![0, 0],
        next_room_at: Millis(0),
        ..bucket(&["unknown"], 0)
    };
    assert_eq!(b.bucket("api", &["unknown"]), Ok(none));
    assert_eq!(b.throttle("other", 2), Err(ThrottleNotFound));
    assert_eq!(b.bucket("other", &["x"]), Err(ThrottleNotFound));
    // Of a queue: its own subscribers are counted.
    let stats = b.stats("mails");
    let of_queue = ThrottleSummary {
        subscribers: 2,
        ..summary
    };
    assert_eq!(stats.throttles, [of_queue]);
    assert_eq!(stats.counts.throttled, 1);
    // Windows pass: nothing is counted, and nothing is kept.
    b.advance(61_000);
    b.order();
    b.advance(61_000);
    let idle = b.throttle("api", 2).unwrap();
    assert_eq!((idle.active_buckets, idle.buckets), (0, Vec::new()));
}

#[test]
fn the_last_subscriber_takes_the_throttle_with_it() {
    let mut b = Broker::with(queue("jobs"));
    let w = b.throttled("w", "jobs", None, &[per("api", 1, 1_000)]);
    b.send(&jobs(["a"]));
    assert!(b.throttle("api", 0).is_ok());
    b.unsubscribe(w);
    assert_eq!(b.throttle("api", 0), Err(ThrottleNotFound));
    assert_eq!(b.bucket("api", &[]), Err(ThrottleNotFound));
}

#[test]
fn an_explanation_names_throttle_bucket_and_time() {
    let mut b = Broker::with(queue("jobs"));
    let throttles = [
        by_header(per("header", 1, 2_000), "to"),
        by_key(per("key", 2, 1_000)),
    ];
    b.throttled("w", "jobs", None, &throttles);
    let now = b.now();
    b.send(&[
        to("a", "x").key("k"),
        to("b", "x").key("k"),
        to("c", "y").key("k"),
        to("d", "z").key("k"),
    ]);
    b.send(&[of("q", "e")]);
    assert_eq!(b.order(), ["a", "c", "e"]);
    let place = |throttle: &str, value: &str, counted, waiting, in_ms| MessagePlace::Throttled {
        throttle: throttle.to_owned(),
        bucket: Box::new(BucketStats {
            shared: false,
            values: vec![value.to_owned()],
            counted: vec![counted],
            waiting,
            next_room_at: now.after_ms(in_ms),
        }),
        attempts: 0,
    };
    assert_eq!(b.explained("b"), place("header", "x", 1, 1, 2_000));
    assert_eq!(b.explained("d"), place("key", "k", 2, 1, 1_000));
}
