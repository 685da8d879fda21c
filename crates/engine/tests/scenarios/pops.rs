//! Messages for who asks once, with leases that outlive the asker; and a look at what comes next.

use tanda_engine::{
    ConnId, ConnLimits, Event, GetSpec, Got, Held, QueueSpec, ReplyTo, Request, Settlement, SubId,
    Take,
};

use crate::broker::{Broker, CLIENT, NACK, OK, job, jobs, queue};
use crate::declared::{durable, with_args};

const NOTHING: [&str; 0] = [];

fn broker() -> Broker {
    Broker::with(QueueSpec {
        lease_ms: 10_000,
        backoff: Some(tanda_engine::Backoff::None),
        ..queue("jobs")
    })
}

/// One at a time, and no wait.
const ONE: Take = pop(1, 0);

const fn pop(max: u32, wait_ms: u64) -> Take {
    Take::Leased {
        max,
        lease_ms: None,
        wait_ms,
    }
}

impl Broker {
    /// Asks, under a name; what was said is for [`Broker::got`].
    pub(crate) fn ask_once(
        &mut self,
        (conn, name): (ConnId, &str),
        queue: &str,
        take: Take,
    ) -> SubId {
        let token = self.h.token();
        let sub = SubId { conn, token };
        self.name_worker(sub, name);
        let spec = GetSpec {
            queue: queue.to_owned(),
            take,
            ..GetSpec::default()
        };
        let reply = ReplyTo { conn, token };
        self.handle(Request::Get { reply, spec });
        sub
    }

    /// Asks and looks at once.
    fn pops(&mut self, take: Take) -> Vec<String> {
        self.ask_once((CLIENT, "p"), "jobs", take);
        self.got()
    }

    fn consumers(&mut self) -> u32 {
        self.counts("jobs").active_consumers
    }
}

#[test]
fn as_many_as_are_ready_come_at_once_in_fair_turns() {
    let mut b = broker();
    assert_eq!(b.pops(pop(10, 0)), ["p gets nothing"]);
    b.send(&[
        job("a1").key("a"),
        job("a2").key("a"),
        job("a3").key("a"),
        job("b1").key("b"),
    ]);
    assert_eq!(b.pops(pop(3, 0)), ["p gets a1 b1 a2"]);
    assert_eq!(b.held("jobs"), (1, 3));
    assert_eq!(b.pops(pop(3, 0)), ["p gets a3"]);
    assert_eq!(b.pops(pop(0, 5)), ["p gets nothing"]);
    assert_eq!(
        (b.consumers(), b.h.engine.next_deadline().is_some()),
        (0, true)
    );
    b.ack("jobs", ["a1", "a2", "a3", "b1"]);
    assert_eq!(b.held("jobs"), (0, 0));
}

const fn leased_for(max: u32, lease_ms: u64) -> Take {
    Take::Leased {
        max,
        lease_ms: Some(lease_ms),
        wait_ms: 0,
    }
}

#[test]
fn the_lease_lasts_as_long_as_was_asked_for() {
    let mut b = broker();
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.pops(leased_for(2, 500)), ["p gets a b"]);
    assert_eq!(b.pops(ONE), ["p gets c"]);
    b.advance(499);
    assert_eq!(b.pops(ONE), ["p gets nothing"]);
    b.advance(1);
    assert_eq!(b.pops(pop(9, 0)), ["p gets a#2 b#2"]);
    b.advance(9_499);
    assert_eq!(b.pops(ONE), ["p gets nothing"]);
    b.advance(1);
    assert_eq!(b.pops(pop(9, 0)), ["p gets c#2"]);
    let told = b.settle("jobs", &[("a", NACK), ("c", Settlement::Ack)]);
    assert_eq!(told, [OK, OK]);
    assert_eq!(b.pops(pop(9, 0)), ["p gets a#3"]);
}

#[test]
fn the_lease_outlives_connection_and_restart() {
    let mut b = broker();
    b.send(&jobs(["a", "b", "c"]));
    let conn = b.client();
    b.ask_once((conn, "p"), "jobs", leased_for(2, 30_000));
    b.handle(Request::Disconnect { conn });
    assert_eq!(b.got(), ["p gets a b"]);
    assert_eq!(b.pops(leased_for(1, 500)), ["p gets c"]);
    b.restart(100);
    // As every lease, it is at least as long as the queue's from a restart on.
    b.advance(9_999);
    assert_eq!(b.pops(ONE), ["p gets nothing"]);
    b.advance(1);
    assert_eq!(b.pops(pop(9, 0)), ["p gets c#2"]);
    b.ack("jobs", ["c"]);
    b.advance(19_899);
    assert_eq!(b.pops(ONE), ["p gets nothing"]);
    b.advance(1);
    assert_eq!(b.pops(pop(9, 0)), ["p gets a#2 b#2"]);
}

