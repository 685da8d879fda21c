//! A million messages wait for throttles.

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, KeyKind, KeyPart, MissingThrottleKey, Request, SubscribeSpec,
    ThrottleLimit, ThrottleSpec, VhostId,
};

use crate::lab::{Lab, QUEUE, Shape, queue};

/// Buckets that are full, each with as many messages waiting.
const BUCKETS: u32 = 500_000;
const WAITING: u32 = 2 * BUCKETS;

/// One delivery an hour for each value of the key.
fn an_hour(kind: KeyKind, name: &str) -> SubscribeSpec {
    let limit = ThrottleLimit {
        window_ms: 3_600_000,
        max_deliveries: 1,
    };
    let part = KeyPart {
        kind,
        name: name.to_owned(),
    };
    let throttle = ThrottleSpec {
        name: "hourly".to_owned(),
        limits: vec![limit],
        key: vec![part],
        missing: MissingThrottleKey::SharedBucket,
    };
    SubscribeSpec {
        throttles: vec![throttle],
        ..SubscribeSpec::default()
    }
}

const WORKER: ConnId = ConnId(2);

/// A queue whose messages wait: those of half a million keys, or each with a header of its own.
fn waiting(kind: KeyKind, what: &str) -> Lab {
    let by_header = kind == KeyKind::Header;
    let mut lab = if by_header {
        Lab::keeping()
    } else {
        Lab::new()
    };
    lab.create(queue());
    lab.connect(WORKER);
    lab.measure();
    lab.subscribe_with(WORKER, an_hour(kind, if by_header { "h" } else { "" }));
    for _ in 0..2 {
        let shape = Shape {
            keys: if by_header { 0 } else { BUCKETS },
            header: by_header,
            ..Shape::default()
        };
        lab.publish(WAITING, shape);
    }
    lab.report(&format!(
        "{what}: 2 M messages come, half a million or one million go"
    ));
    lab
}

fn ended_in_each_way(kind: KeyKind, what: &str) {
    let mut lab = waiting(kind, what);
    lab.measure();
    let reply = lab.admin(AdminRequest::ThrottleStats {
        name: "hourly".to_owned(),
        top_buckets: 10_000,
    });
    let AdminReply::Throttle(Ok(stats)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(stats.buckets.len(), 10_000);
    assert!(stats.waiting >= 1_000_000, "{}", stats.waiting);
    lab.report(&format!(
        "{what}: statistics with the 10,000 buckets most wait for"
    ));
    lab.measure();
    lab.handle(Request::Disconnect { conn: WORKER });
    lab.run();
    lab.report(&format!("{what}: the last subscriber goes"));
    let mut lab = waiting(kind, what);
    lab.measure();
    let name = QUEUE.to_owned();
    lab.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    lab.report(&format!("{what}: the queue is deleted"));
}

#[test]
#[ignore = "a measurement"]
fn by_fairness_key() {
    ended_in_each_way(KeyKind::FairnessKey, "500,000 buckets by fairness key");
}

#[test]
#[ignore = "a measurement"]
fn by_header() {
    ended_in_each_way(KeyKind::Header, "1 M buckets by header");
}
