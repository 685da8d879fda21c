//! Queues that AMQP and FireMQ declare: which declarations mean the same queue, which arguments are
//! refused, who may use a queue, and when it goes. Texts are RabbitMQ's.

use tanda_engine::{
    AdminReply, AdminRequest, DeclareQueue, GetError, SubscribeError, TopologyCode, VhostId,
};
use tanda_wire::amqp::Value;

use crate::broker::{Broker, job, jobs, queue};
use crate::declared::{
    ACK, broker, consume, durable, exclusive, passive, transient_queue, with_args,
};

const NAME: &str = "queue 'jobs' in vhost '/'";

const fn text(value: &str) -> Value<'_> {
    Value::text(value)
}

#[test]
fn a_passive_declare_looks_at_the_name_only() {
    let mut b = broker();
    let c = b.client();
    let missing = b.declare(c, passive("jobs"));
    let expected = (TopologyCode::NotFound, format!("no {NAME}"));
    assert_eq!(missing, Err(expected));
    b.declared(c, with_args("jobs", &[("x-message-ttl", Value::I32(9))]));
    b.send(&jobs(["a", "b"]));
    b.consumer(c, "w", consume("jobs", Some(1)));
    let other = DeclareQueue {
        args: crate::declared::args(&[("x-message-ttl", text("never"))]),
        auto_delete: true,
        ..passive("jobs")
    };
    let found = b.declare(c, other).unwrap();
    assert_eq!(
        (found.name.as_str(), found.messages, found.consumers),
        ("jobs", 1, 1)
    );
}

#[test]
fn a_second_declaration_must_mean_the_same_queue() {
    let mut b = broker();
    let c = b.client();
    let ttl = |value| with_args("jobs", &[("x-message-ttl", value)]);
    b.declared(c, ttl(Value::I32(10_000)));
    // The width of a number does not matter.
    b.declared(c, ttl(Value::I64(10_000)));
    b.declared(c, ttl(Value::U16(10_000)));
    let start = "inequivalent arg 'x-message-ttl' for queue 'jobs' in vhost '/': received";
    assert_eq!(
        b.precondition(c, ttl(Value::I32(20_000))),
        format!("{start} '20000' but current is '10000'")
    );
    assert_eq!(
        b.precondition(c, durable("jobs")),
        format!("{start} none but current is the value '10000' of type 'signedint'")
    );
    assert_eq!(
        b.precondition(c, ttl(text("10000"))),
        format!("{start} '10000' but current is '10000'")
    );
    assert_eq!(
        b.precondition(c, transient_queue("jobs")),
        format!("inequivalent arg 'durable' for {NAME}: received 'false' but current is 'true'")
    );
    let auto_delete = DeclareQueue {
        auto_delete: true,
        ..ttl(Value::I32(10_000))
    };
    assert_eq!(
        b.precondition(c, auto_delete),
        format!(
            "inequivalent arg 'auto_delete' for {NAME}: received 'true' but current is 'false'"
        )
    );
    let overflow = with_args(
        "jobs",
        &[
            ("x-message-ttl", Value::I32(10_000)),
            ("x-overflow", text("reject-publish")),
        ],
    );
    assert_eq!(
        b.precondition(c, overflow),
        format!(
            "inequivalent arg 'x-overflow' for {NAME}: received the value 'reject-publish' of \
             type 'longstr' but current is none"
        )
    );
    let quorum = with_args("jobs", &[("x-queue-type", text("quorum"))]);
    assert_eq!(
        b.precondition(c, quorum),
        format!(
            "inequivalent arg 'x-queue-type' for {NAME}: received 'quorum' but current is 'classic'"
        )
    );
}

#[test]
fn unknown_arguments_may_differ() {
    let mut b = broker();
    let c = b.client();
    let declared = |foo, timeout| {
        with_args(
            "jobs",
            &[
                ("x-foo", text(foo)),
                ("x-consumer-timeout", Value::I32(timeout)),
            ],
        )
    };
    b.declared(c, declared("a", 5));
    b.declared(c, declared("b", 6));
    b.declared(c, durable("jobs"));
    b.declared(c, with_args("jobs", &[("x-queue-type", text("classic"))]));
    b.restart(0);
    let c = b.client();
    b.declared(c, declared("c", 7));
}

