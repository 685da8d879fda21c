use tanda_engine::{LeaseMode, Request, SubscribeSpec};
use tanda_wire::fila::consume::Consume;
use tanda_wire::fila::control::{Handshake, HandshakeOk};
use tanda_wire::fila::error::META_MAX_VERSION;
use tanda_wire::fila::{Capabilities, ErrorCode};

use super::{Peer, config, frame_of, handshake, raw_frame};
use crate::fila::SessionConfig;

#[test]
fn a_handshake_opens_the_connection() {
    let mut peer = Peer::accepted(config());
    assert!(peer.requests().is_empty());
    // A client of the future still gets version 1.
    peer.send(&handshake(7, Capabilities::from_bits(0xFFFF_FFFF)));
    let frame = peer.frame();
    assert_eq!(frame.header.request_id, 0);
    let ok: HandshakeOk = frame.decode();
    assert_eq!(ok.negotiated_version, 1);
    assert_eq!(ok.node_id, 0);
    assert_eq!(ok.max_frame_size, 16 << 20);
    assert_eq!(ok.server_capabilities, Capabilities::CREDIT_FLOW_CONTROL);
    let Request::Connect { limits, .. } = peer.request() else {
        panic!("no Connect")
    };
    assert_eq!(limits.outbound_bytes_max, 8 << 20);
    assert_eq!(limits.subscriptions_max, 1024);
}

#[test]
fn without_authentication_any_key_is_accepted() {
    let mut peer = Peer::accepted(config());
    let handshake = Handshake {
        protocol_version: 1,
        api_key: Some("whatever"),
        client_capabilities: Capabilities::NONE,
    };
    peer.send(&frame_of(0, &handshake));
    let _: HandshakeOk = peer.frame().decode();
}

#[test]
fn version_0_is_unsupported_and_closes() {
    let mut peer = Peer::accepted(config());
    peer.send(&handshake(0, Capabilities::NONE));
    let frame = peer.frame();
    let error = frame.error();
    assert_eq!(error.error_code, ErrorCode::UnsupportedVersion);
    assert_eq!(error.meta(META_MAX_VERSION), Some("1"));
    assert!(peer.session.is_closing());
    peer.session.close();
    assert!(peer.requests().is_empty());
}

#[test]
fn anything_else_first_is_invalid_and_closes() {
    let bad = [
        (raw_frame(0x03, 0, 77, &[]), 77),
        (raw_frame(0xFD, 0, 5, &[1, 2, 3]), 5),
        (raw_frame(0x00, 0, 6, &[]), 6),
        (raw_frame(0x01, 0, 1, &[0, 1, 0, 0, 0, 0, 0]), 1),
        (raw_frame(0x01, 1, 0, &[0, 1, 0, 0, 0, 0, 0]), 0),
        (raw_frame(0x01, 0x80, 0, &[0, 1, 0, 0, 0, 0, 0]), 0),
        // Cut short.
        (raw_frame(0x01, 0, 0, &[0, 1, 0, 0, 0, 0]), 0),
    ];
    for (bytes, request_id) in bad {
        let mut peer = Peer::accepted(config());
        peer.send(&bytes);
        peer.refusal(request_id, ErrorCode::InvalidFrame);
        assert!(peer.session.is_closing());
        // Nothing after it counts.
        peer.send(&handshake(1, Capabilities::NONE));
        assert!(peer.frames().is_empty());
        assert!(peer.input.is_empty());
        assert!(peer.requests().is_empty());
    }
}

#[test]
fn a_wrong_first_frame_is_refused_before_its_body_comes() {
    let mut peer = Peer::accepted(config());
    let frame = raw_frame(0x10, 0, 4, &[0; 1000]);
    peer.send(&frame[..9]);
    assert!(!peer.session.is_closing());
    peer.send(&frame[9..10]);
    let text = peer.refusal(4, ErrorCode::InvalidFrame);
    assert!(text.contains("Enqueue"), "{text}");
    assert!(peer.session.is_closing());
}

#[test]
fn a_handshake_has_a_size_limit_of_its_own() {
    let mut peer = Peer::accepted(config());
    peer.send(&[0, 2, 0, 1, 0x01, 0, 0, 0, 0, 0]);
    peer.refusal(0, ErrorCode::InvalidFrame);
    assert!(peer.session.is_closing());
}

#[test]
fn fields_appended_one_day_are_ignored() {
    let mut peer = Peer::accepted(config());
    peer.send(&raw_frame(0x01, 0, 0, &[0, 1, 0, 0, 0, 0, 1, 9, 9, 9]));
    let _: HandshakeOk = peer.frame().decode();
}

#[test]
fn a_second_handshake_is_invalid_and_kept() {
    let mut peer = Peer::open();
    let text = peer.expect_invalid(&handshake(1, Capabilities::NONE), 0);
    assert!(text.contains("Handshake"), "{text}");
}

#[test]
fn silence_before_the_handshake_ends() {
    let mut peer = Peer::accepted(config());
    let deadline = peer.session.next_deadline().unwrap();
    assert_eq!(
        peer.now.until(deadline),
        SessionConfig::default().handshake_timeout_ms
    );
    peer.send(&[0, 0]);
    peer.pass_ms(29_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    peer.refusal(0, ErrorCode::InvalidFrame);
    assert!(peer.session.is_closing());
    assert_eq!(peer.session.next_deadline(), None);
}

#[test]
fn credit_counts_only_when_both_sides_speak_of_it() {
    let consume = Consume {
        queue: "q",
        credit: 10,
        ..Consume::default()
    };
    for (capabilities, credit) in [
        (Capabilities::CREDIT_FLOW_CONTROL, Some(10)),
        (Capabilities::from_bits(0xFFFE), None),
    ] {
        let mut peer = Peer::open_with(config(), capabilities);
        peer.call(1, &consume);
        let Request::Subscribe { spec, .. } = peer.request() else {
            panic!("no Subscribe")
        };
        let queue = "q".to_owned();
        assert_eq!(
            spec,
            SubscribeSpec {
                queue,
                credit,
                lease: LeaseMode::Timed,
                throttles: Vec::new(),
                ..SubscribeSpec::default()
            }
        );
    }
}
