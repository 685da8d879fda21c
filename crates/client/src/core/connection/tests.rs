//! The connection against a scripted peer, byte by byte.

use bytes::BytesMut;
use tanda_wire::fila::ErrorCode;
use tanda_wire::fila::consume::ConsumeOk;
use tanda_wire::fila::continuation::ReassemblyError;
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{FLAG_CONTINUATION, split_frame, write_frame};
use tanda_wire::fila::settle::AckResult;

use super::*;

type TestConnection = Connection<&'static str>;

/// The answer to a handshake: version 1, node 0, default frame size, credit flow control.
const HANDSHAKE_OK: &[u8] = &[
    0, 0, 0, 24, 0x02, 0, 0, 0, 0, 0, // frame
    0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
];

fn new() -> TestConnection {
    Connection::new(&ConnectionConfig::default(), 0).unwrap()
}

/// A connection after its handshake, with nothing to send.
fn open() -> TestConnection {
    let mut connection = new();
    feed(&mut connection, HANDSHAKE_OK).unwrap();
    assert!(matches!(connection.next_event(), Some(Event::Ready(_))));
    take_output(&mut connection);
    connection
}

fn feed(connection: &mut TestConnection, bytes: &[u8]) -> Result<(), ProtocolError> {
    let mut input = BytesMut::from(bytes);
    connection.receive(0, &mut input)?;
    assert!(input.is_empty(), "{} bytes were not taken", input.len());
    Ok(())
}

fn events(connection: &mut TestConnection) -> Vec<Event<&'static str>> {
    std::iter::from_fn(|| connection.next_event()).collect()
}

fn take_output(connection: &mut TestConnection) -> Vec<u8> {
    let output = connection.output().to_vec();
    connection.on_sent(output.len());
    output
}

fn request(connection: &mut TestConnection, opcode: Opcode, context: &'static str) -> u32 {
    let made = connection.request(opcode, context, |_, out| {
        out.extend_from_slice(b"body");
        Ok(())
    });
    made.unwrap()
}

