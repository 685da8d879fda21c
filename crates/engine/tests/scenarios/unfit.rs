//! Messages that fit no frame of some consumers: these get what is behind them, and others get them
//! at once, in their places.

use tanda_engine::{
    AdminRequest, ConnId, FrameLimit, GetSpec, LeaseMode, MessageId, MessagePlace,
    QueueExplanation, QueueSpec, SettleResult, Settlement, SubId, SubscribeSpec, Take, VhostId,
};
use tanda_wire::amqp::Value;

use crate::broker::{Broker, NOT_LEASED, OK, job, jobs, queue};
use crate::declared::{ACK, REQUEUE, broker, consume, durable, with_args};
use crate::harness::Msg;

const SMALL: FrameLimit = FrameLimit::Amqp(4096);
const LARGE: FrameLimit = FrameLimit::Amqp(131_072);
const FIRE: FrameLimit = FrameLimit::Fire(65_536);
const NOTHING: [&str; 0] = [];

fn with_frames(limit: FrameLimit, credit: Option<u32>) -> SubscribeSpec {
    SubscribeSpec {
        frame_limit: limit,
        ..consume("jobs", credit)
    }
}

fn worker(b: &mut Broker, name: &str, spec: SubscribeSpec) -> SubId {
    let conn = b.client();
    b.consumer(conn, name, spec)
}

/// A broker with a queue and these messages.
fn holding(messages: &[Msg]) -> Broker {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(messages);
    b
}

fn unfit_of(consumer: u64, deliveries: u32, frame_limit: FrameLimit) -> Settlement {
    Settlement::Unfit {
        consumer,
        deliveries,
        redrives: 0,
        frame_limit,
    }
}

/// The consumer that got the message just now hands it back; it has its credit back, too.
fn refuse(b: &mut Broker, limit: FrameLimit, name: &str) -> SettleResult {
    let id = b.id(name);
    let batches = b.batches();
    let found = batches.iter().find_map(|batch| {
        let item = batch.items.iter().find(|item| item.id == id)?;
        Some((batch.consumer, *item))
    });
    let (consumer, item) = found.unwrap_or_else(|| panic!("{name} was not delivered"));
    let unfit = unfit_of(consumer, item.deliveries, limit);
    b.settle("jobs", &[(name, unfit)])[0]
}

fn explain(b: &mut Broker, message: Option<MessageId>) -> QueueExplanation {
    let request = AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        message,
    };
    match b.admin(request) {
        tanda_engine::AdminReply::Explained(Ok(it)) => it,
        other => panic!("{other:?}"),
    }
}

fn unfit(b: &mut Broker) -> (u64, Option<MessageId>) {
    let it = explain(b, None);
    (it.unfit, it.first_unfit)
}

#[test]
fn a_message_goes_at_once_to_a_consumer_with_larger_frames() {
    let mut b = holding(&jobs(["a", "b"]));
    worker(&mut b, "small", with_frames(SMALL, Some(1)));
    assert_eq!(refuse(&mut b, SMALL, "a"), OK);
    assert_eq!(b.told_consumers(), NOTHING);
    worker(&mut b, "large", with_frames(LARGE, Some(1)));
    // In its place, and as if it had never been offered.
    assert_eq!(b.told_consumers(), ["large: a"]);
    assert_eq!(b.settle("jobs", &[("a", REQUEUE)]), [OK]);
    assert_eq!(b.told_consumers(), NOTHING);
    worker(&mut b, "largest", with_frames(LARGE, Some(2)));
    assert_eq!(b.told_consumers(), ["largest: a* b"]);
}

#[test]
fn who_cannot_take_it_gets_what_is_behind_it() {
    let mut b = holding(&jobs(["a", "b", "c"]));
    let small = worker(&mut b, "small", with_frames(SMALL, Some(1)));
    assert_eq!(refuse(&mut b, SMALL, "a"), OK);
    b.grant(small, 2);
    assert_eq!(b.told_consumers(), ["small: b c"]);
    // Nobody takes it, and nothing runs in circles over it.
    b.grant(small, 5);
    assert!(!b.pass());
    assert_eq!(b.told_consumers(), NOTHING);
    b.send(&jobs(["d"]));
    assert_eq!(b.told_consumers(), ["small: d"]);
    assert_eq!(b.held("jobs"), (1, 3));
}

#[test]
fn a_lease_that_is_over_cannot_be_handed_back() {
    let mut b = holding(&jobs(["a"]));
    worker(&mut b, "small", with_frames(SMALL, Some(1)));
    let batch = b.batches().remove(0);
    let unfit = unfit_of(batch.consumer, 1, SMALL);
    assert_eq!(b.settle("jobs", &[("a", unfit)]), [OK]);
    assert_eq!(b.settle("jobs", &[("a", unfit)]), [NOT_LEASED]);
    worker(&mut b, "large", with_frames(LARGE, Some(1)));
    assert_eq!(b.told_consumers(), ["large: a"]);
    assert_eq!(b.settle("jobs", &[("a", unfit)]), [NOT_LEASED]);
}