#[test]
fn an_exclusive_queue_is_as_durable_as_its_connection() {
    let mut b = broker();
    let c = b.client();
    b.declared(
        c,
        DeclareQueue {
            durable: true,
            ..exclusive("jobs")
        },
    );
    b.declared(c, exclusive("jobs"));
    b.restart(0);
    let c = b.client();
    assert!(!b.exists(c, "jobs"));
}

/// Arguments that are refused, with what is said of each.
fn refused_arguments() -> Vec<(&'static str, Value<'static>, &'static str)> {
    vec![
        (
            "x-message-ttl",
            text("5"),
            "\"expected integer, got longstr\"",
        ),
        ("x-message-ttl", Value::I32(-5), "{value_negative,-5}"),
        ("x-expires", Value::I32(0), "{value_zero,0}"),
        (
            "x-expires",
            Value::Bool(true),
            "\"expected integer, got bool\"",
        ),
        ("x-max-length", Value::I64(-1), "{value_negative,-1}"),
        (
            "x-max-length",
            text("1"),
            "\"expected integer, got longstr\"",
        ),
        ("x-max-length-bytes", Value::I8(-1), "{value_negative,-1}"),
        (
            "x-max-priority",
            Value::I32(256),
            "{max_value_exceeded,256}",
        ),
        ("x-max-priority", Value::I32(-1), "{value_negative,-1}"),
        ("x-overflow", text("drop-tail"), "invalid_overflow"),
        ("x-overflow", Value::I32(1), "{unacceptable_type,signedint}"),
        (
            "x-dead-letter-routing-key",
            text("k"),
            "routing_key_but_no_dlx_defined",
        ),
        (
            "x-dead-letter-strategy",
            text("often"),
            "invalid_dlx_strategy",
        ),
        (
            "x-queue-type",
            text("cubic"),
            "\"unsupported queue type 'cubic'\"",
        ),
        (
            "x-queue-type",
            Value::I32(1),
            "{unacceptable_type,signedint}",
        ),
        (
            "x-single-active-consumer",
            text("yes"),
            "{unacceptable_type,longstr}",
        ),
        (
            "x-queue-mode",
            text("busy"),
            "\"unsupported queue mode 'busy'\"",
        ),
        (
            "x-queue-version",
            Value::I32(3),
            "\"unsupported queue version '3'\"",
        ),
        (
            "x-fairness-key",
            Value::I32(3),
            "{unacceptable_type,signedint}",
        ),
        ("x-dedup-window", Value::I32(0), "{value_zero,0}"),
    ]
}

#[test]
fn arguments_are_checked() {
    let dlx = "x-dead-letter-exchange";
    let mut b = broker();
    let c = b.client();
    for (key, value, problem) in refused_arguments() {
        let refusal = b.precondition(c, with_args("jobs", &[(key, value)]));
        assert_eq!(
            refusal,
            format!("invalid arg '{key}' for {NAME}: {problem}")
        );
        // A refusal leaves nothing.
        assert!(!b.exists(c, "jobs"), "{key}");
    }
    assert_eq!(
        b.precondition(c, with_args("jobs", &[(dlx, Value::Bool(true))])),
        format!("invalid type 'bool' for arg '{dlx}' in {NAME}")
    );
    let good = [
        ("x-message-ttl", Value::I32(0)),
        ("x-max-priority", Value::U8(0)),
        ("x-max-length", Value::I32(0)),
        ("x-queue-mode", text("lazy")),
        ("x-queue-version", Value::I32(2)),
        ("x-dead-letter-routing-key", text("k")),
        (dlx, text("nowhere")),
        ("x-delivery-limit", Value::I32(-1)),
    ];
    b.declared(c, with_args("jobs", &good));
}

