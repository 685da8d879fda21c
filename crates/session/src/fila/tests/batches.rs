//! `Enqueue`, `Ack`, `Nack`, `ExtendLease` and their results.

use tanda_engine::{
    Event, MessageId, Millis, PublishError, PublishResult, PublishTarget, Request, SettleError,
    SettleQueue, Settlement,
};
use tanda_wire::fila::enqueue::{
    EnqueueItem, EnqueueItemResult, EnqueueMessage, EnqueueResult, EnqueueWriter,
};
use tanda_wire::fila::field::Field;
use tanda_wire::fila::frame::{FrameHeader, write_frame};
use tanda_wire::fila::headers::NO_HEADERS;
use tanda_wire::fila::settle::{
    AckItem, AckResult, AckWriter, ExtendItem, ExtendItemResult, ExtendLeaseResult, ExtendWriter,
    NackItem, NackResult, NackWriter,
};
use tanda_wire::fila::{Capabilities, ErrorCode, Opcode};

use super::{Peer, config, content, id, raw_frame, token};
use crate::fila::SessionConfig;

fn enqueue(request_id: u32, items: &[(EnqueueItem<'_>, &[(&str, &str)])]) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::Enqueue, request_id, |out| {
        let mut writer = EnqueueWriter::new(out);
        for (item, headers) in items {
            writer.push(item, headers.iter().copied()).unwrap();
        }
        writer.finish();
        Ok(())
    })
    .unwrap();
    out
}

#[test]
fn an_enqueue_becomes_one_publish_with_spans_into_the_frame() {
    let plain = EnqueueItem {
        queue: "orders",
        payload: b"hello",
        ..EnqueueItem::default()
    };
    let full = EnqueueItem {
        queue: "other",
        payload: b"",
        fairness_key: Some("tenant"),
        weight: Some(7),
        delay_ms: Some(1 << 40),
        idempotency_key: Some(""),
    };
    let mut peer = Peer::open();
    peer.send(&enqueue(
        5,
        &[(plain, &[]), (full, &[("a", "1"), ("", "")])],
    ));
    let request = peer.request();
    let Request::Publish { batch, .. } = &request else {
        panic!("no Publish")
    };
    let [first, second] = &batch.items[..] else {
        panic!("{} items", batch.items.len())
    };

    let PublishTarget::Name(queue) = first.target else {
        panic!("{first:?}")
    };
    assert_eq!(queue.of(&batch.data), b"orders");
    assert_eq!(first.content.of(&batch.data), content(b"hello"));
    assert_eq!(
        (first.fairness_key.len, first.weight, first.delay_ms),
        (0, 0, 0)
    );
    assert_eq!(first.idempotency_key, None);
    assert_eq!((first.priority, first.transient), (0, false));

    let PublishTarget::Name(queue) = second.target else {
        panic!("{second:?}")
    };
    assert_eq!(queue.text(&batch.data), "other");
    let view = tanda_engine::Content::new(tanda_engine::Form::Fila, second.content.of(&batch.data));
    assert_eq!(view.header(b"a").as_deref(), Some(b"1".as_slice()));
    assert_eq!(view.payload(), Ok(b"".as_slice()));
    assert_eq!(second.fairness_key.text(&batch.data), "tenant");
    assert_eq!((second.weight, second.delay_ms), (7, 1 << 40));
    assert_eq!(second.idempotency_key.map(|span| span.len), Some(0));

    let results = vec![
        PublishResult::Stored(id(9, 1)),
        PublishResult::Duplicate(id(8, 2)),
    ];
    peer.event(Event::Published {
        token: token(&request),
        results,
    });
    let frame = peer.frame();
    assert_eq!(frame.header, FrameHeader::new(Opcode::EnqueueResult, 5));
    let ok = |id: MessageId, duplicate| EnqueueItemResult {
        error_code: ErrorCode::Ok,
        message_id: id.to_bytes(),
        duplicate,
    };
    let results = vec![ok(id(9, 1), false), ok(id(8, 2), true)];
    assert_eq!(
        frame.decode::<EnqueueResult<'_>>(),
        EnqueueResult {
            results,
            route_hints: vec![]
        }
    );
}

