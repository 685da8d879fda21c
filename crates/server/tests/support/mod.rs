//! A server in this process and a peer that speaks Fila as raw bytes.

#![allow(
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "helpers of tests; each test file uses a part, so `expect` would fail in some"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    time::Duration,
};

use tanda_server::{
    Server,
    config::{self, Config, Sources},
};
use tokio::runtime::Runtime;

pub const HANDSHAKE: u8 = 0x01;
pub const HANDSHAKE_OK: u8 = 0x02;
pub const PING: u8 = 0x03;
pub const PONG: u8 = 0x04;
pub const DISCONNECT: u8 = 0x05;
pub const ENQUEUE: u8 = 0x10;
pub const ENQUEUE_RESULT: u8 = 0x11;
pub const CONSUME: u8 = 0x12;
pub const CONSUME_OK: u8 = 0x13;
pub const DELIVERY: u8 = 0x14;
pub const ACK: u8 = 0x17;
pub const ACK_RESULT: u8 = 0x18;
pub const CREATE_QUEUE: u8 = 0xFD;
pub const CREATE_QUEUE_RESULT: u8 = 0xFC;
pub const ERROR: u8 = 0xFE;

pub const INVALID_FRAME: u8 = 0x0E;

/// Long enough that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory that is removed when dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tanda-server-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A configuration of a server on free ports.
pub fn config(data_dir: &Path, options: &[(&str, &str)]) -> Config {
    let data_dir = data_dir.display().to_string();
    let mut flags = vec![
        ("data_dir".to_owned(), data_dir),
        ("fila".to_owned(), "127.0.0.1:0".to_owned()),
        ("amqp".to_owned(), "127.0.0.1:0".to_owned()),
        ("firemq".to_owned(), "127.0.0.1:0".to_owned()),
        ("amaquet".to_owned(), "127.0.0.1:0".to_owned()),
        ("http".to_owned(), "127.0.0.1:0".to_owned()),
    ];
    let owned = options
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    flags.extend(owned);
    let sources = Sources {
        flags,
        ..Sources::default()
    };
    config::load(&sources).unwrap().config
}

