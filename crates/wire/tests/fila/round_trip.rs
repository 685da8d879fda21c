//! Arbitrary values there and back, and values that do not fit their prefix.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{any, prop_assert_eq, proptest};
use tanda_wire::fila::consume::{Consume, ThrottleDeclaration, ThrottleLimit};
use tanda_wire::fila::delivery::{DeliveryBatch, DeliveryItem, DeliveryMeta, DeliveryWriter};
use tanda_wire::fila::enqueue::{
    EnqueueBatch, EnqueueItem, EnqueueItemResult, EnqueueResult, EnqueueResultWriter,
    EnqueueWriter, RouteHint, encode_content,
};
use tanda_wire::fila::error::ErrorFrame;
use tanda_wire::fila::frame::{RequestIdClass, request_id_class, write_body};
use tanda_wire::fila::headers::NO_HEADERS;
use tanda_wire::fila::property_key::{KeyPart, PropertyKey};
use tanda_wire::fila::queue_admin::{Backoff, DeleteQueue, QueueOrdering};
use tanda_wire::fila::settle::{
    AckResult, CodesWriter, ExtendItemResult, ExtendLeaseResult, ExtendResultWriter,
};
use tanda_wire::fila::{Direction, EncodeError, ErrorCode, Headers, Opcode};

proptest! {
    #[test]
    fn enqueue(
        queue in ".{0,40}",
        headers in vec((".{0,10}", ".{0,10}"), 0..4),
        payload in vec(any::<u8>(), 0..100),
        fairness_key in option::of(".{0,10}"),
        weight in option::of(any::<u32>()),
        delay_ms in option::of(any::<u64>()),
        idempotency_key in option::of(".{0,10}"),
        copies in 0_usize..4,
    ) {
        let item = EnqueueItem {
            queue: &queue,
            payload: &payload,
            fairness_key: fairness_key.as_deref(),
            weight,
            delay_ms,
            idempotency_key: idempotency_key.as_deref(),
        };
        let mut body = Vec::new();
        let mut writer = EnqueueWriter::new(&mut body);
        for _ in 0..copies {
            writer.push(&item, headers.iter().map(|(k, v)| (k, v))).unwrap();
        }
        writer.finish();
        let mut content = Vec::new();
        encode_content(&mut content, headers.iter().map(|(k, v)| (k, v)), &payload).unwrap();
        let mut seen = 0;
        for message in EnqueueBatch::decode_header(&body).unwrap() {
            let message = message.unwrap();
            let back = EnqueueItem {
                queue: message.queue,
                payload: message.payload,
                fairness_key: message.fairness_key,
                weight: message.weight,
                delay_ms: message.delay_ms,
                idempotency_key: message.idempotency_key,
            };
            prop_assert_eq!(&back, &item);
            prop_assert_eq!(message.content, &content[..]);
            prop_assert_eq!(Headers::decode(message.content).unwrap(), message.headers);
            let pairs = message.headers.iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
            prop_assert_eq!(pairs.collect::<Vec<_>>(), headers.clone());
            seen += 1;
        }
        prop_assert_eq!(seen, copies);
    }

    #[test]
    fn consume(
        names in vec(".{0,8}", 0..4),
        numbers in any::<[u64; 4]>(),
        kind in any::<u8>(),
        credit in any::<u32>(),
    ) {
        let window_ms = numbers[3];
        let limit = |at: usize| ThrottleLimit { max_deliveries: numbers[at], window_ms };
        let throttle = |name| ThrottleDeclaration {
            name,
            limits: vec![limit(0), limit(1), limit(2)],
            key: PropertyKey { parts: names.iter().map(|name| KeyPart { kind, name }).collect() },
            when_key_missing: kind,
        };
        let throttles = names.iter().map(|name| throttle(name)).collect();
        let consume = Consume { queue: "q", credit, throttles };
        let mut body = Vec::new();
        consume.encode(&mut body).unwrap();
        prop_assert_eq!(body.len(), consume.encoded_size());
        prop_assert_eq!(Consume::decode(&body).unwrap(), consume);
    }
}

#[test]
fn a_delivery_takes_the_content_of_an_enqueue_as_it_is() {
    let mut enqueue = Vec::new();
    let mut writer = EnqueueWriter::new(&mut enqueue);
    let item = EnqueueItem {
        queue: "orders",
        payload: b"hello",
        ..EnqueueItem::default()
    };
    writer.push(&item, [("k", "v")]).unwrap();
    writer.finish();
    let message = EnqueueBatch::decode_header(&enqueue)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let meta = DeliveryMeta {
        message_id: [7; 16],
        attempt_count: 1,
        ..DeliveryMeta::default()
    };
    let item = DeliveryItem {
        meta,
        queue: message.queue,
        fairness_key: "tenant",
        content: message.content,
    };
    let mut body = Vec::new();
    let mut writer = DeliveryWriter::new(&mut body);
    writer.push(&item).unwrap();
    assert_eq!(
        (writer.count(), writer.body_bytes()),
        (1, 4 + item.encoded_size())
    );
    writer.finish();
    let delivered = DeliveryBatch::decode_header(&body)
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(delivered.as_item(), item);
    assert_eq!(
        (delivered.headers.find("k"), delivered.payload),
        (Some("v"), &b"hello"[..])
    );
    let start = delivered.payload_start as usize;
    assert_eq!(&body[start..start + 5], b"hello");
}

