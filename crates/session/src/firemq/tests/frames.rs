//! Framing, limits, header rules, unknown ops.

use tanda_engine::{Request, Take};
use tanda_wire::firemq::consume::{Ack, Get, Nack};
use tanda_wire::firemq::frame::MAX_FRAME_BEFORE_WELCOME;
use tanda_wire::firemq::session::{Hello, Ping, Pong};
use tanda_wire::firemq::topology::PurgeQueue;
use tanda_wire::firemq::{Op, Value};

use super::{FireConfig, Peer, frame, hello, map, message, raw_frame, to_q};
use crate::Session;

fn small() -> Peer {
    Peer::open_with(FireConfig {
        max_frame: 1_000,
        ..FireConfig::default()
    })
}

#[test]
fn before_welcome_a_frame_has_at_most_65_536_bytes() {
    // What is around a client's own words, which fill the rest.
    let fixed = frame(&Hello { ..hello() }).len() + frame(&PurgeQueue::default()).len();
    for (extra, fits) in [(0, true), (1, false)] {
        let mut len = MAX_FRAME_BEFORE_WELCOME as usize - fixed;
        let header = loop {
            let pad = "x".repeat(len);
            let header = map(&[("ver", Value::Uint(1)), ("pad", Value::Str(&pad))]);
            if header.len() + 5 == MAX_FRAME_BEFORE_WELCOME as usize + extra {
                break header;
            }
            len += 1;
        };
        let mut peer = Peer::accepted(FireConfig::default());
        peer.send(b"FMQ1");
        peer.send(&raw_frame(1, &header, b""));
        let lines = peer.lines();
        let code = if fits { "code=403" } else { "code=501" };
        assert!(lines[0].contains(code), "{lines:?}");
        assert!(lines[0].ends_with("fatal=true"));
    }
}

#[test]
fn after_welcome_the_limit_is_max_frame() {
    let mut peer = small();
    let room = 1_000 - (message(0, "q", b"").len() - 4);
    peer.send(&message(0, "q", &vec![b'x'; room]));
    let (_, batch) = peer.published();
    assert_eq!(batch.items.len(), 1);
    peer.send(&message(0, "q", &vec![b'x'; room + 1])[..4]);
    let msg = "a frame of 1001 bytes is larger than the limit of 1000";
    assert_eq!(
        peer.lines(),
        [format!("error code=501 msg={msg} fatal=true")]
    );
    assert!(peer.session.is_closing());
}

#[test]
fn the_default_limit_is_16_mib() {
    let mut peer = Peer::open();
    let len = 16_u32 << 20;
    peer.send(&len.to_be_bytes());
    assert_eq!(peer.bytes(), b"");
    assert_eq!(
        peer.session.announced_bytes(&peer.input),
        Some(4 + (16 << 20))
    );
    let mut peer = Peer::open();
    peer.send(&(len + 1).to_be_bytes());
    assert!(peer.lines()[0].starts_with("error code=501 "));
}

#[test]
fn framing_that_cannot_be_trusted_is_a_fatal_501() {
    for bytes in [&b"\0\0\0\x04\x35"[..], b"\0\0\0\x06\x35\0\0\0\x02\x80"] {
        let mut peer = Peer::open();
        peer.send(&[&message(1, "q", b"before")[..], bytes].concat());
        // What came whole before counts.
        peer.published();
        let lines = peer.lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("error code=501 "), "{lines:?}");
        assert!(lines[0].ends_with(" fatal=true"), "{lines:?}");
        assert!(peer.session.is_closing());
    }
}

#[test]
fn an_empty_header_is_an_empty_map() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x03, b"", b""));
    assert_eq!(peer.lines(), ["pong"]);
    peer.send(&raw_frame(0x20, b"", b"to the queue with no name"));
    let (_, batch) = peer.published();
    assert_eq!(batch.items.len(), 1);
    assert!(!batch.confirm);
}

#[test]
fn a_header_that_is_no_map_is_502_and_not_fatal() {
    let mut peer = Peer::open();
    for header in [
        &b"\xc0"[..],
        b"\x91\x01",
        b"\x81\xa3tag",
        b"\xc1",
        b"\x80\x80",
    ] {
        peer.send(&raw_frame(0x35, header, b""));
        let lines = peer.lines();
        assert_eq!(lines.len(), 1, "{header:?}");
        assert!(lines[0].starts_with("error code=502 msg="), "{lines:?}");
        assert!(!lines[0].contains("fatal"), "{lines:?}");
    }
    peer.say(&Ping {});
    assert_eq!(peer.lines(), ["pong"]);
}

