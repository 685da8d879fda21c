//! `queue.*` and `server.info`: what the engine is asked, and what its answers become.

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, CreateQueueError, DeleteQueueError, DeliveryBatch, DeliveryItem,
    Form, GetError, Got, KeyKind, MessageId, PublishError, PublishResult, PublishTarget,
    QueueCounts, QueueDetails, QueueId, QueueNotFound, QueueSpec, RedriveError, Redriven, Request,
    SettleError, VhostCounts, VhostId,
};
use tanda_wire::amaquet::command::TextFields;
use tanda_wire::amaquet::{Opcode, Payload};
use tanda_wire::fila::headers::Headers;

use super::*;
use crate::amaquet::message::{Address, write_message};

const ID: &str = "00000000-05dc-0000-0000-000000000001";
const MESSAGE: MessageId = MessageId(1_500 << 80 | 1);

fn ok(result: &str) -> String {
    format!(r#"COMMAND 5 {{"ok":true,"result":{result}}}"#)
}

fn failed(code: &str, message: &str) -> String {
    format!(r#"COMMAND 5 {{"ok":false,"error":{{"code":"{code}","message":"{message}"}}}}"#)
}

/// A queue's message with this content.
fn popped(form: Form, content: Vec<u8>) -> DeliveryBatch {
    let len = u32::try_from(content.len()).unwrap();
    let item = DeliveryItem {
        id: MESSAGE,
        form,
        at: DeliveryItem::RESOLVED,
        len,
        deliveries: 1,
        attempts: 2,
        ..DeliveryItem::default()
    };
    DeliveryBatch {
        consumer: 4,
        queue_id: QueueId(3),
        lease_expires_at: Millis(9),
        items: vec![item],
        chunks: vec![Bytes::from(content)],
        ..DeliveryBatch::default()
    }
}

/// The content of a message of this door.
fn content(payload: &Payload<'_>, headers: &[(&'static str, &'static str)]) -> Vec<u8> {
    let headers = headers.iter().map(|(a, b)| ((*a).into(), (*b).into()));
    let mut data = Vec::new();
    let address = Address {
        exchange: "",
        key: "q",
    };
    write_message(&mut data, address, payload, &TextFields(headers.collect())).unwrap();
    data
}

impl Peer {
    /// Asks for something rare, and checks what the engine is asked.
    fn ask_rare(&mut self, command: &str, expected: &AdminRequest) -> u32 {
        self.ask(5, command);
        self.rare(expected)
    }

    fn rare(&mut self, expected: &AdminRequest) -> u32 {
        let request = self.session.next_request();
        let Some(Request::Admin { reply, request }) = request else {
            panic!("{request:?}, {:?}", self.read())
        };
        assert_eq!(format!("{request:?}"), format!("{expected:?}"));
        reply.token
    }

    fn answer(&mut self, token: u32, reply: AdminReply) -> Vec<String> {
        let reply = Box::new(reply);
        self.event(Event::Admin { token, reply });
        self.read()
    }

    /// The token of the only `Get`, and its request as a text.
    fn get_request(&mut self) -> (u32, String) {
        let request = self.session.next_request();
        let Some(Request::Get { reply, spec }) = request else {
            panic!("{request:?}")
        };
        (reply.token, format!("{:?}", spec.take))
    }

    fn got(&mut self, token: u32, result: Result<Option<DeliveryBatch>, GetError>) -> Vec<String> {
        let result = result.map(|batch| Got {
            batch,
            remaining: 0,
        });
        self.event(Event::Got { token, result });
        self.read()
    }
}

fn create_one(command: &str, spec: QueueSpec) {
    let mut peer = Peer::open();
    let token = peer.ask_rare(command, &AdminRequest::CreateQueue(Box::new(spec)));
    let created = AdminReply::Created(Ok("q1".to_owned()));
    assert_eq!(peer.answer(token, created), [ok(r#"{"queue":"a"}"#)]);
}

#[test]
fn queues_are_made() {
    let name = || "a".to_owned();
    create_one(
        r#"{"command":"queue.create","queue":"a"}"#,
        QueueSpec {
            name: name(),
            ..QueueSpec::default()
        },
    );
    let part = |kind, name: &str| tanda_engine::KeyPart {
        kind,
        name: name.to_owned(),
    };
    create_one(
        r#"{"command":"queue.create","queue":"a","visibility_timeout_ms":1,"max_attempts":0,
            "backoff":"fixed","backoff_initial_ms":2,"backoff_max_ms":3,
            "ordering_key":["header:t:x","fairness_key","attribute:u"],
            "dedup_key":["idempotency_key","payload","headers"],"dedup_window_ms":4,
            "delivery_durability":"fast"}"#,
        QueueSpec {
            name: name(),
            lease_ms: 1,
            max_attempts: u32::MAX,
            backoff: Some(tanda_engine::Backoff::Fixed),
            backoff_initial_ms: 2,
            backoff_max_ms: 3,
            ordering: tanda_engine::Ordering::Key {
                key: vec![
                    part(KeyKind::Header, "t:x"),
                    part(KeyKind::FairnessKey, ""),
                    part(KeyKind::Attribute, "u"),
                ],
                missing: tanda_engine::MissingOrderingKey::Reject,
            },
            dedup_key: Some(vec![
                part(KeyKind::IdempotencyKey, ""),
                part(KeyKind::Payload, ""),
                part(KeyKind::AllHeaders, ""),
            ]),
            dedup_window_ms: 4,
            durability: tanda_engine::DeliveryDurability::Fast,
            ..QueueSpec::default()
        },
    );
}

#[test]
fn queues_are_not_made() {
    let mut peer = Peer::open();
    peer.ask(
        5,
        r#"{"command":"queue.create","queue":"a","ordering_key":["fairness_key","payload"]}"#,
    );
    let text = "ordering_key[1] is \\\"payload\\\"; it must be \\\"header:NAME\\\", \
                \\\"fairness_key\\\" or \\\"attribute:NAME\\\"";
    assert_eq!(peer.read(), [failed("BAD_REQUEST", text)]);
    peer.ask(
        5,
        r#"{"command":"queue.create","queue":"a","dedup_key":[]}"#,
    );
    let text = "dedup_key is empty; it must be an array of key parts";
    assert_eq!(peer.read(), [failed("BAD_REQUEST", text)]);
    for (error, code, text) in [
        (
            CreateQueueError::AlreadyExists,
            "EXISTS",
            r#"the queue \"a\" or its dead-letter queue exists"#,
        ),
        (
            CreateQueueError::ReservedName,
            "BAD_REQUEST",
            r#"queue is \"a\"; names that end in .dlq are those of dead-letter queues"#,
        ),
        (
            CreateQueueError::InvalidSetting {
                setting: "name",
                problem: "too long".to_owned(),
            },
            "BAD_REQUEST",
            "queue: too long",
        ),
    ] {
        let spec = QueueSpec {
            name: "a".to_owned(),
            ..QueueSpec::default()
        };
        let request = AdminRequest::CreateQueue(Box::new(spec));
        let token = peer.ask_rare(r#"{"command":"queue.create","queue":"a"}"#, &request);
        let told = peer.answer(token, AdminReply::Created(Err(error)));
        assert_eq!(told, [failed(code, text)]);
    }
}

#[test]
fn pushed_messages_are_those_of_every_door() {
    let mut peer = Peer::open();
    peer.ask(
        5,
        r#"{"command":"queue.push","queue":"q","messages":[
            {"payload":{"a": 1},"headers":{"h":"x","g":"1","h":"y"},"fairness_key":"f","weight":3,
             "delay_ms":7,"idempotency_key":"i"},
            {"payload":{"type":"text","data":"t"}},
            {"payload":{"type":"bytes","data":"AAE="}}]}"#,
    );
    let request = peer.session.next_request();
    let Some(Request::Publish { reply, batch }) = request else {
        panic!("{request:?}")
    };
    assert!(batch.confirm);
    let data = &batch.data;
    let shown: Vec<String> = batch
        .items
        .iter()
        .map(|item| {
            let PublishTarget::Name(queue) = item.target else {
                panic!("{item:?}")
            };
            assert_eq!((item.form, item.transient), (Form::Amqp, false));
            let content = item.content.of(data).escape_ascii();
            let idempotency_key = item.idempotency_key.map(|key| key.text(data));
            let (queue, key) = (queue.text(data), item.fairness_key.text(data));
            let (weight, delay_ms) = (item.weight, item.delay_ms);
            format!("{queue} {key} {weight} {delay_ms} {idempotency_key:?} {content}")
        })
        .collect();
    let expected = [
        // Properties: content type (0x8000), headers (0x2000), delivery mode (0x1000).
        "q f 3 7 Some(\"i\") \\x00\\x01q\\x00\\x00\\x00(\\xb0\\x00\\x10application/json\\x00\\x\
            00\\x00\\x10\\x01gS\\x00\\x00\\x00\\x011\\x01hS\\x00\\x00\\x00\\x01y\\x02\\x00\\x0\
            0\\x00\\x08{\\\"a\\\": 1}",
        "q  0 0 None \\x00\\x01q\\x00\\x00\\x00\\x1d\\x90\\x00\\x19text/plain; charset=utf-8\\x\
            02\\x00\\x00\\x00\\x01t",
        "q  0 0 None \\x00\\x01q\\x00\\x00\\x00\\x1c\\x90\\x00\\x18application/octet-stream\\x\
            02\\x00\\x00\\x00\\x02\\x00\\x01",
    ];
    assert_eq!(shown, expected);
    peer.event(Event::Published {
        token: reply.token,
        results: vec![
            PublishResult::Stored(MESSAGE),
            PublishResult::Duplicate(MESSAGE),
            PublishResult::Refused(PublishError::QueueFull),
        ],
    });
    let told = format!(
        "{{\"messages\":[{{\"id\":\"{ID}\",\"duplicate\":false}},{{\"id\":\"{ID}\",\"duplicate\
            \":true}},{{\"error\":{{\"code\":\"OVERLOADED\",\"message\":\"the queue is full\",\
            \"retry_after_ms\":100}}}}]}}"
    );
    assert_eq!(peer.read(), [ok(&told)]);
}

#[test]
fn pushes_to_where_nothing_can_be_pushed_fail_as_a_whole() {
    let push = r#"{"command":"queue.push","queue":"q","messages":[{"payload":1},{"payload":2}]}"#;
    for (error, code, text) in [
        (
            PublishError::QueueNotFound,
            "NOT_FOUND",
            r#"there is no queue \"q\""#,
        ),
        (
            PublishError::ReservedQueueName,
            "BAD_REQUEST",
            r#"queue is \"q\"; dead-letter queues take no messages"#,
        ),
    ] {
        let mut peer = Peer::open();
        peer.ask(5, push);
        let Some(Request::Publish { reply, .. }) = peer.session.next_request() else {
            panic!("no publish")
        };
        let results = vec![PublishResult::Refused(error); 2];
        let token = reply.token;
        peer.event(Event::Published { token, results });
        assert_eq!(peer.read(), [failed(code, text)]);
    }
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"queue.push","queue":"q","messages":[]}"#);
    assert_eq!(peer.read(), [ok(r#"{"messages":[]}"#)]);
    let long = "x".repeat(256);
    let headers = format!(r#"{{"payload":1,"headers":{{"{long}":"v"}}}}"#);
    peer.ask(
        5,
        &format!(
            r#"{{"command":"queue.push","queue":"q","messages":[{{"payload":1}},{headers}]}}"#
        ),
    );
    let text = "messages[1].headers is with a name of 256 bytes; it must be with names of at m\
        ost 255 bytes";
    assert_eq!(peer.read(), [failed("BAD_REQUEST", text)]);
    assert_eq!(peer.requests(), [""; 0]);
}

#[test]
fn popped_messages_of_this_door_are_as_they_were_pushed() {
    for (payload, headers, shown, shown_headers) in [
        (
            Payload::Json("[1]".into()),
            &[("h", "x")][..],
            r#"{"type":"json","data":[1]}"#,
            r#"{"h":"x"}"#,
        ),
        (
            Payload::Text("t".into()),
            &[],
            r#"{"type":"text","data":"t"}"#,
            "{}",
        ),
        (
            Payload::Bytes(b"\0\x01"[..].into()),
            &[],
            r#"{"type":"bytes","data":"AAE="}"#,
            "{}",
        ),
    ] {
        let mut peer = Peer::open();
        peer.ask(
            5,
            r#"{"command":"queue.pop","queue":"q","max":3,"wait_ms":7,"lease_ms":8}"#,
        );
        let (token, take) = peer.get_request();
        assert_eq!(take, "Leased { max: 3, lease_ms: Some(8), wait_ms: 7 }");
        let batch = popped(Form::Amqp, content(&payload, headers));
        let told = format!(
            "{{\"messages\":[{{\"id\":\"{ID}\",\"payload\":{shown},\"headers\":{shown_headers}\
                ,\"attempts\":2,\"fairness_key\":null,\"enqueued_at\":1500,\"lease_expires_at\
                \":9}}]}}"
        );
        assert_eq!(peer.got(token, Ok(Some(batch))), [ok(&told)]);
        // The engine hears that they have left.
        peer.wait(20);
        let drained = peer.requests();
        assert!(drained[0].starts_with("Drained"), "{drained:?}");
    }
}

#[test]
fn a_message_of_fila_is_bytes_with_its_headers() {
    let mut bytes = Vec::new();
    Headers::encode_pairs(
        &mut bytes,
        [("amqp.delivery_mode", "2")].iter().map(|(a, b)| (a, b)),
    )
    .unwrap();
    bytes.extend_from_slice(b"\0\0\0\x01x");
    let mut batch = popped(Form::Fila, bytes);
    batch.lease_expires_at = Millis(0);
    batch.keys = b"key".to_vec();
    batch.items[0].fairness_key.len = 3;
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"queue.peek","queue":"q"}"#);
    let (token, take) = peer.get_request();
    assert_eq!(take, "Look { max: 1 }");
    let told = format!(
        "{{\"messages\":[{{\"id\":\"{ID}\",\"payload\":{{\"type\":\"bytes\",\"data\":\"eA==\"\
            }},\"headers\":{{\"amqp.delivery_mode\":\"2\"}},\"attempts\":2,\"fairness_key\":\"\
            key\",\"enqueued_at\":1500,\"lease_expires_at\":null}}]}}"
    );
    assert_eq!(peer.got(token, Ok(Some(batch))), [ok(&told)]);
}

#[test]
fn a_pop_of_nothing_is_empty_and_of_no_queue_an_error() {
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"queue.pop","queue":"q","wait_ms":9}"#);
    let (token, _) = peer.get_request();
    assert_eq!(peer.got(token, Ok(None)), [ok(r#"{"messages":[]}"#)]);
    peer.ask(5, r#"{"command":"queue.pop","queue":"q"}"#);
    let (token, _) = peer.get_request();
    let none = failed("NOT_FOUND", r#"there is no queue \"q\""#);
    assert_eq!(peer.got(token, Err(GetError::NotFound)), [none]);
    peer.ask(5, r#"{"command":"queue.pop","queue":"q","wait_ms":9}"#);
    let (token, _) = peer.get_request();
    peer.say(Opcode::Cancel, 6, r#"{"request_id":5}"#);
    assert!(peer.requests()[0].starts_with("CancelWait"));
    let told = r#"CANCEL 6 {"ok":true,"result":{"request_id":5,"cancelled":true}}"#;
    let cancelled = failed("CANCELLED", "the command was cancelled");
    assert_eq!(peer.got(token, Ok(None)), [told.to_owned(), cancelled]);
}

#[test]
fn popped_messages_go_back_when_they_do_not_reach_the_peer() {
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"queue.pop","queue":"q"}"#);
    let (token, _) = peer.get_request();
    let batch = popped(Form::Amqp, content(&Payload::Text("t".into()), &[]));
    let result = Ok(Got {
        batch: Some(batch),
        remaining: 0,
    });
    peer.event(Event::Got { token, result });
    peer.session.close();
    let back = peer.requests();
    assert!(
        back[0].starts_with("GotUndelivered { conn: ConnId(9)"),
        "{back:?}"
    );
    assert!(back[0].contains("chunks: []"), "{back:?}");
    assert!(back[1].starts_with("Disconnect"), "{back:?}");
    assert_eq!(back.len(), 2);
}

#[test]
fn messages_that_fit_no_answer_go_back_and_the_others_come() {
    let small = popped(Form::Amqp, content(&Payload::Text("t".into()), &[]));
    let mut batch = popped(
        Form::Amqp,
        content(&Payload::Text("\u{1}".repeat(12 << 20).into()), &[]),
    );
    let mut item = small.items[0];
    (item.id, item.chunk) = (MessageId(1_500 << 80 | 2), 1);
    batch.items.push(item);
    batch.chunks.extend(small.chunks);
    let mut peer = Peer::open();
    peer.ask(5, r#"{"command":"queue.pop","queue":"q","max":2}"#);
    let (token, _) = peer.get_request();
    let told = peer.got(token, Ok(Some(batch.clone())));
    assert!(
        told[0].starts_with(r#"COMMAND 5 {"ok":true"#) && told[0].len() < 300,
        "{told:?}"
    );
    assert!(told[0].contains("000000000002"), "{told:?}");
    let back = peer.requests();
    assert!(
        back[0].contains("Unsent { consumer: 4, deliveries: 1, redrives: 0 }"),
        "{back:?}"
    );
    batch.items.truncate(1);
    peer.ask(5, r#"{"command":"queue.pop","queue":"q"}"#);
    let (token, _) = peer.get_request();
    let told = peer.got(token, Ok(Some(batch)));
    assert!(told[0].contains("PAYLOAD_TOO_LARGE"), "{told:?}");
    assert!(peer.requests().iter().any(|it| it.contains("Unsent")));
}

#[test]
fn settlements_are_answered_one_by_one() {
    for (command, settlement, lease) in [
        (r#""command":"queue.ack""#, "Ack", ""),
        (
            r#""command":"queue.nack","error":"why","retry_after_ms":6"#,
            "Fail { error: Span { start: 0, len: 3 }, retry_after_ms: Some(6) }",
            "",
        ),
        (
            r#""command":"queue.extend","extend_by_ms":6"#,
            "Extend { by_ms: 6 }",
            r#","lease_expires_at":77"#,
        ),
    ] {
        let mut peer = Peer::open();
        peer.ask(
            5,
            &format!(r#"{{{command},"queue":"q","ids":["{ID}","x","{ID}"]}}"#),
        );
        let request = peer.session.next_request();
        let Some(Request::Settle { reply, batch }) = request else {
            panic!("{request:?}")
        };
        let asked: Vec<String> = batch
            .items
            .iter()
            .map(|item| {
                assert_eq!(item.id, MESSAGE);
                format!("{:?}", item.settlement)
            })
            .collect();
        assert_eq!(asked, [settlement; 2]);
        let token = reply.token;
        let results = vec![Ok(Millis(77)), Err(SettleError::MessageNotFound)];
        peer.event(Event::Settled { token, results });
        let told = format!(
            "{{\"results\":[{{\"id\":\"{ID}\",\"ok\":true{lease}}},{{\"id\":\"x\",\"error\":{{\
                \"code\":\"BAD_REQUEST\",\"message\":\"it is no id of a message\"}}}},{{\"id\"\
                :\"{ID}\",\"error\":{{\"code\":\"NOT_FOUND\",\"message\":\"the message is not \
                leased from this queue\"}}}}]}}"
        );
        assert_eq!(peer.read(), [ok(&told)]);
    }
}

fn inspected(counts: QueueCounts) -> AdminReply {
    AdminReply::Inspected(Ok(QueueDetails {
        id: "q1".to_owned(),
        name: "q".to_owned(),
        dead_letter_queue: None,
        parent: None,
        config: QueueSpec::default().resolve(&tanda_engine::EngineConfig::default().defaults),
        counts,
    }))
}

#[test]
fn queues_are_counted() {
    let name = || "q".to_owned();
    let counts = QueueCounts {
        depth: 1,
        in_flight: 2,
        delayed: 3,
        throttled: 4,
        unclassified: 5,
        active_consumers: 6,
        active_fairness_keys: 7,
        ..QueueCounts::default()
    };
    let inspect = AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    };
    let mut peer = Peer::open();
    let token = peer.ask_rare(r#"{"command":"queue.stats","queue":"q"}"#, &inspect);
    assert_eq!(peer.answer(token, inspected(counts)), [""; 0]);
    let (token, take) = peer.get_request();
    assert_eq!(take, "Oldest");
    let batch = popped(Form::Amqp, Vec::new());
    let told = "{\"depth\":1,\"in_flight\":2,\"delayed\":3,\"throttled\":4,\"unclassified\":5,\
        \"consumers\":6,\"fairness_keys\":7,\"oldest_message_age_ms\":998500}";
    assert_eq!(peer.got(token, Ok(Some(batch))), [ok(told)]);
    let none = failed("NOT_FOUND", r#"there is no queue \"q\""#);
    let token = peer.ask_rare(r#"{"command":"queue.stats","queue":"q"}"#, &inspect);
    let told = peer.answer(token, AdminReply::Inspected(Err(QueueNotFound)));
    assert_eq!(told, [none]);
}

#[test]
fn queues_are_deleted() {
    let mut peer = Peer::open();
    let name = "q".to_owned();
    let delete = AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    };
    let command = r#"{"command":"queue.delete","queue":"q"}"#;
    let text = r#"queue is \"q\"; a dead-letter queue goes with its queue"#;
    for (result, told) in [
        (Ok(()), ok(r#"{"deleted":true}"#)),
        (Err(DeleteQueueError::NotFound), ok(r#"{"deleted":false}"#)),
        (
            Err(DeleteQueueError::ReservedName),
            failed("BAD_REQUEST", text),
        ),
    ] {
        let token = peer.ask_rare(command, &delete);
        assert_eq!(peer.answer(token, AdminReply::Deleted(result)), [told]);
    }
}

#[test]
fn dead_letters_are_redriven() {
    let mut peer = Peer::open();
    let name = || "q".to_owned();
    let counts = QueueCounts {
        depth: 1,
        in_flight: 2,
        ..QueueCounts::default()
    };
    let inspect = AdminRequest::InspectQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    };
    let redrive = AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name: name(),
        count: 2,
        reclassify: tanda_engine::Reclassify::All,
    };
    let command = r#"{"command":"queue.redrive","queue":"q","count":2}"#;
    let token = peer.ask_rare(command, &redrive);
    let done = Redriven {
        redriven: 2,
        ..Redriven::default()
    };
    assert_eq!(peer.answer(token, AdminReply::Redriven(Ok(done))), [""; 0]);
    let token = peer.rare(&inspect);
    let told = ok(r#"{"redriven":2,"left":3}"#);
    assert_eq!(peer.answer(token, inspected(counts)), [told]);
    let text = r#"queue is \"q\"; it must be a dead-letter queue"#;
    for (error, told) in [
        (
            RedriveError::NotDeadLetterQueue,
            failed("BAD_REQUEST", text),
        ),
        (
            RedriveError::NotFound,
            failed("NOT_FOUND", r#"there is no queue \"q\""#),
        ),
    ] {
        let token = peer.ask_rare(command, &redrive);
        assert_eq!(peer.answer(token, AdminReply::Redriven(Err(error))), [told]);
    }
}

#[test]
fn the_server_tells_of_itself() {
    let mut peer = Peer::open();
    let vhost = VhostId::DEFAULT;
    let token = peer.ask_rare(
        r#"{"command":"server.info"}"#,
        &AdminRequest::CountVhost { vhost },
    );
    let counts = VhostCounts { keys: 1, queues: 2 };
    let told = "{\"version\":\"0.1.0\",\"uptime_ms\":5000,\"keys\":1,\"connections\":3,\"memor\
        y_bytes\":1048576,\"queues\":2}";
    assert_eq!(
        peer.answer(token, AdminReply::VhostCounts(counts)),
        [ok(told)]
    );
    // What the answer to another question would be.
    let token = peer.ask_rare(
        r#"{"command":"server.info"}"#,
        &AdminRequest::CountVhost { vhost },
    );
    let told = failed("INTERNAL", "the broker answered another question");
    assert_eq!(peer.answer(token, AdminReply::RebalancingSet), [told]);
}
