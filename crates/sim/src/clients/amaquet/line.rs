//! A connection of an Amaquet client: frames out, frames in.

use std::collections::BTreeMap;

use tanda_wire::amaquet::frame::{
    Header, PAYLOAD_BYTES_HARD_MAX, Sender, Split, split_frame, write_frame,
};
use tanda_wire::amaquet::json::Json;
use tanda_wire::amaquet::{Opcode, envelope};

use super::Asked;
use crate::failure::Violation;
use crate::invariants::amaquet as promise;

/// See the module.
pub(crate) struct Line {
    pub(crate) conn: u64,
    pub(crate) out: Vec<u8>,
    pub(crate) has_ended: bool,
    input: Vec<u8>,
    next_id: u64,
    pub(super) open: BTreeMap<u64, Asked>,
    /// The subscription, and the newest number of each publisher that came with it.
    pub(super) subscription: Option<u64>,
    pub(super) heard: BTreeMap<String, u64>,
    /// What this connection calls itself in what it writes.
    pub(super) name: String,
    /// Numbers what it writes.
    pub(super) written: u64,
    /// Locks it holds, with their tokens.
    pub(super) held: Vec<(&'static str, u64)>,
    /// Messages it has taken.
    pub(super) taken: Vec<(String, String)>,
}

/// What came.
#[derive(Debug)]
pub(super) enum Came {
    Answer(u64, Result<String, String>),
    Event(String),
}

impl Line {
    pub(crate) fn new(conn: u64) -> Self {
        Self {
            conn,
            out: Vec::new(),
            has_ended: false,
            input: Vec::new(),
            next_id: 1,
            open: BTreeMap::new(),
            subscription: None,
            heard: BTreeMap::new(),
            name: format!("c{conn}"),
            written: 0,
            held: Vec::new(),
            taken: Vec::new(),
        }
    }

    pub(super) fn ask(&mut self, opcode: Opcode, asked: Asked, payload: &str) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let header = Header::request(opcode, id);
        let fits = write_frame(&mut self.out, header, PAYLOAD_BYTES_HARD_MAX, |out| {
            out.extend_from_slice(payload.as_bytes());
        });
        debug_assert!(fits.is_ok(), "{payload}");
        self.open.insert(id, asked);
        id
    }

    /// Asks for a command with these arguments, as JSON between the braces.
    pub(super) fn command(&mut self, asked: Asked, name: &str, arguments: &str) {
        let payload = format!(r#"{{"command":"{name}",{arguments}}}"#);
        self.ask(Opcode::Command, asked, &payload);
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    pub(super) fn next(&mut self) -> Result<Option<Came>, Violation> {
        let split = split_frame(&self.input, Sender::Server, PAYLOAD_BYTES_HARD_MAX);
        let split = split.map_err(|error| promise::of(format!("a bad frame: {error}")))?;
        let Split::Frame(frame) = split else {
            return Ok(None);
        };
        let text = |json: Json<'_>| json.text().to_owned();
        let came = if frame.header.kind == tanda_wire::amaquet::frame::Kind::Event {
            let json = Json::parse(frame.payload);
            json.ok().map(|json| Came::Event(text(json)))
        } else {
            envelope::read(frame.payload).map(|answer| {
                let answer = match answer {
                    envelope::Answer::Result(json) => Ok(text(json)),
                    envelope::Answer::Failure { code, .. } => Err(code),
                };
                Came::Answer(frame.header.request_id, answer)
            })
        };
        let consumed = frame.consumed();
        let bad = || promise::of("a payload that is no answer".to_owned());
        let came = came.ok_or_else(bad)?;
        self.input.drain(..consumed);
        Ok(Some(came))
    }
}

/// A field of a checked JSON object.
pub(super) fn field<'a>(object: &'a str, name: &str) -> Option<Json<'a>> {
    let object = Json::parse(object.as_bytes()).ok()?.as_object()?;
    object
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|it| it.1)
}

pub(super) fn number(object: &str, name: &str) -> Option<u64> {
    field(object, name)?.as_u64()
}

/// The text of a payload of type text.
pub(super) fn text_in(object: &str, name: &str) -> Option<String> {
    let payload = field(object, name)?;
    let data = field(payload.text(), "data")?;
    data.as_str().map(std::borrow::Cow::into_owned)
}

pub(super) fn text(object: &str, name: &str) -> Option<String> {
    let found = field(object, name)?.as_str();
    found.map(std::borrow::Cow::into_owned)
}

/// The objects of an array, as texts.
pub(super) fn objects<'a>(object: &'a str, name: &str) -> Vec<&'a str> {
    let array = field(object, name).and_then(Json::as_array);
    array.into_iter().flatten().map(Json::text).collect()
}