#[test]
fn a_field_of_the_wrong_type_is_502_for_its_request() {
    let mut peer = Peer::open();
    for (op, key, value) in [
        (0x12, "name", Value::Uint(1)),
        (0x12, "durable", Value::Uint(1)),
        (0x12, "args", Value::Str("{}")),
        (0x30, "sub", Value::Str("1")),
        (0x30, "credit", Value::Int(-1)),
        (0x37, "queue", Value::Bin(b"q")),
        (0x15, "key", Value::Bool(true)),
    ] {
        peer.send(&raw_frame(
            op,
            &map(&[("rid", Value::Uint(5)), (key, value)]),
            b"",
        ));
        let lines = peer.lines();
        let start = format!("error rid=5 code=502 msg=field {key}: ");
        assert!(lines[0].starts_with(&start), "{lines:?}");
        assert!(!lines[0].contains("fatal"), "{lines:?}");
    }
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn unknown_keys_are_ignored_and_nil_counts_as_absent() {
    let mut peer = Peer::open();
    let header = map(&[
        ("rid", Value::Uint(5)),
        ("later", Value::F64(1.5)),
        ("queue", Value::Str("q")),
        ("no_ack", Value::Nil),
    ]);
    peer.send(&raw_frame(0x37, &header, b""));
    let request = peer.request();
    let Request::Get { spec, .. } = &request else {
        panic!("{request:?}");
    };
    assert_eq!(
        (spec.queue.as_str(), spec.take == Take::NoAck),
        ("q", false)
    );
}

#[test]
fn an_unknown_op_is_540_and_the_connection_stays_open() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x99, b"", b"payload"));
    assert_eq!(peer.lines(), ["error code=540 msg=unknown op 0x99"]);
    // Its number is repeated when it has one, also when nothing else can be read.
    peer.send(&raw_frame(0x40, &map(&[("rid", Value::Uint(8))]), b""));
    assert_eq!(peer.lines(), ["error rid=8 code=540 msg=unknown op 0x40"]);
    peer.send(&raw_frame(0, b"\xc1", b""));
    assert_eq!(peer.lines(), ["error code=540 msg=unknown op 0x00"]);
    peer.say(&Ping {});
    assert_eq!(peer.lines(), ["pong"]);
}

#[test]
fn an_op_that_only_servers_send_is_503() {
    let mut peer = Peer::open();
    for op in Op::ALL {
        if op.direction() == tanda_wire::firemq::Direction::ToClient {
            peer.send(&raw_frame(op.to_wire(), b"", b""));
            let name = op.name();
            let line = format!("error code=503 msg={name} is sent by servers only");
            assert_eq!(peer.lines(), [line]);
        }
    }
    assert!(!peer.session.is_closing());
}

#[test]
fn every_op_of_a_client_is_known() {
    let mut peer = Peer::open();
    for op in Op::ALL {
        if op.direction() == tanda_wire::firemq::Direction::ToServer {
            peer.send(&raw_frame(op.to_wire(), b"", b""));
        }
    }
    let lines = peer.lines();
    assert!(
        !lines.iter().any(|line| line.contains("code=540")),
        "{lines:?}"
    );
}

#[test]
fn a_payload_where_none_belongs_is_ignored() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x03, b"", b"payload"));
    assert_eq!(peer.lines(), ["pong"]);
}

#[test]
fn frames_of_one_read_are_taken_together() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.deliver(token, 3);
    let ack = Ack {
        tag: 1,
        multiple: false,
    };
    let nack = Nack {
        tag: 2,
        ..Nack::default()
    };
    let get = Get {
        rid: 4,
        queue: "q",
        no_ack: false,
    };
    peer.send(
        &[
            frame(&ack),
            message(1, "q", b"a"),
            frame(&Pong {}),
            frame(&nack),
            message(2, "q", b"b"),
            frame(&get),
        ]
        .concat(),
    );
    let requests = peer.requests();
    let [
        Request::Publish { batch, .. },
        Request::Settle { batch: settled, .. },
        Request::Pool { .. },
        Request::Get { .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!((batch.items.len(), settled.items.len()), (2, 2));
}

#[test]
fn frames_wait_while_the_engine_has_much_to_answer() {
    let mut peer = Peer::open_with(FireConfig {
        requests_in_flight_max: 2,
        ..FireConfig::default()
    });
    let purge = |rid| frame(&PurgeQueue { rid, name: "q" });
    peer.send(&[purge(1), purge(2), purge(3)].concat());
    assert!(!peer.session.wants_read());
    let requests = peer.requests();
    let [Request::Admin { reply, .. }, Request::Admin { .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    let token = reply.token;
    peer.admin(token, tanda_engine::AdminReply::QueuePurged(Ok(1)));
    assert_eq!(peer.lines(), ["ok rid=1 messages=1"]);
    assert_eq!(peer.requests().len(), 1);
    peer.say(&to_q(1));
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn what_the_engine_has_no_room_for_is_offered_again() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"a"));
    let request = peer.request();
    peer.session.on_refused(request);
    assert!(!peer.session.wants_read());
    assert_eq!(peer.requests().len(), 0);
    assert!(peer.session.next_deadline().is_some());
    peer.pass_ms(2);
    peer.published();
    assert!(peer.session.wants_read());
}
