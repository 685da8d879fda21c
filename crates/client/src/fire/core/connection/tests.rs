//! The connection against a scripted peer, frame by frame.

use tanda_wire::firemq::consume::{Cancelled, Deliver, Get, GetOk, Subscribe, Unsubscribe};
use tanda_wire::firemq::props::{Properties, Props};
use tanda_wire::firemq::publish::{Confirm, Returned as WireReturned};
use tanda_wire::firemq::reply::{ErrorReply, OkReply};
use tanda_wire::firemq::session::{Flow, Pong, ServerInfo, Welcome};
use tanda_wire::firemq::topology::{DeclareExchange, DeclareQueue};
use tanda_wire::firemq::{Op, Value};

use super::*;
use crate::fire::core::{Answer, Ready, Request};

type TestConnection = Connection<&'static str>;

const HEARTBEAT_S: u64 = 10;
const LEN_MAX: u32 = 1_000;

fn frame<'a, H: Header<'a>>(header: &H) -> Vec<u8> {
    frame_with(header, b"")
}

fn frame_with<'a, H: Header<'a>>(header: &H, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = tanda_wire::firemq::frame::write_head(
        &mut out,
        Framing::Stream,
        header,
        payload.len(),
        u32::MAX,
    );
    written.unwrap();
    out.extend_from_slice(payload);
    out
}

fn new() -> TestConnection {
    Connection::new(&ConnectionConfig::default(), 0).unwrap()
}

fn welcome() -> Welcome<'static> {
    Welcome {
        ver: 1,
        server: ServerInfo {
            name: "tanda",
            version: "1.2",
        },
        conn_id: "c-1",
        heartbeat: HEARTBEAT_S,
        max_frame: LEN_MAX.into(),
        caps: capability::VERSION_1.to_vec(),
    }
}

/// A connection after its handshake, with nothing to send.
fn open() -> TestConnection {
    let mut connection = new();
    take_output(&mut connection);
    feed(&mut connection, &frame(&welcome())).unwrap();
    assert!(matches!(connection.next_event(), Some(Event::Ready(_))));
    connection
}

fn feed(connection: &mut TestConnection, bytes: &[u8]) -> Result<(), ProtocolError> {
    let mut input = BytesMut::from(bytes);
    connection.receive(0, &mut input)?;
    assert!(input.is_empty(), "{} bytes were not taken", input.len());
    Ok(())
}

fn events(connection: &mut TestConnection) -> Vec<Event<&'static str>> {
    std::iter::from_fn(|| connection.next_event()).collect()
}

fn take_output(connection: &mut TestConnection) -> Vec<u8> {
    let output = connection.output().to_vec();
    connection.on_sent(output.len(), 0);
    output
}

fn ask(connection: &mut TestConnection, context: &'static str, request: &Request<'_>) {
    let asked = connection.request(context, |it| it, |_, writer| writer.write(request));
    asked.unwrap();
}

fn publish(connection: &mut TestConnection, body: &'static str) {
    let published = connection.publish(
        body,
        |it| it,
        |body, writer| writer.write(&to_key("k"), body.as_bytes()),
    );
    published.unwrap();
}

fn to_key(key: &str) -> Publish<'_> {
    Publish {
        key,
        ..Publish::default()
    }
}

fn done() -> Answer {
    Answer::Done {
        name: String::new(),
        messages: 0,
        consumers: 0,
    }
}

