//! Channels: opening, closing on both sides, and frames that may not come.

use tanda_engine::{AdminReply, AdminRequest, Event, Held, Request, Settlement, TopologyCode};
use tanda_wire::amqp::{access, basic, channel, connection, queue};

use super::{
    AmqpConfig, Peer, channel_close, frame, id, line, message, plain, raw_frame, short,
    topology_error,
};
use crate::Session;
use tanda_wire::amqp::PropertyValues;

#[test]
fn pitfall_7_a_heartbeat_of_a_channel_is_505() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(8, 0, b""));
    assert_eq!(peer.bytes(), b"");
    peer.send(&raw_frame(8, 1, b""));
    let text = "UNEXPECTED_FRAME - a heartbeat belongs to channel 0";
    peer.expect_connection_close(505, text, (0, 0));
}

#[test]
fn pitfall_8_a_bad_end_and_a_frame_over_the_limit_are_501() {
    let mut peer = Peer::open();
    let mut bad = frame(1, channel::Flow { active: true });
    *bad.last_mut().unwrap() = 0x55;
    peer.send(&bad);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 501"), "{lines:?}");
    // The rest cannot be understood, so no answer is waited for.
    assert!(peer.session.is_closing());

    let mut peer = Peer::open();
    let size = (131_072_u32 - 8 + 1).to_be_bytes();
    peer.send(&[&[1, 0, 1][..], &size].concat());
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 501"), "{lines:?}");
    assert!(lines[0].contains("too large"), "{lines:?}");
    let mut peer = Peer::open();
    let size = (131_072_u32 - 8).to_be_bytes();
    peer.send(&[&[1, 0, 1][..], &size].concat());
    assert_eq!(peer.bytes(), b"");
    let announced = peer.session.announced_bytes(&peer.input);
    assert_eq!(announced, Some(131_072));
}

#[test]
fn pitfall_12_content_without_its_method_and_a_method_in_content_are_505() {
    for (frame_type, text) in [
        (2, "expected method frame, got non method frame instead"),
        (3, "expected method frame, got non method frame instead"),
    ] {
        let mut peer = Peer::open();
        peer.send(&raw_frame(frame_type, 1, &[0; 14]));
        peer.expect_connection_close(505, &format!("UNEXPECTED_FRAME - {text}"), (0, 0));
    }
    let publish = frame(1, basic::Publish::default());
    let header = raw_frame(2, 1, b"\0\x3C\0\0\0\0\0\0\0\0\0\x05\0\0");
    let flow = frame(1, channel::Flow { active: true });
    let body = raw_frame(3, 1, b"12345");
    let no_header = "expected content header for class 60, got non content header frame instead";
    let no_body = "expected content body, got non content body frame instead";
    for (frames, text) in [
        ([publish.clone(), flow.clone(), vec![]], no_header),
        ([publish.clone(), body, vec![]], no_header),
        ([publish.clone(), header.clone(), flow], no_body),
        ([publish, header.clone(), header], no_body),
    ] {
        let mut peer = Peer::open();
        peer.send(&frames.concat());
        peer.expect_connection_close(505, &format!("UNEXPECTED_FRAME - {text}"), (0, 0));
    }
}

#[test]
fn pitfall_13_a_channel_is_opened_once_and_before_it_is_used() {
    let mut peer = Peer::open();
    peer.say(2, basic::Qos::default());
    let text = "CHANNEL_ERROR - expected 'channel.open'";
    peer.expect_connection_close(504, text, (60, 10));
    let mut peer = Peer::open();
    peer.say(1, channel::Open {});
    let text = "CHANNEL_ERROR - second 'channel.open' seen";
    peer.expect_connection_close(504, text, (20, 10));
    let mut peer = Peer::open();
    peer.say(2, basic::Ack::default());
    peer.expect_connection_close(504, "CHANNEL_ERROR - expected 'channel.open'", (60, 80));
}