#[test]
fn streams_are_not_implemented() {
    let mut b = broker();
    let c = b.client();
    let refusal = b.declare(c, with_args("jobs", &[("x-queue-type", text("stream"))]));
    assert_eq!(refusal.unwrap_err().0, TopologyCode::NotImplemented);
    assert!(!b.exists(c, "jobs"));
}

#[test]
fn a_quorum_queue_is_durable_and_shared() {
    let mut b = broker();
    let c = b.client();
    let kind = [("x-queue-type", text("quorum"))];
    for (declare, property) in [
        (
            DeclareQueue {
                durable: false,
                ..with_args("jobs", &kind)
            },
            "non-durable",
        ),
        (
            DeclareQueue {
                exclusive: true,
                ..with_args("jobs", &kind)
            },
            "exclusive-owner",
        ),
        (
            DeclareQueue {
                auto_delete: true,
                ..with_args("jobs", &kind)
            },
            "auto-delete",
        ),
    ] {
        let refusal = b.precondition(c, declare);
        assert_eq!(refusal, format!("invalid property '{property}' for {NAME}"));
    }
    b.declared(c, with_args("jobs", &kind));
    assert_eq!(
        b.precondition(c, durable("jobs")),
        format!(
            "inequivalent arg 'x-queue-type' for {NAME}: received 'classic' but current is 'quorum'"
        )
    );
}

#[test]
fn reserved_names_can_be_looked_at_only() {
    let mut b = broker();
    let c = b.client();
    let refusal = b.declare(c, durable("amq.mine")).unwrap_err();
    let text = "queue name 'amq.mine' contains reserved prefix 'amq.*'".to_owned();
    assert_eq!(refusal, (TopologyCode::AccessRefused, text));
    assert!(!b.exists(c, "amq.mine"));
    assert!(b.declare(c, durable(&"x".repeat(255))).is_ok());
}

#[test]
fn a_queue_without_a_name_gets_one() {
    let mut b = broker();
    let c = b.client();
    let first = b.declare(c, exclusive("")).unwrap().name;
    let second = b.declare(c, exclusive("")).unwrap().name;
    assert_ne!(first, second);
    for name in [&first, &second] {
        let rest = name.strip_prefix("amq.gen-").unwrap();
        assert_eq!(rest.len(), 22);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        assert!(rest.chars().all(plain), "{name}");
        assert!(b.exists(c, name));
    }
    let missing = b.declare(c, passive("")).unwrap_err();
    assert_eq!(
        missing,
        (
            TopologyCode::NotFound,
            "no queue '' in vhost '/'".to_owned()
        )
    );
}

#[test]
fn an_exclusive_queue_is_locked_for_others() {
    let mut b = broker();
    let (c, other) = (b.client(), b.client());
    b.declared(c, exclusive("jobs"));
    let locked = format!(
        "cannot obtain exclusive access to locked {NAME}. It could be originally declared on \
         another connection or the exclusive property value does not match that of the original \
         declaration."
    );
    let refused = (TopologyCode::ResourceLocked, locked.clone());
    for declare in [passive("jobs"), exclusive("jobs"), transient_queue("jobs")] {
        assert_eq!(b.declare(other, declare), Err(refused.clone()));
    }
    assert_eq!(b.declare(c, transient_queue("jobs")), Err(refused.clone()));
    assert_eq!(b.purge(other, "jobs"), Err(refused.clone()));
    assert_eq!(
        b.remove(other, "jobs", (false, false)),
        Err(refused.clone())
    );
    let consume_refused = b.refused_consumer(other, consume("jobs", None));
    assert_eq!(consume_refused, SubscribeError::ResourceLocked(locked));
    match b.refused_get(other, "jobs") {
        GetError::Topology(error) => assert_eq!((error.code, error.text), refused),
        GetError::NotFound => panic!("not found"),
    }
    // Publishing to it is allowed.
    b.send(&jobs(["a"]));
    assert_eq!(b.get(c, "jobs"), ("a".to_owned(), 0));
    b.declared(other, transient_queue("shared"));
    let refused = b.declare(other, exclusive("shared")).unwrap_err();
    assert_eq!(refused.0, TopologyCode::ResourceLocked);
}

