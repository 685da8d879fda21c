//! From the header to `connection.open-ok`, and all that can go wrong in between.

use std::sync::Arc;

use tanda_engine::{AdminReply, Request, TopologyCode};
use tanda_wire::amqp::{LongStr, Method, Table, Value, connection};

use super::{
    AmqpConfig, Peer, START, TUNE_OK, client_properties, connection_close, frame, line, raw_frame,
    short, shown, start_ok, topology_error,
};
use crate::Session;
use crate::login::{LoginError, Proof, Unrestricted};

#[test]
fn a_connection_opens_step_by_step() {
    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0");
    assert_eq!(peer.bytes(), b"");
    peer.send(b"\x09\x01");
    let bytes = peer.bytes();
    let lines = shown(&bytes);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("version_major: 0, version_minor: 9"),
        "{lines:?}"
    );
    for text in [
        "publisher_confirms",
        "RabbitMQ",
        "4.1.0",
        "Tanda",
        "PLAIN AMQPLAIN",
    ] {
        let found = bytes.windows(text.len()).any(|it| it == text.as_bytes());
        assert!(found, "{text}");
    }
    peer.send(&frame(0, start_ok(&client_properties(), b"\0anna\0pw")));
    // Nothing is taken while nobody knows who it is.
    assert!(!peer.session.wants_read());
    let login = peer.session.take_login().unwrap();
    assert_eq!(login.mechanism, "PLAIN");
    assert!(matches!(login.proof, Proof::Password { ref user, .. } if user == "anna"));
    assert!(peer.session.take_login().is_none());
    let identity = Arc::new(Unrestricted::new("anna"));
    peer.session.on_login(peer.now, Ok(identity));
    let tune = connection::Tune {
        channel_max: 2047,
        frame_max: 131_072,
        heartbeat: 60,
    };
    assert_eq!(peer.lines(), [line(0, tune)]);
}

#[test]
fn pitfall_1_a_wrong_protocol_header_is_answered_with_the_right_one() {
    for header in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"AMQP\x03\x01\0\0",
        b"AMQP\0\0\x09\x02",
        b"\x16\x03\x01",
    ] {
        let mut peer = Peer::accepted(AmqpConfig::default());
        peer.send(header);
        assert_eq!(peer.bytes(), b"AMQP\0\0\x09\x01", "{header:?}");
        assert!(peer.session.is_closing());
        peer.session.close();
        assert!(peer.requests().is_empty());
    }
    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\x01\x01\0\x09");
    assert_eq!(peer.lines().len(), 1);
}

#[test]
fn pitfall_2_a_refused_login_is_told_only_to_clients_that_can_hear_it() {
    let mut peer = Peer::logging_in(AmqpConfig::default(), &client_properties());
    peer.session.on_login(START, Err(LoginError::Refused));
    let text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. \
                For details see the broker logfile.";
    assert_eq!(peer.lines(), [connection_close(403, text, (0, 0))]);
    let audit = peer.session.take_audit();
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0].object, "guest (PLAIN)");
    peer.say(0, connection::CloseOk {});
    assert!(peer.session.is_closing());

    let mut peer = Peer::logging_in(AmqpConfig::default(), &[]);
    peer.session.on_login(START, Err(LoginError::LoopbackOnly));
    assert_eq!(peer.bytes(), b"");
    assert!(peer.session.is_closing());
}

