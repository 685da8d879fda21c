//! `connection.blocked`: who publishes waits, everything else goes on.

use std::sync::Arc;

use tanda_wire::amqp::{basic, connection};

use super::{AmqpConfig, Peer, frame, line, plain, raw_frame, short};
use crate::Session;
use crate::login::Unrestricted;

fn blocked() -> String {
    line(
        0,
        connection::Blocked {
            reason: short("low on memory"),
        },
    )
}

#[test]
fn pitfall_18_who_has_published_is_told_once_and_waits() {
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", b"before"));
    peer.published();
    peer.session.on_alarm(peer.now, Some("memory"));
    assert_eq!(peer.lines(), [blocked()]);
    peer.session.on_alarm(peer.now, Some("disk"));
    assert_eq!(peer.bytes(), b"");
    peer.send(&[frame(1, basic::Qos::default()), plain(1, "q", b"waits")].concat());
    // What came before the message was taken.
    assert_eq!(peer.lines(), [line(1, basic::QosOk {})]);
    assert!(peer.requests().is_empty());
    assert!(!peer.session.wants_input());
    peer.session.on_alarm(peer.now, None);
    assert_eq!(peer.lines(), [line(0, connection::Unblocked {})]);
    assert!(peer.session.wants_input());
    peer.send(b"");
    assert_eq!(peer.published().1.items.len(), 1);
}

#[test]
fn pitfall_18_who_only_consumes_goes_on() {
    let mut peer = Peer::open();
    peer.session.on_alarm(peer.now, Some("memory"));
    assert_eq!(peer.bytes(), b"");
    let token = peer.consume_q();
    peer.deliver(token, 1);
    peer.say(
        1,
        basic::Ack {
            delivery_tag: 1,
            multiple: false,
        },
    );
    assert_eq!(peer.settled().1.items.len(), 1);
    // It is told when it begins to publish.
    peer.send(&plain(1, "q", b"x"));
    assert_eq!(peer.lines(), [blocked()]);
    assert!(peer.requests().is_empty());
}

#[test]
fn pitfall_18_clients_that_cannot_hear_it_only_wait() {
    let identity = Arc::new(Unrestricted::new("guest"));
    let mut peer = Peer::open_as(AmqpConfig::default(), &[], identity);
    peer.open_channel(1);
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.send(&plain(1, "q", b"x"));
    assert_eq!(peer.bytes(), b"");
    assert!(peer.requests().is_empty());
    peer.session.on_alarm(peer.now, None);
    assert_eq!(peer.bytes(), b"");
    peer.send(b"");
    assert_eq!(peer.published().1.items.len(), 1);
}

#[test]
fn pitfall_18_heartbeats_and_close_work_meanwhile() {
    let mut peer = Peer::open();
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.send(&plain(1, "q", b"x"));
    peer.bytes();
    for _ in 0..10 {
        assert!(peer.session.wants_read());
        peer.pass_ms(30_000);
        peer.send(&raw_frame(8, 0, b""));
    }
    assert!(!peer.session.is_closing());
    assert!(peer.lines().len() > 5);
    peer.say(0, connection::Close::default());
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
    assert!(
        peer.requests().is_empty(),
        "the message that waited goes with it"
    );
}

#[test]
fn what_waits_is_read_ahead_only_so_far() {
    let mut peer = Peer::open();
    peer.session.on_alarm(peer.now, Some("memory"));
    for _ in 0..3 {
        assert!(peer.session.wants_read());
        peer.send(&plain(1, "q", &[0; 100_000]));
    }
    assert!(!peer.session.wants_read());
    // Nobody listens, so silence says nothing.
    peer.pass_ms(1_000_000);
    assert!(!peer.session.is_closing());
}

#[test]
fn a_message_that_has_begun_is_finished() {
    let mut peer = Peer::open();
    let whole = plain(1, "q", b"begun");
    let (left, right) = whole.split_at(40);
    peer.send(left);
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.send(right);
    assert_eq!(peer.published().1.items.len(), 1);
}

#[test]
fn an_alarm_from_before_the_connection_counts() {
    let mut peer = Peer::logging_in(AmqpConfig::default(), &super::client_properties());
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.session
        .on_login(peer.now, Ok(Arc::new(Unrestricted::new("guest"))));
    let open = connection::Open {
        virtual_host: short("/"),
    };
    peer.send(&[frame(0, super::TUNE_OK), frame(0, open)].concat());
    let requests = peer.requests();
    let [_, tanda_engine::Request::Admin { reply, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    peer.admin(
        reply.token,
        tanda_engine::AdminReply::Vhost(Ok(super::VHOST)),
    );
    peer.bytes();
    peer.open_channel(1);
    peer.send(&plain(1, "q", b"x"));
    assert_eq!(peer.lines(), [blocked()]);
}
