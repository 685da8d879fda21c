//! `flow`: something runs short in the broker.

use std::sync::Arc;
use tanda_wire::firemq::consume::Ack;
use tanda_wire::firemq::session::Close;

use super::{FireConfig, Peer, WELCOME, frame, hello, message, stored};
use crate::Session;
use crate::login::Unrestricted;

#[test]
fn an_alarm_is_told_to_everybody_once_and_that_it_is_over() {
    let mut peer = Peer::open();
    peer.session.on_alarm(peer.now, Some("memory"));
    assert_eq!(peer.lines(), ["flow pause=true"]);
    peer.session.on_alarm(peer.now, Some("disk"));
    assert_eq!(peer.bytes(), b"");
    peer.session.on_alarm(peer.now, None);
    // That there is no pause is the zero value, which is left out.
    assert_eq!(peer.lines(), ["flow"]);
    peer.session.on_alarm(peer.now, None);
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn who_comes_during_an_alarm_is_told_after_welcome() {
    let mut peer = Peer::greeted(FireConfig::default(), &hello());
    peer.session.on_alarm(peer.now, Some("disk"));
    assert_eq!(peer.bytes(), b"");
    let identity = Arc::new(Unrestricted::new("guest"));
    peer.session.on_login(peer.now, Ok(identity));
    peer.enter();
    assert_eq!(peer.lines(), [WELCOME, "flow pause=true"]);
}

#[test]
fn who_publishes_on_is_not_read_and_consumers_go_on() {
    let mut peer = Peer::open();
    let token = peer.subscribe_q();
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.lines();
    peer.deliver(token, 2);
    let ack = Ack {
        tag: 1,
        multiple: false,
    };
    peer.say(&ack);
    peer.settled();
    assert!(peer.session.wants_input());
    peer.send(&message(1, "q", b"x"));
    assert_eq!(peer.requests().len(), 0);
    assert!(!peer.session.wants_input());
    // A little is read ahead, to notice that the peer leaves.
    assert!(peer.session.wants_read());
    peer.send(&message(2, "q", &vec![b'x'; 300 << 10]));
    assert!(!peer.session.wants_read());
    // Silence says nothing about a peer that is not read.
    peer.pass_ms(1_000_000);
    assert!(!peer.session.is_closing());
    assert_eq!(peer.lines(), ["ping"]);
    peer.session.on_alarm(peer.now, None);
    assert!(peer.session.wants_input());
    peer.session.on_bytes(peer.now, &mut peer.input);
    let (_, batch) = peer.published();
    assert_eq!(batch.items.len(), 2);
    assert_eq!(peer.lines(), ["flow"]);
}

#[test]
fn who_closes_during_an_alarm_is_let_go_and_what_it_sent_before_is_taken() {
    let mut peer = Peer::open();
    peer.session.on_alarm(peer.now, Some("memory"));
    peer.lines();
    let messages = [message(1, "q", b"a"), message(2, "q", b"b")].concat();
    peer.send(&messages);
    assert_eq!(peer.requests().len(), 0);
    peer.send(&frame(&Close::default()));
    let (token, batch) = peer.published();
    assert_eq!(batch.items.len(), 2);
    peer.event(stored(token, 2));
    assert_eq!(peer.lines(), ["confirm upto=2", "close code=200"]);
    assert!(peer.session.is_closing());
}
