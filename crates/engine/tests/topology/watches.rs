//! Watches of topic exchanges: who is told of what, what is lost, and when they end.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, Event, ExchangeSpec, Lsn, Output, PublishError,
    PublishResult, PublishTarget, Request, SubId, TopologyCode, VhostId, WatchSpec, WatchedMessage,
};

use crate::harness::CONN;
use crate::world::{Msg, World, durable};

/// Another connection, with little room.
const NARROW: ConnId = ConnId(2);

pub(crate) const fn sub(token: u32) -> SubId {
    SubId { conn: CONN, token }
}

pub(crate) fn spec(exchange: &str, pattern: &str, buffer: u32) -> Box<WatchSpec> {
    Box::new(WatchSpec {
        vhost: VhostId::DEFAULT,
        exchange: exchange.to_owned(),
        pattern: pattern.to_owned(),
        buffer,
    })
}

/// Outputs as text, without what they wait for.
fn told(out: &[Output]) -> Vec<String> {
    let text = |output: &Output| match &output.event {
        Event::Watching { token, result } => match result {
            Ok(()) => format!("{token} watches"),
            Err(error) => format!("{token}: {:?}", error.code),
        },
        Event::Watched { token, message } => {
            assert_eq!(output.after, Lsn::ZERO);
            let WatchedMessage {
                channel, dropped, ..
            } = &**message;
            format!("{token} sees {channel} -{dropped}")
        }
        Event::WatchEnded { token } => format!("{token} ends"),
        Event::Published { results, .. } => match results[0] {
            PublishResult::Stored(_) => "stored".to_owned(),
            PublishResult::Sent { receivers } => format!("sent to {receivers}"),
            other => format!("{other:?}"),
        },
        Event::Admin { reply, .. } => match &**reply {
            AdminReply::ExchangeDeleted(Ok(())) => "deleted".to_owned(),
            other => format!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    out.iter().map(text).collect()
}

impl World {
    fn watch(&mut self, token: u32, exchange: &str, pattern: &str, buffer: u32) -> Vec<String> {
        let (sub, spec) = (sub(token), spec(exchange, pattern, buffer));
        told(&self.h.handle(Request::Watch { sub, spec }))
    }

    fn send(&mut self, exchange: &str, key: &str) -> Vec<String> {
        told(&self.publish_all(&Msg {
            exchange,
            key,
            ..Msg::default()
        }))
    }

    /// Publishes as `pubsub.publish` does.
    fn publish_topic(&mut self, exchange: &str, key: &str) -> Vec<String> {
        told(&self.publish_all(&Msg {
            exchange,
            key,
            target: PublishTarget::Topic,
            ..Msg::default()
        }))
    }

    fn channels(&mut self, exchange: &str) -> Result<Vec<String>, TopologyCode> {
        let reply = self.h.admin(AdminRequest::ListChannels {
            vhost: VhostId::DEFAULT,
            exchange: exchange.to_owned(),
            answer_bytes_max: 10,
        });
        match reply {
            AdminReply::Channels(result) => result.map_err(|error| error.code),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn who_watches_is_told_at_once_and_beside_queues() {
    let mut w = World::new();
    assert_eq!(w.watch(1, "t", "a.*", 9), ["1 watches"]);
    assert_eq!(w.watch(2, "t", "#", 9), ["2 watches"]);
    assert_eq!(w.exchanges(), ["t"]);
    assert_eq!(
        w.send("t", "a.b"),
        ["1 sees a.b -0", "2 sees a.b -0", "sent to 2"]
    );
    w.bind("t", "q1", "b");
    assert_eq!(w.send("t", "b"), ["2 sees b -0", "stored"]);
    assert_eq!(w.publish_topic("t", "b"), ["2 sees b -0", "sent to 2"]);
    w.bind("t", "q2", "b");
    assert_eq!(w.publish_topic("t", "b"), ["2 sees b -0", "sent to 3"]);
    w.h.handle(Request::Unwatch { sub: sub(2) });
    assert_eq!(w.send("t", "c"), ["Unroutable"]);
    assert_eq!(w.publish_topic("t", "c"), ["sent to 0"]);
    assert_eq!(w.channels("t"), Ok(vec!["a.*".to_owned()]));
}

#[test]
fn the_message_is_shared_as_it_came() {
    let mut w = World::new();
    for token in [1, 2] {
        w.watch(token, "t", "x", 9);
    }
    let msg = Msg {
        exchange: "t",
        key: "x",
        ..Msg::default()
    };
    let out = w.publish_all(&msg);
    let seen = out.iter().filter_map(|output| match &output.event {
        Event::Watched { message, .. } => Some(message),
        _ => None,
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].published_at, w.h.now);
    assert_eq!(seen[0].content().payload(), Ok(b"body".as_slice()));
    let at = |bytes: &Bytes| bytes.as_ptr();
    assert_eq!(at(&seen[0].content), at(&seen[1].content));
}

#[test]
fn who_does_not_take_loses_and_is_told_how_much() {
    let mut w = World::new();
    w.watch(1, "t", "x", 2);
    w.watch(2, "t", "x", 9);
    w.send("t", "x");
    w.send("t", "x");
    assert_eq!(w.send("t", "x"), ["2 sees x -0", "sent to 1"]);
    assert_eq!(w.send("t", "x"), ["2 sees x -0", "sent to 1"]);
    let drained = |events| Request::WatchDrained {
        sub: sub(1),
        events,
    };
    w.h.handle(drained(1));
    let both = |n| {
        [
            format!("1 sees x -{n}"),
            "2 sees x -0".to_owned(),
            "sent to 2".to_owned(),
        ]
    };
    assert_eq!(w.send("t", "x"), both(2));
    w.h.handle(drained(9));
    assert_eq!(w.send("t", "x"), both(0));
    // A new one of the same name has lost nothing and takes again.
    assert_eq!(w.watch(1, "t", "x", 1), ["1 watches"]);
    let others_first = ["2 sees x -0", "1 sees x -0", "sent to 2"];
    assert_eq!(w.send("t", "x"), others_first);
    assert_eq!(w.send("t", "x"), ["2 sees x -0", "sent to 1"]);
}

#[test]
fn a_connection_without_room_loses_too() {
    let mut w = World::new();
    let limits = ConnLimits {
        outbound_bytes_max: 200,
        subscriptions_max: 1,
    };
    w.h.handle(Request::Connect {
        conn: NARROW,
        limits,
    });
    let narrow = |token| SubId {
        conn: NARROW,
        token,
    };
    let watch = |token| Request::Watch {
        sub: narrow(token),
        spec: spec("t", "x", 9),
    };
    assert_eq!(told(&w.h.handle(watch(1))), ["1 watches"]);
    assert_eq!(told(&w.h.handle(watch(2))), ["2: ResourceError"]);
    let seen = ["1 sees x -0", "sent to 1"];
    assert_eq!(w.send("t", "x"), seen);
    assert_eq!(w.send("t", "x"), seen);
    assert_eq!(w.send("t", "x"), ["sent to 0"]);
    let (conn, bytes) = (NARROW, 200);
    w.h.handle(Request::Drained { conn, bytes });
    assert_eq!(w.send("t", "x"), ["1 sees x -1", "sent to 1"]);
    w.h.handle(Request::Disconnect { conn });
    assert_eq!(w.send("t", "x"), ["Unroutable"]);
    assert_eq!(w.channels("t"), Ok(Vec::new()));
}

#[test]
fn a_message_comes_once_by_the_first_key_that_matches() {
    let mut w = World::new();
    w.watch(1, "t", "b", 9);
    w.watch(2, "t", "*", 9);
    let msg = Msg {
        exchange: "t",
        key: "a",
        extra: &["b", "c"],
        ..Msg::default()
    };
    let out = w.publish_all(&msg);
    assert_eq!(told(&out), ["1 sees b -0", "2 sees a -0", "sent to 2"]);
}

#[test]
fn exchanges_behind_exchanges_are_watched() {
    let mut w = World::new();
    w.exchange("first", "fanout");
    w.watch(1, "t", "#", 9);
    w.bind("first", "t", "");
    w.bind("t", "first", "#");
    assert_eq!(w.send("first", "k"), ["1 sees k -0", "sent to 1"]);
    // What somebody watches goes nowhere else.
    w.exchange("rest", "fanout");
    w.bind("rest", "q1", "");
    let args = [("alternate-exchange", tanda_wire::amqp::Value::text("rest"))];
    let alternating = ExchangeSpec {
        args: crate::world::table(&args).into(),
        ..durable("u", "topic")
    };
    assert_eq!(w.declare(alternating), Ok(()));
    assert_eq!(w.send("u", "k"), ["stored"]);
    w.watch(2, "u", "k", 9);
    assert_eq!(w.send("u", "k"), ["2 sees k -0", "sent to 1"]);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let mut w = World::new();
    w.exchange("d", "direct");
    assert_eq!(w.watch(1, "d", "x", 1), ["1: WrongType"]);
    assert_eq!(w.watch(1, "", "x", 1), ["1: WrongType"]);
    assert_eq!(w.watch(1, "amq.x", "x", 1), ["1: AccessRefused"]);
    assert_eq!(
        w.watch(1, "t", &"x".repeat(256), 1),
        ["1: PreconditionFailed"]
    );
    assert_eq!(w.watch(1, "amq.topic", "x", 1), ["1 watches"]);
    assert_eq!(w.channels("d"), Err(TopologyCode::WrongType));
    assert_eq!(w.channels("none"), Err(TopologyCode::NotFound));
    w.watch(2, "amq.topic", "long.pattern", 1);
    assert_eq!(w.channels("amq.topic"), Err(TopologyCode::ResourceError));
    let refused = |error| [format!("{:?}", PublishResult::Refused(error))];
    assert_eq!(
        w.publish_topic("d", "x"),
        refused(PublishError::ExchangeNotTopic)
    );
    assert_eq!(
        w.publish_topic("amq.x", "x"),
        refused(PublishError::Forbidden)
    );
    assert_eq!(w.exchanges(), ["d"]);
    // Nobody wrote anything for watches, but a topic is as durable as another exchange.
    assert_eq!(w.publish_topic("new", "x"), ["sent to 0"]);
    w.h.restart(0);
    assert_eq!(w.exchanges(), ["d", "new"]);
    assert_eq!(w.channels("amq.topic"), Ok(Vec::new()));
}

#[test]
fn a_watch_ends_with_its_exchange() {
    let mut w = World::new();
    w.watch(1, "t", "x", 1);
    w.watch(2, "u", "x", 1);
    assert_eq!(
        w.delete("t", true).unwrap_err().0,
        TopologyCode::PreconditionFailed
    );
    let reply = tanda_engine::ReplyTo {
        conn: CONN,
        token: 9,
    };
    let request = AdminRequest::DeleteExchange {
        vhost: VhostId::DEFAULT,
        name: "t".to_owned(),
        if_unused: false,
    };
    let out = w.h.handle(Request::Admin { reply, request });
    assert_eq!(told(&out), ["deleted", "1 ends"]);
    assert!(out.iter().all(|it| it.after == out[0].after));
    // It was watched, and is not any more.
    assert_eq!(w.watch(3, "t", "x", 1), ["3 watches"]);
    assert_eq!(w.send("t", "x"), ["3 sees x -0", "sent to 1"]);
    assert_eq!(w.send("u", "x"), ["2 sees x -0", "sent to 1"]);
}

#[test]
fn dead_letters_are_seen_too() {
    let mut w = World::new();
    w.watch(1, "dead", "#", 9);
    let args = [
        (
            "x-dead-letter-exchange",
            tanda_wire::amqp::Value::text("dead"),
        ),
        ("x-max-length", tanda_wire::amqp::Value::I32(1)),
    ];
    let declare = tanda_engine::DeclareQueue {
        name: "short".to_owned(),
        durable: true,
        args: crate::world::table(&args).into(),
        ..tanda_engine::DeclareQueue::default()
    };
    w.h.admin(AdminRequest::DeclareQueue(Box::new(declare)));
    assert_eq!(w.send("", "short"), ["stored"]);
    assert_eq!(w.send("", "short"), ["stored", "1 sees short -0"]);
}