#[test]
fn each_refusal_has_its_code() {
    let codes = [
        (PublishError::QueueNotFound, ErrorCode::QueueNotFound),
        (
            PublishError::ReservedQueueName,
            ErrorCode::ReservedQueueName,
        ),
        (PublishError::Forbidden, ErrorCode::Forbidden),
        (
            PublishError::OrderingKeyMissing,
            ErrorCode::OrderingKeyMissing,
        ),
        (PublishError::TooLarge, ErrorCode::InvalidFrame),
        (PublishError::QueueFull, ErrorCode::ChannelFull),
        (PublishError::Storage, ErrorCode::StorageError),
        (PublishError::ScriptFailed, ErrorCode::ScriptError),
        (PublishError::ScriptTimedOut, ErrorCode::ScriptTimeout),
    ];
    let mut peer = Peer::open();
    peer.send(&enqueue(5, &[]));
    let token = token(&peer.request());
    let results = codes
        .iter()
        .map(|(error, _)| PublishResult::Refused(*error))
        .collect();
    peer.event(Event::Published { token, results });
    let frame = peer.frame();
    let result: EnqueueResult<'_> = frame.decode();
    for (item, (error, code)) in result.results.iter().zip(codes) {
        assert_eq!(item.error_code, code, "{error:?}");
        assert_eq!(item.message_id, [0; 16]);
        assert!(!item.duplicate);
    }
    assert_eq!(result.results.len(), codes.len());
}

/// A batch of which a part waits for an overloaded script is taken as a whole, or not at all.
#[test]
fn too_much_waiting_for_a_script_is_channel_full_for_the_batch() {
    let mut peer = Peer::open();
    peer.send(&enqueue(5, &[]));
    let token = token(&peer.request());
    let results = vec![PublishResult::Refused(PublishError::Overloaded); 2];
    peer.event(Event::Published { token, results });
    let text = peer.refusal(5, ErrorCode::ChannelFull);
    assert!(text.contains("try again"), "{text}");
}