#[test]
fn pitfall_3_the_mechanism_is_the_clients_choice_of_those_offered() {
    let config = AmqpConfig {
        external: true,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::with_certificate(config, Some("CN=anna"));
    peer.send(b"AMQP\0\0\x09\x01");
    assert!(peer.bytes().windows(8).any(|it| it == b"EXTERNAL"));
    let external = connection::StartOk {
        mechanism: short("EXTERNAL"),
        ..start_ok(&[], b"")
    };
    peer.say(0, external);
    let login = peer.session.take_login().unwrap();
    assert!(matches!(login.proof, Proof::Certificate { ref name } if name == "CN=anna"));

    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0\x09\x01");
    peer.bytes();
    let entries = b"\x05LOGINS\0\0\0\x04anna\x08PASSWORDS\0\0\0\x02pw";
    let amqplain = connection::StartOk {
        mechanism: short("AMQPLAIN"),
        response: LongStr::new(entries).unwrap(),
        ..start_ok(&[], b"")
    };
    peer.say(0, amqplain);
    assert_eq!(peer.session.take_login().unwrap().mechanism, "AMQPLAIN");

    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0\x09\x01");
    peer.bytes();
    let properties = client_properties();
    let unknown = connection::StartOk {
        mechanism: short("EXTERNAL"),
        ..start_ok(&properties, b"")
    };
    peer.say(0, unknown);
    assert_eq!(peer.bytes(), b"");
    assert!(peer.session.is_closing() && peer.session.take_login().is_none());
}

/// Opens until `connection.tune` and answers it.
fn tuned(tune_ok: connection::TuneOk) -> Peer {
    let mut peer = Peer::logging_in(AmqpConfig::default(), &client_properties());
    let identity = Arc::new(Unrestricted::new("guest"));
    peer.session.on_login(peer.now, Ok(identity));
    peer.bytes();
    peer.say(0, tune_ok);
    peer
}

#[test]
fn pitfall_4_an_unknown_vhost_and_one_without_permission_are_530() {
    let mut peer = tuned(TUNE_OK);
    let open = connection::Open {
        virtual_host: short("x"),
    };
    peer.say(0, open);
    let requests = peer.requests();
    let [_, Request::Admin { reply, .. }] = &requests[..] else {
        panic!("{requests:?}")
    };
    let error = topology_error(TopologyCode::NotFound, "vhost x not found");
    peer.admin(reply.token, AdminReply::Vhost(error));
    let line = peer.lines();
    assert_eq!(
        line,
        [connection_close(
            530,
            "NOT_ALLOWED - vhost x not found",
            (10, 40)
        )]
    );
}

#[test]
fn pitfall_5_what_is_agreed_on_must_be_within_the_offer() {
    let tune = |channel_max, frame_max| connection::TuneOk {
        channel_max,
        frame_max,
        heartbeat: 0,
    };
    let cases = [
        (
            tune(2047, 131_073),
            "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)",
        ),
        (
            tune(2047, 0),
            "negotiated frame_max = 0 (no limit) is higher than the maximum allowed value (131072)",
        ),
        (
            tune(2047, 4095),
            "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)",
        ),
        (
            tune(2048, 131_072),
            "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)",
        ),
        (
            tune(0, 131_072),
            "negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)",
        ),
    ];
    for (tune_ok, text) in cases {
        let mut peer = tuned(tune_ok);
        let text = format!("NOT_ALLOWED - {text}");
        assert_eq!(peer.lines(), [connection_close(530, &text, (10, 30))]);
        assert!(!peer.session.is_closing());
        peer.pass_ms(10_000);
        assert!(peer.session.is_closing());
    }
    let mut peer = tuned(tune(1, 4096));
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_handshake_that_takes_too_long_ends_without_a_word() {
    let mut peer = Peer::accepted(AmqpConfig::default());
    assert_eq!(peer.session.next_deadline(), Some(START.after_ms(10_000)));
    peer.pass_ms(10_000);
    assert!(peer.session.is_closing());
    let mut peer = Peer::logging_in(AmqpConfig::default(), &[]);
    peer.pass_ms(10_000);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_client_may_give_up_in_the_middle() {
    let mut peer = tuned(TUNE_OK);
    let close = connection::Close::default();
    peer.say(0, close);
    assert_eq!(peer.lines(), [line(0, connection::CloseOk {})]);
    assert!(peer.session.is_closing());
}

#[test]
fn frames_out_of_order_end_the_handshake() {
    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0\x09\x01");
    peer.bytes();
    peer.say(0, TUNE_OK);
    assert_eq!(peer.bytes(), b"");
    assert!(peer.session.is_closing());
    let mut peer = tuned(TUNE_OK);
    peer.say(0, TUNE_OK);
    let text = "CHANNEL_ERROR - unexpected method in connection state opening";
    assert_eq!(peer.lines(), [connection_close(504, text, (10, 31))]);
    let mut peer = tuned(TUNE_OK);
    peer.send(&raw_frame(2, 1, b""));
    assert!(peer.lines()[0].contains("reply_code: 505"));
}

#[test]
fn no_frame_of_a_handshake_is_larger_than_16_kib() {
    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0\x09\x01");
    peer.bytes();
    peer.send(&[1, 0, 0, 0, 1, 0, 0]);
    assert!(peer.session.is_closing());
    assert_eq!(peer.bytes(), b"");
}

#[test]
fn a_token_in_the_properties_of_the_client_is_no_capability() {
    let properties = super::table(&[("capabilities", Value::text("all"))]);
    let mut peer = Peer::logging_in(AmqpConfig::default(), &properties);
    peer.session.on_login(START, Err(LoginError::Refused));
    assert_eq!(peer.bytes(), b"");
    let mut peer = Peer::accepted(AmqpConfig::default());
    peer.send(b"AMQP\0\0\x09\x01");
    peer.bytes();
    let broken = connection::StartOk {
        client_properties: Table::new(b"\x01aS\0\0\0\x09").unwrap(),
        ..start_ok(&[], b"\0a\0b")
    };
    peer.send(&frame(0, Method::from(broken)));
    assert!(peer.session.is_closing());
}
