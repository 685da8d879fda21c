//! Messages on their way in: how frames become batches.

use tanda_engine::{Form, PublishTarget, Request};
use tanda_wire::amqp::{PropertyValues, basic, channel, encode};

use super::{AmqpConfig, Peer, envelope, frame, message, plain, raw_frame, short};
use crate::envelope::Envelope;

/// Bodies of the batch, in order.
fn bodies(batch: &tanda_engine::PublishBatch) -> Vec<Vec<u8>> {
    let envelopes = batch.items.iter().map(|item| {
        let bytes = item.content.of(&batch.data);
        let envelope = Envelope::read(bytes).unwrap();
        assert_eq!(envelope.len, bytes.len());
        envelope.body.to_vec()
    });
    envelopes.collect()
}

#[test]
fn many_messages_of_one_read_are_one_request() {
    let mut peer = Peer::open();
    peer.open_channel(2);
    let publish = basic::Publish {
        exchange: short("ex"),
        routing_key: short("key"),
        ..basic::Publish::default()
    };
    let properties = PropertyValues {
        delivery_mode: Some(2),
        priority: Some(7),
        ..PropertyValues::default()
    };
    let all = [
        plain(1, "q", b"a"),
        message(2, publish, &properties, b"bb"),
        plain(1, "q", b""),
    ];
    peer.send(&all.concat());
    let (_, batch) = peer.published();
    assert_eq!(batch.vhost, super::VHOST);
    assert!(!batch.confirm);
    let contents: Vec<&[u8]> = batch
        .items
        .iter()
        .map(|item| item.content.of(&batch.data))
        .collect();
    let expected = [
        envelope("", "q", &[0, 0], b"a"),
        envelope("ex", "key", &[0x18, 0, 2, 7], b"bb"),
        envelope("", "q", &[0, 0], b""),
    ];
    assert_eq!(contents, expected);
    for item in &batch.items {
        assert_eq!(item.form, Form::Amqp);
        assert_eq!(item.target, PublishTarget::Route);
    }
    let kinds: Vec<(bool, u8)> = batch
        .items
        .iter()
        .map(|it| (it.transient, it.priority))
        .collect();
    assert_eq!(kinds, [(true, 0), (false, 7), (true, 0)]);
}

#[test]
fn pitfall_10_an_empty_body_has_no_frame() {
    let mut peer = Peer::open();
    let whole = plain(1, "q", b"");
    assert!(!whole.windows(3).any(|it| it == [3, 0, 1]), "no body frame");
    peer.send(&whole);
    assert_eq!(bodies(&peer.published().1), [b""]);
}

#[test]
fn pitfall_11_more_body_than_announced_is_501() {
    let mut peer = Peer::open();
    let publish = frame(1, basic::Publish::default());
    let header = raw_frame(2, 1, b"\0\x3C\0\0\0\0\0\0\0\0\0\x05\0\0");
    peer.send(
        &[
            publish,
            header,
            raw_frame(3, 1, b"123"),
            raw_frame(3, 1, b"456"),
        ]
        .concat(),
    );
    let lines = peer.lines();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("reply_code: 501"), "{lines:?}");
    assert!(lines[0].contains("content body frame exceeds remaining content size"));
    assert!(peer.requests().is_empty());
}

#[test]
fn a_body_comes_in_any_number_of_frames_and_reads() {
    let body: Vec<u8> = (0..300_000_u32)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    let whole = [
        plain(1, "q", b"before"),
        plain(1, "q", &body),
        plain(1, "q", b"after"),
    ]
    .concat();
    for size in [1_000, 65_536, 131_072, 200_001, whole.len()] {
        let mut peer = Peer::open();
        let mut all = Vec::new();
        for part in whole.chunks(size) {
            peer.send(part);
            for request in peer.requests() {
                let Request::Publish { batch, .. } = request else {
                    panic!("{request:?}")
                };
                all.extend(bodies(&batch));
            }
        }
        let expected = [b"before".to_vec(), body.clone(), b"after".to_vec()];
        assert_eq!(all, expected, "reads of {size}");
        assert_eq!(peer.session.held_bytes(), 0);
    }
}

/// Frames of a message with a body of two halves, each in a frame.
fn halves(number: u16, body: &[u8]) -> Vec<Vec<u8>> {
    let mut header = Vec::new();
    let properties = tanda_wire::amqp::Properties::EMPTY;
    encode::write_content_header(&mut header, number, body.len() as u64, properties);
    let (left, right) = body.split_at(body.len() / 2);
    let publish = frame(number, basic::Publish::default());
    vec![
        publish,
        header,
        raw_frame(3, number, left),
        raw_frame(3, number, right),
    ]
}