#[test]
fn who_waits_is_served_in_the_order_of_arrival_and_once() {
    let mut b = broker();
    for name in ["p", "q", "r"] {
        let conn = b.client();
        b.ask_once((conn, name), "jobs", pop(5, 60_000));
    }
    assert_eq!((b.consumers(), b.got().len()), (3, 0));
    b.send(&jobs(["a"]));
    assert_eq!(b.got(), ["p gets a"]);
    b.worker("w", "jobs", None);
    b.send(&jobs(["b", "c"]));
    assert_eq!(b.got(), ["q gets b", "r gets c"]);
    assert_eq!(b.consumers(), 1);
    b.send(&jobs(["d", "e"]));
    assert_eq!(b.got(), ["w: d e"]);
}

#[test]
fn who_asks_again_and_again_has_turns_beside_subscriptions() {
    let mut b = broker();
    b.worker("w", "jobs", None);
    b.ask_once((CLIENT, "p"), "jobs", pop(2, 1000));
    b.send(&jobs(["a", "b", "c", "d", "e", "f"]));
    assert_eq!(b.got(), ["w: a c e f", "p gets b d"]);
}

#[test]
fn a_wait_ends_with_its_time() {
    let mut b = broker();
    b.ask_once((CLIENT, "p"), "jobs", pop(1, 300));
    b.advance(299);
    assert_eq!(b.got(), NOTHING);
    b.advance(1);
    assert_eq!(b.got(), ["p gets nothing"]);
    b.send(&jobs(["a"]));
    assert_eq!((b.got(), b.consumers()), (Vec::new(), 0));
    assert_eq!(b.held("jobs"), (1, 0));
}

#[test]
fn a_cancelled_wait_is_answered_at_once_and_only_once() {
    let mut b = broker();
    let sub = b.ask_once((CLIENT, "p"), "jobs", pop(1, 300));
    let reply = ReplyTo {
        conn: sub.conn,
        token: sub.token,
    };
    b.handle(Request::CancelWait { reply });
    assert_eq!((b.got(), b.consumers()), (vec!["p gets nothing".into()], 0));
    b.send(&jobs(["a"]));
    b.handle(Request::CancelWait { reply });
    b.advance(1000);
    assert_eq!((b.got(), b.held("jobs")), (Vec::new(), (1, 0)));
    // Subscriptions are no waits.
    let sub = b.worker("w", "jobs", None);
    let reply = ReplyTo {
        conn: sub.conn,
        token: sub.token,
    };
    b.handle(Request::CancelWait { reply });
    assert_eq!(b.got(), ["w: a"]);
    assert_eq!(b.consumers(), 1);
}

fn undelivered(conn: ConnId, batch: tanda_engine::DeliveryBatch) -> Request {
    let batch = Box::new(batch);
    Request::GotUndelivered { conn, batch }
}

/// What somebody got, as its session may give it back.
fn batch_of(b: &mut Broker, conn: ConnId) -> Vec<tanda_engine::DeliveryBatch> {
    let out = core::mem::take(&mut b.out);
    let mut all = Vec::new();
    for output in out {
        if let Event::Got {
            result: Ok(Got {
                batch: Some(batch), ..
            }),
            ..
        } = output.event
            && output.conn == conn
        {
            all.push(batch);
        }
    }
    all
}

#[test]
fn what_never_reached_its_client_comes_back_uncounted_to_its_place() {
    let mut b = broker();
    b.send(&jobs(["a", "b", "c", "d"]));
    let conn = b.client();
    b.ask_once((conn, "p"), "jobs", pop(2, 0));
    b.ask_once((conn, "p"), "jobs", pop(1, 0));
    // It would be served by what comes back.
    b.ask_once((conn, "p"), "jobs", pop(1, 300));
    let got = batch_of(&mut b, conn);
    assert_eq!(got.len(), 3);
    b.ask_once((conn, "p"), "jobs", pop(1, 300));
    assert_eq!(b.consumers(), 1);
    for batch in got.into_iter().rev() {
        b.handle(undelivered(conn, batch));
        b.h.engine.assert_invariants();
    }
    assert_eq!((b.got(), b.held("jobs")), (Vec::new(), (4, 0)));
    b.handle(Request::Disconnect { conn });
    b.restart(0);
    assert_eq!(b.pops(pop(9, 0)), ["p gets a b c d"]);
}

#[test]
fn what_was_settled_or_leased_again_does_not_come_back() {
    let mut b = broker();
    b.send(&jobs(["a", "b"]));
    let conn = b.client();
    b.ask_once((conn, "p"), "jobs", pop(2, 0));
    let got = batch_of(&mut b, conn);
    b.ack("jobs", ["a"]);
    b.advance(10_000);
    assert_eq!(b.pops(ONE), ["p gets b#2"]);
    for batch in got {
        b.handle(undelivered(conn, batch));
    }
    assert_eq!(b.held("jobs"), (0, 1));
    b.handle(Request::Disconnect { conn });
    // Also after its connection is gone.
    let other = b.client();
    b.send(&jobs(["c"]));
    b.ask_once((other, "p"), "jobs", pop(2, 0));
    let got = batch_of(&mut b, other);
    b.handle(Request::Disconnect { conn: other });
    for batch in got {
        b.handle(undelivered(other, batch));
    }
    assert_eq!(b.pops(ONE), ["p gets c"]);
}

