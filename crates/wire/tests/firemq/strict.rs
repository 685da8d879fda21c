//! The rules for single fields: encodings of one value, nil, repeats, depth, error texts.

use tanda_wire::firemq::consume::{Ack, Subscribe};
use tanda_wire::firemq::message::{ToClient, ToServer};
use tanda_wire::firemq::op::COMMIT_OFFSET_RESERVED;
use tanda_wire::firemq::publish::{Confirm, Publish};
use tanda_wire::firemq::session::{Auth, Close};
use tanda_wire::firemq::{DEPTH_MAX, Direction, Op, Props, RawMap, ReplyCode, Value, peek_uint};

/// `{"tag": <value>}`
fn tag(value: &[u8]) -> Vec<u8> {
    let mut header = vec![0x81, 0xa3, b't', b'a', b'g'];
    header.extend_from_slice(value);
    header
}

#[test]
fn integers_come_in_any_width() {
    let encodings: [&[u8]; 9] = [
        &[7],
        &[0xcc, 7],
        &[0xcd, 0, 7],
        &[0xce, 0, 0, 0, 7],
        &[0xcf, 0, 0, 0, 0, 0, 0, 0, 7],
        &[0xd0, 7],
        &[0xd1, 0, 7],
        &[0xd2, 0, 0, 0, 7],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 7],
    ];
    for encoding in encodings {
        assert_eq!(Ack::decode(&tag(encoding)).unwrap().tag, 7, "{encoding:?}");
    }
    let mut largest = vec![0xcf];
    largest.extend_from_slice(&[0xff; 8]);
    assert_eq!(Ack::decode(&tag(&largest)).unwrap().tag, u64::MAX);
}