fn confirmed(context: &'static str) -> Event<&'static str> {
    Event::Confirmed {
        context,
        returned: None,
    }
}

#[test]
fn it_begins_with_the_preamble_and_hello() {
    let config = ConnectionConfig {
        vhost: "dev".to_owned(),
        user: "u".to_owned(),
        password: "p".to_owned(),
        name: "app".to_owned(),
        heartbeat_s: 7,
        ..ConnectionConfig::default()
    };
    let mut connection = TestConnection::new(&config, 0).unwrap();
    let output = take_output(&mut connection);
    let (preamble, rest) = output.split_at(4);
    assert_eq!(preamble, b"FMQ1");
    let Ok(Split::Frame(frame)) = split_frame(rest, LEN_MAX) else {
        panic!("{rest:?}")
    };
    assert_eq!((frame.op, frame.consumed), (Op::Hello, rest.len()));
    let hello = Hello::decode(frame.header).unwrap();
    assert_eq!((hello.ver, hello.vhost, hello.heartbeat), (1, "dev", 7));
    assert_eq!(
        (hello.auth.mech, hello.auth.user, hello.auth.pass),
        ("plain", "u", "p")
    );
    assert_eq!(hello.client.find("name"), Some(Value::Str("app")));
    assert_eq!(hello.client.find("lang"), Some(Value::Str("rust")));
    assert!(!connection.is_open());
    assert_eq!(connection.next_deadline_ms(), None);
    let shown = format!("{config:?}");
    assert!(!shown.contains("\"p\""), "{shown}");
}

#[test]
fn a_welcome_opens_it_with_the_limits_of_the_server() {
    let mut connection = new();
    take_output(&mut connection);
    feed(&mut connection, &frame(&welcome())).unwrap();
    let ready = Ready {
        server: "tanda 1.2".to_owned(),
        connection: "c-1".to_owned(),
        heartbeat_s: HEARTBEAT_S,
        frame_bytes_max: LEN_MAX,
    };
    assert_eq!(events(&mut connection), [Event::Ready(ready)]);
    assert!(connection.is_open());
    let large = [0; LEN_MAX as usize];
    let error = connection.post(&to_key("k"), &large).unwrap_err();
    assert_eq!(error.len_max, LEN_MAX);
    assert_eq!(connection.output(), b"");
}

#[test]
fn a_refused_login_says_why() {
    let mut connection = new();
    let error = ErrorReply {
        rid: 0,
        code: ReplyCode::AccessRefused,
        msg: "wrong user or password",
        fatal: true,
    };
    feed(&mut connection, &frame(&error)).unwrap();
    let refusal = Refusal::new(ReplyCode::AccessRefused, "wrong user or password");
    assert_eq!(events(&mut connection), [Event::Refused(refusal)]);
    assert!(!connection.is_open());
}

#[test]
fn another_version_or_frame_ends_the_handshake() {
    let other = Welcome {
        ver: 2,
        ..welcome()
    };
    assert_eq!(
        feed(&mut new(), &frame(&other)),
        Err(ProtocolError::Version { ver: 2 })
    );
    assert_eq!(
        feed(&mut new(), &frame(&OkReply::default())),
        Err(ProtocolError::Unexpected { op: Op::Ok })
    );
    // 64 KiB are the most before welcome.
    let too_large = feed(&mut new(), &[0, 1, 0, 1]);
    assert!(matches!(too_large, Err(ProtocolError::Frame(_))));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one history of four requests")]
fn requests_are_numbered_and_answered_by_their_number() {
    let mut connection = open();
    let exchange = DeclareExchange {
        name: "e",
        kind: "topic",
        ..DeclareExchange::default()
    };
    let queue = DeclareQueue {
        name: "q",
        durable: true,
        ..DeclareQueue::default()
    };
    let get = Get {
        queue: "q",
        ..Get::default()
    };
    ask(
        &mut connection,
        "exchange",
        &Request::DeclareExchange(exchange),
    );
    ask(&mut connection, "queue", &Request::DeclareQueue(queue));
    ask(&mut connection, "get", &Request::Get(get));
    ask(&mut connection, "none", &Request::Get(get));
    let expected = [
        frame(&DeclareExchange { rid: 1, ..exchange }),
        frame(&DeclareQueue { rid: 2, ..queue }),
        frame(&Get { rid: 3, ..get }),
        frame(&Get { rid: 4, ..get }),
    ];
    assert_eq!(take_output(&mut connection), expected.concat());
    assert!(!connection.is_idle());

    let ok = OkReply {
        rid: 2,
        name: "q",
        messages: 5,
        consumers: 1,
        empty: false,
    };
    let refused = ErrorReply {
        rid: 1,
        code: ReplyCode::PreconditionFailed,
        msg: "other type",
        fatal: false,
    };
    let got = GetOk {
        rid: 3,
        tag: 9,
        redelivered: true,
        exchange: "e",
        key: "k",
        remaining: 4,
        ..GetOk::default()
    };
    let empty = OkReply {
        rid: 4,
        empty: true,
        ..OkReply::default()
    };
    let replies = [
        frame(&ok),
        frame(&refused),
        frame_with(&got, b"body"),
        frame(&empty),
        frame(&OkReply {
            rid: 77,
            ..OkReply::default()
        }),
    ];
    feed(&mut connection, &replies.concat()).unwrap();
    let mut told = events(&mut connection);
    let Event::Answered {
        context: "get",
        answer: Answer::Got {
            remaining: 4,
            received,
        },
    } = told.remove(2)
    else {
        panic!("{told:?}")
    };
    assert_eq!((received.tag, received.redelivered), (9, true));
    let content = received.content;
    assert_eq!((content.exchange(), content.key()), ("e", "k"));
    assert_eq!(content.body(), b"body");
    assert!(content.headers().is_empty());
    assert_eq!(content.properties(), Properties::default());
    assert_eq!(
        told,
        [
            Event::Answered {
                context: "queue",
                answer: Answer::Done {
                    name: "q".to_owned(),
                    messages: 5,
                    consumers: 1,
                },
            },
            Event::Failed {
                context: "exchange",
                refusal: Refusal::new(ReplyCode::PreconditionFailed, "other type"),
            },
            Event::Answered {
                context: "none",
                answer: Answer::Empty,
            },
        ]
    );
    assert!(connection.is_idle());
}

#[test]
fn publishes_are_counted_and_confirmed_in_any_order() {
    let mut connection = open();
    for body in ["1", "2", "3", "4"] {
        publish(&mut connection, body);
    }
    connection.post(&to_key("k"), b"uncounted").unwrap();
    publish(&mut connection, "5");
    let numbered = |seq, body: &str| {
        let header = Publish { seq, ..to_key("k") };
        frame_with(&header, body.as_bytes())
    };
    let expected = [
        numbered(1, "1"),
        numbered(2, "2"),
        numbered(3, "3"),
        numbered(4, "4"),
        numbered(0, "uncounted"),
        numbered(5, "5"),
    ];
    assert_eq!(take_output(&mut connection), expected.concat());

    let full = Confirm::rejected(3, ReplyCode::ResourceError, "full");
    let confirms = [
        frame(&full),
        frame(&Confirm::upto(2)),
        frame(&Confirm::upto(4)),
    ];
    feed(&mut connection, &confirms.concat()).unwrap();
    let refusal = Refusal::new(ReplyCode::ResourceError, "full");
    assert_eq!(
        events(&mut connection),
        [
            Event::Rejected {
                context: "3",
                refusal,
            },
            confirmed("1"),
            confirmed("2"),
            confirmed("4"),
        ]
    );
    // What is confirmed already is covered once more without harm.
    feed(&mut connection, &frame(&Confirm::upto(1))).unwrap();
    assert_eq!(events(&mut connection), []);
    let rejected = Confirm::rejected(5, ReplyCode::NotFound, "no exchange");
    feed(&mut connection, &frame(&rejected)).unwrap();
    assert_eq!(events(&mut connection).len(), 1);
    assert!(connection.is_idle());
    publish(&mut connection, "6");
    assert_eq!(take_output(&mut connection), numbered(6, "6"));
    assert_eq!(
        feed(&mut connection, &frame(&Confirm::upto(7))),
        Err(ProtocolError::UnknownConfirm { seq: 7 })
    );
}

#[test]
fn a_message_that_came_back_is_part_of_its_confirm() {
    let mut connection = open();
    publish(&mut connection, "first");
    publish(&mut connection, "second");
    let mut props = Vec::new();
    let properties = Properties {
        message_id: "m",
        ..Properties::default()
    };
    properties.encode(&mut props);
    let returned = WireReturned {
        seq: 2,
        code: ReplyCode::NoRoute,
        msg: "no route",
        exchange: "e",
        key: "k",
        props: Props::decode(&props).unwrap(),
        headers: RawMap::default(),
    };
    feed(&mut connection, &frame_with(&returned, b"second")).unwrap();
    assert_eq!(events(&mut connection), []);
    feed(&mut connection, &frame(&Confirm::upto(2))).unwrap();
    let mut told = events(&mut connection);
    let Some(Event::Confirmed {
        context: "second",
        returned: Some(back),
    }) = told.pop()
    else {
        panic!("{told:?}")
    };
    assert_eq!(told, [confirmed("first")]);
    assert_eq!(
        (back.code, &*back.message),
        (ReplyCode::NoRoute, "no route")
    );
    assert_eq!(back.content.body(), b"second");
    assert_eq!(back.content.properties().message_id, "m");
    let uncounted = WireReturned { seq: 0, ..returned };
    feed(&mut connection, &frame_with(&uncounted, b"x")).unwrap();
    assert!(matches!(
        connection.next_event(),
        Some(Event::Returned(back)) if back.content.body() == b"x"
    ));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one history of a subscription")]
fn deliveries_and_their_settlement() {
    let mut connection = open();
    let subscribe = Subscribe {
        sub: 3,
        queue: "q",
        credit: 10,
        ..Subscribe::default()
    };
    ask(&mut connection, "sub", &Request::Subscribe(subscribe));
    let mut headers = Vec::new();
    let fields = Fields::new().set("n", 1_u64).set("t", "text");
    headers.extend(fields.encode());
    let deliver = Deliver {
        sub: 3,
        tag: 1,
        exchange: "e",
        key: "k",
        headers: RawMap::decode(&headers).unwrap(),
        ..Deliver::default()
    };
    let cancelled = Cancelled {
        sub: 3,
        code: ReplyCode::NotFound,
        msg: "deleted",
    };
    let ok = OkReply {
        rid: 1,
        ..OkReply::default()
    };
    let input = [frame(&ok), frame_with(&deliver, b"body"), frame(&cancelled)];
    feed(&mut connection, &input.concat()).unwrap();
    let mut told = events(&mut connection);
    let Event::Delivery { sub: 3, received } = told.remove(1) else {
        panic!("{told:?}")
    };
    assert_eq!((received.tag, received.redelivered), (1, false));
    assert_eq!(received.content.header("n"), Some(Value::Uint(1)));
    assert_eq!(received.content.header("t"), Some(Value::Str("text")));
    assert_eq!(received.content.body_bytes(), "body");
    assert_eq!(
        told,
        [
            Event::Answered {
                context: "sub",
                answer: done(),
            },
            Event::Cancelled {
                sub: 3,
                refusal: Refusal::new(ReplyCode::NotFound, "deleted"),
            },
        ]
    );

    take_output(&mut connection);
    let ack = Ack {
        tag: 1,
        multiple: true,
    };
    let nack = Nack {
        tag: 2,
        multiple: false,
        requeue: true,
    };
    connection.ack(&ack);
    connection.nack(&nack);
    connection.credit(3, 5);
    let unsubscribe = Unsubscribe { rid: 2, sub: 3 };
    ask(&mut connection, "end", &Request::Unsubscribe(unsubscribe));
    let expected = [
        frame(&ack),
        frame(&nack),
        frame(&Credit { sub: 3, credit: 5 }),
        frame(&unsubscribe),
    ];
    assert_eq!(take_output(&mut connection), expected.concat());
}

#[test]
fn a_frame_in_pieces_is_waited_for() {
    let mut connection = open();
    let whole = frame_with(
        &Deliver {
            sub: 1,
            tag: 1,
            key: "key",
            ..Deliver::default()
        },
        b"a body",
    );
    for cut in 0..whole.len() {
        let (front, back) = whole.split_at(cut);
        let mut input = BytesMut::from(front);
        connection.receive(0, &mut input).unwrap();
        assert_eq!(connection.next_event(), None);
        assert!((1..=back.len()).contains(&connection.missing_bytes(&input)));
        input.extend_from_slice(back);
        connection.receive(0, &mut input).unwrap();
        let Some(Event::Delivery { sub: 1, received }) = connection.next_event() else {
            panic!("cut at {cut}")
        };
        assert_eq!(received.content.body(), b"a body");
        assert_eq!(received.content.key(), "key");
    }
}

#[test]
fn flow_pauses_and_goes_on() {
    let mut connection = open();
    feed(&mut connection, &frame(&Flow { pause: true })).unwrap();
    assert!(connection.is_paused());
    feed(&mut connection, &frame(&Flow { pause: false })).unwrap();
    assert!(!connection.is_paused());
    assert_eq!(
        events(&mut connection),
        [Event::Flow { pause: true }, Event::Flow { pause: false }]
    );
}

#[test]
fn heartbeats_go_both_ways() {
    let mut connection = open();
    // Nothing sent for 5 s.
    assert_eq!(connection.next_deadline_ms(), Some(5_000));
    connection.on_timer(4_999).unwrap();
    assert_eq!(connection.output(), b"");
    connection.on_timer(5_000).unwrap();
    assert_eq!(connection.output(), frame(&Ping {}));
    // What is not read is not repeated before its time.
    assert_eq!(connection.next_deadline_ms(), Some(10_000));
    let output = connection.output().len();
    connection.on_sent(output, 6_000);
    assert_eq!(connection.next_deadline_ms(), Some(11_000));
    connection
        .receive(7_000, &mut BytesMut::from(&frame(&Ping {})[..]))
        .unwrap();
    assert_eq!(connection.output(), frame(&Pong {}));
    connection.on_sent(connection.output().len(), 26_999);
    connection.on_timer(26_999).unwrap();
    assert_eq!(connection.on_timer(27_000), Err(ProtocolError::Silent));
}

#[test]
fn without_heartbeats_there_is_no_time() {
    let mut connection = new();
    take_output(&mut connection);
    let none = Welcome {
        heartbeat: 0,
        ..welcome()
    };
    feed(&mut connection, &frame(&none)).unwrap();
    assert_eq!(connection.next_deadline_ms(), None);
    connection.on_timer(u64::MAX).unwrap();
    assert_eq!(connection.output(), b"");
}

#[test]
fn it_closes_in_order() {
    let mut connection = open();
    publish(&mut connection, "under way");
    take_output(&mut connection);
    connection.close();
    let close = Close {
        code: ReplyCode::Success,
        msg: "",
    };
    assert_eq!(take_output(&mut connection), frame(&close));
    assert!(!connection.is_open());
    assert!(!connection.is_finished());
    // What was under way may still be answered.
    feed(&mut connection, &frame(&Confirm::upto(1))).unwrap();
    assert_eq!(events(&mut connection), [confirmed("under way")]);
    feed(&mut connection, &frame(&close)).unwrap();
    assert_eq!(connection.output(), b"", "a close is answered once");
    assert!(connection.is_finished());
}

#[test]
fn the_servers_close_is_answered_and_ends_it() {
    let mut connection = open();
    publish(&mut connection, "lost");
    take_output(&mut connection);
    let close = Close {
        code: ReplyCode::ConnectionForced,
        msg: "the server shuts down",
    };
    // Nothing counts after it.
    let input = [frame(&close), frame(&Confirm::upto(1))];
    feed(&mut connection, &input.concat()).unwrap();
    let refusal = Refusal::new(ReplyCode::ConnectionForced, "the server shuts down");
    assert_eq!(events(&mut connection), [Event::Closing(refusal.clone())]);
    let answer = Close {
        code: ReplyCode::Success,
        msg: "",
    };
    assert_eq!(take_output(&mut connection), frame(&answer));
    assert_eq!(connection.next_deadline_ms(), Some(0));
    assert_eq!(connection.on_timer(1), Err(ProtocolError::Closed(refusal)));
    assert_eq!(connection.into_unanswered().publishes, ["lost"]);
}

#[test]
fn a_fatal_error_fails_its_request_and_the_connection() {
    let mut connection = open();
    let get = Get::default();
    ask(&mut connection, "to blame", &Request::Get(get));
    ask(&mut connection, "another", &Request::Get(get));
    let error = ErrorReply {
        rid: 1,
        code: ReplyCode::FrameError,
        msg: "broken",
        fatal: true,
    };
    let refusal = Refusal::new(ReplyCode::FrameError, "broken");
    assert_eq!(
        feed(&mut connection, &frame(&error)),
        Err(ProtocolError::Fatal(refusal.clone()))
    );
    assert_eq!(
        events(&mut connection),
        [Event::Failed {
            context: "to blame",
            refusal,
        }]
    );
    assert_eq!(connection.into_unanswered().requests, ["another"]);
}

#[test]
fn an_error_of_no_request_is_a_complaint() {
    let mut connection = open();
    let error = ErrorReply {
        rid: 0,
        code: ReplyCode::PreconditionFailed,
        msg: "unknown delivery tag 7",
        fatal: false,
    };
    feed(&mut connection, &frame(&error)).unwrap();
    let refusal = Refusal::new(ReplyCode::PreconditionFailed, "unknown delivery tag 7");
    assert_eq!(events(&mut connection), [Event::Complaint(refusal)]);
}

#[test]
fn later_ops_are_passed_over_and_wrong_ones_are_not() {
    let mut connection = open();
    feed(&mut connection, &[0, 0, 0, 5, 0x7f, 0, 0, 0, 0]).unwrap();
    assert_eq!(events(&mut connection), []);
    assert_eq!(
        feed(&mut connection, &frame(&Get::default())),
        Err(ProtocolError::Unexpected { op: Op::Get })
    );
    let again = feed(&mut open(), &frame(&welcome()));
    assert_eq!(again, Err(ProtocolError::Unexpected { op: Op::Welcome }));
    let no_map = feed(&mut open(), &[0, 0, 0, 6, 0x06, 0, 0, 0, 1, 0x01]);
    assert!(matches!(
        no_map,
        Err(ProtocolError::Header { op: Op::Ok, .. })
    ));
}