#[test]
fn exclusive_queues_go_with_their_connection() {
    let mut b = broker();
    let (c, other) = (b.client(), b.client());
    b.declared(c, exclusive("jobs"));
    b.declared(c, exclusive("more"));
    b.declared(c, durable("stays"));
    b.send(&jobs(["a"]));
    b.leave(c);
    assert!(!b.exists(other, "jobs") && !b.exists(other, "more"));
    assert!(b.exists(other, "stays"));
    b.declared(other, exclusive("jobs"));
}

#[test]
fn a_connection_that_closes_takes_only_what_is_its_own_then() {
    let mut b = broker();
    let (c, other) = (b.client(), b.client());
    b.declared(c, exclusive("jobs"));
    b.declared(c, exclusive("more"));
    // A name that was its own once belongs to everybody now.
    assert_eq!(b.remove(c, "jobs", (false, false)), Ok(0));
    b.declared(other, durable("jobs"));
    b.declared(other, exclusive("theirs"));
    b.send(&jobs(["a"]));
    assert_eq!(b.remove_own(c), Ok(0));
    assert!(b.exists(other, "jobs") && !b.exists(other, "more"));
    assert!(b.exists(other, "theirs"));
    assert_eq!(b.get(other, "jobs"), ("a".to_owned(), 0));
    b.leave(c);
    assert!(b.exists(other, "jobs"));
}

#[test]
fn transient_queues_are_gone_after_a_restart() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, transient_queue("jobs"));
    b.declared(c, exclusive("mine"));
    b.declared(c, durable("durable"));
    b.send(&jobs(["a"]));
    b.send(&[crate::harness::Msg::to("durable").payload("d")]);
    // Nobody waits for what is not to last.
    let waited = b.declare(c, transient_queue("another"));
    assert!(waited.is_ok());
    assert_eq!(b.after, tanda_engine::Lsn::ZERO);
    for _ in 0..2 {
        b.restart(0);
        let c = b.client();
        assert!(!b.exists(c, "jobs") && !b.exists(c, "mine") && !b.exists(c, "another"));
        assert!(b.exists(c, "durable"));
    }
    let c = b.client();
    assert_eq!(b.get(c, "durable"), ("d".to_owned(), 0));
    b.snapshot();
    b.restart(0);
    let c = b.client();
    assert!(b.exists(c, "durable"));
}

#[test]
fn policies_survive_restarts_and_snapshots() {
    let mut b = broker();
    let c = b.client();
    let entries = [
        ("x-message-ttl", Value::I32(5_000)),
        ("x-max-length", Value::I32(3)),
        ("x-max-priority", Value::I32(5)),
        ("x-dead-letter-exchange", text("dlx")),
        ("x-ordering-key", text("account")),
    ];
    b.declared(c, with_args("jobs", &entries));
    let before = b.admin(AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    });
    let AdminReply::Inspected(Ok(details)) = &before else {
        panic!("{before:?}");
    };
    let policy = details.config.amqp.as_ref().unwrap();
    assert_eq!(
        (
            policy.message_ttl_ms,
            policy.max_messages,
            policy.max_priority
        ),
        (Some(5_000), Some(3), Some(5))
    );
    assert_eq!(policy.dead_letter_exchange.as_deref(), Some("dlx"));
    assert_eq!(
        (&details.dead_letter_queue, &details.parent),
        (&None, &None)
    );
    b.restart(0);
    b.snapshot();
    b.restart(0);
    let after = b.admin(AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    });
    assert_eq!(before, after);
}

