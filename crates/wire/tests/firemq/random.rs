//! Any bytes into every decoder: no panic, and what is accepted encodes and reads back.

use proptest::prelude::*;
use tanda_wire::firemq::frame::{MAX_FRAME_BEFORE_WELCOME, Split, split_frame, split_message};
use tanda_wire::firemq::reply::OkReply;
use tanda_wire::firemq::{Op, Props, RawMap, Url, peek_uint};

use crate::json::map;
use crate::vectors::{transcode, vectors, whole};

/// Bytes that are often MessagePack: markers of small maps, arrays and texts, and letters.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => 0x80..0x84_u8,
        2 => 0x90..0x94_u8,
        4 => 0xa0..0xa5_u8,
        2 => 0xc0..=0xdf_u8,
        4 => 0..0x80_u8,
        1 => any::<u8>(),
    ];
    proptest::collection::vec(byte, 0..60)
}

fn op() -> impl Strategy<Value = Op> {
    proptest::sample::select(Op::ALL)
}

fn check(op: Op, header: &[u8]) {
    let first = transcode(op, header);
    if let Ok(first) = &first {
        assert_eq!(transcode(op, first).as_ref(), Ok(first), "{op}");
        assert!(first.len() <= header.len().max(1), "{op}: {header:02x?}");
    }
    let map_of = RawMap::decode(header).map(map);
    assert!(first.is_err() || map_of.is_ok(), "{op}: {header:02x?}");
    if let Ok(props) = Props::decode(header) {
        let mut again = Vec::new();
        props.fields().encode(&mut again);
        assert_eq!(Props::decode(&again).unwrap().fields(), props.fields());
    }
    // Bytes that nobody checked: entries end, nothing else happens.
    let unchecked = RawMap::from_checked(header);
    assert!(unchecked.iter().count() <= header.len());
    let fields = Props::from_checked(header).fields();
    assert!(fields.kind.len() <= header.len());
    // What a whole decode finds, a peek finds too.
    if let Ok(reply) = OkReply::decode(header) {
        assert_eq!(peek_uint(header, "rid").unwrap_or(0), reply.rid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_header(op in op(), header in likely()) {
        check(op, &header);
    }

    #[test]
    fn changed_headers(at in any::<prop::sample::Index>(), changes in proptest::collection::vec(
        (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4)) {
        let all = vectors();
        let vector = &all[at.index(all.len())];
        let mut header = whole(&vector.frame).header.to_vec();
        for (at, byte, how) in changes {
            let at = at.index(header.len() + 1);
            match (how, header.get_mut(at)) {
                (0, Some(place)) => *place = byte,
                (1, Some(_)) => drop(header.remove(at)),
                (_, _) => header.insert(at, byte),
            }
        }
        check(vector.op, &header);
    }

    #[test]
    fn any_stream(stream in proptest::collection::vec(prop_oneof![0..3_u8, any::<u8>()], 0..80)) {
        let mut rest = &stream[..];
        while let Ok(Split::Frame(frame)) = split_frame(rest, MAX_FRAME_BEFORE_WELCOME) {
            prop_assert_eq!(frame.consumed, 9 + frame.header.len() + frame.payload.len());
            let message = &rest[4..frame.consumed];
            let alike = split_message(message, MAX_FRAME_BEFORE_WELCOME).unwrap();
            prop_assert_eq!((alike.header, alike.payload), (frame.header, frame.payload));
            rest = &rest[frame.consumed..];
        }
        if let Ok(Split::Incomplete { need_bytes }) = split_frame(rest, MAX_FRAME_BEFORE_WELCOME) {
            prop_assert!(need_bytes > rest.len());
        }
    }

    #[test]
    fn any_url(url in "(fire|fires|ws|wss)://[a-z%@:0-9/?=&\\[\\]\\.#]{0,30}") {
        if let Ok(url) = url.parse::<Url>() {
            prop_assert!(!url.host.is_empty() && !url.vhost.is_empty() && url.port != 0);
        }
    }
}