#[test]
fn each_protocol_has_its_own_frames() {
    let mut b = holding(&jobs(["a"]));
    let small = worker(&mut b, "small", with_frames(SMALL, Some(1)));
    assert_eq!(refuse(&mut b, SMALL, "a"), OK);
    let fire = worker(&mut b, "fire", with_frames(FIRE, Some(1)));
    assert_eq!(refuse(&mut b, FIRE, "a"), OK);
    for sub in [small, fire] {
        b.grant(sub, 1);
    }
    assert_eq!(b.told_consumers(), NOTHING);
    worker(
        &mut b,
        "smaller",
        with_frames(FrameLimit::Fire(100), Some(1)),
    );
    assert_eq!(b.told_consumers(), NOTHING);
    worker(&mut b, "fila", with_frames(FrameLimit::None, Some(1)));
    assert_eq!(b.told_consumers(), ["fila: a"]);
}

#[test]
fn a_get_is_answered_with_the_next_one_that_fits() {
    for take in [Take::default(), Take::NoAck] {
        let mut b = holding(&[job("a").payload(&"a".repeat(5_000)), job("b")]);
        let c = b.client();
        let get = |limit| GetSpec {
            queue: "jobs".to_owned(),
            frame_limit: limit,
            take,
            ..GetSpec::default()
        };
        let got = b.get_with(c, get(SMALL)).unwrap().batch.unwrap();
        assert!(got.items[0].is_leased, "it may be too large");
        let unfit = unfit_of(got.consumer, 1, SMALL);
        let name = "a".repeat(5_000);
        assert_eq!(b.settle("jobs", &[(&name, unfit)]), [OK]);
        assert_eq!(b.get_as(c, get(SMALL)), ("b".to_owned(), 1));
        assert_eq!(b.get_as(c, get(SMALL)), (String::new(), 1));
        assert_eq!(b.get_as(c, get(LARGE)), (name, 0));
    }
}

/// What is gone from its queue cannot come back: what may not fit is not gone before it was sent.
#[test]
fn without_acknowledgement_what_may_not_fit_is_held_until_it_was_sent() {
    let name = "a".repeat(5_000);
    let mut b = holding(&[job(&name), job("b")]);
    let spec = SubscribeSpec {
        lease: LeaseMode::NoAck,
        ..with_frames(SMALL, None)
    };
    let sub = worker(&mut b, "w", spec);
    let batch = b.batches().remove(0);
    let leased: Vec<_> = batch.items.iter().map(|item| item.is_leased).collect();
    assert_eq!(leased, [true, false]);
    assert_eq!(b.held("jobs"), (0, 1));
    assert_eq!(b.settle("jobs", &[(&name, ACK)]), [OK]);
    assert_eq!(b.held("jobs"), (0, 0));
    b.send(&[job("c").payload(&"c".repeat(5_000))]);
    assert_eq!(refuse(&mut b, SMALL, &"c".repeat(5_000)), OK);
    assert_eq!(b.held("jobs"), (1, 0));
    // One that was not sent when its connection ended is there again.
    b.send(&[job("d").payload(&"d".repeat(5_000))]);
    assert_eq!(b.held("jobs"), (1, 1));
    b.disconnect(sub);
    assert_eq!(b.held("jobs"), (2, 0));
}

#[test]
fn all_keys_have_their_turns() {
    let keyed = |name: &str| job(name).key(&name[..1]);
    let names = ["a1", "a2", "a3", "b1", "b2"];
    let mut b = holding(&names.map(keyed));
    let small = worker(&mut b, "small", with_frames(SMALL, None));
    let batch = b.batches().remove(0);
    for (item, name) in batch.items.iter().zip(["a1", "b1", "a2", "b2", "a3"]) {
        assert_eq!(b.name_of(item.id), name);
        if name.starts_with('a') {
            let unfit = unfit_of(batch.consumer, item.deliveries, SMALL);
            assert_eq!(b.settle("jobs", &[(name, unfit)]), [OK]);
        }
    }
    b.disconnect(small);
    b.batches();
    worker(&mut b, "large", with_frames(LARGE, Some(5)));
    // Neither key waits for all of the other.
    assert_eq!(b.told_consumers(), ["large: b1* a1 b2* a2 a3"]);
}

