//! A peer that speaks Amaquet as raw bytes and JSON, written from the protocol's document.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

use serde_json::{Value, json};

use crate::support::{self, TestServer};

pub(crate) const COMMAND: u16 = 1;
pub(crate) const HELLO: u16 = 2;
pub(crate) const AUTH: u16 = 3;
pub(crate) const SUBSCRIBE: u16 = 4;
pub(crate) const UNSUBSCRIBE: u16 = 5;
pub(crate) const CANCEL: u16 = 6;

pub(crate) const RESPONSE: u8 = 2;
pub(crate) const EVENT: u8 = 3;

/// A frame as it came.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) opcode: u16,
    pub(crate) id: u64,
    pub(crate) payload: Value,
}

/// One end of a connection.
pub(crate) struct Peer<S = TcpStream> {
    pub(crate) stream: S,
    /// Frames that came before the one that was waited for.
    aside: VecDeque<Frame>,
    last_id: u64,
}

/// A request's bytes.
pub(crate) fn request(opcode: u16, id: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(opcode, id, u32::try_from(payload.len()).unwrap());
    bytes.extend(payload);
    bytes
}

/// The head of a request that declares so long a payload.
pub(crate) fn header(opcode: u16, id: u64, payload_bytes: u32) -> Vec<u8> {
    let mut bytes = b"AMQT\x01\x01\0\0".to_vec();
    bytes.extend(opcode.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(id.to_be_bytes());
    bytes.extend(payload_bytes.to_be_bytes());
    bytes
}

/// A command's payload: its name and its arguments together.
pub(crate) fn command(name: &str, mut arguments: Value) -> Value {
    arguments["command"] = json!(name);
    arguments
}

/// What a value is as a payload of JSON.
pub(crate) fn of_json(data: &Value) -> Value {
    json!({"type": "json", "data": data})
}

/// What a text is as a payload.
pub(crate) fn of_text(data: &str) -> Value {
    json!({"type": "text", "data": data})
}

/// The names of an object's fields, sorted.
pub(crate) fn fields(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object.as_object().unwrap().keys().map(|it| &**it).collect();
    names.sort_unstable();
    names
}

impl Frame {
    /// What an answer says went well.
    pub(crate) fn result(&self) -> &Value {
        assert_eq!(self.kind, RESPONSE, "{self:?}");
        assert_eq!(self.payload["ok"], true, "{self:?}");
        &self.payload["result"]
    }

    /// The code of an answer that says what went wrong.
    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.kind, RESPONSE, "{self:?}");
        assert_eq!(self.payload["ok"], false, "{self:?}");
        let error = &self.payload["error"];
        assert!(!error["message"].as_str().unwrap().is_empty(), "{self:?}");
        error["code"].as_str().unwrap()
    }
}

impl Peer {
    pub(crate) fn dial(addr: SocketAddr) -> Self {
        Self::over(support::dial(addr))
    }

    pub(crate) fn of(server: &TestServer) -> Self {
        Self::dial(server.address("amaquet"))
    }

    /// Says that nothing more comes.
    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Peer<S> {
    pub(crate) const fn over(stream: S) -> Self {
        Self {
            stream,
            aside: VecDeque::new(),
            last_id: 1 << 32,
        }
    }

    pub(crate) fn send(&mut self, opcode: u16, id: u64, payload: &Value) {
        let payload = payload.to_string();
        self.send_bytes(&request(opcode, id, payload.as_bytes()));
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Begins a command under this id.
    pub(crate) fn begin(&mut self, id: u64, name: &str, arguments: Value) {
        self.send(COMMAND, id, &command(name, arguments));
    }

    /// The next frame; panics when the connection ends.
    pub(crate) fn receive(&mut self) -> Frame {
        self.try_receive().expect("the connection ended")
    }

    /// The next frame; `None` when the connection ended.
    pub(crate) fn try_receive(&mut self) -> Option<Frame> {
        if let Some(frame) = self.aside.pop_front() {
            return Some(frame);
        }
        self.read_frame()
    }

    fn read_frame(&mut self) -> Option<Frame> {
        let mut head = [0; 24];
        if let Err(error) = self.stream.read_exact(&mut head) {
            let hangs = error.kind() == std::io::ErrorKind::WouldBlock;
            assert!(!hangs, "nothing came, and the connection did not end");
            return None;
        }
        assert_eq!(&head[..5], b"AMQT\x01", "{head:?}");
        assert_eq!(&head[6..8], [0, 0], "flags");
        assert_eq!(&head[10..12], [0, 0], "reserved");
        let mut payload = vec![0; u32::from_be_bytes(head[20..].try_into().unwrap()) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        Some(Frame {
            kind: head[5],
            opcode: u16::from_be_bytes([head[8], head[9]]),
            id: u64::from_be_bytes(head[12..20].try_into().unwrap()),
            payload: serde_json::from_slice(&payload).unwrap(),
        })
    }

    /// The answer to the request of this id; events and other answers are kept for later.
    pub(crate) fn answer(&mut self, id: u64) -> Frame {
        let is_it = |frame: &Frame| frame.id == id && frame.kind == RESPONSE;
        if let Some(at) = self.aside.iter().position(is_it) {
            return self.aside.remove(at).unwrap();
        }
        loop {
            let frame = self.read_frame().expect("the connection ended");
            if is_it(&frame) {
                return frame;
            }
            self.aside.push_back(frame);
        }
    }

    /// The next event of the subscription of this id.
    pub(crate) fn event(&mut self, id: u64) -> Value {
        let is_it = |frame: &Frame| frame.id == id && frame.kind == EVENT;
        if let Some(at) = self.aside.iter().position(is_it) {
            return self.aside.remove(at).unwrap().payload;
        }
        loop {
            let frame = self.read_frame().expect("the connection ended");
            if is_it(&frame) {
                assert_eq!(frame.opcode, SUBSCRIBE);
                return frame.payload;
            }
            self.aside.push_back(frame);
        }
    }

    /// One request under an id of its own, and its answer.
    pub(crate) fn ask(&mut self, opcode: u16, payload: &Value) -> Frame {
        self.last_id += 1;
        let id = self.last_id;
        self.send(opcode, id, payload);
        let answer = self.answer(id);
        assert_eq!(answer.opcode, opcode, "{answer:?}");
        answer
    }

    /// The answer to a command.
    pub(crate) fn try_run(&mut self, name: &str, arguments: Value) -> Frame {
        self.ask(COMMAND, &command(name, arguments))
    }

    /// The result of a command that goes well.
    pub(crate) fn run(&mut self, name: &str, arguments: Value) -> Value {
        self.try_run(name, arguments).result().clone()
    }

    /// The code of a command that fails.
    pub(crate) fn fail(&mut self, name: &str, arguments: Value) -> String {
        self.try_run(name, arguments).code().to_owned()
    }

    /// Waits until the server has closed the connection, and returns what it still said.
    pub(crate) fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.try_receive()).collect()
    }
}