#[test]
fn channels_may_interrupt_each_other_anywhere() {
    let (one, two) = (
        halves(1, b"of channel one"),
        halves(2, b"of channel two, longer"),
    );
    // All orders of two times four frames that keep each channel's own.
    for pattern in 0_u32..256 {
        if pattern.count_ones() != 4 {
            continue;
        }
        for cuts in [false, true] {
            let mut peer = Peer::open();
            peer.open_channel(2);
            let (mut first, mut second) = (one.iter(), two.iter());
            let mut all = Vec::new();
            for at in 0..8 {
                let next = if pattern >> at & 1 == 0 {
                    first.next()
                } else {
                    second.next()
                };
                all.extend_from_slice(next.unwrap());
                if cuts {
                    peer.send(&std::mem::take(&mut all));
                }
            }
            peer.send(&all);
            let mut found = Vec::new();
            for request in peer.requests() {
                let Request::Publish { batch, .. } = request else {
                    panic!("{request:?}")
                };
                found.extend(bodies(&batch));
            }
            found.sort();
            let expected = [
                b"of channel one".to_vec(),
                b"of channel two, longer".to_vec(),
            ];
            assert_eq!(found, expected, "{pattern:08b}");
            assert_eq!(peer.session.held_bytes(), 0);
        }
    }
}

#[test]
fn a_message_over_the_limit_is_406_before_its_body_comes() {
    let config = AmqpConfig {
        max_message_bytes: 100,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    peer.open_channel(1);
    peer.send(&plain(1, "q", &[0; 100]));
    assert_eq!(peer.published().1.items.len(), 1);
    peer.send(&plain(1, "q", &[0; 101]));
    let text = "PRECONDITION_FAILED - message size 101 is larger than configured max size 100";
    peer.expect_channel_close(1, 406, text, (60, 40));
    let header = raw_frame(2, 1, b"\0\x3C\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0");
    peer.send(&[frame(1, basic::Publish::default()), header].concat());
    assert!(peer.lines()[0].contains("reply_code: 406"));
}

#[test]
fn unfinished_messages_of_all_channels_are_bounded_together() {
    let config = AmqpConfig {
        partial_bytes_max: 1_000,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    for number in 1..=3 {
        peer.open_channel(number);
        let whole = plain(number, "q", &[0; 900]);
        let (begun, _) = whole.split_at(whole.len() - 1);
        // The body is a frame; its own bytes count once they come in two.
        let mut frames = halves(number, &[0; 900]);
        frames.pop();
        peer.send(&frames.concat());
        assert!(begun.len() > 900);
    }
    let tail = halves(3, &[0; 900]).pop().unwrap();
    peer.send(&tail);
    let lines = peer.lines();
    assert!(lines[0].contains("reply_code: 506"), "{lines:?}");
}

#[test]
fn immediate_is_540() {
    let mut peer = Peer::open();
    let publish = basic::Publish {
        immediate: true,
        ..basic::Publish::default()
    };
    peer.send(&message(1, publish, &PropertyValues::default(), b"x"));
    let text = "NOT_IMPLEMENTED - immediate=true";
    peer.expect_connection_close(540, text, (60, 40));
}

#[test]
fn what_was_complete_before_an_error_counts() {
    let mut peer = Peer::open();
    let bad = frame(1, basic::Ack::default());
    peer.send(&[plain(1, "q", b"kept"), bad, plain(1, "q", b"dropped")].concat());
    assert_eq!(bodies(&peer.published().1), [b"kept"]);
    let mut peer = Peer::open();
    peer.send(&[plain(1, "q", b"kept"), frame(1, channel::Open {})].concat());
    assert_eq!(bodies(&peer.published().1), [b"kept"]);
}

#[test]
fn a_large_read_is_sent_in_pieces() {
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", &[7; 1_000]).repeat(1_000));
    let requests = peer.requests();
    assert!(requests.len() > 2, "{}", requests.len());
    let counts = requests.iter().map(|request| {
        let Request::Publish { batch, .. } = request else {
            panic!("{request:?}")
        };
        assert!(batch.data.len() < 300_000);
        batch.items.len()
    });
    assert_eq!(counts.sum::<usize>(), 1_000);
}

#[test]
fn no_more_is_taken_while_much_waits_for_the_engine() {
    let config = AmqpConfig {
        publish_bytes_in_flight_max: 10_000,
        ..AmqpConfig::default()
    };
    let mut peer = Peer::open_with(config);
    peer.open_channel(1);
    peer.send(&plain(1, "q", &[0; 6_000]));
    assert!(peer.session.wants_read());
    peer.send(&plain(1, "q", &[0; 6_000]));
    assert!(!peer.session.wants_read() && !peer.session.wants_input());
    let requests = peer.requests();
    assert_eq!(requests.len(), 2);
    peer.send(&plain(1, "q", b"later"));
    assert!(peer.requests().is_empty());
    let Request::Publish { reply, .. } = &requests[0] else {
        panic!("{requests:?}")
    };
    peer.event(super::stored(reply.token, 1));
    assert!(peer.session.wants_read());
    assert_eq!(bodies(&peer.published().1), [b"later"]);
}

#[test]
fn what_the_engine_has_no_room_for_is_offered_again_in_order() {
    let mut peer = Peer::open();
    peer.send(&plain(1, "q", b"1"));
    let first = peer.request();
    peer.session.on_refused(first);
    assert!(!peer.session.wants_read());
    peer.send(&plain(1, "q", b"2"));
    assert!(peer.requests().is_empty());
    assert_eq!(peer.session.next_deadline(), Some(peer.now.after_ms(2)));
    peer.pass_ms(2);
    assert_eq!(bodies(&peer.published().1), [b"1"]);
    peer.send(b"");
    assert_eq!(bodies(&peer.published().1), [b"2"]);
}
