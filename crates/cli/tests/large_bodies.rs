//! A message of 100 MB in frames of 16 MiB, both ways, and what it costs in memory. (fila.md,
//! "Continuation Frames")

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests outside of a test function"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

const MESSAGE_BYTES: usize = 100_000_000;
/// What a frame holds at most beyond its length prefix, by default.
const FRAME_BYTES: usize = 16 << 20;
const HEADER_BYTES: usize = 6;

const ENQUEUE: u8 = 0x10;
const ENQUEUE_RESULT: u8 = 0x11;
const CONSUME: u8 = 0x12;
const CONSUME_OK: u8 = 0x13;
const DELIVERY: u8 = 0x14;
const PING: u8 = 0x03;
const PONG: u8 = 0x04;

/// The program, and its directory; both gone when dropped.
struct Broker {
    child: Child,
    dir: PathBuf,
    addr: String,
}

impl Broker {
    fn start() -> Self {
        let name = format!("tanda-large-bodies-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tanda"))
            .args(["serve", "--fila", "127.0.0.1:0"])
            .args(["--no-amqp", "--no-firemq", "--no-amaquet", "--no-http"])
            .current_dir(&dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let addr = line.strip_prefix("fila listening on ").unwrap().to_owned();
        assert!(lines.next().unwrap().unwrap().starts_with("ready in "));
        Self { child, dir, addr }
    }

    /// The most memory it ever had, in bytes.
    fn peak_bytes(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<usize>().unwrap() << 10
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

struct Peer(TcpStream);

struct Frame {
    opcode: u8,
    continued: bool,
    id: u32,
    body: Vec<u8>,
}

impl Peer {
    fn connect(broker: &Broker) -> Self {
        let stream = TcpStream::connect(&broker.addr).unwrap();
        let patience = Some(Duration::from_secs(120));
        stream.set_read_timeout(patience).unwrap();
        let mut peer = Self(stream);
        peer.send(1, 0, 0, &[0, 1, 0, 0, 0, 0, 1]);
        assert_eq!(peer.receive().opcode, 2, "HandshakeOk");
        peer
    }

    fn send(&mut self, opcode: u8, flags: u8, id: u32, body: &[u8]) {
        let length = u32::try_from(HEADER_BYTES + body.len()).unwrap();
        self.0.write_all(&length.to_be_bytes()).unwrap();
        self.0.write_all(&[opcode, flags]).unwrap();
        self.0.write_all(&id.to_be_bytes()).unwrap();
        self.0.write_all(body).unwrap();
    }

    fn receive(&mut self) -> Frame {
        let mut head = [0; 4 + HEADER_BYTES];
        self.0.read_exact(&mut head).unwrap();
        let [a, b, c, d, opcode, flags, id @ ..] = head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        assert!(length <= FRAME_BYTES, "a frame of {length} bytes");
        let mut body = vec![0; length - HEADER_BYTES];
        self.0.read_exact(&mut body).unwrap();
        Frame {
            opcode,
            continued: flags & 1 == 1,
            id: u32::from_be_bytes(id),
            body,
        }
    }

    /// The next frame that is not the keepalive's; that one is answered.
    fn answer(&mut self) -> Frame {
        loop {
            let frame = self.receive();
            if frame.opcode != PING {
                return frame;
            }
            self.send(PONG, 0, frame.id, &[]);
        }
    }
}

fn string(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

/// The body of an `Enqueue` of one message.
fn enqueue(payload: &[u8]) -> Vec<u8> {
    let mut body = 1_u32.to_be_bytes().to_vec();
    body.extend(string("q"));
    body.extend([0; 2]);
    body.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    body.extend(payload);
    body.extend([0; 4]);
    body
}

/// Sends a body in frames as large as allowed, with a ping after each but the last.
fn send_split(peer: &mut Peer, opcode: u8, id: u32, body: &[u8]) {
    let pieces: Vec<&[u8]> = body.chunks(FRAME_BYTES - HEADER_BYTES).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let continues = index + 1 < pieces.len();
        peer.send(opcode, u8::from(continues), id, piece);
        if continues {
            peer.send(PING, 0, 1000, &[]);
            let pong = peer.answer();
            assert_eq!((pong.opcode, pong.id), (PONG, 1000));
        }
    }
}

#[test]
fn a_message_of_100_mb_goes_in_and_out_in_frames_of_16_mib() {
    let broker = Broker::start();
    let mut peer = Peer::connect(&broker);
    let mut queue = string("q");
    queue.extend([0; 61]);
    peer.send(0xFD, 0, 1, &queue);
    assert_eq!(peer.answer().body.first(), Some(&0), "CreateQueueResult");
    let before = broker.peak_bytes();
    let payload: Vec<u8> = (0..=250).cycle().take(MESSAGE_BYTES).collect();
    send_split(&mut peer, ENQUEUE, 2, &enqueue(&payload));
    let answer = peer.answer();
    assert_eq!(
        (answer.opcode, answer.body.get(4)),
        (ENQUEUE_RESULT, Some(&0))
    );
    let stored = broker.peak_bytes();
    let mut consume = string("q");
    consume.extend([0; 6]);
    peer.send(CONSUME, 0, 3, &consume);
    assert_eq!(peer.answer().opcode, CONSUME_OK);
    let (mut delivery, mut frames) = (Vec::new(), 0);
    loop {
        let frame = peer.answer();
        assert_eq!((frame.opcode, frame.id), (DELIVERY, 3));
        delivery.extend(frame.body);
        frames += 1;
        if !frame.continued {
            break;
        }
    }
    assert_eq!(frames, 6);
    // Count, ID, queue, no headers, length of the payload.
    let payload_start = 4 + 16 + 3 + 2 + 4;
    assert!(delivery[payload_start..][..MESSAGE_BYTES] == payload[..]);
    let delivered = broker.peak_bytes();
    let mb = |bytes: usize| bytes / 1_000_000;
    println!(
        "peak MB: {} before, {} stored, {} delivered",
        mb(before),
        mb(stored),
        mb(delivered)
    );
    // The joined body, its copy in the log, and what of the log is cached; then what is sent.
    let copies = (delivered - before).div_ceil(MESSAGE_BYTES);
    assert!(copies <= 6, "{copies} times the message");
}
