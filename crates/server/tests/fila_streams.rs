//! What goes on beside requests: keepalive, credit or none, large batches, memory. (fila.md,
//! "Keepalive", "Flow Control", "Capabilities", "Continuation Frames")

#[path = "support/frames.rs"]
mod frames;
mod support;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use support::{
    ENQUEUE, ENQUEUE_RESULT, ERROR, PING, PONG, Peer, TempDir, TestServer, deliveries, enqueue,
};
use tanda_wire::fila::{
    Capabilities, ErrorCode, Opcode,
    consume::{Consume, ConsumeOk},
    control::{Handshake, HandshakeOk},
    enqueue::EnqueueResult,
    settle::{AckItem, AckResult, AckWriter},
    stats::{GetStats, GetStatsResult},
};

const CONTINUATION: u8 = 1;

#[test]
fn silence_is_pinged_with_ids_of_the_server_until_nobody_answers() {
    let dir = TempDir::new();
    let limits = [
        ("limits.ping_idle", "100ms"),
        ("limits.pong_timeout", "300ms"),
    ];
    let server = TestServer::start(dir.path(), &limits);
    let mut peer = server.connect();
    let mut seen = Vec::new();
    // Longer than a ping may go unanswered.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(600) {
        let ping = peer.receive();
        assert_eq!((ping.opcode, ping.id >> 31), (PING, 1));
        assert!(!seen.contains(&ping.id), "{seen:?}");
        seen.push(ping.id);
        peer.send(PONG, ping.id, &[]);
    }
    // Now without an answer: one more ping, then the end.
    let last = peer.receive();
    assert_eq!(last.opcode, PING);
    assert!(peer.try_receive().is_none());
}

/// A connection whose client offers nothing.
fn connect_without_credit(server: &TestServer) -> Peer {
    let mut peer = server.dial();
    let greeting = Handshake {
        protocol_version: 1,
        api_key: None,
        client_capabilities: Capabilities::default(),
    };
    let answer = peer.ask(0, &greeting);
    let accepted: HandshakeOk = answer.parse();
    // The server still says what it could.
    assert_ne!(accepted.server_capabilities, Capabilities::default());
    peer
}

#[test]
fn without_the_capability_credit_is_ignored() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = connect_without_credit(&server);
    peer.create_queue("q");
    let payloads = [&b"x"[..]; 100];
    peer.send(ENQUEUE, 2, &enqueue("q", &payloads));
    assert_eq!(peer.answer().opcode, ENQUEUE_RESULT);
    let consume = Consume {
        queue: "q",
        credit: 1,
        ..Consume::default()
    };
    peer.ask(3, &consume).parse::<ConsumeOk<'_>>();
    let mut count = 0;
    while count < payloads.len() {
        count += deliveries(&peer.answer()).len();
    }
    assert_eq!(count, payloads.len());
}

#[test]
fn without_credit_a_slow_reader_gets_no_more_than_its_bound() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.outbound", "256KiB")]);
    let mut other = server.connect();
    other.create_queue("q");
    let payload = [7; 64 << 10];
    for _ in 0..8 {
        other.send(ENQUEUE, 2, &enqueue("q", &[&payload[..]; 64]));
        assert_eq!(other.answer().opcode, ENQUEUE_RESULT);
    }
    let mut slow = connect_without_credit(&server);
    let consume = Consume {
        queue: "q",
        ..Consume::default()
    };
    slow.ask(3, &consume).parse::<ConsumeOk<'_>>();
    // What the system's buffers take, and the bound; far from all of the 512.
    let (mut before, mut same) = (0, 0);
    while same < 20 {
        let answer = other.ask(5, &GetStats { queue: "q" });
        let now = answer.parse::<GetStatsResult<'_>>().in_flight;
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
    assert!((1..=200).contains(&before), "{before} in flight");
    let mut count = 0;
    while count < 512 {
        count += deliveries(&slow.answer()).len();
    }
}

#[test]
fn a_batch_of_many_items_gets_one_answer_in_order_and_what_follows_waits() {
    const COUNT: usize = 50_000;
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    peer.create_queue("q");
    peer.send(ENQUEUE, 2, &enqueue("q", &vec![&b"x"[..]; COUNT]));
    peer.send(Opcode::GetStats.to_wire(), 3, &support::string("q"));
    let (first, second) = (peer.answer(), peer.answer());
    let (published, stats) = if first.id == 2 {
        (first, second)
    } else {
        (second, first)
    };
    assert_eq!(stats.parse::<GetStatsResult<'_>>().depth, COUNT as u64);
    let result: EnqueueResult<'_> = published.parse();
    assert_eq!(result.results.len(), COUNT);
    assert!(
        result
            .results
            .iter()
            .all(|item| item.error_code == ErrorCode::Ok)
    );
    assert!(
        result
            .results
            .is_sorted_by(|a, b| a.message_id < b.message_id)
    );
    peer.consume("q", 9);
    let mut taken = 0;
    while taken < COUNT {
        taken += deliveries(&peer.answer()).len();
    }
    // Every second one is not there: the answer keeps the order of the request.
    let mut body = Vec::new();
    let mut writer = AckWriter::new(&mut body);
    for item in &result.results {
        for message_id in [item.message_id, [7; 16]] {
            let queue = "q";
            let item = AckItem {
                queue,
                message_id,
                queue_start: 0,
            };
            writer.push(&item).unwrap();
        }
    }
    writer.finish();
    let answer = peer.ask_bytes(Opcode::Ack, 10, &body);
    let codes = answer.parse::<AckResult>().results;
    assert_eq!(codes.len(), 2 * COUNT);
    let expected = [ErrorCode::Ok, ErrorCode::MessageNotFound];
    assert!(codes.chunks(2).all(|pair| pair == expected));
}

/// Sends parts of a request that do not end.
fn begin(peer: &mut Peer, bytes: usize) {
    const PART: usize = 100 << 10;
    for _ in 0..bytes / PART {
        let mut frame = support::frame(ENQUEUE, 5, &[0; PART]);
        if let Some(flags) = frame.get_mut(5) {
            *flags = CONTINUATION;
        }
        // The server may have closed.
        drop(peer.stream.write_all(&frame));
    }
}

#[test]
fn connections_that_hold_more_than_their_share_of_a_full_memory_end() {
    let dir = TempDir::new();
    let limits = [("limits.connections_memory", "4MiB")];
    let server = TestServer::start(dir.path(), &limits);
    let mut modest = server.connect();
    modest.create_queue("q");
    begin(&mut modest, 1 << 20);
    let mut greedy = server.connect();
    begin(&mut greedy, 20 << 20);
    if let Some(answer) = greedy.try_receive() {
        assert_eq!((answer.opcode, answer.id), (ERROR, 0));
        assert_eq!(answer.error(), ErrorCode::ChannelFull);
    }
    greedy.wait_closed();
    // The other one goes on, also with what it began: this ends it, and it is nonsense.
    modest.send(ENQUEUE, 5, &[0]);
    assert_eq!(modest.answer().opcode, ENQUEUE_RESULT);
    modest.enqueue("q", b"x");
}