#[test]
fn pitfall_14_channels_over_the_agreed_maximum_are_refused() {
    let config = AmqpConfig::default();
    let mut peer = Peer::open_with(config);
    peer.open_channel(2047);
    peer.say(2048, channel::Open {});
    let text = "NOT_ALLOWED - number of channels opened (1) has reached the negotiated \
                channel_max (2047)";
    peer.expect_connection_close(530, text, (20, 10));
}

#[test]
fn pitfall_15_after_a_channel_error_all_is_dropped_until_close_ok() {
    let mut peer = Peer::open();
    let ack = basic::Ack {
        delivery_tag: 1,
        multiple: false,
    };
    let three = frame(1, ack).repeat(3);
    peer.send(&[three, plain(1, "q", b"lost"), frame(1, ack)].concat());
    let text = "PRECONDITION_FAILED - unknown delivery tag 1";
    assert_eq!(peer.lines(), [channel_close(1, 406, text, (60, 80))]);
    assert!(peer.requests().is_empty());
    // Half a message may be on its way too.
    peer.send(&raw_frame(3, 1, b"body"));
    peer.say(1, channel::CloseOk {});
    peer.open_channel(1);
    peer.send(&plain(1, "q", b"taken"));
    assert_eq!(peer.published().1.items.len(), 1);
}

