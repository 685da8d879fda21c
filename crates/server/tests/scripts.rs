//! Scripts on a server with its threads: what clients see of them, and that one without end holds
//! nobody up but its own queue. (fila.md, "Enqueue", "CreateQueue", "Nack")

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

#[path = "support/frames.rs"]
mod frames;
mod support;

use std::io::ErrorKind;

use frames::nack;
use support::{Frame, Peer, TempDir, TestServer};
use tanda_wire::fila::{
    ErrorCode, Opcode,
    config::{SetConfig, SetConfigResult},
    delivery::DeliveryBatch,
    enqueue::{EnqueueItem, EnqueueResult, EnqueueWriter},
    queue_admin::{CreateQueue, CreateQueueResult, UpdateQueue, UpdateQueueResult},
    redrive::{Redrive, RedriveResult},
    stats::{GetStats, GetStatsResult},
};

const BY_TENANT: &str = "function on_enqueue(msg)
    local tenant = msg.headers.tenant
    return { fairness_key = tenant, weight = tonumber(fila.get('weight.' .. tenant)) }
end";
const ENDLESS: &str = "function on_enqueue() while true do pcall(error) end end";

fn create(peer: &mut Peer, queue: &CreateQueue<'_>) -> ErrorCode {
    let answer = peer.ask(1, queue);
    answer.parse::<CreateQueueResult<'_>>().error_code
}

fn scripted<'a>(name: &'a str, on_enqueue: &'a str) -> CreateQueue<'a> {
    CreateQueue {
        name,
        on_enqueue_script: Some(on_enqueue),
        ..CreateQueue::default()
    }
}

/// The body of an `Enqueue` of so many messages of one tenant.
fn messages(queue: &str, tenant: &str, count: usize) -> Vec<u8> {
    let item = EnqueueItem {
        queue,
        payload: b"x",
        ..EnqueueItem::default()
    };
    let mut body = Vec::new();
    let mut writer = EnqueueWriter::new(&mut body);
    for _ in 0..count {
        writer.push(&item, [("tenant", tenant)]).unwrap();
    }
    writer.finish();
    body
}

/// What became of each message of a batch.
fn enqueue(peer: &mut Peer, queue: &str, tenant: &str, count: usize) -> Vec<ErrorCode> {
    let answer = peer.ask_bytes(Opcode::Enqueue, 2, &messages(queue, tenant, count));
    let result = answer.parse::<EnqueueResult<'_>>();
    result.results.iter().map(|item| item.error_code).collect()
}

/// Key, weight, attempt and id of the first message of a delivery.
fn first(frame: &Frame) -> (String, u32, u32, [u8; 16]) {
    assert_eq!(frame.opcode, support::DELIVERY, "{frame:?}");
    let mut batch = DeliveryBatch::decode_header(&frame.body).unwrap();
    let message = batch.next().unwrap().unwrap();
    let meta = message.meta;
    let key = message.fairness_key.to_owned();
    (key, meta.weight, meta.attempt_count, meta.message_id)
}

#[test]
fn messages_are_classified_and_runtime_configuration_is_seen_at_once() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    assert_eq!(
        create(&mut peer, &scripted("orders", BY_TENANT)),
        ErrorCode::Ok
    );
    assert_eq!(enqueue(&mut peer, "orders", "acme", 1), [ErrorCode::Ok]);
    let set = SetConfig {
        key: "weight.acme",
        value: "7",
    };
    let answer = peer.ask(3, &set);
    assert_eq!(answer.parse::<SetConfigResult>().error_code, ErrorCode::Ok);
    assert_eq!(enqueue(&mut peer, "orders", "acme", 1), [ErrorCode::Ok]);

    let mut consumer = server.connect();
    consumer.consume("orders", 9);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let frame = consumer.answer();
        for message in DeliveryBatch::decode_header(&frame.body).unwrap() {
            let message = message.unwrap();
            seen.push((message.fairness_key.to_owned(), message.meta.weight));
        }
    }
    // A key's weight is that of the newest message under it.
    assert!(seen.iter().all(|(key, _)| key == "acme"), "{seen:?}");
    assert!(seen.iter().any(|(_, weight)| *weight == 7), "{seen:?}");
    assert!(server.stop());
}

