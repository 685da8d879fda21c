//! FireMQ over WebSocket as one of the broker's connections: its place, its limits, its end.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

mod support;

use std::net::TcpStream;

use support::{TempDir, TestServer, dial};
use tungstenite::{
    Error, Message, WebSocket, client,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

const WELCOME: u8 = 0x02;
const CLOSE: u8 = 0x05;

/// `hello` as guest, without heartbeats.
fn hello() -> Message {
    let header = b"\x82\xa3ver\x01\xa4auth\x83\xa4mech\xa5plain\xa4user\xa5guest\xa4pass\xa5guest";
    let mut frame = vec![0x01];
    frame.extend(u32::try_from(header.len()).unwrap().to_be_bytes());
    frame.extend(header);
    Message::binary(frame)
}

/// A WebSocket, or the status of the answer.
fn connect(server: &TestServer) -> Result<WebSocket<TcpStream>, u16> {
    let addr = server.address("http");
    match client(format!("ws://{addr}/fire"), dial(addr)) {
        Ok((web, _)) => Ok(web),
        Err(error) => {
            let tungstenite::HandshakeError::Failure(Error::Http(response)) = error else {
                panic!("{error}");
            };
            Err(response.status().as_u16())
        }
    }
}

fn read(web: &mut WebSocket<TcpStream>) -> (u8, Vec<u8>) {
    let frame = web.read().unwrap().into_data();
    (frame[0], frame.to_vec())
}

/// Reads the end; the code in it.
fn close_code(web: &mut WebSocket<TcpStream>) -> CloseCode {
    loop {
        if let Message::Close(Some(CloseFrame { code, .. })) = web.read().unwrap() {
            return code;
        }
    }
}

#[test]
fn a_websocket_counts_among_the_connections_until_it_ends() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("limits.connections_max", "2")]);
    let mut first = connect(&server).unwrap();
    first.send(hello()).unwrap();
    assert_eq!(read(&mut first).0, WELCOME);
    let second = connect(&server).unwrap();
    assert_eq!(connect(&server).unwrap_err(), 503);
    // The HTTP door has places of its own.
    assert_eq!(server.get("/api/tanda/health").0, 200);
    drop(second);
    // The broker sees that soon.
    while connect(&server).is_err() {
        std::thread::yield_now();
    }
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: "bye".into(),
    };
    first.close(Some(goodbye)).unwrap();
    assert_eq!(close_code(&mut first), CloseCode::Normal);
    assert!(server.stop());
}

#[test]
fn the_end_of_the_broker_is_told_in_both_protocols() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[]);
    let mut web = connect(&server).unwrap();
    web.send(hello()).unwrap();
    assert_eq!(read(&mut web).0, WELCOME);
    let stopping = std::thread::spawn(move || server.stop());
    let (op, close) = read(&mut web);
    assert_eq!(op, CLOSE);
    // 320, as MessagePack writes it.
    assert!(
        close.windows(3).any(|bytes| bytes == b"\xcd\x01\x40"),
        "{close:?}"
    );
    web.send(Message::binary(vec![CLOSE, 0, 0, 0, 0])).unwrap();
    assert_eq!(close_code(&mut web), CloseCode::Normal);
    assert!(stopping.join().unwrap());
}

#[test]
fn it_can_be_closed() {
    let dir = TempDir::new();
    let server = TestServer::start(dir.path(), &[("no_firemq_ws", "true")]);
    assert_eq!(connect(&server).unwrap_err(), 404);
    assert!(server.stop());
}

#[test]
fn who_stops_in_the_middle_of_a_message_is_not_waited_for() {
    let dir = TempDir::new();
    let options = [("limits.frame_timeout", "200ms")];
    let server = TestServer::start(dir.path(), &options);
    let mut web = connect(&server).unwrap();
    web.send(hello()).unwrap();
    assert_eq!(read(&mut web).0, WELCOME);
    // The head of a message of a thousand bytes, its mask, and three bytes.
    let begun = b"\x82\xfe\x03\xe8\x00\x00\x00\x00abc";
    std::io::Write::write_all(web.get_mut(), begun).unwrap();
    assert!(web.read().is_err(), "the connection ended");
    assert!(server.stop());
}