#[test]
fn pitfall_15_both_sides_may_close_at_once() {
    let mut peer = Peer::open();
    peer.say(1, basic::Reject::default());
    peer.bytes();
    peer.say(1, channel::Close::default());
    assert_eq!(peer.lines(), [line(1, channel::CloseOk {})]);
    peer.open_channel(1);
    // The answer to the server's close, which crossed.
    peer.say(2, channel::CloseOk {});
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn pitfall_15_an_error_of_a_pipelined_method_drops_those_behind_it() {
    let mut peer = Peer::open();
    let declare = queue::Declare {
        queue: short("q"),
        passive: true,
        ..queue::Declare::default()
    };
    peer.send(&[frame(1, declare), frame(1, declare), plain(1, "q", b"x")].concat());
    let (token, request) = peer.asked();
    assert!(matches!(request, AdminRequest::DeclareQueue(ref it) if it.passive && it.name == "q"));
    // Nothing behind it is taken before the answer, and nothing more is read.
    assert!(!peer.session.wants_read() && !peer.session.wants_input());
    let error = topology_error(TopologyCode::NotFound, "no queue 'q' in vhost '/'");
    peer.admin(token, AdminReply::QueueDeclared(error));
    let text = "NOT_FOUND - no queue 'q' in vhost '/'";
    assert_eq!(peer.lines(), [channel_close(1, 404, text, (50, 10))]);
    assert!(peer.requests().is_empty());
}

#[test]
fn other_channels_do_not_wait_for_a_method_of_one() {
    let mut peer = Peer::open();
    peer.open_channel(2);
    let purge = queue::Purge {
        queue: short("q"),
        no_wait: false,
    };
    peer.send(&[frame(1, purge), plain(2, "q", b"x")].concat());
    let requests = peer.requests();
    let [Request::Admin { reply, .. }, Request::Publish { .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert!(peer.session.wants_read());
    peer.admin(reply.token, AdminReply::QueuePurged(Ok(3)));
    assert_eq!(peer.lines(), [line(1, queue::PurgeOk { message_count: 3 })]);
}

#[test]
fn pitfall_19_unknown_methods_are_540_and_those_of_servers_503() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(1, 1, &[0, 60, 0, 99]));
    peer.expect_connection_close(540, "NOT_IMPLEMENTED - unknown method (60,99)", (60, 99));
    let mut peer = Peer::open();
    peer.say(1, basic::GetEmpty {});
    let text = "COMMAND_INVALID - unimplemented method";
    peer.expect_connection_close(503, text, (60, 72));
    let mut peer = Peer::open();
    peer.say(1, connection::OpenOk {});
    peer.expect_connection_close(503, text, (10, 41));
    let mut peer = Peer::open();
    peer.say(0, channel::Open {});
    let text = "CHANNEL_ERROR - unexpected method in connection state running";
    peer.expect_connection_close(504, text, (20, 10));
    let mut peer = Peer::open();
    peer.send(&raw_frame(1, 1, &[0, 60]));
    assert!(peer.lines()[0].contains("reply_code: 501"));
}

#[test]
fn pitfall_20_a_tag_nobody_knows_is_541_and_other_broken_tables_502() {
    let mut arguments = frame(1, queue::Declare::default());
    // The length of the table, then an entry of type `U`.
    let at = arguments.len() - 5;
    arguments.truncate(at);
    arguments.extend_from_slice(b"\0\0\0\x03\x01kU\xCE");
    let size = u32::try_from(arguments.len() - 8).unwrap();
    arguments[3..7].copy_from_slice(&size.to_be_bytes());
    let mut peer = Peer::open();
    peer.send(&arguments);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 541"), "{lines:?}");
    let at = arguments.len() - 2;
    arguments[at] = b'S';
    let mut peer = Peer::open();
    peer.send(&arguments);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 502"), "{lines:?}");
}

#[test]
fn pitfall_45_flow_off_is_540() {
    let mut peer = Peer::open();
    peer.say(1, channel::Flow { active: true });
    assert_eq!(peer.lines(), [line(1, channel::FlowOk { active: true })]);
    peer.say(1, channel::Flow { active: false });
    peer.expect_connection_close(540, "NOT_IMPLEMENTED - active=false", (20, 20));
}

#[test]
fn a_ticket_is_given_to_whoever_asks() {
    let mut peer = Peer::open();
    peer.say(1, access::Request::default());
    assert_eq!(peer.lines(), [line(1, access::RequestOk { ticket: 1 })]);
}

#[test]
fn a_channel_that_closes_gives_back_what_it_held() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    peer.deliver(token, 2);
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    peer.say(1, get);
    let Request::Get { reply, .. } = peer.request() else {
        panic!("no get")
    };
    let got = tanda_engine::Got {
        batch: Some(super::deliveries(9, 1)),
        remaining: 0,
    };
    let token = reply.token;
    peer.event(Event::Got {
        token,
        result: Ok(got),
    });
    peer.bytes();
    peer.requests();
    peer.say(1, channel::Close::default());
    assert_eq!(peer.lines(), [line(1, channel::CloseOk {})]);
    let requests = peer.requests();
    let [
        Request::Unsubscribe { held, .. },
        Request::Settle { batch, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    // The engine takes back the consumer's; the message of the get goes back by itself.
    assert_eq!(*held, Held::Requeue);
    assert_eq!(batch.items.len(), 1);
    assert_eq!(batch.items[0].id, id(9));
    assert_eq!(batch.items[0].settlement, Settlement::Requeue);
}

#[test]
fn a_message_of_which_not_all_has_come_goes_with_its_channel() {
    let mut peer = Peer::open();
    let whole = message(
        1,
        basic::Publish::default(),
        &PropertyValues::default(),
        b"12345",
    );
    let (publish, rest) = whole.split_at(frame(1, basic::Publish::default()).len());
    peer.send(publish);
    assert!(peer.session.held_bytes() > 0);
    peer.send(&raw_frame(3, 1, b"?"));
    assert!(peer.lines()[0].contains("reply_code: 505"));
    let mut peer = Peer::open();
    // The channel fails between the method and the header.
    let refused = raw_frame(2, 1, b"\0\x3C\0\0\0\0\0\0\0\0\0\x05\x01\0\x02no");
    peer.send(&[publish.to_vec(), refused, rest[22..].to_vec()].concat());
    let text = "PRECONDITION_FAILED - invalid expiration 'no': no_integer";
    peer.expect_channel_close(1, 406, text, (60, 40));
    assert!(peer.requests().is_empty());
    assert_eq!(peer.session.held_bytes(), 0);
}