#[test]
fn a_script_that_cannot_be_used_is_refused_and_changes_nothing() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    for source in [
        "function on_enqueue(",
        "function other() end",
        "error('at load')",
        "while true do end",
    ] {
        let code = create(&mut peer, &scripted("broken", source));
        assert_eq!(code, ErrorCode::LuaCompilationError, "{source}");
    }
    assert_eq!(
        create(&mut peer, &scripted("broken", BY_TENANT)),
        ErrorCode::Ok
    );
    let changes = UpdateQueue {
        queue: "broken",
        on_enqueue_change: 1,
        on_enqueue_script: "local = 5",
        ..UpdateQueue::default()
    };
    let code = peer
        .ask(4, &changes)
        .parse::<UpdateQueueResult>()
        .error_code;
    assert_eq!(code, ErrorCode::LuaCompilationError);
    assert_eq!(enqueue(&mut peer, "broken", "acme", 1), [ErrorCode::Ok]);
}

/// The protocol has no room for it; the command line asks here.
#[test]
fn what_is_wrong_with_a_script_is_told_over_http() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let check = |scripts: serde_json::Value| {
        let head = "POST /api/tanda/scripts/check HTTP/1.1\r\nHost: localhost";
        let (status, answer) = server.http_with(head, &scripts.to_string());
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let fine = check(serde_json::json!({ "on_enqueue": BY_TENANT }));
    assert_eq!(fine["ok"], true, "{fine}");
    assert!(fine["problem"].is_null(), "{fine}");
    let broken = "function on_failure(msg)\n  return {";
    let bad = check(serde_json::json!({ "on_enqueue": BY_TENANT, "on_failure": broken }));
    assert_eq!(bad["ok"], false, "{bad}");
    let problem = bad["problem"].as_str().unwrap();
    assert!(problem.contains("on_failure"), "{problem}");
    assert!(server.stop());
}

/// fila.md, 'UpdateQueue' and 'Redrive': parked messages meet the new script, dead letters too.
#[test]
fn a_parked_message_is_classified_by_a_later_script() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    let broken = "function on_enqueue(msg) error('no') end";
    let queue = |name| CreateQueue {
        script_failure: 1,
        ..scripted(name, broken)
    };
    assert_eq!(create(&mut peer, &queue("kept")), ErrorCode::Ok);
    let gives_up = CreateQueue {
        park_dead_letter_after: 1,
        ..queue("gives-up")
    };
    assert_eq!(create(&mut peer, &gives_up), ErrorCode::Ok);
    assert_eq!(enqueue(&mut peer, "kept", "acme", 2), [ErrorCode::Ok; 2]);
    assert_eq!(
        enqueue(&mut peer, "gives-up", "acme", 2),
        [ErrorCode::Ok; 2]
    );
    let unclassified = |peer: &mut Peer| {
        let answer = peer.ask(6, &GetStats { queue: "kept" });
        let stats = answer.parse::<GetStatsResult<'_>>();
        assert_eq!(stats.oldest_unclassified_at_ms > 0, stats.unclassified > 0);
        (stats.depth, stats.unclassified)
    };
    assert_eq!(unclassified(&mut peer), (2, 2));
    for queue in ["kept", "gives-up"] {
        let changes = UpdateQueue {
            queue,
            on_enqueue_change: 1,
            on_enqueue_script: BY_TENANT,
            ..UpdateQueue::default()
        };
        let answer = peer.ask(4, &changes);
        assert_eq!(
            answer.parse::<UpdateQueueResult>().error_code,
            ErrorCode::Ok
        );
    }
    let mut consumer = server.connect();
    consumer.consume("kept", 9);
    assert_eq!(first(&consumer.answer()).0, "acme");
    for (reclassify, expected) in [(2, [0, 2, 0]), (1, [2, 0, 0])] {
        let redrive = Redrive {
            dlq_queue: "gives-up.dlq",
            count: 0,
            reclassify,
        };
        let done = peer.ask(5, &redrive).parse::<RedriveResult>();
        assert_eq!(done.error_code, ErrorCode::Ok);
        let counts = [
            done.redriven,
            done.left_unclassified,
            done.rejected_by_script,
        ];
        assert_eq!(counts, expected, "{reclassify}");
    }
    let mut consumer = server.connect();
    consumer.consume("gives-up", 9);
    assert_eq!(first(&consumer.answer()).0, "acme");
    assert!(server.stop());
}