#[test]
fn a_queue_that_fila_made_is_found_when_nothing_else_is_asked_for() {
    let mut b = Broker::with(queue("jobs"));
    let c = b.client();
    b.declared(c, passive("jobs"));
    b.declared(c, durable("jobs"));
    b.declared(c, with_args("jobs", &[("x-queue-type", text("classic"))]));
    b.declared(c, durable("jobs.dlq"));
    assert_eq!(
        b.precondition(c, transient_queue("jobs")),
        format!("inequivalent arg 'durable' for {NAME}: received 'false' but current is 'true'")
    );
    assert_eq!(
        b.precondition(c, with_args("jobs", &[("x-expires", Value::I32(7))])),
        format!(
            "inequivalent arg 'x-expires' for {NAME}: received the value '7' of type 'signedint' \
             but current is none"
        )
    );
    let refused = b.declare(c, exclusive("jobs")).unwrap_err();
    assert_eq!(refused.0, TopologyCode::ResourceLocked);
    let dead = b.remove(c, "jobs.dlq", (false, false)).unwrap_err();
    assert_eq!(dead.0, TopologyCode::PreconditionFailed);
    assert_eq!(b.remove(c, "jobs", (false, false)), Ok(0));
    assert!(!b.exists(c, "jobs") && !b.exists(c, "jobs.dlq"));
}

#[test]
fn a_queue_is_removed_when_it_is_unused_and_empty() {
    let mut b = broker();
    let c = b.client();
    assert_eq!(b.remove(c, "jobs", (true, true)), Ok(0));
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b"]));
    let precondition = |text: String| Err((TopologyCode::PreconditionFailed, text));
    let not_empty = precondition(format!("{NAME} not empty"));
    assert_eq!(b.remove(c, "jobs", (true, true)), not_empty);
    let sub = b.consumer(c, "w", consume("jobs", Some(1)));
    assert_eq!(b.told_consumers(), ["w: a"]);
    let in_use = precondition(format!("{NAME} in use"));
    assert_eq!(b.remove(c, "jobs", (true, false)), in_use);
    // One message is held, and not counted.
    assert_eq!(b.remove(c, "jobs", (false, false)), Ok(1));
    assert_eq!(b.told_consumers(), ["w QueueDeleted"]);
    assert_eq!(b.settle("jobs", &[("a", ACK)]), [crate::broker::NOT_LEASED]);
    b.leave(sub.conn);
}

#[test]
fn a_purge_counts_ready_messages() {
    let mut b = broker();
    let c = b.client();
    let missing = (TopologyCode::NotFound, format!("no {NAME}"));
    assert_eq!(b.purge(c, "jobs"), Err(missing));
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a", "b", "c"]));
    b.consumer(c, "w", consume("jobs", Some(1)));
    assert_eq!(b.purge(c, "jobs"), Ok(2));
    assert_eq!(b.held("jobs"), (0, 1));
    assert_eq!(b.purge(c, "jobs"), Ok(0));
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer() {
    let mut b = broker();
    let (c, d) = (b.client(), b.client());
    let auto = DeclareQueue {
        auto_delete: true,
        ..durable("jobs")
    };
    b.declared(c, auto);
    b.send(&[job("a")]);
    // Never before its first consumer, and a get is none.
    assert_eq!(b.get(d, "jobs"), ("a".to_owned(), 0));
    b.leave(d);
    assert!(b.exists(c, "jobs"));
    let d = b.client();
    let first = b.consumer(c, "v", consume("jobs", Some(0)));
    b.consumer(d, "w", consume("jobs", Some(0)));
    b.cancel(first, tanda_engine::Held::Keep);
    assert!(b.exists(c, "jobs"));
    b.leave(d);
    assert!(!b.exists(c, "jobs"));
    b.restart(0);
    let c = b.client();
    assert!(!b.exists(c, "jobs"));
}

#[test]
fn an_unused_queue_expires() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-expires", Value::I32(1_000))]));
    b.send(&[job("a")]);
    b.advance(999);
    // Being declared and being asked for a message are uses.
    b.declared(c, with_args("jobs", &[("x-expires", Value::I32(1_000))]));
    b.advance(999);
    assert_eq!(b.get(c, "jobs"), ("a".to_owned(), 0));
    b.advance(999);
    let sub = b.consumer(c, "w", consume("jobs", Some(1)));
    b.advance(10_000);
    b.cancel(sub, tanda_engine::Held::Requeue);
    b.advance(999);
    assert_eq!(b.counts("jobs").depth, 0);
    b.advance(1);
    assert!(!b.exists(c, "jobs"));
    b.restart(0);
    let c = b.client();
    assert!(!b.exists(c, "jobs"));
}

