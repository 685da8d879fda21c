//! SUBSCRIBE, UNSUBSCRIBE, events and `pubsub.*`.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, Form, PublishError, PublishResult, PublishTarget, Request, TopologyCode,
    TopologyError, WatchedMessage,
};
use tanda_wire::amaquet::command::TextFields;
use tanda_wire::amaquet::{Opcode, Payload};

use super::*;
use crate::amaquet::message::{Address, write_message};

const BUS: &str = r#"{"key":"bus","channel":"a.*","buffer":4}"#;
const SUBSCRIBED: &str = r#"SUBSCRIBE 7 {"ok":true,"result":{"key":"bus","channel":"a.*"}}"#;

fn failed(opcode: &str, id: u64, code: &str, message: &str) -> String {
    format!(r#"{opcode} {id} {{"ok":false,"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

fn refused(code: TopologyCode) -> Result<(), TopologyError> {
    let text = "text".to_owned();
    Err(TopologyError { code, text })
}

fn message(payload: &Payload<'_>, dropped: u64) -> WatchedMessage {
    let mut content = Vec::new();
    let address = Address {
        exchange: "bus",
        key: "a.b",
    };
    write_message(&mut content, address, payload, &TextFields::default()).unwrap();
    WatchedMessage {
        content: Bytes::from(content),
        form: Form::Amqp,
        channel: "a.b".into(),
        published_at: Millis(1_709_164_800_001),
        dropped,
    }
}

impl Peer {
    /// The token of the watch that the engine is asked for, and what for.
    fn watch_request(&mut self) -> (u32, String) {
        let request = self.session.next_request();
        let Some(Request::Watch { sub, spec }) = request else {
            panic!("{request:?}, {:?}", self.read())
        };
        assert_eq!(sub.conn, CONN);
        let (exchange, pattern, buffer) = (&spec.exchange, &spec.pattern, spec.buffer);
        (sub.token, format!("{exchange} {pattern} {buffer}"))
    }

    fn watching(&mut self, token: u32, result: Result<(), TopologyError>) {
        self.event(Event::Watching { token, result });
    }

    fn watched(&mut self, token: u32, message: WatchedMessage) {
        let message = Box::new(message);
        self.event(Event::Watched { token, message });
    }

    /// Subscribes as the request 7 to the bus.
    fn subscribed() -> (Self, u32) {
        let mut peer = Self::open();
        peer.say(Opcode::Subscribe, 7, BUS);
        let (token, spec) = peer.watch_request();
        assert_eq!(spec, "bus a.* 4");
        peer.watching(token, Ok(()));
        assert_eq!(peer.read(), [SUBSCRIBED]);
        (peer, token)
    }
}

#[test]
fn a_subscription_brings_events() {
    let (mut peer, token) = Peer::subscribed();
    peer.watched(token, message(&Payload::Json("[1]".into()), 0));
    peer.watched(token, message(&Payload::Bytes(b"x"[..].into()), 3));
    let event = |payload: &str, dropped: u64| {
        format!(
            "event SUBSCRIBE 7 {{\"key\":\"bus\",\"channel\":\"a.b\",\"payload\":{payload},\"p\
                ublished_at\":\"2024-02-29T00:00:00.001Z\",\"dropped\":{dropped}}}"
        )
    };
    let all = [
        event(r#"{"type":"json","data":[1]}"#, 0),
        event(r#"{"type":"bytes","data":"eA=="}"#, 3),
    ];
    assert_eq!(peer.read(), all);
    // A quarter of the buffer at a time.
    let told = peer.requests();
    assert!(
        told[1].starts_with("WatchDrained") && told[1].ends_with("events: 1 }"),
        "{told:?}"
    );
    assert!(told.iter().any(|it| it.starts_with("Drained")), "{told:?}");
}

#[test]
fn what_has_left_of_a_large_buffer_is_told_after_a_moment() {
    let mut peer = Peer::open();
    peer.say(Opcode::Subscribe, 7, r#"{"key":"bus","channel":"a"}"#);
    let (token, spec) = peer.watch_request();
    assert_eq!(spec, "bus a 256");
    peer.watching(token, Ok(()));
    for _ in 0..3 {
        peer.watched(token, message(&Payload::Text("t".into()), 0));
    }
    assert_eq!(peer.read().len(), 4);
    assert_eq!(peer.requests(), [""; 0]);
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(20)));
    peer.wait(20);
    let told = peer.requests();
    assert!(
        told.iter().any(|it| it.ends_with("events: 3 }")),
        "{told:?}"
    );
    assert_eq!(peer.session.next_deadline(), None);
}

#[test]
fn what_follows_a_subscribe_waits_for_its_answer() {
    let mut peer = Peer::open();
    let ping = frame(Opcode::Command, 8, br#"{"command":"server.ping"}"#);
    peer.send(&[frame(Opcode::Subscribe, 7, BUS.as_bytes()), ping].concat());
    assert!(!peer.session.wants_read());
    assert_eq!(peer.read(), [""; 0]);
    let (token, _) = peer.watch_request();
    peer.watching(token, Ok(()));
    assert!(peer.session.wants_read());
    peer.session.on_bytes(START, &mut peer.input);
    let pong = r#"COMMAND 8 {"ok":true,"result":{"pong":true}}"#;
    assert_eq!(peer.read(), [SUBSCRIBED, pong]);
}

#[test]
fn a_subscription_is_refused() {
    for (code, told) in [
        (TopologyCode::WrongType, "WRONG_TYPE"),
        (TopologyCode::AccessRefused, "FORBIDDEN"),
        (TopologyCode::Internal, "INTERNAL"),
    ] {
        let mut peer = Peer::open();
        peer.say(Opcode::Subscribe, 7, BUS);
        let (token, _) = peer.watch_request();
        peer.watching(token, refused(code));
        assert_eq!(peer.read(), [failed("SUBSCRIBE", 7, told, "text")]);
        // The id is free.
        peer.say(Opcode::Hello, 7, "");
        assert!(peer.read()[0].starts_with(r#"HELLO 7 {"ok":true"#));
    }
    let mut peer = Peer::open();
    let long = format!(r#"{{"key":"bus","channel":"{}"}}"#, "x".repeat(256));
    for (payload, text) in [
        ("{}", "key is missing; it must be a string"),
        (r#"{"key":1}"#, "key is a number, 1; it must be a string"),
        (r#"{"key":"a"}"#, "channel is missing; it must be a string"),
        (
            r#"{"key":"a","channel":"b","buffer":0}"#,
            "buffer is 0; it must be 1 to 65536",
        ),
        (
            r#"{"key":"a","channel":"b","buffer":65537}"#,
            "buffer is 65537; it must be 1 to 65536",
        ),
        (
            r#"{"key":"a","channel":"b","buffer":"c"}"#,
            "buffer is a string; it must be an integer of 64 bits that is not below zero",
        ),
        (&long, "channel is 256 bytes; it must be at most 255 bytes"),
    ] {
        peer.say(Opcode::Subscribe, 7, payload);
        assert_eq!(peer.read(), [failed("SUBSCRIBE", 7, "BAD_REQUEST", text)]);
    }
    assert_eq!(peer.requests(), [""; 0]);
}

#[test]
fn a_connection_has_so_many_subscriptions() {
    let mut config = config();
    config.limits.subscriptions_max = 1;
    let mut peer = Peer::with(config);
    peer.say(Opcode::Subscribe, 7, BUS);
    assert!(peer.session.next_request().is_some());
    let (token, _) = peer.watch_request();
    peer.watching(token, Ok(()));
    peer.say(Opcode::Subscribe, 8, r#"{"key":"bus","channel":"b"}"#);
    let told = "SUBSCRIBE 8 {\"ok\":false,\"error\":{\"code\":\"OVERLOADED\",\"message\":\"thi\
        s connection has 1 subscriptions\",\"retry_after_ms\":100}}";
    assert_eq!(peer.read(), [SUBSCRIBED, told]);
}

#[test]
fn the_id_of_a_subscription_is_in_use_until_it_ends() {
    let (mut peer, token) = Peer::subscribed();
    let text = "the request ID 7 is that of a subscription";
    for (opcode, name, payload) in [
        (Opcode::Command, "COMMAND", r#"{"command":"server.ping"}"#),
        (Opcode::Unsubscribe, "UNSUBSCRIBE", BUS),
        (
            Opcode::Subscribe,
            "SUBSCRIBE",
            r#"{"key":"bus","channel":"b"}"#,
        ),
        (Opcode::Cancel, "CANCEL", r#"{"request_id":7}"#),
    ] {
        peer.say(opcode, 7, payload);
        assert_eq!(peer.read(), [failed(name, 7, "DUPLICATE_REQUEST", text)]);
    }
    // Subscriptions are not cancelled.
    peer.say(Opcode::Cancel, 8, r#"{"request_id":7}"#);
    let told = r#"CANCEL 8 {"ok":true,"result":{"request_id":7,"cancelled":false}}"#;
    assert_eq!(peer.read(), [told]);
    assert_eq!(peer.requests(), [""; 0]);
    peer.say(Opcode::Unsubscribe, 8, BUS);
    peer.say(Opcode::Unsubscribe, 8, BUS);
    peer.ask(7, r#"{"command":"server.ping"}"#);
    let ended =
        |ended: bool| format!(r#"UNSUBSCRIBE 8 {{"ok":true,"result":{{"unsubscribed":{ended}}}}}"#);
    let pong = r#"COMMAND 7 {"ok":true,"result":{"pong":true}}"#.to_owned();
    assert_eq!(peer.read(), [ended(true), ended(false), pong]);
    let told = peer.requests();
    assert!(told[0].starts_with("Unwatch"), "{told:?}");
    // What was under way comes to nobody, and weighs nothing.
    peer.watched(token, message(&Payload::Text("t".into()), 0));
    assert_eq!(peer.read(), [""; 0]);
    peer.wait(20);
    assert!(peer.requests()[0].starts_with("Drained"));
}

#[test]
fn a_second_subscription_to_the_same_replaces_the_first() {
    for id in [7, 8] {
        let (mut peer, first) = Peer::subscribed();
        peer.say(Opcode::Subscribe, id, BUS);
        let unwatch = format!("{:?}", peer.session.next_request());
        assert!(unwatch.contains("Unwatch"), "{unwatch}");
        let (second, _) = peer.watch_request();
        assert_ne!(first, second);
        peer.watched(first, message(&Payload::Text("t".into()), 0));
        peer.watching(second, Ok(()));
        peer.watched(second, message(&Payload::Text("t".into()), 0));
        let told = peer.read();
        assert!(
            told[0].starts_with(&format!(r#"SUBSCRIBE {id} {{"ok":true"#)),
            "{told:?}"
        );
        assert!(
            told[1].starts_with(&format!("event SUBSCRIBE {id}")),
            "{told:?}"
        );
        assert_eq!(told.len(), 2);
        // The first id is free.
        peer.say(Opcode::Hello, 15 - id, "");
        assert!(peer.read()[0].contains(r#""ok":true"#));
    }
}

#[test]
fn a_subscription_ends_with_its_exchange() {
    let (mut peer, token) = Peer::subscribed();
    peer.event(Event::WatchEnded { token });
    let text = "the key of the subscription was deleted";
    assert_eq!(peer.read(), [failed("SUBSCRIBE", 7, "NOT_FOUND", text)]);
    peer.say(Opcode::Unsubscribe, 7, BUS);
    let told = r#"UNSUBSCRIBE 7 {"ok":true,"result":{"unsubscribed":false}}"#;
    assert_eq!(peer.read(), [told]);
    assert_eq!(peer.requests(), [""; 0]);
}

#[test]
fn an_event_that_fits_no_frame_counts_as_dropped() {
    let (mut peer, token) = Peer::subscribed();
    let large = "\u{1}".repeat(12 << 20);
    peer.watched(token, message(&Payload::Text(large.into()), 2));
    assert_eq!(peer.read(), [""; 0]);
    let told = peer.requests();
    assert!(
        told.iter().any(|it| it.starts_with("WatchDrained")),
        "{told:?}"
    );
    assert!(told.iter().any(|it| it.starts_with("Drained")), "{told:?}");
    peer.watched(token, message(&Payload::Text("t".into()), 1));
    let told = peer.read();
    assert!(told[0].ends_with(r#""dropped":4}"#), "{told:?}");
}

#[test]
fn what_is_published_goes_to_a_topic_exchange() {
    let publish = r#"{"command":"pubsub.publish","key":"bus","channel":"a.b","payload":"x"}"#;
    let text = "key is the name of an exchange of another type";
    for (result, told) in [
        (
            PublishResult::Sent { receivers: 3 },
            r#"COMMAND 5 {"ok":true,"result":{"receivers":3}}"#.to_owned(),
        ),
        (
            PublishResult::Unroutable,
            r#"COMMAND 5 {"ok":true,"result":{"receivers":0}}"#.to_owned(),
        ),
        (
            PublishResult::Refused(PublishError::ExchangeNotTopic),
            failed("COMMAND", 5, "WRONG_TYPE", text),
        ),
    ] {
        let mut peer = Peer::open();
        peer.ask(5, publish);
        let request = peer.session.next_request();
        let Some(Request::Publish { reply, batch }) = request else {
            panic!("{request:?}")
        };
        let [item] = &batch.items[..] else {
            panic!("{batch:?}")
        };
        assert_eq!((item.target, item.form), (PublishTarget::Topic, Form::Amqp));
        let content = item.content.of(&batch.data).escape_ascii().to_string();
        assert_eq!(
            content,
            r#"\x03bus\x03a.b\x00\x00\x00\x14\x90\x00\x10application/json\x02\x00\x00\x00\x03\"x\""#
        );
        let token = reply.token;
        peer.event(Event::Published {
            token,
            results: vec![result],
        });
        assert_eq!(peer.read(), [told]);
    }
    let mut peer = Peer::open();
    let long = "x".repeat(256);
    peer.ask(5, &publish.replace("bus", &long));
    let text = "key is 256 bytes; it must be at most 255 bytes";
    assert_eq!(peer.read(), [failed("COMMAND", 5, "BAD_REQUEST", text)]);
}

#[test]
fn channels_are_listed() {
    let mut peer = Peer::open();
    for (result, told) in [
        (
            Ok(vec!["a.*".to_owned(), "b".to_owned()]),
            r#"COMMAND 5 {"ok":true,"result":{"channels":["a.*","b"]}}"#.to_owned(),
        ),
        (
            Err(TopologyError {
                code: TopologyCode::NotFound,
                text: "text".to_owned(),
            }),
            failed("COMMAND", 5, "NOT_FOUND", "text"),
        ),
    ] {
        peer.ask(5, r#"{"command":"pubsub.channels","key":"bus"}"#);
        let request = peer.session.next_request();
        let Some(Request::Admin { reply, request }) = request else {
            panic!("{request:?}")
        };
        let expected = "ListChannels { vhost: VhostId(0), exchange: \"bus\", \
                        answer_bytes_max: 16777216 }";
        assert_eq!(format!("{request:?}"), expected);
        let token = reply.token;
        let reply = Box::new(AdminReply::Channels(result));
        peer.event(Event::Admin { token, reply });
        assert_eq!(peer.read(), [told]);
    }
}
