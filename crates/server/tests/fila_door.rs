//! The Fila door over real sockets: what bytes it takes, what it refuses, what it bounds.

mod support;

use std::io::{ErrorKind, Write};

use support::{
    DISCONNECT, ENQUEUE_RESULT, ERROR, INVALID_FRAME, PING, PONG, Peer, TempDir, TestServer,
    deliveries, enqueue, frame,
};

#[test]
fn answers_a_handshake_and_a_ping_and_closes_on_disconnect() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    peer.send(PING, 5, &[]);
    let answer = peer.receive();
    assert_eq!((answer.opcode, answer.id), (PONG, 5));
    peer.send(DISCONNECT, 6, &[]);
    assert!(peer.try_receive().is_none());
    assert!(server.stop());
}

#[test]
fn a_frame_may_come_byte_by_byte() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    for byte in frame(PING, 7, &[]) {
        peer.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(peer.receive().opcode, PONG);
}

#[test]
fn many_frames_may_come_at_once() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    let bytes: Vec<u8> = (1..=1000).flat_map(|id| frame(PING, id, &[])).collect();
    peer.stream.write_all(&bytes).unwrap();
    for id in 1..=1000 {
        let answer = peer.receive();
        assert_eq!((answer.opcode, answer.id), (PONG, id));
    }
}

#[test]
fn what_is_no_handshake_gets_an_error_and_a_close() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.dial();
    peer.send(PING, 9, &[]);
    let answer = peer.receive();
    assert_eq!((answer.opcode, answer.id), (ERROR, 9));
    assert_eq!(answer.body[0], INVALID_FRAME);
    peer.wait_closed();
}

#[test]
fn garbage_gets_a_close_and_harms_nobody() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut other = server.connect();
    let garbage: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0xFF; 64],
        &[0; 64],
        &[0, 0, 0, 6, 0xAB, 0xCD, 1, 2, 3, 4],
    ];
    for bytes in garbage {
        let mut peer = server.dial();
        peer.stream.write_all(bytes).unwrap();
        peer.wait_closed();
    }
    other.send(PING, 1, &[]);
    assert_eq!(other.receive().opcode, PONG);
}

#[test]
fn a_length_over_the_limit_gets_an_error_and_a_close() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.max_frame", "64KiB")]);
    let mut peer = server.connect();
    peer.stream
        .write_all(&(64_u32 * 1024 + 1).to_be_bytes())
        .unwrap();
    peer.stream.write_all(&[0x10, 0, 0, 0, 0, 1]).unwrap();
    let answer = peer.receive();
    assert_eq!((answer.opcode, answer.body[0]), (ERROR, INVALID_FRAME));
    peer.wait_closed();
}

#[test]
fn a_connection_that_never_introduces_itself_is_closed() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.handshake_timeout", "100ms")]);
    server.dial().wait_closed();
}

#[test]
fn a_connection_that_stops_in_the_middle_of_a_frame_is_closed() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.frame_timeout", "100ms")]);
    let mut peer = server.connect();
    peer.stream.write_all(&[0, 0, 0, 6, PING]).unwrap();
    peer.wait_closed();
}

#[test]
fn a_peer_that_never_reads_is_closed() {
    let dir = TempDir::new();
    let limits = [
        ("limits.frame_timeout", "100ms"),
        ("limits.replies", "64KiB"),
    ];
    let server = TestServer::start(dir.path(), &limits);
    let mut peer = server.connect();
    let wait = Some(std::time::Duration::from_secs(60));
    peer.stream.set_write_timeout(wait).unwrap();
    let pings = frame(PING, 7, &[]).repeat(10_000);
    let error = loop {
        if let Err(error) = peer.stream.write_all(&pings) {
            break error;
        }
    };
    let closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(closed.contains(&error.kind()), "{error}");
}

#[test]
fn connections_over_the_limit_are_refused_until_one_leaves() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.connections_max", "2")]);
    let mut first = server.connect();
    let _second = server.connect();
    server.dial().wait_closed();
    first.send(DISCONNECT, 1, &[]);
    first.wait_closed();
    drop(first);
    // The place is free a moment after the peer saw the close.
    loop {
        let mut third = server.dial();
        third.send(support::HANDSHAKE, 0, &[0, 1, 0, 0, 0, 0, 1]);
        if third.try_receive().is_some() {
            break;
        }
    }
}

