//! `hello`, `welcome`, and who is turned away.

use tanda_engine::{AdminReply, AdminRequest, Event, Request, TopologyCode};
use tanda_wire::firemq::session::{Auth, Hello};
use tanda_wire::firemq::{ReplyCode, Value};

use super::{
    CONN, FireConfig, FireSession, Peer, START, VHOST, WELCOME, assert_asked, frame, hello, map,
    message, raw_frame, to_q, topology_error,
};
use crate::Session;
use crate::login::{LoginError, Permission, Proof, Unrestricted};
use std::sync::Arc;

/// The connection ends with this error.
fn expect_fatal(peer: &mut Peer, code: u16, msg: &str) {
    assert_eq!(
        peer.lines(),
        [format!("error code={code} msg={msg} fatal=true")]
    );
    assert!(peer.session.is_closing());
    peer.send(&message(1, "q", b"late"));
    assert_eq!(peer.bytes(), b"");
}

const REFUSED: &str = "the login was refused: see the broker's log for the reason";

#[test]
fn a_client_sends_fmq1_and_hello_and_is_welcomed() {
    let mut peer = Peer::accepted(FireConfig::default());
    peer.send(b"FMQ1");
    assert_eq!(peer.bytes(), b"");
    peer.say(&hello());
    let login = peer.session.take_login().unwrap();
    assert_eq!(login.mechanism, "plain");
    let Proof::Password { user, password } = &login.proof else {
        panic!("{login:?}")
    };
    assert_eq!((user.as_str(), password.reveal()), ("guest", &b"guest"[..]));
    assert_eq!(peer.bytes(), b"");
    let identity = Arc::new(Unrestricted::new("guest"));
    peer.session.on_login(peer.now, Ok(identity));
    let requests = peer.requests();
    let [
        Request::Connect { conn: CONN, .. },
        Request::Admin {
            reply,
            request: AdminRequest::OpenVhost { name },
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}")
    };
    assert_eq!(name, "/");
    let token = reply.token;
    peer.admin(token, AdminReply::Vhost(Ok(VHOST)));
    assert_eq!(peer.lines(), [WELCOME]);
    peer.say(&to_q(1));
    let requests = peer.requests();
    assert!(
        matches!(&requests[..], [_, Request::Subscribe { spec, .. }] if spec.vhost == VHOST),
        "{requests:?}"
    );
}

#[test]
fn what_follows_hello_at_once_waits_for_welcome() {
    let mut peer = Peer::accepted(FireConfig::default());
    peer.send(&[&b"FMQ1"[..], &frame(&hello()), &message(1, "q", b"x")].concat());
    assert!(!peer.session.wants_input());
    assert!(peer.session.take_login().is_some());
    let identity = Arc::new(Unrestricted::new("guest"));
    peer.session.on_login(peer.now, Ok(identity));
    peer.enter();
    assert_eq!(peer.lines(), [WELCOME]);
    let (_, batch) = peer.published();
    assert_eq!((batch.items.len(), batch.vhost), (1, VHOST));
}

#[test]
fn a_stream_that_does_not_begin_with_fmq1_is_a_fatal_501() {
    for (bytes, shown) in [
        (&b"AMQP\0\0\x09\x01"[..], "AMQP"),
        (b"FMQ2", "FMQ2"),
        (b"G", "G"),
    ] {
        let mut peer = Peer::accepted(FireConfig::default());
        peer.send(bytes);
        let msg =
            format!("the stream starts with \"{shown}\": a FireMQ client sends \"FMQ1\" first");
        expect_fatal(&mut peer, 501, &msg);
    }
}

#[test]
fn a_transport_of_messages_has_no_fmq1() {
    let config = Arc::new(FireConfig::default());
    let mut peer = Peer::of(FireSession::new(CONN, config, false, None, START));
    peer.say(&hello());
    assert!(peer.session.take_login().is_some());
}

#[test]
fn ver_must_be_1() {
    for ver in [0, 2] {
        let hello = Hello { ver, ..hello() };
        let mut peer = Peer::greeted(FireConfig::default(), &hello);
        let msg = format!("version {ver} of the protocol is not spoken here, only 1");
        expect_fatal(&mut peer, 540, &msg);
    }
}

#[test]
fn a_failed_authentication_is_a_fatal_403_and_written_down() {
    let peer = &mut Peer::greeted(FireConfig::default(), &hello());
    assert!(peer.session.take_login().is_some());
    peer.session.on_login(peer.now, Err(LoginError::Refused));
    expect_fatal(peer, 403, REFUSED);
    let audit = peer.session.take_audit();
    assert_eq!(audit.len(), 1);
    assert_eq!(
        (&*audit[0].action, &*audit[0].object),
        ("login", "guest (plain)")
    );
    assert_eq!(peer.requests().len(), 0);
    for error in [LoginError::LoopbackOnly, LoginError::Overloaded] {
        let peer = &mut Peer::greeted(FireConfig::default(), &hello());
        peer.session.on_login(peer.now, Err(error));
        expect_fatal(peer, 403, REFUSED);
    }
}