#[test]
fn a_message_on_which_the_script_fails_is_refused_alone() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    let source = "function on_enqueue(msg)
        local tenant = msg.headers.tenant
        if tenant == 'slow' then while true do end end
        if tenant == 'bad' then return { weight = 'many' } end
        if tenant == 'wrong' then error('wrong') end
        if tenant == 'large' then return { fairness_key = ('x'):rep(1e9) } end
    end";
    assert_eq!(
        create(&mut peer, &scripted("strict", source)),
        ErrorCode::Ok
    );
    for (tenant, code) in [
        ("good", ErrorCode::Ok),
        ("slow", ErrorCode::ScriptTimeout),
        ("bad", ErrorCode::ScriptError),
        ("wrong", ErrorCode::ScriptError),
        ("large", ErrorCode::ScriptError),
        ("good", ErrorCode::Ok),
    ] {
        assert_eq!(enqueue(&mut peer, "strict", tenant, 1), [code], "{tenant}");
    }
}

#[test]
fn on_failure_decides_what_follows() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    let source = "function on_failure(msg)
        if msg.attempts < 5 then return { action = 'retry', delay_ms = 0 } end
        return { action = 'dlq' }
    end";
    let queue = CreateQueue {
        name: "jobs",
        on_failure_script: Some(source),
        max_attempts: 2,
        ..CreateQueue::default()
    };
    assert_eq!(create(&mut peer, &queue), ErrorCode::Ok);
    assert_eq!(enqueue(&mut peer, "jobs", "acme", 1), [ErrorCode::Ok]);
    let mut consumer = server.connect();
    consumer.consume("jobs", 9);
    // The policy would allow two attempts; the script allows five.
    for attempt in 1..=5 {
        let (_, _, seen, id) = first(&consumer.answer());
        assert_eq!(seen, attempt);
        peer.ask_bytes(Opcode::Nack, 5, &nack("jobs", id));
    }
    let mut dead = server.connect();
    dead.consume("jobs.dlq", 9);
    assert_eq!(first(&dead.answer()).0, "");
}

/// Ten thousand messages of one queue pass while another's script runs out of time with every
/// message; and the broker stops although those are not done.
#[test]
fn a_queue_whose_script_has_no_end_holds_nobody_up() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.ping_idle", "1h")]);
    let mut bad = server.connect();
    let mut good = server.connect();
    assert_eq!(
        create(&mut bad, &scripted("endless", ENDLESS)),
        ErrorCode::Ok
    );
    assert_eq!(
        create(&mut good, &scripted("orders", BY_TENANT)),
        ErrorCode::Ok
    );
    bad.send(support::ENQUEUE, 2, &messages("endless", "acme", 10_000));
    for _ in 0..10 {
        let codes = enqueue(&mut good, "orders", "acme", 1000);
        assert!(codes.iter().all(|code| *code == ErrorCode::Ok));
    }
    bad.stream.set_nonblocking(true).unwrap();
    match bad.stream.peek(&mut [0]) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        other => panic!("the batch of the endless script was answered: {other:?}"),
    }
    drop(bad);
    assert!(server.stop());
}