#[test]
fn messages_come_back_in_order_and_with_their_content() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    peer.create_queue("orders");
    let payloads: Vec<Vec<u8>> = (0..500_u32).map(|n| n.to_be_bytes().repeat(30)).collect();
    let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    peer.send(support::ENQUEUE, 2, &enqueue("orders", &borrowed));
    assert_eq!(peer.answer().opcode, ENQUEUE_RESULT);
    peer.consume("orders", 10);
    let mut received = Vec::new();
    while received.len() < payloads.len() {
        received.extend(
            deliveries(&peer.answer())
                .into_iter()
                .map(|(_, payload)| payload),
        );
    }
    assert_eq!(received, payloads);
}

#[test]
fn a_frame_of_many_megabytes_passes() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    peer.create_queue("large");
    let payload: Vec<u8> = (0..10_u32 << 20).map(|n| (n % 251) as u8).collect();
    peer.enqueue("large", &payload);
    peer.consume("large", 10);
    let received = deliveries(&peer.answer());
    assert!(received[0].1 == payload, "the payload changed on its way");
}

#[test]
fn what_was_confirmed_is_there_after_a_restart_and_what_was_acked_is_not() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peer = server.connect();
    peer.create_queue("kept");
    let first = peer.enqueue("kept", b"first");
    let second = peer.enqueue("kept", b"second");
    peer.consume("kept", 10);
    let mut seen = 0;
    while seen < 2 {
        seen += deliveries(&peer.answer()).len();
    }
    peer.ack("kept", first);
    assert!(server.stop());
    // A lease outlives the restart: it must run out before the message comes again.
    let server = TestServer::start(dir.path(), &[]);
    let (status, queue) = server.get("/api/tanda/queues/kept");
    assert_eq!(status, 200);
    assert_eq!(queue["counts"]["in_flight"], 1, "{queue}");
    assert_eq!(queue["counts"]["depth"], 0, "{queue}");
    server.connect().ack("kept", second);
}

#[test]
fn a_peer_that_does_not_read_holds_a_bounded_part_of_the_backlog() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.outbound", "64KiB")]);
    let mut producer = server.connect();
    producer.create_queue("slow");
    let payload = vec![7; 16 << 10];
    let batch: Vec<&[u8]> = vec![&payload; 100];
    for _ in 0..20 {
        producer.send(support::ENQUEUE, 2, &enqueue("slow", &batch));
        assert_eq!(producer.answer().opcode, ENQUEUE_RESULT);
    }
    // It subscribes without a limit and never reads. 32 MB wait: much more than the sockets'
    // buffers and its budget take.
    let mut slow = server.connect();
    slow.consume("slow", 10);
    let mut fast = server.connect();
    fast.consume("slow", 10);
    let mut received = 0;
    while received < 1000 {
        received += deliveries(&fast.answer()).len();
    }
    let (_, node) = server.get("/api/tanda/node");
    assert_eq!(
        node["connections"]["fila"], 3,
        "the slow one is still connected: {node}"
    );
}

#[test]
fn a_stop_says_goodbye_to_every_connection() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut peers: Vec<Peer> = (0..3).map(|_| server.connect()).collect();
    let stopping = std::thread::spawn(move || server.stop());
    for peer in &mut peers {
        assert_eq!(peer.answer().opcode, DISCONNECT);
        assert!(peer.try_receive().is_none());
    }
    drop(peers);
    assert!(stopping.join().unwrap());
}

#[test]
fn a_peer_that_ends_its_side_after_its_requests_still_gets_every_answer() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.requests_max", "8")]);
    let mut peer = server.connect();
    peer.create_queue("q");
    // Far more than may wait for an answer at a time, so that frames are left when the end comes.
    let mut bytes = Vec::new();
    for id in 1..=1000 {
        bytes.extend(frame(support::ENQUEUE, id, &enqueue("q", &[b"x"])));
    }
    peer.stream.write_all(&bytes).unwrap();
    peer.stream.shutdown(std::net::Shutdown::Write).unwrap();
    for id in 1..=1000 {
        let answer = peer.answer();
        assert_eq!((answer.opcode, answer.id), (ENQUEUE_RESULT, id));
        assert_eq!(answer.body[4], 0);
    }
    assert!(peer.try_receive().is_none());
}

#[test]
fn a_full_door_takes_the_place_of_who_never_introduced_itself() {
    let dir = TempDir::new();
    let limits = [
        ("limits.connections_max", "3"),
        ("limits.handshake_timeout", "10m"),
    ];
    let server = TestServer::start(dir.path(), &limits);
    let mut first = server.connect();
    let mut silent = server.dial();
    let mut second = server.connect();
    let mut third = server.connect();
    silent.wait_closed();
    // All three have introduced themselves, so the door is full.
    server.dial().wait_closed();
    for peer in [&mut first, &mut second, &mut third] {
        peer.send(PING, 1, &[]);
        assert_eq!(peer.receive().opcode, PONG);
    }
}
