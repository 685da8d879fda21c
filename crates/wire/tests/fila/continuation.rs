//! Cutting bodies into frames and joining them again.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use tanda_wire::fila::Opcode;
use tanda_wire::fila::continuation::{Reassembler, ReassemblyError, ReassemblyLimits, write_split};
use tanda_wire::fila::frame::{
    FLAG_CONTINUATION, FrameHeader, MAX_FRAME_DEFAULT, split_frame, write_frame_split,
};

fn header(opcode: Opcode, request_id: u32) -> FrameHeader {
    FrameHeader::new(opcode, request_id)
}

fn continued(opcode: Opcode, request_id: u32) -> FrameHeader {
    FrameHeader {
        flags: FLAG_CONTINUATION,
        ..header(opcode, request_id)
    }
}

/// Joins a stream of frames; returns the bodies in the order they end.
fn join(mut stream: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut reassembler = Reassembler::default();
    let mut bodies = Vec::new();
    while let Some(frame) = split_frame(stream, MAX_FRAME_DEFAULT).unwrap() {
        if let Some(body) = reassembler.push(frame.header, frame.body).unwrap() {
            bodies.push((frame.header.request_id, body.into_owned()));
        }
        stream = &stream[frame.consumed..];
    }
    assert!(stream.is_empty());
    assert_eq!((reassembler.unfinished(), reassembler.held_bytes()), (0, 0));
    bodies
}

proptest! {
    #[test]
    fn any_split_joins_to_the_whole(body in vec(any::<u8>(), 0..300), max in 0_u32..60) {
        let head = header(Opcode::Enqueue, 5);
        let mut copied = vec![9; 3];
        write_split(&mut copied, head, max, &body);
        let mut in_place = vec![9; 3];
        write_frame_split(&mut in_place, head, max, |out| {
            out.extend_from_slice(&body);
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(&copied, &in_place);
        if max > 6 {
            let mut rest = &copied[3..];
            while let Some(frame) = split_frame(rest, max).unwrap() {
                rest = &rest[frame.consumed..];
            }
            prop_assert!(rest.is_empty());
        }
        prop_assert_eq!(join(&copied[3..]), vec![(5, body)]);
    }

    #[test]
    fn interleaved_requests_join_apart(
        first in vec(any::<u8>(), 1..60),
        second in vec(any::<u8>(), 1..60),
        order in vec(any::<bool>(), 0..130),
        max in 7_u32..20,
    ) {
        let mut frames = [Vec::new(), Vec::new()];
        for (frames, (id, body)) in frames.iter_mut().zip([(1, &first), (2, &second)]) {
            let mut stream = Vec::new();
            write_split(&mut stream, header(Opcode::Ack, id), max, body);
            let mut rest = &stream[..];
            while let Some(frame) = split_frame(rest, max).unwrap() {
                frames.push(rest[..frame.consumed].to_vec());
                rest = &rest[frame.consumed..];
            }
        }
        let [first_frames, second_frames] = frames;
        let (mut left, mut right) = (first_frames.into_iter(), second_frames.into_iter());
        let mut stream = Vec::new();
        for take_left in order {
            let next = if take_left { left.next() } else { right.next() };
            stream.extend(next.into_iter().flatten());
        }
        stream.extend(left.flatten());
        stream.extend(right.flatten());
        let mut bodies = join(&stream);
        bodies.sort();
        prop_assert_eq!(bodies, vec![(1, first), (2, second)]);
    }
}

#[test]
fn a_body_in_one_frame_is_not_copied() {
    let mut reassembler = Reassembler::default();
    let whole = reassembler.push(header(Opcode::Ack, 1), b"body").unwrap();
    assert!(matches!(whole, Some(Cow::Borrowed(b"body"))));
    reassembler
        .push(continued(Opcode::Ack, 2), b"part")
        .unwrap();
    let other = reassembler.push(header(Opcode::Nack, 3), b"body").unwrap();
    assert!(matches!(other, Some(Cow::Borrowed(b"body"))));
}

#[test]
fn a_changed_opcode_is_refused_and_forgotten() {
    let mut reassembler = Reassembler::default();
    reassembler
        .push(continued(Opcode::Enqueue, 1), b"part")
        .unwrap();
    let error = reassembler
        .push(header(Opcode::Ack, 1), b"rest")
        .unwrap_err();
    let changed = ReassemblyError::OpcodeChanged {
        request_id: 1,
        began_as: Opcode::Enqueue,
        found: Opcode::Ack,
    };
    assert_eq!(error, changed);
    assert!(!error.is_over_limit());
    assert_eq!(reassembler.held_bytes(), 0);
    let fresh = reassembler.push(header(Opcode::Ack, 1), b"rest").unwrap();
    assert_eq!(fresh.as_deref(), Some(&b"rest"[..]));
}

#[test]
fn limits_hold() {
    let limits = ReassemblyLimits {
        total_bytes_max: 10,
        unfinished_max: 2,
    };
    let mut reassembler = Reassembler::new(limits);
    reassembler
        .push(continued(Opcode::Enqueue, 1), &[0; 6])
        .unwrap();
    reassembler
        .push(continued(Opcode::Enqueue, 2), &[0; 4])
        .unwrap();
    let error = reassembler
        .push(continued(Opcode::Enqueue, 3), &[])
        .unwrap_err();
    assert_eq!(
        error,
        ReassemblyError::TooManyUnfinished {
            request_id: 3,
            unfinished_max: 2
        }
    );
    // Empty parts are free, and end a body that is at the limit.
    reassembler
        .push(continued(Opcode::Enqueue, 1), &[])
        .unwrap();
    let error = reassembler
        .push(continued(Opcode::Enqueue, 2), &[0])
        .unwrap_err();
    assert_eq!(
        error,
        ReassemblyError::TooLarge {
            request_id: 2,
            bytes: 11,
            bytes_max: 10
        }
    );
    assert!(error.is_over_limit());
    assert_eq!((reassembler.unfinished(), reassembler.held_bytes()), (1, 6));
    let whole = reassembler
        .push(header(Opcode::Enqueue, 1), &[1; 4])
        .unwrap()
        .unwrap();
    assert_eq!(&*whole, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!((reassembler.unfinished(), reassembler.held_bytes()), (0, 0));
}
