//! AMQP 0-9-1 on a client's side: the handshake, frames, and contents put together.

mod asks;
mod binds;
mod said;

use bytes::{Buf, BytesMut};
use tanda_wire::amqp::{
    Arguments, ContentHeader, FrameType, LongStr, Method, ShortStr, Split, Table, TableWriter,
    Value, channel, connection, encode, frame, split_frame,
};

use super::link::{Line, Said};
use crate::failure::Violation;
use crate::invariants::amqp::unexpected;
use said::said;

/// The channel that clients use.
const CHANNEL: u16 = 1;
/// Seconds between heartbeats.
const HEARTBEAT_S: u16 = 20;

/// See the module.
pub(super) struct OfAmqp {
    inbox: BytesMut,
    frame_max: u32,
    /// A method whose content has not all come.
    partial: Option<Partial>,
}

struct Partial {
    method: Vec<u8>,
    properties: Vec<u8>,
    missing: Option<u64>,
    body: Vec<u8>,
}

/// A method that came, with its content.
struct Incoming {
    method: Vec<u8>,
    properties: Vec<u8>,
    body: Vec<u8>,
}

/// A short string that surely fits.
pub(super) const fn short(text: &str) -> ShortStr<'_> {
    ShortStr::clip(text)
}

fn say<'a>(line: &mut Line, number: u16, method: &impl Arguments<'a>) {
    encode::write_method(&mut line.out, number, method);
}

/// On the channel.
fn tell<'a>(line: &mut Line, method: &impl Arguments<'a>) {
    say(line, CHANNEL, method);
}

impl OfAmqp {
    /// Says hello.
    pub(super) fn new(line: &mut Line) -> Self {
        line.out.extend_from_slice(&frame::PROTOCOL_HEADER);
        Self {
            inbox: BytesMut::new(),
            frame_max: u32::MAX,
            partial: None,
        }
    }

    /// Agrees to the end of the channel, and opens another.
    pub(super) fn reopen(line: &mut Line) {
        tell(line, &channel::CloseOk {});
        tell(line, &channel::Open {});
    }

    pub(super) fn agree(line: &mut Line) {
        say(line, 0, &connection::CloseOk {});
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next thing the broker says.
    pub(super) fn next(&mut self, line: &mut Line) -> Result<Option<Said>, Violation> {
        let incoming = self.next_method(line)?;
        incoming.map(|incoming| said(&incoming)).transpose()
    }

    /// The next method for the client, with its content.
    fn next_method(&mut self, line: &mut Line) -> Result<Option<Incoming>, Violation> {
        loop {
            let split = split_frame(&self.inbox, self.frame_max);
            let split = split.map_err(|error| unexpected::of(error.to_string()))?;
            let Split::Frame(frame) = split else {
                return Ok(None);
            };
            let (kind, number, consumed) = (frame.frame_type, frame.channel, frame.consumed());
            let payload = frame.payload.to_vec();
            self.inbox.advance(consumed);
            match kind {
                FrameType::Heartbeat if !line.has_ended && !line.is_over => {
                    encode::write_heartbeat(&mut line.out);
                }
                FrameType::Heartbeat => {}
                FrameType::Method => {
                    if let Some(incoming) = self.on_method(line, number, payload)? {
                        return Ok(Some(incoming));
                    }
                }
                FrameType::Header => {
                    let header = ContentHeader::decode(&payload)
                        .map_err(|error| unexpected::of(error.to_string()))?;
                    let partial = self.partial.as_mut().ok_or_else(stray_content)?;
                    partial.properties = header.properties.raw().to_vec();
                    partial.missing = Some(header.body_size);
                }
                FrameType::Body => {
                    let partial = self.partial.as_mut().ok_or_else(stray_content)?;
                    let missing = partial.missing.ok_or_else(stray_content)?;
                    let missing = missing.checked_sub(payload.len() as u64);
                    partial.missing = Some(missing.ok_or_else(stray_content)?);
                    partial.body.extend_from_slice(&payload);
                }
            }
            if let Some(whole) = self.partial.take_if(|partial| partial.missing == Some(0)) {
                return Ok(Some(Incoming {
                    method: whole.method,
                    properties: whole.properties,
                    body: whole.body,
                }));
            }
        }
    }

    /// The handshake is answered here.
    fn on_method(
        &mut self,
        line: &mut Line,
        number: u16,
        payload: Vec<u8>,
    ) -> Result<Option<Incoming>, Violation> {
        let method = Method::decode(&payload).map_err(|it| unexpected::of(it.to_string()))?;
        if self.partial.is_some() {
            return Err(stray_content());
        }
        if method.has_content() {
            self.partial = Some(Partial {
                method: payload,
                properties: Vec::new(),
                missing: None,
                body: Vec::new(),
            });
            return Ok(None);
        }
        if number == 0
            && let Method::Connection(it) = method
            && self.on_connection(line, &it)
        {
            return Ok(None);
        }
        if let Method::Channel(channel::Method::OpenOk(_)) = method {
            line.is_open = true;
            return Ok(None);
        }
        Ok(Some(Incoming {
            method: payload,
            properties: Vec::new(),
            body: Vec::new(),
        }))
    }

    /// False when the client has to know.
    fn on_connection(&mut self, line: &mut Line, method: &connection::Method<'_>) -> bool {
        if line.has_ended {
            return !matches!(method, connection::Method::Close(_));
        }
        if let connection::Method::Start(_) = method {
            on_start(line);
        } else if let connection::Method::Tune(tune) = method {
            self.frame_max = tune.frame_max;
            say(
                line,
                0,
                &connection::TuneOk {
                    channel_max: tune.channel_max,
                    frame_max: tune.frame_max,
                    heartbeat: HEARTBEAT_S,
                },
            );
            let virtual_host = short("/");
            say(line, 0, &connection::Open { virtual_host });
        } else if let connection::Method::OpenOk(_) = method {
            tell(line, &channel::Open {});
        } else {
            return false;
        }
        true
    }
}

fn on_start(line: &mut Line) {
    let mut properties = Vec::new();
    TableWriter::new(&mut properties).table(short("capabilities"), |table| {
        for name in ["authentication_failure_close", "consumer_cancel_notify"] {
            table.value(short(name), &Value::Bool(true));
        }
    });
    let start_ok = connection::StartOk {
        client_properties: Table::new(&properties).unwrap_or_default(),
        mechanism: short("PLAIN"),
        response: LongStr::new(b"\0guest\0guest").unwrap_or_default(),
        locale: short("en_US"),
    };
    say(line, 0, &start_ok);
}

fn stray_content() -> Violation {
    unexpected::of("a content where none belongs".to_owned())
}
