//! Heartbeats, and all ways in which a connection ends.

use std::sync::Arc;

use tanda_engine::{AdminReply, AdminRequest, Event, Request};
use tanda_wire::amqp::{LongStr, basic, channel, connection, queue};

use super::{Peer, connection_close, declared, frame, line, plain, raw_frame, short};
use crate::Session;
use crate::login::{LoginError, Proof, Unrestricted};

fn close() -> connection::Close<'static> {
    connection::Close {
        reply_code: 200,
        reply_text: short("bye"),
        ..connection::Close::default()
    }
}

#[test]
fn pitfall_6_heartbeats_are_sent_and_missed() {
    let mut peer = Peer::open();
    peer.pass_ms(30_000);
    // The handshake was said since; now nothing is.
    peer.lines();
    peer.pass_ms(30_000);
    assert_eq!(peer.lines(), ["0 heartbeat"]);
    peer.send(&raw_frame(8, 0, b""));
    // What the peer sends does not save the server's own.
    for _ in 0..4 {
        peer.pass_ms(30_000);
        peer.send(&plain(1, "q", b"x"));
        assert_eq!(peer.lines(), ["0 heartbeat"]);
    }
    peer.requests();
    peer.pass_ms(119_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
    peer.session.close();
    assert!(matches!(peer.requests()[..], [Request::Disconnect { .. }]));
}

#[test]
fn pitfall_6_the_client_has_the_last_word_on_the_interval() {
    let quiet = Peer::tuned(connection::TuneOk {
        heartbeat: 0,
        ..super::TUNE_OK
    });
    // Neither side is asked for a sign of life.
    assert_eq!(quiet.session.next_deadline(), None);
    let mut peer = Peer::tuned(connection::TuneOk {
        heartbeat: 600,
        ..super::TUNE_OK
    });
    peer.pass_ms(300_000);
    // The handshake was said since; now nothing is.
    peer.lines();
    peer.pass_ms(299_999);
    assert_eq!(peer.bytes(), b"");
    peer.pass_ms(1);
    assert_eq!(peer.lines(), ["0 heartbeat"]);
    peer.pass_ms(599_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
}

#[test]
fn pitfall_16_a_close_is_answered_once_the_connections_queues_are_gone() {
    let mut peer = Peer::open();
    let declare = queue::Declare {
        queue: short("mine"),
        exclusive: true,
        ..queue::Declare::default()
    };
    peer.say(1, declare);
    let (token, _) = peer.asked();
    peer.admin(token, declared("mine", 0, 0));
    peer.bytes();
    peer.send(&[plain(1, "q", b"last"), frame(0, close())].concat());
    let requests = peer.requests();
    let [Request::Publish { .. }, Request::Admin { reply, request }] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert!(matches!(request, AdminRequest::RemoveOwnQueues));
    let token = reply.token;
    assert_eq!(peer.bytes(), b"");
    assert!(!peer.session.is_closing());
    peer.admin(token, AdminReply::QueueRemoved(Ok(0)));
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
    peer.session.close();
    assert!(matches!(peer.requests()[..], [Request::Disconnect { .. }]));
}

#[test]
fn pitfall_16_a_close_without_such_queues_is_answered_at_once() {
    let mut peer = Peer::open();
    peer.confirm_select(1);
    peer.send(&[plain(1, "q", b"x"), frame(0, close())].concat());
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
    let (token, _) = peer.published();
    peer.event(super::stored(token, 1));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_close_waits_no_longer_than_it_may() {
    let mut peer = Peer::open();
    let declare = queue::Declare {
        queue: short("mine"),
        exclusive: true,
        ..queue::Declare::default()
    };
    peer.say(1, declare);
    let (token, _) = peer.asked();
    peer.admin(token, declared("mine", 0, 0));
    peer.bytes();
    peer.say(0, close());
    peer.pass_ms(10_000);
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
}

#[test]
fn pitfall_17_a_secret_may_be_replaced() {
    let mut peer = Peer::open();
    let update = connection::UpdateSecret {
        new_secret: LongStr::clip("new"),
        reason: short("old"),
    };
    for number in 2..4 {
        peer.say(0, update);
        // It may take a while; other channels go on.
        assert_eq!(peer.lines(), Vec::<String>::new());
        let login = peer.session.take_login().unwrap();
        let Proof::Password { user, password } = login.proof else {
            panic!("no password")
        };
        assert_eq!((user.as_str(), password.reveal()), ("guest", &b"new"[..]));
        peer.open_channel(number);
        let identity = Arc::new(Unrestricted::new("guest"));
        peer.session.on_login(peer.now, Ok(identity));
        assert_eq!(peer.lines(), [line(0, connection::UpdateSecretOk {})]);
    }
    peer.say(0, update);
    assert!(peer.session.take_login().is_some());
    peer.session.on_login(peer.now, Err(LoginError::Refused));
    let text = "NOT_ALLOWED - New secret was refused by one of the backends";
    assert_eq!(peer.lines(), [connection_close(530, text, (10, 70))]);
}

#[test]
fn one_secret_is_checked_at_a_time() {
    let mut peer = Peer::open();
    let update = connection::UpdateSecret {
        new_secret: LongStr::clip("new"),
        reason: short("old"),
    };
    peer.say(0, update);
    peer.say(0, update);
    let text = "COMMAND_INVALID - a new secret is being checked already";
    assert_eq!(peer.lines(), [connection_close(503, text, (10, 70))]);
    // The answer comes too late to matter.
    let identity = Arc::new(Unrestricted::new("guest"));
    peer.session.on_login(peer.now, Ok(identity));
    assert_eq!(peer.lines(), Vec::<String>::new());
}

#[test]
fn who_is_gone_is_told_so() {
    let mut peer = Peer::open();
    Session::on_dismissed(&mut peer.session, peer.now, "user 'guest' was deleted");
    let text = "CONNECTION_FORCED - user 'guest' was deleted";
    assert_eq!(peer.lines(), [connection_close(320, text, (0, 0))]);
}

#[test]
fn the_server_stops_with_320() {
    let mut peer = Peer::open();
    peer.session.begin_shutdown(peer.now);
    let text = "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
    assert_eq!(peer.lines(), [connection_close(320, text, (0, 0))]);
    // What still comes is thrown away, but for the answer.
    peer.send(&[plain(1, "q", b"x"), frame(1, basic::Ack::default())].concat());
    assert!(peer.requests().is_empty());
    assert!(peer.session.wants_read() && !peer.session.is_closing());
    peer.say(0, connection::CloseOk {});
    assert!(peer.session.is_closing());
    let mut peer = Peer::open();
    peer.session.begin_shutdown(peer.now);
    peer.bytes();
    peer.pass_ms(10_000);
    assert!(peer.session.is_closing());
    // Both sides at once.
    let mut peer = Peer::open();
    peer.session.begin_shutdown(peer.now);
    peer.bytes();
    peer.say(0, close());
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
}

#[test]
fn a_connection_that_holds_too_much_is_ended_with_506() {
    let mut peer = Peer::open();
    peer.session.on_overload(peer.now);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 506"), "{lines:?}");
}

#[test]
fn a_peer_that_sends_no_more_is_gone() {
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", b"x"));
    peer.session.on_end(peer.now);
    assert!(peer.session.is_closing());
    assert_eq!(peer.published().1.items.len(), 1);
}

#[test]
fn a_failed_log_ends_the_connection() {
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", b"x"));
    let (token, _) = peer.published();
    peer.event(Event::StorageFailed { token: token + 1 });
    assert_eq!(peer.bytes(), b"");
    peer.event(Event::StorageFailed { token });
    let text = "INTERNAL_ERROR - the log failed: the outcome is unknown";
    peer.expect_connection_close(541, text, (0, 0));
}

#[test]
fn a_gone_session_is_quiet() {
    let mut peer = Peer::open();
    let token = peer.consume_q();
    peer.session.close();
    peer.say(1, channel::Close::default());
    assert!(peer.input.is_empty());
    peer.event(Event::Delivery {
        token,
        batch: super::deliveries(1, 1),
    });
    peer.session.begin_shutdown(peer.now);
    peer.session.on_written(10);
    peer.pass_ms(100_000);
    assert_eq!(peer.bytes(), b"");
    assert!(matches!(peer.requests()[..], [Request::Disconnect { .. }]));
    assert!(!peer.session.wants_read());
}