/// Why a server with this configuration does not start.
pub fn start_error(config: Config) -> String {
    let started = runtime().block_on(Server::start(Arc::new(config)));
    started.unwrap_err().to_string()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A server on free ports.
pub struct TestServer {
    server: Server,
    runtime: Runtime,
}

impl TestServer {
    /// Starts one with these options besides the data directory.
    pub fn start(data_dir: &Path, options: &[(&str, &str)]) -> Self {
        let config = config(data_dir, options);
        let runtime = runtime();
        let server = runtime.block_on(Server::start(Arc::new(config))).unwrap();
        Self { server, runtime }
    }

    pub const fn server(&self) -> &Server {
        &self.server
    }

    pub fn address(&self, door: &str) -> SocketAddr {
        let found = self
            .server
            .addresses()
            .iter()
            .find(|(name, _)| *name == door);
        found.unwrap().1
    }

    /// Does this while the only thread of the server's sockets does nothing.
    pub fn while_busy(&self, act: impl FnOnce()) {
        let (busy, is_busy) = mpsc::channel();
        let (done, is_done) = mpsc::channel::<()>();
        self.runtime.spawn(async move {
            busy.send(()).unwrap();
            // It ends with an error, when the other end is dropped.
            is_done.recv().unwrap_err();
        });
        is_busy.recv().unwrap();
        act();
        drop(done);
    }

    /// A connection on which nothing was said.
    pub fn dial(&self) -> Peer {
        Peer::dial(self.address("fila"))
    }

    /// A connection after its handshake.
    pub fn connect(&self) -> Peer {
        let mut peer = self.dial();
        peer.handshake();
        peer
    }

    /// Stops it as a signal would; true when all was finished.
    pub fn stop(self) -> bool {
        self.runtime.block_on(self.server.stop())
    }

    /// One HTTP request; status and body.
    pub fn http(&self, head: &str) -> (u16, serde_json::Value) {
        self.http_with(head, "")
    }

    /// A request with a body, whose length and kind are not in `head`.
    pub fn http_with(&self, head: &str, body: &str) -> (u16, serde_json::Value) {
        let mut stream = TcpStream::connect(self.address("http")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let kind = match body.len() {
            0 => String::new(),
            len => format!("\r\nContent-Type: application/json\r\nContent-Length: {len}"),
        };
        let request = format!("{head}{kind}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    pub fn get(&self, path: &str) -> (u16, serde_json::Value) {
        self.http(&format!("GET {path} HTTP/1.1\r\nHost: localhost"))
    }

    pub fn post(&self, path: &str) -> (u16, serde_json::Value) {
        self.http(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"
        ))
    }
}

/// A frame as it came.
#[derive(Debug)]
pub struct Frame {
    pub opcode: u8,
    pub id: u32,
    pub body: Vec<u8>,
}

/// One end of a connection.
pub struct Peer<S = TcpStream> {
    pub stream: S,
}

/// A socket that gives up when only a hang can be the reason.
pub fn dial(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

impl Peer {
    pub fn dial(addr: SocketAddr) -> Self {
        Self { stream: dial(addr) }
    }
}

impl<S: Read + Write> Peer<S> {
    pub fn handshake(&mut self) {
        self.send(HANDSHAKE, 0, &[0, 1, 0, 0, 0, 0, 1]);
        let answer = self.receive();
        assert_eq!(answer.opcode, HANDSHAKE_OK, "{answer:?}");
    }

    pub fn send(&mut self, opcode: u8, id: u32, body: &[u8]) {
        self.stream.write_all(&frame(opcode, id, body)).unwrap();
    }

    /// The next frame; panics when the connection ends.
    pub fn receive(&mut self) -> Frame {
        self.try_receive().unwrap()
    }

    /// The next frame; `None` when the connection ended.
    pub fn try_receive(&mut self) -> Option<Frame> {
        let mut length = [0; 4];
        if self.stream.read_exact(&mut length).is_err() {
            return None;
        }
        let mut rest = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut rest).unwrap();
        Some(Frame {
            opcode: rest[0],
            id: u32::from_be_bytes(rest[2..6].try_into().unwrap()),
            body: rest.split_off(6),
        })
    }

    /// The next frame that is not the keepalive's.
    pub fn answer(&mut self) -> Frame {
        loop {
            let frame = self.receive();
            if frame.opcode != PING {
                return frame;
            }
        }
    }

    /// Waits until the server has closed the connection.
    pub fn wait_closed(&mut self) {
        while self.try_receive().is_some() {}
    }

    pub fn create_queue(&mut self, name: &str) {
        self.send(CREATE_QUEUE, 1, &create_queue(name));
        let answer = self.answer();
        assert_eq!((answer.opcode, answer.body[0]), (CREATE_QUEUE_RESULT, 0));
    }

    /// Stores one message and returns its id.
    pub fn enqueue(&mut self, queue: &str, payload: &[u8]) -> [u8; 16] {
        self.send(ENQUEUE, 2, &enqueue(queue, &[payload]));
        let answer = self.answer();
        assert_eq!((answer.opcode, answer.body[4]), (ENQUEUE_RESULT, 0));
        answer.body[5..21].try_into().unwrap()
    }

    /// Subscribes without a limit of credit under this request id.
    pub fn consume(&mut self, queue: &str, id: u32) {
        let mut body = string(queue);
        body.extend([0; 6]);
        self.send(CONSUME, id, &body);
        let answer = self.answer();
        assert_eq!(answer.opcode, CONSUME_OK, "{answer:?}");
    }

    pub fn ack(&mut self, queue: &str, message: [u8; 16]) {
        let mut body = 1_u32.to_be_bytes().to_vec();
        body.extend(string(queue));
        body.extend(message);
        self.send(ACK, 3, &body);
        let answer = self.answer();
        assert_eq!((answer.opcode, answer.body[4]), (ACK_RESULT, 0));
    }
}

pub fn frame(opcode: u8, id: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 6).unwrap();
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend([opcode, 0]);
    bytes.extend(id.to_be_bytes());
    bytes.extend(body);
    bytes
}

pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// The body of a `CreateQueue` with every default.
pub fn create_queue(name: &str) -> Vec<u8> {
    let mut body = string(name);
    // Scripts 2, visibility 8, ordering 1 + 2 + 1, deduplication 2 + 8, script failures 1 + 4,
    // retries 4 + 1 + 8 + 8, durability 1 + 8, throttles or tags 2.
    body.extend([0; 61]);
    body
}

/// The body of an `Enqueue` of messages without headers and options.
pub fn enqueue(queue: &str, payloads: &[&[u8]]) -> Vec<u8> {
    let mut body = u32::try_from(payloads.len())
        .unwrap()
        .to_be_bytes()
        .to_vec();
    for payload in payloads {
        body.extend(string(queue));
        body.extend([0; 2]);
        body.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        body.extend(*payload);
        body.extend([0; 4]);
    }
    body
}

/// Ids and payloads of a `Delivery`.
pub fn deliveries(frame: &Frame) -> Vec<([u8; 16], Vec<u8>)> {
    assert_eq!(frame.opcode, DELIVERY, "{frame:?}");
    let body = &frame.body;
    let u16_at = |at: usize| usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
    let u32_at = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    let mut at = 4;
    let mut found = Vec::new();
    for _ in 0..u32_at(0) {
        let id = body[at..at + 16].try_into().unwrap();
        at += 16;
        at += 2 + u16_at(at);
        let headers = u16_at(at);
        at += 2;
        for _ in 0..2 * headers {
            at += 2 + u16_at(at);
        }
        let len = u32_at(at);
        at += 4;
        found.push((id, body[at..at + len].to_vec()));
        at += len;
        at += 2 + u16_at(at);
        // Weight, attempts, redrives, three times.
        at += 3 * 4 + 3 * 8;
    }
    found
}