#[test]
fn the_mechanism_is_plain_and_nothing_else() {
    let long = "x".repeat(5_000);
    let all = [
        ("", "guest", "guest"),
        ("scram", "guest", "guest"),
        ("PLAIN", "guest", "guest"),
        ("external", "guest", "guest"),
        ("plain", &long[..256], "guest"),
        ("plain", "guest", &long),
    ];
    for (mech, user, pass) in all {
        let auth = Auth { mech, user, pass };
        let peer = &mut Peer::greeted(FireConfig::default(), &Hello { auth, ..hello() });
        assert!(peer.session.take_login().is_none(), "{mech}");
        expect_fatal(peer, 403, REFUSED);
    }
    let nothing = Hello {
        auth: Auth::default(),
        ..hello()
    };
    expect_fatal(
        &mut Peer::greeted(FireConfig::default(), &nothing),
        403,
        REFUSED,
    );
}

#[test]
fn a_certificate_lets_in_where_that_is_allowed() {
    let auth = Auth {
        mech: "external",
        ..Auth::default()
    };
    let hello = Hello { auth, ..hello() };
    for external in [true, false] {
        let config = FireConfig {
            external,
            ..FireConfig::default()
        };
        let name = Some("CN=anna".to_owned());
        let session = FireSession::new(CONN, Arc::new(config), true, name, START);
        let mut peer = Peer::of(session);
        peer.send(b"FMQ1");
        peer.say(&hello);
        let proof = peer.session.take_login().map(|login| login.proof);
        let name = "CN=anna".to_owned();
        assert_eq!(proof, external.then_some(Proof::Certificate { name }));
    }
}

#[test]
fn an_empty_vhost_means_the_default_one_and_others_are_looked_for() {
    let url = |name: &str| Some(name.to_owned());
    for (said, of_url, asked) in [
        ("", None, "/"),
        ("dev", None, "dev"),
        ("", url("dev"), "dev"),
        ("dev", url("dev"), "dev"),
    ] {
        let config = Arc::new(FireConfig::default());
        let session = FireSession::new(CONN, config, false, None, START).with_vhost(of_url);
        let mut peer = Peer::of(session);
        peer.say(&Hello {
            vhost: said,
            ..hello()
        });
        let identity = Arc::new(Unrestricted::new("guest"));
        peer.session.on_login(peer.now, Ok(identity));
        let requests = peer.requests();
        let [_, Request::Admin { request, .. }] = &requests[..] else {
            panic!("{requests:?}")
        };
        let name = asked.to_owned();
        assert_asked(request, &AdminRequest::OpenVhost { name });
    }
}

#[test]
fn two_different_vhosts_in_url_and_hello_are_530() {
    let config = Arc::new(FireConfig::default());
    let session = FireSession::new(CONN, config, false, None, START);
    let mut peer = Peer::of(session.with_vhost(Some("a".to_owned())));
    peer.say(&Hello {
        vhost: "b",
        ..hello()
    });
    expect_fatal(&mut peer, 530, "hello names the vhost 'b', and the URL 'a'");
}