#[test]
fn a_cancelled_wait_is_not_answered_and_takes_nothing() {
    let mut b = broker();
    let sub = b.ask_once((CLIENT, "p"), "jobs", pop(1, 300));
    let held = Held::Requeue;
    b.handle(Request::Unsubscribe { sub, held });
    let conn = b.client();
    b.ask_once((conn, "q"), "jobs", pop(1, 300));
    b.handle(Request::Disconnect { conn });
    b.send(&jobs(["a"]));
    b.advance(1000);
    assert_eq!((b.got(), b.consumers()), (Vec::new(), 0));
    assert_eq!(b.held("jobs"), (1, 0));
}

#[test]
fn who_waits_hears_that_the_queue_is_deleted() {
    let mut b = broker();
    b.ask_once((CLIENT, "p"), "jobs", pop(1, 300));
    b.admin(tanda_engine::AdminRequest::DeleteQueue {
        vhost: tanda_engine::VhostId::DEFAULT,
        name: "jobs".to_owned(),
    });
    assert_eq!(b.got(), ["p: NotFound"]);
    b.advance(300);
    assert_eq!(b.pops(ONE), ["p: NotFound"]);
}

#[test]
fn what_did_not_leave_returns_to_its_place() {
    let mut b = broker();
    b.send(&jobs(["a", "b", "c"]));
    b.ask_once((CLIENT, "p"), "jobs", pop(2, 0));
    let mut out = core::mem::take(&mut b.out);
    let Some(Event::Got {
        result: Ok(Got {
            batch: Some(batch), ..
        }),
        ..
    }) = out.pop().map(|output| output.event)
    else {
        panic!("nothing was got");
    };
    let (now, h) = (b.h.now, &mut b.h);
    h.engine.undelivered(now, &mut h.journal, CLIENT, &batch);
    h.engine.assert_invariants();
    assert_eq!(b.pops(pop(9, 0)), ["p gets a b c"]);
    b.restart(0);
    b.advance(10_000);
    assert_eq!(b.pops(pop(9, 0)), ["p gets a#2 b#2 c#2"]);
}

#[test]
fn a_connection_without_room_is_answered_when_it_has_some() {
    let mut b = broker();
    b.send(&jobs(["a", "b"]));
    let conn = b.connect(ConnLimits {
        outbound_bytes_max: 10,
        subscriptions_max: 8,
    });
    b.ask_once((conn, "p"), "jobs", ONE);
    assert_eq!(b.got(), ["p gets a"]);
    b.ask_once((conn, "q"), "jobs", ONE);
    assert_eq!(b.got(), NOTHING);
    b.handle(Request::Drained { conn, bytes: 1000 });
    b.run();
    assert_eq!(b.got(), ["q gets b"]);
}

#[test]
fn a_queue_that_goes_with_its_last_consumer_does_not_go_with_who_asks_once() {
    let mut b = crate::declared::broker();
    let c = b.client();
    b.declared(
        c,
        tanda_engine::DeclareQueue {
            auto_delete: true,
            ..durable("jobs")
        },
    );
    b.send(&jobs(["a"]));
    assert_eq!(b.pops(ONE), ["p gets a"]);
    assert!(b.exists(c, "jobs"));
}

#[test]
fn a_message_that_has_expired_is_not_in_the_way() {
    let mut b = crate::declared::broker();
    let c = b.client();
    let ttl = tanda_wire::amqp::Value::I32(100);
    b.declared(c, with_args("jobs", &[("x-message-ttl", ttl)]));
    b.send(&jobs(["a"]));
    b.h.now = b.h.now.after_ms(100);
    let told = b.publish(&jobs(["b"]));
    assert_eq!(told, ["b"]);
    assert_eq!(b.pops(pop(5, 0)), ["p gets b"]);
}

#[test]
fn a_look_shows_what_would_come_and_changes_nothing() {
    let mut b = broker();
    let mut random: u64 = 7;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    let mut sent = 0;
    for _ in 0..40 {
        for _ in 0..draw(6) {
            sent += 1;
            let key = ["a", "b", "c", ""][usize::try_from(draw(4)).unwrap()];
            let message = job(&format!("m{sent}")).key(key);
            let weight = 1 + u32::try_from(key.len() as u64 + draw(1)).unwrap();
            b.send(&[message.weight(weight)]);
        }
        let max = u32::try_from(1 + draw(8)).unwrap();
        let seen = b.pops(Take::Look { max });
        assert_eq!(b.pops(Take::Look { max }), seen, "a look changed something");
        let got = b.pops(pop(max, 0));
        assert_eq!(got, seen);
        // Some come back to their places.
        let names: Vec<_> = got[0]
            .split(' ')
            .skip(2)
            .filter(|it| *it != "nothing")
            .collect();
        for name in names {
            let settlement = if draw(3) == 0 {
                Settlement::Requeue
            } else {
                Settlement::Ack
            };
            assert_eq!(b.settle("jobs", &[(name, settlement)]), [OK]);
        }
    }
    assert!(sent > 50, "{sent}");
}
