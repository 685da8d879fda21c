//! `close`, shutdown, overload, and connections that break.

use tanda_engine::{AdminReply, AdminRequest, Event, Request};
use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::session::Close;
use tanda_wire::firemq::topology::{DeclareQueue, PurgeQueue};

use super::{
    CONN, FireConfig, Peer, declared, deliveries, frame, hello, message, raw_frame, stored, to_q,
};
use crate::Session;

const CLOSE: Close<'_> = Close {
    code: ReplyCode::Success,
    msg: "bye",
};

#[test]
fn a_close_is_answered_with_close_and_the_socket_is_closed() {
    let mut peer = Peer::open();
    peer.say(&CLOSE);
    assert_eq!(peer.lines(), ["close code=200"]);
    assert!(peer.session.is_closing());
    peer.session.close();
    assert!(matches!(peer.request(), Request::Disconnect { conn: CONN }));
    assert_eq!(peer.session.next_deadline(), None);
}

#[test]
fn a_message_is_taken_before_the_close_that_follows_it() {
    let mut peer = Peer::open();
    peer.send(
        &[
            message(1, "q", b"last"),
            frame(&CLOSE),
            message(2, "q", b"no"),
        ]
        .concat(),
    );
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 1);
    assert_eq!(peer.bytes(), b"");
    peer.event(stored(token, 1));
    assert_eq!(peer.lines(), ["confirm upto=1", "close code=200"]);
    assert!(peer.session.is_closing());
}

#[test]
fn what_came_before_a_close_is_answered_before_it() {
    let mut peer = Peer::open();
    let purge = frame(&PurgeQueue { rid: 1, name: "q" });
    peer.send(&[purge, frame(&to_q(1)), frame(&CLOSE)].concat());
    peer.session.on_end(peer.now);
    let requests = peer.requests();
    let [
        Request::Admin { reply, .. },
        Request::Pool { .. },
        Request::Subscribe { sub, .. },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    let (purge, token) = (reply.token, sub.token);
    peer.admin(purge, AdminReply::QueuePurged(Ok(4)));
    assert_eq!(peer.lines(), ["ok rid=1 messages=4"]);
    peer.event(Event::Subscribed { token, consumer: 5 });
    assert_eq!(peer.lines(), ["ok rid=77", "close code=200"]);
    assert!(peer.session.is_closing());
}

#[test]
fn what_is_never_answered_does_not_keep_a_connection() {
    for stop in [true, false] {
        let mut peer = Peer::open();
        peer.send(&[message(1, "q", b"x"), frame(&CLOSE)].concat());
        assert_eq!(
            peer.session.next_deadline(),
            Some(peer.now.after_ms(10_000))
        );
        if stop {
            peer.session.begin_shutdown(peer.now);
        } else {
            peer.pass_ms(10_000);
        }
        assert_eq!(peer.lines(), ["close code=200"]);
        assert!(peer.session.is_closing());
    }
}

#[test]
fn whoever_closes_badly_is_let_go_too() {
    let mut peer = Peer::open();
    peer.send(&raw_frame(0x05, b"\xc1", b""));
    assert_eq!(peer.lines(), ["close code=200"]);
    assert!(peer.session.is_closing());
}

#[test]
fn exclusive_queues_are_gone_before_close_is_answered() {
    let mut peer = Peer::open();
    let declare = DeclareQueue {
        rid: 1,
        name: "mine",
        exclusive: true,
        ..DeclareQueue::default()
    };
    peer.say(&declare);
    let (token, _) = peer.asked();
    peer.admin(token, declared("mine", 0, 0));
    peer.lines();
    peer.say(&CLOSE);
    assert_eq!(peer.bytes(), b"");
    assert!(!peer.session.is_closing());
    let (token, request) = peer.asked();
    assert!(matches!(request, AdminRequest::RemoveOwnQueues));
    peer.admin(token, AdminReply::QueueRemoved(Ok(0)));
    assert_eq!(peer.lines(), ["close code=200"]);
    assert!(peer.session.is_closing());
}

#[test]
fn an_answer_that_does_not_come_does_not_keep_a_connection() {
    let mut peer = Peer::open();
    let declare = DeclareQueue {
        exclusive: true,
        ..DeclareQueue::default()
    };
    peer.say(&declare);
    let (token, _) = peer.asked();
    peer.admin(token, declared("amq.gen-1", 0, 0));
    peer.lines();
    peer.say(&CLOSE);
    peer.pass_ms(9_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert_eq!(peer.lines(), ["close code=200"]);
    assert!(peer.session.is_closing());
}

#[test]
fn whose_user_is_gone_is_told_so() {
    let mut peer = Peer::open();
    Session::on_dismissed(&mut peer.session, peer.now, "user 'guest' was deleted");
    assert_eq!(
        peer.lines(),
        ["close code=320 msg=user 'guest' was deleted"]
    );
}

#[test]
fn a_server_that_shuts_down_sends_close_320_and_waits_for_the_answer() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.session.begin_shutdown(peer.now);
    let line = "close code=320 msg=the server shuts down";
    assert_eq!(peer.lines(), [line]);
    assert!(!peer.session.is_closing());
    // Nothing is taken and nothing is said any more.
    peer.send(&message(1, "q", b"late"));
    let batch = deliveries(1, 1);
    peer.event(Event::Delivery { token, batch });
    assert_eq!(peer.bytes(), b"");
    peer.say(&CLOSE);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn a_client_that_does_not_answer_close_is_not_waited_for_long() {
    let mut peer = Peer::open();
    peer.session.begin_shutdown(peer.now);
    peer.pass_ms(9_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
}

#[test]
fn a_server_that_shuts_down_says_nothing_to_who_has_not_come_in() {
    let mut peer = Peer::greeted(FireConfig::default(), &hello());
    peer.session.begin_shutdown(peer.now);
    assert_eq!(peer.bytes(), b"");
    assert!(peer.session.is_closing());
}

#[test]
fn a_connection_that_holds_too_much_ends_with_a_fatal_506() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"taken"));
    peer.session.on_overload(peer.now);
    let msg = "connections hold too much memory, and this one holds most";
    let line = format!("error code=506 msg={msg} fatal=true");
    assert_eq!(peer.lines(), [line]);
    assert!(peer.session.is_closing());
    peer.published();
}