#[test]
fn a_full_broker_makes_no_queues() {
    let mut b = broker();
    let c = b.client();
    b.h.engine.set_storage_full(true);
    assert_eq!(
        b.declare(c, durable("jobs")).unwrap_err().0,
        TopologyCode::Storage
    );
    b.h.engine.set_storage_full(false);
    b.declared(c, durable("jobs"));
    b.h.engine.set_storage_full(true);
    b.declared(c, durable("jobs"));
}

#[test]
fn fila_changes_what_applies_to_a_declared_queue() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    let update = |changes| AdminRequest::UpdateQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
        changes: Box::new(changes),
    };
    let lease = tanda_engine::QueueChanges {
        lease_ms: Some(5_000),
        ..tanda_engine::QueueChanges::default()
    };
    assert_eq!(b.admin(update(lease)), AdminReply::Updated(Ok(())));
    let attempts = tanda_engine::QueueChanges {
        max_attempts: Some(2),
        ..tanda_engine::QueueChanges::default()
    };
    let refused = b.admin(update(attempts));
    let AdminReply::Updated(Err(tanda_engine::UpdateQueueError::InvalidSetting {
        setting, ..
    })) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(setting, "max_attempts");
    b.restart(0);
    assert!(b.exists(crate::broker::CLIENT, "jobs"));
    let deleted = b.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: "jobs".to_owned(),
    });
    assert_eq!(deleted, AdminReply::Deleted(Ok(())));
}

#[test]
fn a_fila_consumer_on_a_declared_queue_holds_leases_and_fails_nothing() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, durable("jobs"));
    b.send(&jobs(["a"]));
    b.worker("w", "jobs", Some(1));
    assert_eq!(b.got(), ["w: a"]);
    let w = b.worker("v", "jobs", None);
    b.nack("jobs", "a");
    assert_eq!(b.got(), ["v: a#2"]);
    // The default visibility timeout.
    b.advance(29_999);
    assert_eq!(b.got(), Vec::<String>::new());
    b.advance(1);
    assert_eq!(b.got(), ["v: a#3"]);
    for _ in 0..20 {
        b.nack("jobs", "a");
    }
    assert_eq!(b.held("jobs"), (0, 1));
    b.disconnect(w);
    b.ack("jobs", ["a"]);
}

#[test]
fn a_queues_time_to_live_is_that_of_its_messages() {
    let mut b = broker();
    let c = b.client();
    b.declared(
        c,
        with_args("jobs", &[("x-message-ttl", Value::I32(1_000))]),
    );
    b.send(&jobs(["a"]));
    b.advance(600);
    b.send(&jobs(["b"]));
    b.advance(400);
    assert_eq!(b.get(c, "jobs"), ("b".to_owned(), 0));
    b.restart(600);
    assert_eq!(b.held("jobs"), (0, 0));
}

/// A message whose body has so many bytes.
fn sized(name: &str, bytes: usize) -> crate::harness::Msg {
    let name = format!("{name}{}", ".".repeat(bytes - name.len()));
    job(&name)
}

#[test]
fn the_bytes_of_bodies_are_limited() {
    let mut b = broker();
    let c = b.client();
    b.declared(
        c,
        with_args("jobs", &[("x-max-length-bytes", Value::I32(25))]),
    );
    b.send(&[sized("a", 10), sized("b", 10), sized("c", 10)]);
    assert_eq!(b.counts("jobs").depth, 2);
    // What is held does not count, and counts again when it comes back: the first gives way.
    assert_eq!(b.get(c, "jobs").0, "b.........");
    b.send(&[sized("d", 10)]);
    assert_eq!(b.held("jobs"), (2, 1));
    let requeue = crate::declared::REQUEUE;
    b.settle("jobs", &[("b.........", requeue)]);
    assert_eq!(b.get(c, "jobs"), ("c.........".to_owned(), 1));
}