/// A frame of any opcode, flags and body.
fn frame(opcode: u8, flags: u8, request_id: u32, body: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(6 + body.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    out.extend([opcode, flags]);
    out.extend(request_id.to_be_bytes());
    out.extend(body);
    out
}

fn body_frame<'a, B: Body<'a>>(request_id: u32, body: &B) -> Vec<u8> {
    let mut out = Vec::new();
    write_body(&mut out, request_id, 0, body).unwrap();
    out
}

fn error_frame(request_id: u32) -> Vec<u8> {
    let error = ErrorFrame {
        error_code: ErrorCode::ChannelFull,
        message: "busy",
        metadata: vec![("retry_after_ms", "100"), ("later_version", "x")],
    };
    body_frame(request_id, &error)
}

/// A subscription that stands.
fn subscribed() -> (TestConnection, u32) {
    let mut connection = open();
    let id = request(&mut connection, Opcode::Consume, "consume");
    feed(
        &mut connection,
        &body_frame(id, &ConsumeOk { consumer_id: "c" }),
    )
    .unwrap();
    assert_eq!(events(&mut connection).len(), 1);
    take_output(&mut connection);
    (connection, id)
}

/// A `Delivery` body of no messages.
const NO_MESSAGES: &[u8] = &[0, 0, 0, 0];

#[test]
fn the_handshake_comes_first() {
    let config = ConnectionConfig {
        api_key: Some("key".to_owned()),
        ..ConnectionConfig::default()
    };
    let mut connection = TestConnection::new(&config, 0).unwrap();
    assert!(!connection.is_open());
    let golden = [
        0, 0, 0, 18, 0x01, 0, 0, 0, 0, 0, // frame
        0, 1, // version
        1, 0, 3, b'k', b'e', b'y', // api key
        0, 0, 0, 1, // credit flow control
    ];
    assert_eq!(take_output(&mut connection), golden);
    feed(&mut connection, HANDSHAKE_OK).unwrap();
    assert!(connection.is_open());
    match connection.next_event() {
        Some(Event::Ready(ok)) => assert_eq!(ok.negotiated_version, 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_that_does_not_fit_is_refused() {
    let config = ConnectionConfig {
        api_key: Some("k".repeat(65_536)),
        ..Default::default()
    };
    assert_eq!(TestConnection::new(&config, 0).unwrap_err().len, 65_536);
}

#[test]
fn a_refused_handshake_says_why() {
    let mut connection = new();
    feed(&mut connection, &error_frame(0)).unwrap();
    match events(&mut connection).as_slice() {
        [Event::Refused(rejection)] => assert_eq!(rejection.metadata["later_version"], "x"),
        other => panic!("{other:?}"),
    }
    assert!(!connection.is_open());
}

#[test]
fn only_an_answer_to_the_handshake_may_come_first() {
    let error = feed(&mut new(), &frame(0x14, 0, 1, NO_MESSAGES)).unwrap_err();
    assert_eq!(
        error,
        ProtocolError::BeforeHandshake {
            opcode: Opcode::Delivery
        }
    );
    let mut version_2 = HANDSHAKE_OK.to_vec();
    version_2[11] = 2;
    let error = feed(&mut new(), &version_2).unwrap_err();
    assert_eq!(error, ProtocolError::Version { negotiated: 2 });
    let error = feed(&mut new(), &frame(0x02, 0, 0, &[0])).unwrap_err();
    assert!(matches!(
        error,
        ProtocolError::Decode {
            opcode: Opcode::HandshakeOk,
            ..
        }
    ));
}

#[test]
fn a_request_is_framed_and_its_answer_comes_back_with_its_context() {
    let mut connection = open();
    let id = request(&mut connection, Opcode::Ack, "first");
    assert_eq!(id, 1);
    assert_eq!(
        take_output(&mut connection),
        [0, 0, 0, 10, 0x17, 0, 0, 0, 0, 1, b'b', b'o', b'd', b'y']
    );
    let other = request(&mut connection, Opcode::GetStats, "second");
    let answer = AckResult {
        results: vec![ErrorCode::Ok],
    };
    let mut bytes = frame(0xF8, 0, other, b"stats");
    bytes.extend(body_frame(id, &answer));
    feed(&mut connection, &bytes).unwrap();
    assert_eq!(
        events(&mut connection),
        [
            Event::Answer {
                request_id: 2,
                context: "second",
                body: Bytes::from_static(b"stats")
            },
            Event::Answer {
                request_id: 1,
                context: "first",
                body: Bytes::from_static(&[0, 0, 0, 1, 0])
            },
        ]
    );
    assert!(connection.into_unanswered().is_empty());
}

#[test]
fn a_body_that_does_not_encode_leaves_nothing_behind() {
    let mut connection = open();
    let error = EncodeError {
        what: "string",
        len: 70_000,
        len_max: 65_535,
    };
    let failed = connection.request(Opcode::Ack, "mine", |_, out| {
        out.push(1);
        Err(error)
    });
    assert_eq!(failed, Err(("mine", error)));
    assert!(connection.output().is_empty());
    assert!(connection.into_unanswered().is_empty());
}

#[test]
fn what_cannot_answer_a_request_fails_it() {
    for wrong in [0x1D, 0xFF, 0x1A, 0x14, 0x17] {
        let mut connection = open();
        let id = request(&mut connection, Opcode::Ack, "ack");
        feed(&mut connection, &frame(wrong, 0, id, &[])).unwrap();
        match events(&mut connection).as_slice() {
            [
                Event::Failed {
                    context: "ack",
                    failure: Failure::InvalidFrame(reason),
                },
            ] => {
                assert!(reason.contains("AckResult"), "{reason}");
            }
            other => panic!("{wrong:#04x}: {other:?}"),
        }
        // The answer that comes after all answers nothing.
        feed(&mut connection, &frame(0x18, 0, id, NO_MESSAGES)).unwrap();
        assert!(events(&mut connection).is_empty());
    }
}

#[test]
fn what_answers_nothing_is_ignored() {
    let (mut connection, id) = subscribed();
    for (opcode, request_id) in [
        (0x1D, 99),
        (0x1D, 0x8000_0001),
        (0x1D, id),
        (0x04, 7),
        (0x18, 9),
    ] {
        feed(&mut connection, &frame(opcode, 0, request_id, &[1, 2, 3])).unwrap();
        assert!(
            events(&mut connection).is_empty(),
            "{opcode:#04x} for {request_id}"
        );
    }
    assert!(connection.output().is_empty());
    // The subscription still stands.
    feed(&mut connection, &frame(0x14, 0, id, NO_MESSAGES)).unwrap();
    assert_eq!(events(&mut connection).len(), 1);
}

#[test]
fn errors_keep_their_metadata() {
    let mut connection = open();
    let id = request(&mut connection, Opcode::Enqueue, "enqueue");
    feed(&mut connection, &error_frame(id)).unwrap();
    match events(&mut connection).as_slice() {
        [
            Event::Failed {
                context: "enqueue",
                failure: Failure::Rejected(rejection),
            },
        ] => {
            assert_eq!(rejection.code, ErrorCode::ChannelFull);
            assert_eq!(rejection.message, "busy");
            assert_eq!(rejection.retry_after_ms(), Some(100));
            assert_eq!(rejection.metadata["later_version"], "x");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_that_cannot_be_read_still_fails_its_request() {
    let mut connection = open();
    let id = request(&mut connection, Opcode::Enqueue, "enqueue");
    feed(&mut connection, &frame(0xFE, 0, id, &[9])).unwrap();
    assert!(matches!(
        events(&mut connection).as_slice(),
        [Event::Failed {
            failure: Failure::InvalidFrame(_),
            ..
        }]
    ));
    let error = feed(&mut connection, &frame(0xFE, 0, 0, &[9])).unwrap_err();
    assert!(matches!(
        error,
        ProtocolError::Decode {
            opcode: Opcode::Error,
            ..
        }
    ));
}

#[test]
fn an_error_without_a_request_is_a_complaint() {
    let mut connection = open();
    feed(&mut connection, &error_frame(0)).unwrap();
    assert!(matches!(
        events(&mut connection).as_slice(),
        [Event::Complaint(_)]
    ));
}

#[test]
fn an_error_ends_a_live_subscription() {
    let (mut connection, id) = subscribed();
    feed(&mut connection, &error_frame(id)).unwrap();
    match events(&mut connection).as_slice() {
        [
            Event::SubscriptionEnded {
                request_id,
                failure: Failure::Rejected(_),
            },
        ] => {
            assert_eq!(*request_id, id);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(take_output(&mut connection), frame(0x16, 0, id, &[]));
    feed(&mut connection, &frame(0x14, 0, id, NO_MESSAGES)).unwrap();
    assert!(events(&mut connection).is_empty());
}

#[test]
fn credit_goes_to_live_subscriptions_only() {
    let (mut connection, id) = subscribed();
    connection.grant(id, 258);
    assert_eq!(
        take_output(&mut connection),
        frame(0x15, 0, id, &[0, 0, 1, 2])
    );
    connection.grant(id + 1, 1);
    connection.cancel(id + 1);
    assert!(connection.output().is_empty());
    connection.cancel(id);
    assert_eq!(take_output(&mut connection), frame(0x16, 0, id, &[]));
    connection.grant(id, 1);
    assert!(connection.output().is_empty());
}

#[test]
fn a_delivery_with_a_false_count_ends_its_subscription() {
    let (mut connection, id) = subscribed();
    feed(&mut connection, &frame(0x14, 0, id, &[0xFF; 4])).unwrap();
    assert!(matches!(
        events(&mut connection).as_slice(),
        [Event::SubscriptionEnded {
            failure: Failure::InvalidFrame(_),
            ..
        }]
    ));
}

#[test]
fn a_ping_is_answered_with_its_id() {
    let mut connection = open();
    feed(&mut connection, &frame(0x03, 0, 0x8000_0005, &[])).unwrap();
    assert_eq!(
        take_output(&mut connection),
        frame(0x04, 0, 0x8000_0005, &[])
    );
}

#[test]
fn silence_is_asked_about_and_then_ends_the_connection() {
    let mut connection = open();
    assert_eq!(connection.next_deadline_ms(), 15_000);
    connection.on_timer(14_999).unwrap();
    assert!(connection.output().is_empty());
    connection.on_timer(15_000).unwrap();
    assert_eq!(take_output(&mut connection), frame(0x03, 0, 1, &[]));
    assert_eq!(connection.next_deadline_ms(), 45_000);
    connection.on_timer(44_999).unwrap();
    assert!(connection.output().is_empty());

    // Any byte is a sign of life.
    let mut input = BytesMut::from(&[0_u8][..]);
    connection.receive(44_999, &mut input).unwrap();
    assert_eq!(connection.next_deadline_ms(), 59_999);
    connection.on_timer(59_999).unwrap();
    assert_eq!(take_output(&mut connection), frame(0x03, 0, 2, &[]));
    assert_eq!(connection.on_timer(89_999), Err(ProtocolError::Silent));
}

#[test]
fn a_disconnect_lets_answers_come_and_no_more_requests_go() {
    let (mut connection, id) = subscribed();
    let ack = request(&mut connection, Opcode::Ack, "ack");
    take_output(&mut connection);
    connection.disconnect();
    assert_eq!(take_output(&mut connection), frame(0x05, 0, 3, &[]));
    assert!(!connection.is_open());
    connection.grant(id, 1);
    connection.cancel(id);
    assert!(connection.output().is_empty());
    assert!(!connection.is_finished());
    feed(&mut connection, &frame(0x18, 0, ack, NO_MESSAGES)).unwrap();
    assert_eq!(events(&mut connection).len(), 1);
    assert!(connection.is_finished());
}

#[test]
fn a_disconnect_of_the_server_is_told() {
    let mut connection = open();
    let _id = request(&mut connection, Opcode::Ack, "owed");
    feed(&mut connection, &frame(0x05, 0, 0x8000_0001, &[])).unwrap();
    assert_eq!(events(&mut connection), [Event::Closing]);
    assert!(!connection.is_open());
    assert_eq!(connection.into_unanswered(), ["owed"]);
}

#[test]
fn unanswered_requests_come_back_oldest_first() {
    let (mut connection, _) = subscribed();
    for context in ["a", "b", "c", "d", "e"] {
        request(&mut connection, Opcode::Ack, context);
    }
    assert_eq!(connection.into_unanswered(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn ids_start_again_and_leave_out_those_in_use() {
    let (mut connection, id) = subscribed();
    assert_eq!(id, 1);
    connection.newest_id = REQUEST_ID_MAX - 1;
    assert_eq!(
        request(&mut connection, Opcode::Ack, "last"),
        REQUEST_ID_MAX
    );
    assert_eq!(request(&mut connection, Opcode::Ack, "first"), 2);
}

#[test]
fn a_large_body_is_cut_as_the_server_asked() {
    let mut connection = new();
    take_output(&mut connection);
    let mut small = HANDSHAKE_OK.to_vec();
    small[20..24].copy_from_slice(&16_u32.to_be_bytes());
    feed(&mut connection, &small).unwrap();
    let body: Vec<u8> = (0..25).collect();
    let made = connection.request(Opcode::Ack, "large", |_, out| {
        out.extend_from_slice(&body);
        Ok(())
    });
    let id = made.unwrap();
    let golden = [
        frame(0x17, FLAG_CONTINUATION, id, &body[..10]),
        frame(0x17, FLAG_CONTINUATION, id, &body[10..20]),
        frame(0x17, 0, id, &body[20..]),
    ];
    assert_eq!(take_output(&mut connection), golden.concat());
}

#[test]
fn answers_in_parts_are_joined_also_when_interleaved() {
    let mut connection = open();
    let first = request(&mut connection, Opcode::GetStats, "first");
    let second = request(&mut connection, Opcode::GetStats, "second");
    let bytes = [
        frame(0xF8, FLAG_CONTINUATION, first, b"on"),
        frame(0xF8, FLAG_CONTINUATION, second, b"tw"),
        frame(0x03, 0, 0x8000_0001, &[]),
        frame(0xF8, 0, first, b"e"),
        frame(0xF8, 0, second, b"o"),
    ];
    feed(&mut connection, &bytes.concat()).unwrap();
    let answer = |request_id, context, body| Event::Answer {
        request_id,
        context,
        body: Bytes::from_static(body),
    };
    let expected = [
        answer(first, "first", b"one"),
        answer(second, "second", b"two"),
    ];
    assert_eq!(events(&mut connection), expected);
}

#[test]
fn parts_over_the_bounds_end_the_connection() {
    let reassembly = ReassemblyLimits {
        total_bytes_max: 10,
        unfinished_max: 2,
    };
    let config = ConnectionConfig {
        reassembly,
        ..ConnectionConfig::default()
    };
    let opened = || {
        let mut connection = TestConnection::new(&config, 0).unwrap();
        feed(&mut connection, HANDSHAKE_OK).unwrap();
        connection
    };
    let part = |id| frame(0xF8, FLAG_CONTINUATION, id, &[0; 4]);
    let mut connection = opened();
    feed(&mut connection, &[part(1), part(1)].concat()).unwrap();
    let error = feed(&mut connection, &part(1)).unwrap_err();
    assert!(matches!(
        error,
        ProtocolError::Reassembly(ReassemblyError::TooLarge { .. })
    ));
    let mut connection = opened();
    feed(&mut connection, &[part(1), part(2)].concat()).unwrap();
    let error = feed(&mut connection, &part(3)).unwrap_err();
    assert!(matches!(
        error,
        ProtocolError::Reassembly(ReassemblyError::TooManyUnfinished { .. })
    ));
}

#[test]
fn what_version_1_does_not_have_ends_the_connection() {
    let error = feed(&mut open(), &frame(0x14, 0x02, 1, &[])).unwrap_err();
    assert_eq!(error, ProtocolError::ReservedFlags { flags: 2 });
    let mut too_long = frame(0x14, 0, 1, &[]);
    too_long[..4].copy_from_slice(&(MAX_FRAME_DEFAULT + 1).to_be_bytes());
    let error = feed(&mut open(), &too_long).unwrap_err();
    assert!(matches!(error, ProtocolError::Frame(_)));
}

#[test]
fn room_is_made_for_a_frame_but_not_for_a_false_length() {
    let connection = open();
    assert_eq!(connection.missing_bytes(&[0, 0, 1]), 0);
    assert_eq!(connection.missing_bytes(&[0, 0, 1, 0, 0x14]), 255);
    let room = connection.missing_bytes(&[0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(room <= MAX_FRAME_DEFAULT as usize, "{room}");
}

/// What a server sends to a client with requests 1 (`Consume`), 2 (`Enqueue`), 3 (`GetStats`),
/// 4 (`Ack`) and 5 (`ListQueues`).
fn script() -> Vec<u8> {
    let mut out = HANDSHAKE_OK.to_vec();
    out.extend(body_frame(
        1,
        &ConsumeOk {
            consumer_id: "consumer",
        },
    ));
    write_frame(&mut out, Opcode::EnqueueResult, 2, |out| {
        out.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        Ok(())
    })
    .unwrap();
    out.extend(frame(0xF8, FLAG_CONTINUATION, 3, b"first part"));
    out.extend(frame(0x14, 0, 1, NO_MESSAGES));
    out.extend(frame(0xF8, 0, 3, b", last part"));
    out.extend(error_frame(4));
    out.extend(frame(0x1E, 0, 5, b"from a later version"));
    out.extend(frame(0x1E, 0, 6, b"from a later version"));
    out.extend(frame(0x03, 0, 0x8000_0001, &[]));
    out.extend(frame(0x05, 0, 0x8000_0002, &[]));
    out
}

fn run_script<'p>(parts: impl Iterator<Item = &'p [u8]>) -> (Vec<Event<&'static str>>, Vec<u8>) {
    let mut connection = new();
    take_output(&mut connection);
    let mut input = BytesMut::new();
    let mut happened = Vec::new();
    let mut sent = Vec::new();
    for part in parts {
        input.extend_from_slice(part);
        connection.receive(0, &mut input).unwrap();
        happened.extend(events(&mut connection));
        if connection.is_open() && connection.newest_id == 0 {
            for (opcode, context) in [
                (Opcode::Consume, "1"),
                (Opcode::Enqueue, "2"),
                (Opcode::GetStats, "3"),
                (Opcode::Ack, "4"),
                (Opcode::ListQueues, "5"),
            ] {
                request(&mut connection, opcode, context);
            }
            take_output(&mut connection);
        }
        sent.extend(take_output(&mut connection));
    }
    assert!(input.is_empty());
    (happened, sent)
}

#[test]
fn a_stream_means_the_same_wherever_it_is_cut() {
    let script = script();
    let (after_handshake, rest) = script.split_at(HANDSHAKE_OK.len());
    let whole = run_script([after_handshake, rest].into_iter());
    assert_eq!(whole.0.len(), 8, "{:?}", whole.0);
    assert_eq!(whole.1, frame(0x04, 0, 0x8000_0001, &[]));
    for at in 0..=rest.len() {
        let (left, right) = rest.split_at(at);
        assert_eq!(
            run_script([after_handshake, left, right].into_iter()),
            whole,
            "cut at {at}"
        );
    }
    assert_eq!(run_script(script.chunks(1)), whole, "byte by byte");
}

#[test]
fn a_stream_with_a_wrong_byte_never_panics() {
    let script = script();
    for at in 0..script.len() {
        for wrong in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
            let mut bytes = script.clone();
            bytes[at] = wrong;
            let mut connection = new();
            let mut input = BytesMut::from(&bytes[..HANDSHAKE_OK.len()]);
            let mut outcome = connection.receive(0, &mut input);
            if outcome.is_ok() && connection.is_open() {
                request(&mut connection, Opcode::Consume, "1");
                request(&mut connection, Opcode::Enqueue, "2");
                input.extend_from_slice(&bytes[HANDSHAKE_OK.len()..]);
                outcome = connection.receive(0, &mut input);
            }
            // Either it goes on, with less than a frame left, or it says why not.
            if outcome.is_ok() {
                assert!(matches!(split_frame(&input, MAX_FRAME_DEFAULT), Ok(None)));
            }
        }
    }
}