#[test]
fn a_peer_that_sends_no_more_is_let_go_and_what_it_sent_counts() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"taken"));
    peer.session.on_end(peer.now);
    assert!(peer.session.is_closing());
    peer.published();
    let mut peer = Peer::open();
    peer.session.begin_shutdown(peer.now);
    peer.session.on_end(peer.now);
    assert!(peer.session.is_closing());
}

#[test]
fn a_socket_that_is_gone_ends_everything() {
    let mut peer = Peer::open();
    peer.send(&message(1, "q", b"taken"));
    peer.session.close();
    let requests = peer.requests();
    assert!(
        matches!(
            &requests[..],
            [Request::Publish { .. }, Request::Disconnect { conn: CONN }]
        ),
        "{requests:?}"
    );
    assert_eq!(peer.session.held_bytes(), 0);
    assert!(!peer.session.wants_read());
    peer.send(&message(2, "q", b"late"));
    assert!(peer.input.is_empty());
    assert_eq!(peer.requests().len(), 0);
    peer.session.close();
    assert_eq!(peer.requests().len(), 0);
}

#[test]
fn who_never_came_in_leaves_without_a_trace() {
    let mut peer = Peer::greeted(FireConfig::default(), &hello());
    peer.session.close();
    assert_eq!(peer.requests().len(), 0);
    assert!(peer.session.take_login().is_none());
}

#[test]
fn a_log_that_fails_ends_the_connection_when_an_outcome_is_unknown() {
    let mut peer = Peer::open();
    peer.event(Event::StorageFailed { token: 99 });
    assert!(!peer.session.is_closing());
    peer.send(&message(1, "q", b"x"));
    let (token, _) = peer.published();
    peer.event(Event::StorageFailed { token });
    let msg = "the log failed: the outcome is unknown";
    let line = format!("error code=541 msg={msg} fatal=true");
    assert_eq!(peer.lines(), [line]);
    assert!(peer.session.is_closing());
}