#[test]
fn a_message_over_the_limit_is_refused_alone() {
    let payload = [0; 100];
    let largest = content(&payload).len();
    let max_message_bytes = u32::try_from(largest).unwrap();
    let limits = SessionConfig {
        max_message_bytes,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let item = EnqueueItem {
        queue: "q",
        payload: &payload,
        ..EnqueueItem::default()
    };
    let larger = EnqueueItem {
        payload: &[0; 101],
        ..item.clone()
    };
    peer.send(&enqueue(5, &[(item, &[]), (larger, &[])]));
    let Request::Publish { batch, .. } = peer.request() else {
        panic!("no Publish")
    };
    assert!(matches!(batch.items[0].target, PublishTarget::Name(_)));
    assert_eq!(
        batch.items[1].target,
        PublishTarget::Refused(PublishError::TooLarge)
    );
}

#[test]
fn batches_have_a_largest_number_of_items() {
    let limits = SessionConfig {
        batch_items_max: 2,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    let item = EnqueueItem {
        queue: "q",
        ..EnqueueItem::default()
    };
    let items = [
        (item.clone(), [].as_slice()),
        (item.clone(), &[]),
        (item, &[]),
    ];
    peer.send(&enqueue(5, &items[..2]));
    assert!(matches!(peer.request(), Request::Publish { .. }));
    let text = peer.expect_invalid(&enqueue(6, &items), 6);
    assert!(text.contains("at most 2"), "{text}");
    let mut ack = vec![0, 0, 0, 3];
    ack.extend_from_slice(&[0; 3 * 18]);
    peer.expect_invalid(&raw_frame(0x17, 0, 6, &ack), 6);
}

#[test]
fn empty_batches_are_legal() {
    let mut peer = Peer::open();
    for (opcode, answer, body) in [
        (0x10, Opcode::EnqueueResult, &[0, 0, 0, 0, 0, 0][..]),
        (0x17, Opcode::AckResult, &[0, 0, 0, 0]),
        (0x19, Opcode::NackResult, &[0, 0, 0, 0]),
        (0x1B, Opcode::ExtendLeaseResult, &[0, 0, 0, 0]),
    ] {
        peer.send(&raw_frame(opcode, 0, 5, &[0; 4]));
        let token = token(&peer.request());
        peer.event(match opcode {
            0x10 => Event::Published {
                token,
                results: vec![],
            },
            _ => Event::Settled {
                token,
                results: vec![],
            },
        });
        let frame = peer.frame();
        assert_eq!(frame.header, FrameHeader::new(answer, 5));
        assert_eq!(frame.body, body);
    }
}

/// Two acks, two nacks and an extension, in three frames with the IDs 1, 2 and 3.
fn settlements() -> Vec<u8> {
    let (queue, message_id) = ("orders", id(4, 2).to_bytes());
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::Ack, 1, |out| {
        let mut writer = AckWriter::new(out);
        writer.push(&AckItem {
            queue,
            message_id,
            ..AckItem::default()
        })?;
        writer.push(&AckItem {
            queue: "",
            message_id: [0; 16],
            ..AckItem::default()
        })?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    write_frame(&mut out, Opcode::Nack, 2, |out| {
        let mut writer = NackWriter::new(out);
        let item = NackItem {
            queue,
            message_id,
            error: "broken",
            ..NackItem::default()
        };
        writer.push(&NackItem {
            retry_after_ms: Some(0),
            ..item
        })?;
        writer.push(&item)?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    write_frame(&mut out, Opcode::ExtendLease, 3, |out| {
        let mut writer = ExtendWriter::new(out);
        writer.push(&ExtendItem {
            queue,
            message_id,
            extend_by_ms: 77,
            ..ExtendItem::default()
        })?;
        writer.finish();
        Ok(())
    })
    .unwrap();
    out
}

#[test]
fn acks_nacks_and_extensions_become_settlements() {
    let mut peer = Peer::open();
    peer.send(&settlements());
    let requests = peer.requests();
    let batches = requests.iter().map(|request| {
        let Request::Settle { batch, .. } = request else {
            panic!("{request:?}")
        };
        batch
    });
    let [acks, nacks, extensions] = &batches.collect::<Vec<_>>()[..] else {
        panic!()
    };
    for batch in [acks, nacks, extensions] {
        assert_eq!(name_of(batch.items[0].queue, &batch.data), "orders");
        assert_eq!(batch.items[0].id, id(4, 2));
    }
    assert_eq!(acks.items[0].settlement, Settlement::Ack);
    assert_eq!(
        (acks.items[1].id, name_of(acks.items[1].queue, &acks.data)),
        (MessageId::NIL, "")
    );
    for (item, expected) in nacks.items.iter().zip([Some(0), None]) {
        let Settlement::Fail {
            error,
            retry_after_ms,
        } = item.settlement
        else {
            panic!()
        };
        assert_eq!(error.text(&nacks.data), "broken");
        assert_eq!(retry_after_ms, expected);
    }
    assert_eq!(
        extensions.items[0].settlement,
        Settlement::Extend { by_ms: 77 }
    );
}

#[test]
fn settlements_are_answered_in_their_own_frames() {
    let mut peer = Peer::open();
    peer.send(&settlements());
    let requests = peer.requests();
    let results = vec![
        Ok(Millis(5)),
        Err(SettleError::MessageNotFound),
        Err(SettleError::Forbidden),
    ];
    for request in &requests {
        let results = results.clone();
        peer.event(Event::Settled {
            token: token(request),
            results,
        });
    }
    let codes = vec![
        ErrorCode::Ok,
        ErrorCode::MessageNotFound,
        ErrorCode::Forbidden,
    ];
    let frames = peer.frames();
    assert_eq!(
        frames
            .iter()
            .map(|f| f.header.request_id)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(frames[0].decode::<AckResult>().results, codes);
    assert_eq!(frames[1].decode::<NackResult>().results, codes);
    let result = |error_code, lease_expires_at_ms| ExtendItemResult {
        error_code,
        lease_expires_at_ms,
    };
    assert_eq!(
        frames[2].decode::<ExtendLeaseResult>().results,
        [
            result(codes[0], 5),
            result(codes[1], 0),
            result(codes[2], 0)
        ]
    );
}

#[test]
fn a_request_id_may_be_used_again_before_its_answer() {
    let mut peer = Peer::open();
    peer.send(&enqueue(5, &[]));
    peer.send(&raw_frame(0x17, 0, 5, &[0; 4]));
    let requests = peer.requests();
    peer.event(Event::Settled {
        token: token(&requests[1]),
        results: vec![],
    });
    assert_eq!(peer.frame().header, FrameHeader::new(Opcode::AckResult, 5));
    peer.event(Event::Published {
        token: token(&requests[0]),
        results: vec![],
    });
    assert_eq!(
        peer.frame().header,
        FrameHeader::new(Opcode::EnqueueResult, 5)
    );
    // An answer that came twice is nobody's.
    peer.event(Event::Published {
        token: token(&requests[0]),
        results: vec![],
    });
    assert!(peer.frames().is_empty());
}

#[test]
fn a_failed_log_is_said_of_each_request() {
    let mut peer = Peer::open();
    peer.send(&enqueue(5, &[]));
    let token = token(&peer.request());
    peer.event(Event::StorageFailed { token });
    peer.refusal(5, ErrorCode::StorageError);
    peer.event(Event::Published {
        token,
        results: vec![],
    });
    assert!(peer.frames().is_empty());
}

#[test]
fn a_long_result_goes_in_parts() {
    let limits = SessionConfig {
        max_frame_size: 1024,
        ..config()
    };
    let mut peer = Peer::open_with(limits, Capabilities::NONE);
    peer.send(&enqueue(5, &[]));
    let token = token(&peer.request());
    let results = vec![PublishResult::Stored(id(1, 1)); 1000];
    peer.event(Event::Published { token, results });
    let bytes = peer.bytes();
    let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    assert_eq!(first, 1024);
    let frames = super::parse(&bytes);
    assert_eq!(frames[0].decode::<EnqueueResult<'_>>().results.len(), 1000);
    assert_eq!(frames.len(), 1);
}

#[test]
fn the_overhead_examples_of_the_protocol_decode() {
    let payload = [7; 1024];
    let item = EnqueueItem {
        queue: "orders",
        payload: &payload,
        ..EnqueueItem::default()
    };
    let mut out = Vec::new();
    write_frame(&mut out, Opcode::Enqueue, 1, |out| {
        let mut writer = EnqueueWriter::new(out);
        for _ in 0..100 {
            writer.push(&item, NO_HEADERS)?;
        }
        writer.finish();
        Ok(())
    })
    .unwrap();
    assert_eq!(out.len(), 104_214);
    let mut peer = Peer::open();
    peer.send(&out);
    let Request::Publish { batch, .. } = peer.request() else {
        panic!("no Publish")
    };
    assert_eq!(batch.items.len(), 100);
    assert!(batch.items.iter().all(|item| item.content.len == 1030));
    assert_eq!(<EnqueueMessage<'_> as Field<'_>>::SIZE_MIN, 12);
}

fn name_of(queue: SettleQueue, data: &[u8]) -> &str {
    match queue {
        SettleQueue::Name(name) => name.text(data),
        SettleQueue::Id(id) | SettleQueue::Held { queue: id, .. } => panic!("{id} and no name"),
    }
}
