//! Names that are kept for later versions are refused cleanly.

use tanda_engine::{AdminReply, AdminRequest, TopologyCode};
use tanda_wire::firemq::consume::Subscribe;
use tanda_wire::firemq::topology::DeclareQueue;
use tanda_wire::firemq::{RawMap, Value};

use super::{Peer, map, raw_frame, to_q, topology_error};

#[test]
fn a_queue_of_the_type_stream_is_540() {
    let mut peer = Peer::open();
    let args = map(&[("x-queue-type", Value::Str("stream"))]);
    peer.say(&DeclareQueue {
        rid: 1,
        name: "s",
        durable: true,
        args: RawMap::decode(&args).unwrap(),
        ..DeclareQueue::default()
    });
    // The engine knows the arguments.
    let (token, request) = peer.asked();
    assert!(matches!(&request, AdminRequest::DeclareQueue(spec) if !spec.args.is_empty()));
    let refused = topology_error(TopologyCode::NotImplemented, "no streams");
    peer.admin(token, AdminReply::QueueDeclared(refused));
    assert_eq!(peer.lines(), ["error rid=1 code=540 msg=no streams"]);
}

#[test]
fn subscribe_with_an_offset_is_540() {
    let mut peer = Peer::open();
    let ts = map(&[("ts", Value::Uint(1_700_000_000))]);
    for offset in [
        Value::Str("first"),
        Value::Str("last"),
        Value::Str("next"),
        Value::Uint(7),
        Value::Map(RawMap::decode(&ts).unwrap()),
        Value::Bool(false),
    ] {
        peer.say(&Subscribe {
            offset: Some(offset),
            ..to_q(1)
        });
        let msg = "offset is of streams, which are not spoken here";
        assert_eq!(peer.lines(), [format!("error rid=77 code=540 msg={msg}")]);
    }
    assert_eq!(peer.requests().len(), 0);
    // Nil is the same as no offset.
    peer.say(&Subscribe {
        offset: Some(Value::Nil),
        ..to_q(1)
    });
    peer.subscribing();
}

#[test]
fn commit_offset_is_540() {
    let mut peer = Peer::open();
    let header = map(&[("rid", Value::Uint(3)), ("offset", Value::Uint(9))]);
    peer.send(&raw_frame(0x39, &header, b""));
    assert_eq!(peer.lines(), ["error rid=3 code=540 msg=unknown op 0x39"]);
}