#[test]
fn result_writers_write_what_the_structs_read() {
    let mut body = Vec::new();
    let mut writer = EnqueueResultWriter::new(&mut body);
    writer.push(ErrorCode::Ok, &[1; 16], true).unwrap();
    writer
        .push(ErrorCode::Unknown(0x7F), &[0; 16], false)
        .unwrap();
    let hint = RouteHint {
        queue: "q",
        leader_node_id: 3,
        leader_addr: "h:1",
    };
    writer
        .finish_with_hints(core::slice::from_ref(&hint))
        .unwrap();
    let results = vec![
        EnqueueItemResult {
            error_code: ErrorCode::Ok,
            message_id: [1; 16],
            duplicate: true,
        },
        EnqueueItemResult {
            error_code: ErrorCode::Unknown(0x7F),
            message_id: [0; 16],
            duplicate: false,
        },
    ];
    let expected = EnqueueResult {
        results,
        route_hints: vec![hint],
    };
    assert_eq!(EnqueueResult::decode(&body).unwrap(), expected);

    let mut body = Vec::new();
    EnqueueResultWriter::new(&mut body).finish();
    assert_eq!(
        EnqueueResult::decode(&body).unwrap(),
        EnqueueResult::default()
    );

    let mut body = Vec::new();
    let mut writer = CodesWriter::new(&mut body);
    writer.push(ErrorCode::Ok).unwrap();
    writer.push(ErrorCode::MessageNotFound).unwrap();
    assert_eq!(writer.finish(), 2);
    let results = vec![ErrorCode::Ok, ErrorCode::MessageNotFound];
    assert_eq!(AckResult::decode(&body).unwrap(), AckResult { results });

    let mut body = Vec::new();
    let mut writer = ExtendResultWriter::new(&mut body);
    writer.push(ErrorCode::Ok, 9).unwrap();
    writer.finish();
    let item = ExtendItemResult {
        error_code: ErrorCode::Ok,
        lease_expires_at_ms: 9,
    };
    assert_eq!(ExtendLeaseResult::decode(&body).unwrap().results, [item]);
}

#[test]
fn a_value_that_does_not_fit_leaves_no_trace() {
    let long = "x".repeat(65_536);
    let error = EncodeError {
        what: "string",
        len: 65_536,
        len_max: 65_535,
    };
    let mut out = vec![1, 2, 3];
    assert_eq!(
        write_body(&mut out, 1, 0, &DeleteQueue { queue: &long }),
        Err(error)
    );
    assert_eq!(out, [1, 2, 3]);

    let mut writer = EnqueueWriter::new(&mut out);
    let good = EnqueueItem {
        queue: "q",
        ..EnqueueItem::default()
    };
    let bad = EnqueueItem {
        idempotency_key: Some(&long),
        ..good.clone()
    };
    writer.push(&good, NO_HEADERS).unwrap();
    assert_eq!(writer.push(&bad, NO_HEADERS), Err(error));
    assert_eq!(writer.push(&good, [("k", &long)]), Err(error));
    assert_eq!(writer.count(), 1);
    writer.finish();
    assert_eq!(EnqueueBatch::decode_header(&out[3..]).unwrap().count(), 1);
    assert_eq!(out.len(), 3 + 4 + 3 + 2 + 4 + 4);
    // One byte less is the longest there is.
    let longest = &long[1..];
    let mut body = Vec::new();
    DeleteQueue { queue: longest }.encode(&mut body).unwrap();
    assert_eq!(DeleteQueue::decode(&body).unwrap().queue, longest);
    let many = vec![("", ""); 65_536];
    assert!(Headers::encode_pairs(&mut Vec::new(), many).is_err());
}

#[test]
fn an_error_arrives_even_when_its_text_is_too_long() {
    let message = "é".repeat(40_000);
    let frame = ErrorFrame {
        message: &message,
        ..ErrorFrame::default()
    };
    let mut body = Vec::new();
    frame.encode(&mut body).unwrap();
    assert_eq!(body.len(), frame.encoded_size());
    let back = ErrorFrame::decode(&body).unwrap();
    assert_eq!(back.message.len(), 65_534);
    assert!(message.starts_with(back.message));
}

#[test]
fn tables_agree_with_themselves() {
    for opcode in Opcode::ALL {
        assert_eq!(Opcode::from_wire(opcode.to_wire()), *opcode);
        assert_ne!(opcode.direction(), Direction::Unknown);
        if let Some(answer) = opcode.answer() {
            assert_ne!(answer.direction(), Direction::ToServer, "{opcode}");
            assert_eq!(answer.answer(), None, "{opcode}");
        }
    }
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from_wire(code.to_wire()), *code);
    }
    assert_eq!(ErrorCode::ALL.len(), 29);
    assert_eq!(ErrorCode::from_wire(0xFF), ErrorCode::InternalError);
    assert_eq!(ErrorCode::from_wire(0x1C), ErrorCode::Unknown(0x1C));
    assert_eq!(Opcode::from_wire(0xD3), Opcode::Unknown(0xD3));
    assert_eq!(Opcode::Enqueue.to_string(), "Enqueue (0x10)");
    assert_eq!(Backoff::try_from(3), Ok(Backoff::Exponential));
    let error = QueueOrdering::try_from(9).unwrap_err();
    assert_eq!(error.to_string(), "QueueOrdering has no value 9");
}

#[test]
fn request_ids_tell_who_made_them() {
    assert_eq!(request_id_class(0), RequestIdClass::Handshake);
    assert_eq!(request_id_class(1), RequestIdClass::Client);
    assert_eq!(request_id_class(0x7FFF_FFFF), RequestIdClass::Client);
    assert_eq!(request_id_class(0x8000_0000), RequestIdClass::Invalid);
    assert_eq!(request_id_class(0x8000_0001), RequestIdClass::Server);
    assert_eq!(request_id_class(u32::MAX), RequestIdClass::Server);
}