#[test]
fn a_full_queue_drops_its_head_or_refuses() {
    let mut b = broker();
    let c = b.client();
    let limit = ("x-max-length", Value::I32(2));
    b.declared(c, with_args("jobs", &[limit]));
    b.send(&jobs(["a", "b", "c"]));
    assert_eq!(b.get(c, "jobs"), ("b".to_owned(), 1));
    b.send(&jobs(["d", "e"]));
    assert_eq!(b.held("jobs"), (2, 1));
    assert_eq!(b.remove(c, "jobs", (false, false)), Ok(2));
    let refuse = ("x-overflow", text("reject-publish"));
    b.declared(c, with_args("jobs", &[limit, refuse]));
    assert_eq!(b.publish(&jobs(["f", "g", "h"])), ["f", "g", "QueueFull"]);
}

#[test]
fn what_a_consumer_takes_at_once_is_not_over_the_limit() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-max-length", Value::I32(1))]));
    b.consumer(c, "w", consume("jobs", Some(3)));
    b.send(&jobs(["a", "b", "c", "d", "e"]));
    assert_eq!(b.told_consumers(), ["w: a b c"]);
    assert_eq!(b.get(c, "jobs"), ("e".to_owned(), 0));
}

#[test]
fn a_priority_above_the_queues_counts_as_it_and_is_no_redelivery() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-max-priority", Value::I32(5))]));
    b.declared(c, durable("flat"));
    let at = |priority, name: &str| {
        let mut message = job(name);
        message.priority = priority;
        message
    };
    b.send(&[at(0, "a"), at(5, "b"), at(9, "c"), at(5, "d"), at(3, "e")]);
    b.consumer(c, "w", consume("jobs", Some(4)));
    assert_eq!(b.told_consumers(), ["w: b c d e"]);
    // Who takes everything at once sees them as they come.
    b.consumer(c, "all", consume("jobs", None));
    b.send(&[at(1, "f")]);
    b.send(&[at(2, "g")]);
    assert_eq!(b.told_consumers(), ["all: a", "all: f", "all: g"]);
    for priority in [0, 9] {
        let mut message = at(priority, &format!("p{priority}"));
        message.queue = "flat".to_owned();
        b.send(&[message]);
    }
    // Without priorities there is only the order.
    assert_eq!(b.get(c, "flat").0, "p0");
}

#[test]
fn a_length_of_0_keeps_nothing_and_higher_priorities_may_give_way() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-max-length", Value::I32(0))]));
    assert_eq!(b.publish(&jobs(["a"])), ["a"]);
    assert_eq!(b.held("jobs"), (0, 0));
    assert_eq!(b.remove(c, "jobs", (false, false)), Ok(0));
    let ranked = [
        ("x-max-length", Value::I32(2)),
        ("x-max-priority", Value::I32(9)),
    ];
    b.declared(c, with_args("jobs", &ranked));
    for (priority, name) in [(9, "b"), (0, "c"), (0, "d")] {
        let mut message = job(name);
        message.priority = priority;
        b.send(&[message]);
    }
    assert_eq!(b.get(c, "jobs"), ("c".to_owned(), 1));
    assert_eq!(b.get(c, "jobs"), ("d".to_owned(), 0));
    // What comes back over the limit makes the head go.
    b.send(&jobs(["e", "f"]));
    assert_eq!(
        b.settle("jobs", &[("c", crate::declared::REQUEUE)]),
        [crate::broker::OK]
    );
    assert_eq!(b.get(c, "jobs"), ("e".to_owned(), 1));
}

#[test]
fn what_was_held_before_a_restart_counts_after_it() {
    let mut b = broker();
    let c = b.client();
    b.declared(c, with_args("jobs", &[("x-max-length", Value::I32(2))]));
    b.consumer(c, "w", consume("jobs", Some(2)));
    b.send(&jobs(["a", "b", "c", "d"]));
    assert_eq!(b.held("jobs"), (2, 2));
    b.restart(0);
    assert_eq!(b.held("jobs"), (2, 0));
    let c = b.client();
    assert_eq!(b.get(c, "jobs"), ("c".to_owned(), 1));
}