#[test]
fn very_many_in_front_cost_nobody_anything_once_they_were_tried() {
    const MANY: usize = 5_000;
    let names: Vec<String> = (0..MANY).map(|n| format!("m{n}")).collect();
    let messages: Vec<_> = names.iter().map(|name| job(name)).collect();
    let mut b = holding(&messages);
    let small = worker(&mut b, "small", with_frames(SMALL, None));
    let mut tried = 0;
    while tried < MANY {
        let batches = b.batches();
        assert!(!batches.is_empty(), "{tried}");
        let mut settled = Vec::new();
        for batch in &batches {
            for item in &batch.items {
                let unfit = unfit_of(batch.consumer, item.deliveries, SMALL);
                settled.push((b.name_of(item.id).to_owned(), unfit));
            }
        }
        tried += settled.len();
        let settled: Vec<_> = settled.iter().map(|(n, s)| (n.as_str(), *s)).collect();
        let results = b.settle("jobs", &settled);
        assert!(results.iter().all(|it| *it == OK));
    }
    b.send(&jobs(["last"]));
    assert_eq!(b.told_consumers(), ["small: last"]);
    assert_eq!(unfit(&mut b), (MANY as u64, Some(b.id("m0"))));
    // A purge finds them, and the queue is as it was.
    let name = "jobs".to_owned();
    let vhost = VhostId::DEFAULT;
    let purged = b.admin(AdminRequest::PurgeQueue { vhost, name });
    let all = tanda_engine::AdminReply::Purged(Ok(MANY as u64));
    assert_eq!(purged, all);
    assert_eq!(unfit(&mut b), (0, None));
    b.disconnect(small);
}

#[test]
fn explain_names_what_fits_no_consumer() {
    let mut b = holding(&jobs(["a", "b"]));
    assert_eq!(unfit(&mut b), (0, None));
    let small = worker(&mut b, "small", with_frames(SMALL, Some(1)));
    assert_eq!(refuse(&mut b, SMALL, "a"), OK);
    let id = b.id("a");
    assert_eq!(unfit(&mut b), (1, Some(id)));
    let place = |b: &mut Broker, id| match explain(b, Some(id)).message {
        Some(MessagePlace::Ready { is_unfit, .. }) => is_unfit,
        other => panic!("{other:?}"),
    };
    let other = b.id("b");
    assert!(place(&mut b, id) && !place(&mut b, other));
    // It has no credit; but its frames are large enough.
    let large = worker(&mut b, "large", with_frames(LARGE, Some(0)));
    assert_eq!(unfit(&mut b), (0, None));
    assert!(!place(&mut b, id));
    b.disconnect(large);
    assert_eq!(unfit(&mut b), (1, Some(id)));
    b.disconnect(small);
    // Without a consumer there is nobody whose frames are too small.
    assert_eq!(unfit(&mut b), (0, None));
    b.restart(0);
    assert_eq!(b.held("jobs"), (2, 0));
}

#[test]
fn a_delivery_that_was_handed_back_is_not_counted_whatever_the_durability() {
    use tanda_engine::DeliveryDurability::{Committed, Fast};
    for durability in [Fast, Committed] {
        let mut b = Broker::with(QueueSpec {
            durability,
            ..queue("jobs")
        });
        b.send(&jobs(["a"]));
        worker(&mut b, "small", with_frames(SMALL, Some(1)));
        assert_eq!(refuse(&mut b, SMALL, "a"), OK);
        b.worker("v", "jobs", None);
        assert_eq!(b.got(), ["v: a"], "{durability:?}");
        b.restart(0);
        let (waiting, leased) = b.held("jobs");
        assert_eq!(waiting + leased, 1, "{durability:?}");
    }
}

#[test]
fn sizes_are_told_apart_by_an_eighth() {
    assert_eq!(FrameLimit::amqp(4096), FrameLimit::Amqp(4096));
    assert_eq!(FrameLimit::amqp(4607), FrameLimit::Amqp(4096));
    assert_eq!(FrameLimit::amqp(4608), FrameLimit::Amqp(4608));
    assert_eq!(FrameLimit::fire(u32::MAX), FrameLimit::Fire(0xF000_0000));
    assert_eq!(FrameLimit::fire(7), FrameLimit::Fire(7));
}

#[test]
fn a_single_active_consumer_gets_what_fits_it() {
    let mut b = broker();
    let c: ConnId = b.client();
    let single = [("x-single-active-consumer", Value::Bool(true))];
    b.declared(c, with_args("jobs", &single));
    b.send(&jobs(["a", "b"]));
    let small = worker(&mut b, "small", with_frames(SMALL, Some(1)));
    worker(&mut b, "large", with_frames(LARGE, Some(5)));
    assert_eq!(refuse(&mut b, SMALL, "a"), OK);
    b.grant(small, 1);
    assert_eq!(b.told_consumers(), ["small: b"]);
    b.disconnect(small);
    assert_eq!(b.told_consumers(), ["large: a b*"]);
}