#[test]
fn other_types_are_refused_by_name() {
    let cases: [(&[u8], &str); 10] = [
        (&[0xc3], "bool"),
        (&[0xff], "negative int"),
        (&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], "negative int"),
        (&[0xca, 0, 0, 0, 0], "float"),
        (&[0xcb, 0, 0, 0, 0, 0, 0, 0, 0], "float"),
        (&[0xa1, b'7'], "str"),
        (&[0xc4, 1, 7], "bin"),
        (&[0x91, 7], "array"),
        (&[0x80], "map"),
        (&[0xd4, 1, 7], "ext"),
    ];
    for (value, found) in cases {
        let error = Ack::decode(&tag(value)).unwrap_err();
        let text = format!("field tag: {found} at offset 5 where uint belongs");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn nil_is_absent_and_the_last_counts() {
    assert_eq!(Ack::decode(&tag(&[0xc0])).unwrap(), Ack::default());
    let mut twice = tag(&[1]);
    twice[0] = 0x82;
    twice.extend_from_slice(&[0xa3, b't', b'a', b'g', 0xc0]);
    assert_eq!(Ack::decode(&twice).unwrap(), Ack::default());
    // props of nil are no properties, and nil in them is an absent one.
    let publish = Publish::decode(&[0x81, 0xa5, b'p', b'r', b'o', b'p', b's', 0xc0]).unwrap();
    assert!(publish.props.is_empty());
    let props = Props::decode(&[0x81, 0xa4, b't', b'y', b'p', b'e', 0xc0]).unwrap();
    assert_eq!(props.fields().kind, "");
    let map = [0x82, 0xa1, b'a', 1, 0xa1, b'a', 2];
    let map = RawMap::decode(&map).unwrap();
    assert_eq!(map.find("a"), Some(Value::Uint(2)));
    assert_eq!((map.len(), map.find("b")), (2, None));
}

/// A map with this many arrays in its one value.
fn arrays_in_a_map(count: usize) -> Vec<u8> {
    let mut bytes = vec![0x81, 0xa1, b'a'];
    bytes.extend(std::iter::repeat_n(0x91, count));
    bytes.push(0xc0);
    bytes
}

#[test]
fn depth_is_bounded() {
    assert!(RawMap::decode(&arrays_in_a_map(DEPTH_MAX - 1)).is_ok());
    let error = RawMap::decode(&arrays_in_a_map(DEPTH_MAX)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "header: more than 64 arrays and maps inside each other at offset 67"
    );
    // In a header the same map is as deep; the header itself does not count.
    let mut publish = vec![0x81, 0xa7];
    publish.extend_from_slice(b"headers");
    let at = publish.len();
    publish.extend_from_slice(&arrays_in_a_map(DEPTH_MAX - 1));
    assert!(Publish::decode(&publish).is_ok());
    publish.truncate(at);
    publish.extend_from_slice(&arrays_in_a_map(DEPTH_MAX));
    assert!(Publish::decode(&publish).is_err());
    // Bounded also where nobody looks.
    let mut unknown = vec![0x81, 0xa1, b'x'];
    unknown.extend(std::iter::repeat_n(0x91, 100_000));
    unknown.push(0xc0);
    assert!(Ack::decode(&unknown).is_err());
}

#[test]
fn rid_is_found_in_headers_that_do_not_decode() {
    // {"durable": 1, "rid": 5}
    let mut header = vec![0x82, 0xa7];
    header.extend_from_slice(b"durable");
    header.extend_from_slice(&[1, 0xa3, b'r', b'i', b'd', 5]);
    assert_eq!(peek_uint(&header, "rid"), Some(5));
    assert_eq!(peek_uint(&header, "seq"), None);
    header.push(0xc1);
    header[0] = 0x83;
    assert_eq!(peek_uint(&header, "rid"), Some(5));
    assert_eq!(peek_uint(&header[..12], "rid"), None);
    assert_eq!(peek_uint(b"", "rid"), None);
    assert_eq!(peek_uint(&[0x90], "rid"), None);
}

#[test]
fn reserved_fields_are_seen() {
    let mut header = vec![0x81, 0xa6];
    header.extend_from_slice(b"offset");
    header.extend_from_slice(&[0xa5, b'f', b'i', b'r', b's', b't']);
    let subscribe = Subscribe::decode(&header).unwrap();
    assert_eq!(subscribe.offset, Some(Value::Str("first")));
    assert_eq!(Op::from_wire(COMMIT_OFFSET_RESERVED), Op::Unknown(0x39));
    assert_eq!(ToServer::decode(Op::Unknown(0x39), &[]), Ok(None));
    assert_eq!(ToClient::decode(Op::Publish, &[0xc1]), Ok(None));
}

#[test]
fn codes_survive() {
    for code in ReplyCode::ALL {
        assert_eq!(ReplyCode::from_wire(code.to_wire()), *code);
    }
    let close = Close {
        code: ReplyCode::Unknown(999),
        msg: "",
    };
    let mut out = Vec::new();
    close.encode(&mut out);
    assert_eq!(Close::decode(&out), Ok(close));
    let confirm = Confirm::rejected(4, ReplyCode::NotFound, "no exchange 'x'");
    out.clear();
    confirm.encode(&mut out);
    assert_eq!(Confirm::decode(&out), Ok(confirm));
    out.clear();
    Confirm::upto(4).encode(&mut out);
    assert_eq!(out, [0x81, 0xa4, b'u', b'p', b't', b'o', 4]);
    // {"code": 65536}
    let header = [0x81, 0xa4, b'c', b'o', b'd', b'e', 0xce, 0, 1, 0, 0];
    let error = Close::decode(&header).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field code: 65536 at offset 6 is larger than 65535"
    );
}

#[test]
fn requests_and_payloads_are_told_by_the_op() {
    for op in Op::ALL {
        let fields = op.is_request() || op.has_payload();
        assert!(!fields || op.direction() != Direction::Either, "{op}");
    }
    let requests = Op::ALL.iter().filter(|op| op.is_request()).count();
    let payloads = Op::ALL.iter().filter(|op| op.has_payload()).count();
    assert_eq!((requests, payloads), (10, 4));
    assert_eq!(Op::Publish.to_string(), "publish (0x20)");
}

#[test]
fn passwords_are_not_shown() {
    let auth = Auth {
        mech: "plain",
        user: "bob",
        pass: "hunter2",
    };
    let shown = format!("{auth:?}");
    assert!(
        shown.contains("bob") && !shown.contains("hunter2"),
        "{shown}"
    );
}