fn asked_for_vhost(vhost: &str) -> (Peer, u32) {
    let hello = Hello { vhost, ..hello() };
    let mut peer = Peer::greeted(FireConfig::default(), &hello);
    let identity = Arc::new(OnlyDefault);
    peer.session.on_login(peer.now, Ok(identity));
    let requests = peer.requests();
    let [_, Request::Admin { reply, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    (peer, reply.token)
}

/// Somebody who may enter the default virtual host only.
#[derive(Debug)]
struct OnlyDefault;

impl crate::login::Identity for OnlyDefault {
    fn name(&self) -> &'static str {
        "anna"
    }

    fn may_open(&self, vhost: &str) -> bool {
        vhost == "/"
    }

    fn may(&self, _permission: Permission, _vhost: &str, _name: &str) -> bool {
        true
    }
}

#[test]
fn an_unknown_vhost_is_a_fatal_530_and_a_forbidden_one_403() {
    let (mut peer, token) = asked_for_vhost("none");
    let text = "vhost 'none' not found";
    let missing = topology_error(TopologyCode::NotFound, text);
    peer.admin(token, AdminReply::Vhost(missing));
    expect_fatal(&mut peer, 530, text);
    let (mut peer, token) = asked_for_vhost("secret");
    peer.admin(token, AdminReply::Vhost(Ok(VHOST)));
    let text = "access to vhost 'secret' refused for user 'anna'";
    expect_fatal(&mut peer, 403, text);
    peer.session.close();
    assert!(matches!(peer.request(), Request::Disconnect { conn: CONN }));
}

#[test]
fn a_log_that_fails_meanwhile_is_a_fatal_541() {
    let (mut peer, token) = asked_for_vhost("/");
    peer.event(Event::StorageFailed { token });
    expect_fatal(&mut peer, 541, "the log failed");
}

#[test]
fn a_request_before_hello_is_a_fatal_503() {
    let mut peer = Peer::accepted(FireConfig::default());
    peer.send(b"FMQ1");
    peer.say(&to_q(1));
    let line = "error rid=77 code=503 msg=subscribe before hello fatal=true";
    assert_eq!(peer.lines(), [line]);
    assert!(peer.session.is_closing());
    for op in [0x03, 0x20, 0x39, 0x06] {
        let mut peer = Peer::accepted(FireConfig::default());
        peer.send(&[&b"FMQ1"[..], &raw_frame(op, b"", b"")].concat());
        let lines = peer.lines();
        assert!(lines[0].starts_with("error code=503 msg="), "{lines:?}");
        assert!(lines[0].ends_with(" before hello fatal=true"), "{lines:?}");
    }
}

#[test]
fn a_hello_that_cannot_be_read_is_a_fatal_502() {
    let all = [
        (&b"\xc0"[..], "header: nil at offset 0 where map belongs"),
        (
            b"\x81\xa3ver\xc3",
            "field ver: bool at offset 5 where uint belongs",
        ),
        (
            b"\x81\xa3ve",
            "header: str needs 3 bytes at offset 2, 2 remain",
        ),
    ];
    for (header, msg) in all {
        let mut peer = Peer::accepted(FireConfig::default());
        peer.send(&[&b"FMQ1"[..], &raw_frame(1, header, b"")].concat());
        let lines = peer.lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("error code=502 "), "{lines:?} {msg}");
        assert!(lines[0].ends_with("fatal=true"), "{lines:?}");
        assert!(peer.session.is_closing());
    }
}

#[test]
fn a_second_hello_is_503_and_not_fatal() {
    let mut peer = Peer::open();
    peer.say(&hello());
    assert_eq!(peer.lines(), ["error code=503 msg=hello was said before"]);
    assert!(!peer.session.is_closing());
}

#[test]
fn the_heartbeat_is_the_smaller_one_and_0_turns_it_off() {
    for (client, server, agreed) in [(30, 60, 30), (90, 60, 60), (90, 0, 90), (0, 60, 0)] {
        let config = FireConfig {
            heartbeat_s: server,
            ..FireConfig::default()
        };
        let hello = Hello {
            heartbeat: client,
            ..hello()
        };
        let mut peer = Peer::greeted(config, &hello);
        let identity = Arc::new(Unrestricted::new("guest"));
        peer.session.on_login(peer.now, Ok(identity));
        peer.enter();
        let lines = peer.lines();
        let shown = format!(" heartbeat={agreed} ");
        assert_eq!(lines[0].contains(&shown), agreed > 0, "{lines:?}");
        assert_eq!(peer.session.next_deadline().is_some(), agreed > 0);
    }
}

#[test]
fn unknown_fields_and_capabilities_of_hello_are_ignored() {
    let auth = map(&[
        ("mech", Value::Str("plain")),
        ("user", Value::Str("guest")),
        ("pass", Value::Str("")),
        ("otp", Value::Uint(7)),
    ]);
    let auth = tanda_wire::firemq::RawMap::decode(&auth).unwrap();
    let header = map(&[
        ("ver", Value::Uint(1)),
        ("later", Value::Bool(true)),
        ("auth", Value::Map(auth)),
    ]);
    let mut peer = Peer::accepted(FireConfig::default());
    peer.send(&[&b"FMQ1"[..], &raw_frame(1, &header, b"ignored")].concat());
    assert!(peer.session.take_login().is_some());
}

#[test]
fn silence_and_a_handshake_that_takes_too_long_are_the_end() {
    let mut peer = Peer::accepted(FireConfig::default());
    peer.pass_ms(9_999);
    assert!(!peer.session.is_closing());
    peer.pass_ms(1);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
    let mut peer = Peer::greeted(FireConfig::default(), &hello());
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(10_000)));
    peer.pass_ms(10_000);
    assert!(peer.session.is_closing());
}

#[test]
fn a_close_before_hello_is_answered() {
    let mut peer = Peer::accepted(FireConfig::default());
    peer.send(b"FMQ1");
    peer.say(&tanda_wire::firemq::session::Close {
        code: ReplyCode::Success,
        msg: "",
    });
    assert_eq!(peer.lines(), ["close code=200"]);
    assert!(peer.session.is_closing());
}
