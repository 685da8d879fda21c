//! The client's end of one AMQP connection: the handshake, frames, and contents put together.

use bytes::{Buf, BytesMut};
use tanda_wire::amqp::{
    Arguments, ContentHeader, FrameType, LongStr, Method, Properties, ShortStr, Split, Table,
    TableWriter, Value, basic, channel, connection, encode, split_frame,
};

use crate::failure::Violation;
use crate::invariants::amqp::unexpected;

/// The channel that clients use.
pub(super) const CHANNEL: u16 = 1;
/// Seconds between heartbeats.
const HEARTBEAT_S: u16 = 20;

/// See the module.
pub(crate) struct Link {
    /// The connection's number.
    pub(crate) conn: u64,
    /// Bytes for the broker; the network takes them.
    pub(crate) out: Vec<u8>,
    /// It has ended its sending side: it reads only.
    pub(crate) has_ended: bool,
    /// The channel is open.
    pub(super) is_open: bool,
    /// It has said goodbye, or was told to.
    pub(super) is_over: bool,
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
pub(super) struct Incoming {
    method: Vec<u8>,
    pub(super) properties: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Incoming {
    pub(super) fn method(&self) -> Result<Method<'_>, Violation> {
        Method::decode(&self.method).map_err(|error| unexpected::of(error.to_string()))
    }
}

/// A short string that surely fits.
pub(super) const fn short(text: &str) -> ShortStr<'_> {
    ShortStr::clip(text)
}

impl Link {
    /// Connects and says hello.
    pub(super) fn new(conn: u64) -> Self {
        Self {
            conn,
            out: tanda_wire::amqp::frame::PROTOCOL_HEADER.to_vec(),
            has_ended: false,
            is_open: false,
            is_over: false,
            inbox: BytesMut::new(),
            frame_max: u32::MAX,
            partial: None,
        }
    }

    /// It may send something of its own accord.
    pub(super) const fn is_free(&self) -> bool {
        self.is_open && !self.has_ended && !self.is_over
    }

    pub(super) fn say<'a>(&mut self, number: u16, method: &impl Arguments<'a>) {
        encode::write_method(&mut self.out, number, method);
    }

    /// On the channel.
    pub(super) fn tell<'a>(&mut self, method: &impl Arguments<'a>) {
        self.say(CHANNEL, method);
    }

    pub(super) fn publish(&mut self, publish: &basic::Publish<'_>, raw: &[u8], body: &[u8]) {
        let properties = Properties::decode(raw).unwrap_or_default();
        let frame_max = self.frame_max;
        encode::write_content(&mut self.out, CHANNEL, publish, properties, body, frame_max);
    }

    /// Says goodbye; the rest is silence.
    pub(super) fn close(&mut self) {
        self.say(
            0,
            &connection::Close {
                reply_code: 200,
                reply_text: short("bye"),
                class_id: 0,
                method_id: 0,
            },
        );
        self.is_over = true;
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next method for the client, with its content.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>, Violation> {
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
                FrameType::Heartbeat if !self.has_ended && !self.is_over => {
                    encode::write_heartbeat(&mut self.out);
                }
                FrameType::Heartbeat => {}
                FrameType::Method => {
                    if let Some(incoming) = self.on_method(number, payload)? {
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
    fn on_method(&mut self, number: u16, payload: Vec<u8>) -> Result<Option<Incoming>, Violation> {
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
            && self.on_connection(&it)
        {
            return Ok(None);
        }
        if let Method::Channel(channel::Method::OpenOk(_)) = method {
            self.is_open = true;
            return Ok(None);
        }
        Ok(Some(Incoming {
            method: payload,
            properties: Vec::new(),
            body: Vec::new(),
        }))
    }

    /// False when the client has to know.
    fn on_connection(&mut self, method: &connection::Method<'_>) -> bool {
        if self.has_ended {
            return !matches!(method, connection::Method::Close(_));
        }
        if let connection::Method::Start(_) = method {
            self.on_start();
        } else if let connection::Method::Tune(tune) = method {
            self.frame_max = tune.frame_max;
            self.say(
                0,
                &connection::TuneOk {
                    channel_max: tune.channel_max,
                    frame_max: tune.frame_max,
                    heartbeat: HEARTBEAT_S,
                },
            );
            let virtual_host = short("/");
            self.say(0, &connection::Open { virtual_host });
        } else if let connection::Method::OpenOk(_) = method {
            self.say(CHANNEL, &channel::Open {});
        } else {
            return false;
        }
        true
    }

    fn on_start(&mut self) {
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
        encode::write_method(&mut self.out, 0, &start_ok);
    }
}

fn stray_content() -> Violation {
    unexpected::of("a content where none belongs".to_owned())
}
