//! `ping` and `pong`.

use tanda_wire::firemq::session::{Hello, Ping, Pong};

use super::{FireConfig, Peer, hello, message};
use crate::login::Unrestricted;
use std::sync::Arc;

#[test]
fn a_ping_is_answered_with_pong() {
    let mut peer = Peer::open();
    peer.say(&Ping {});
    assert_eq!(peer.lines(), ["pong"]);
    peer.say(&Pong {});
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn each_side_pings_after_half_the_interval_of_silence() {
    let mut peer = Peer::open();
    peer.pass_ms(14_999);
    assert_eq!(peer.bytes(), b"");
    peer.pass_ms(1);
    assert_eq!(peer.lines(), ["ping"]);
    peer.pass_ms(5_000);
    peer.say(&Ping {});
    assert_eq!(peer.lines(), ["pong"]);
    // That was said meanwhile.
    peer.pass_ms(14_999);
    assert_eq!(peer.bytes(), b"");
    peer.pass_ms(1);
    assert_eq!(peer.lines(), ["ping"]);
}

#[test]
fn a_peer_that_says_nothing_for_two_intervals_is_dead() {
    let mut peer = Peer::open();
    peer.pass_ms(30_000);
    peer.say(&Pong {});
    peer.pass_ms(59_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
    peer.session.close();
    assert_eq!(peer.requests().len(), 1);
}

#[test]
fn any_byte_is_a_sign_of_life() {
    let mut peer = Peer::open();
    peer.pass_ms(50_000);
    peer.send(&message(1, "q", b"abc")[..5]);
    peer.pass_ms(50_000);
    assert!(!peer.session.is_closing());
}

#[test]
fn without_an_interval_there_are_no_pings_and_no_death() {
    let hello = Hello {
        heartbeat: 0,
        ..hello()
    };
    let identity = Arc::new(Unrestricted::new("guest"));
    let mut peer = Peer::open_as(FireConfig::default(), &hello, identity);
    peer.pass_ms(1 << 40);
    assert_eq!(peer.bytes(), b"");
    assert!(!peer.session.is_closing());
    peer.say(&Ping {});
    assert_eq!(peer.lines(), ["pong"]);
}
