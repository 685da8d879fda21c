//! Bytes as a stream of Amaquet frames: each is split off and written again as it came; its payload
//! as JSON that is walked over and written again; as a command; as an answer.
//!
//! First byte: the limit of payloads, and who sends. The rest is the stream.

use tanda_wire::amaquet::command::{ArgumentLimits, COMMANDS, Command};
use tanda_wire::amaquet::envelope::{Answer, Failure, read, write_failure};
use tanda_wire::amaquet::frame::{HEADER_BYTES, write_frame};
use tanda_wire::amaquet::json::{DEPTH_MAX, Json, JsonKind, Writer};
use tanda_wire::amaquet::{Frame, Header, Opcode, Payload, Sender, Split, split_frame};

/// Largest payloads.
const BYTES_MAX: [u32; 4] = [16, 256, 64 << 10, 16 << 20];

/// Runs one input.
///
/// # Panics
/// When a decoder and its encoder disagree, or a limit is passed.
pub fn run(input: &[u8]) {
    let Some((first, mut stream)) = input.split_first() else {
        return;
    };
    let max = BYTES_MAX.get(usize::from(first % 4)).copied();
    let max = max.unwrap_or(256);
    let sender = if first & 4 == 0 {
        Sender::Client
    } else {
        Sender::Server
    };
    loop {
        match split_frame(stream, sender, max) {
            Ok(Split::Frame(frame)) => {
                take(&frame, stream, max);
                stream = stream.get(frame.consumed()..).unwrap_or_default();
            }
            Ok(Split::Incomplete { header, need_bytes }) => {
                let whole = HEADER_BYTES + max as usize;
                assert!(need_bytes > stream.len() && need_bytes <= whole);
                assert_eq!(header.is_some(), stream.len() >= HEADER_BYTES);
                break;
            }
            Err(error) => {
                let code = error.code().map(|code| code.name());
                assert_eq!(code.is_none(), !stream.starts_with(b"AMQT"), "{error}");
                break;
            }
        }
    }
    // Also what is no frame at all.
    take_payload(stream);
}

fn take(frame: &Frame<'_>, stream: &[u8], max: u32) {
    let mut out = Vec::new();
    let written = write_frame(&mut out, frame.header, max, |out| {
        out.extend_from_slice(frame.payload);
    });
    assert_eq!(written, Ok(()));
    let mut whole = stream.get(..frame.consumed()).unwrap_or_default().to_vec();
    // Flags are ignored and sent as zero.
    if let Some(flags) = whole.get_mut(6..8) {
        flags.fill(0);
    }
    assert_eq!(out, whole);
    take_payload(frame.payload);
}

fn take_payload(bytes: &[u8]) {
    if let Ok(json) = Json::parse(bytes) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), json, 0);
        let again = Json::parse(&out).map(Json::kind);
        assert_eq!(again, Ok(json.kind()), "{}", json.text());
        if let Ok(payload) = Payload::of(json) {
            payload_again(&payload);
        }
    }
    match Command::parse(bytes, &ArgumentLimits::default()) {
        Ok(command) => {
            assert!(COMMANDS.contains(command.spec()));
            command.tell_names(&mut |name| assert!(name.len() <= bytes.len()));
        }
        Err(error) => refusal_again(&Failure::new(error.code(), error.to_string())),
    }
    if let Some(Answer::Result(result)) = read(bytes) {
        assert!(result.text().len() < bytes.len());
    }
}

/// Walks over all of a value, and writes it without space.
fn write(out: &mut Writer<'_>, json: Json<'_>, depth: usize) {
    assert!(depth <= DEPTH_MAX);
    match json.kind() {
        JsonKind::Null | JsonKind::Bool => out.json(json),
        JsonKind::Number => match json.as_number() {
            Some(number) => out.number(number),
            None => panic_at(json),
        },
        JsonKind::String => match json.as_str() {
            Some(text) => out.str(&text),
            None => panic_at(json),
        },
        JsonKind::Array => out.array(|out| {
            for item in json.as_array().into_iter().flatten() {
                write(out, item, depth + 1);
            }
        }),
        JsonKind::Object => out.object(|out| {
            for (key, value) in json.as_object().into_iter().flatten() {
                write(out.key(&key), value, depth + 1);
            }
        }),
    }
}

#[expect(clippy::panic, reason = "a fuzzer stops at what does not hold")]
fn panic_at(json: Json<'_>) {
    panic!("{} has a kind and no value", json.text());
}

fn payload_again(payload: &Payload<'_>) {
    let mut out = Vec::new();
    payload.write(&mut Writer::new(&mut out));
    let again = Json::parse(&out).map(Payload::of);
    assert_eq!(again, Ok(Ok(payload.clone())));
}

/// An error is told in an answer that clients can read.
fn refusal_again(failure: &Failure) {
    let mut out = Vec::new();
    write_failure(&mut out, Header::response(Opcode::Command, 1), failure);
    let payload = out.get(HEADER_BYTES..).unwrap_or_default();
    match read(payload) {
        Some(Answer::Failure { code, message, .. }) => {
            assert_eq!(code, failure.code.name());
            assert!(failure.message.starts_with(&message) && !message.is_empty());
        }
        other => assert!(other.is_none() && payload.is_empty(), "{other:?}"),
    }
}
