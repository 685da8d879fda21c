//! What a client of AMQP says and reads.

use std::sync::Arc;

use tanda_session::amqp::{AmqpConfig, AmqpSession};
use tanda_wire::amqp::frame::PROTOCOL_HEADER;
use tanda_wire::amqp::{
    ContentHeader, FrameType, LongStr, Method, MethodId, ReplyCode, ShortStr, Split, Table, basic,
    channel, confirm, connection, encode, exchange, queue, split_frame, tx,
};

use crate::driven::{CONN, Dialect, Driven, START};
use crate::script::Script;

const FRAME_MAX: u32 = 4096;
/// A session, its peer and its engine.
pub(super) type Peer = Driven<Amqp>;

/// What a client reads of the protocol.
#[derive(Default)]
pub(super) struct Amqp {
    /// What the session wrote and is not decoded yet.
    written: Vec<u8>,
    is_greeted: bool,
}

fn config(bits: u8) -> AmqpConfig {
    AmqpConfig {
        frame_max: FRAME_MAX,
        max_message_bytes: if bits & 1 == 0 { 300 } else { 64 << 10 },
        partial_bytes_max: 64 << 10,
        tx_bytes_max: 10_000,
        outbound_bytes_max: 10_000,
        reply_bytes_max: if bits & 2 == 0 { 2_000 } else { 64 << 10 },
        consumers_max: 5,
        unacked_max: 20,
        requests_in_flight_max: if bits & 4 == 0 { 5 } else { 40 },
        publish_bytes_in_flight_max: 20_000,
        ..AmqpConfig::default()
    }
}

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::clip(text)
}

fn frame<'a>(channel: u16, method: impl Into<Method<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    encode::write_any_method(&mut out, channel, &method.into());
    out
}

/// Frames of an ordinary conversation.
fn known(which: u8) -> Vec<u8> {
    let consume = basic::Consume {
        queue: short("q"),
        consumer_tag: short("c"),
        no_ack: which & 16 != 0,
        ..basic::Consume::default()
    };
    let ack = basic::Ack {
        delivery_tag: u64::from(which >> 5),
        multiple: which & 16 != 0,
    };
    let declare = queue::Declare {
        queue: short("q"),
        exclusive: true,
        ..queue::Declare::default()
    };
    let replies = basic::Consume {
        queue: short("amq.rabbitmq.reply-to"),
        no_ack: true,
        consumer_tag: ShortStr::EMPTY,
        ..consume
    };
    let cancel = basic::Cancel {
        consumer_tag: short("c"),
        no_wait: false,
    };
    let get = basic::Get {
        queue: short("q"),
        no_ack: false,
    };
    let qos = basic::Qos {
        prefetch_count: u16::from(which >> 5),
        global: which & 16 != 0,
        ..basic::Qos::default()
    };
    let number = if which & 128 == 0 { 1 } else { 2 };
    match which % 16 {
        0 => frame(number, consume),
        1 => frame(number, ack),
        2 => frame(number, declare),
        3 => frame(number, replies),
        4 => frame(number, cancel),
        5 => frame(number, get),
        6 => frame(number, qos),
        7 => frame(number, confirm::Select { no_wait: false }),
        8 => frame(number, tx::Select {}),
        9 => frame(number, tx::Commit {}),
        10 => frame(number, tx::Rollback {}),
        11 => frame(number, channel::Close::default()),
        12 => frame(number, channel::CloseOk {}),
        13 => frame(number, channel::Open {}),
        14 => frame(number, exchange::Declare::default()),
        _ => frame(0, connection::CloseOk {}),
    }
}

impl Peer {
    pub(super) fn new(bits: u8) -> Self {
        let session = AmqpSession::new(CONN, Arc::new(config(bits)), None, START);
        let mut peer = Self::of(session, Amqp::default());
        if bits & 8 == 0 {
            peer.open();
        }
        peer
    }

    /// The handshake and two channels.
    fn open(&mut self) {
        self.send(&PROTOCOL_HEADER);
        let start_ok = connection::StartOk {
            client_properties: Table::EMPTY,
            mechanism: short("PLAIN"),
            response: LongStr::clip("\0guest\0guest"),
            locale: short("en_US"),
        };
        self.send(&frame(0, start_ok));
        self.log_in(1);
        let tune_ok = connection::TuneOk {
            channel_max: 10,
            frame_max: FRAME_MAX,
            heartbeat: 60,
        };
        let open = connection::Open {
            virtual_host: short("/"),
        };
        self.send(&[frame(0, tune_ok), frame(0, open)].concat());
        self.check();
        self.answer(&mut Script::new(&[]));
        self.send(&[frame(1, channel::Open {}), frame(2, channel::Open {})].concat());
        self.check();
    }

    pub(super) fn send_frame(&mut self, script: &mut Script<'_>) {
        let (frame_type, channel) = (script.byte() % 9, u16::from(script.byte() % 4));
        let payload = script.short();
        self.send_payload(frame_type, channel, payload);
    }

    fn send_payload(&mut self, frame_type: u8, channel: u16, payload: &[u8]) {
        let mut frame = vec![frame_type];
        frame.extend_from_slice(&channel.to_be_bytes());
        let size = u32::try_from(payload.len()).unwrap_or_default();
        frame.extend_from_slice(&size.to_be_bytes());
        frame.extend_from_slice(payload);
        frame.push(0xCE);
        self.send(&frame);
    }

    pub(super) fn send_method(&mut self, script: &mut Script<'_>) {
        let channel = u16::from(script.byte() % 4);
        let all: Vec<MethodId> = MethodId::all().collect();
        let id = all.get(script.pick(all.len())).copied().unwrap_or_default();
        let payload = [&id.to_bytes()[..], script.short()].concat();
        self.send_payload(FrameType::Method.to_wire(), channel, &payload);
    }

    pub(super) fn send_known(&mut self, which: u8) {
        self.send(&known(which));
    }

    pub(super) fn send_message(&mut self, script: &mut Script<'_>) {
        let (channel, flags) = (u16::from(script.byte() % 3), script.byte());
        let publish = basic::Publish {
            exchange: short(if flags & 1 == 0 { "" } else { "ex" }),
            routing_key: short("q"),
            mandatory: flags & 2 != 0,
            immediate: flags & 0xFC == 0xFC,
        };
        let properties = script.short();
        let body = script.short();
        let mut header = b"\0\x3C\0\0".to_vec();
        header.extend_from_slice(&(body.len() as u64).to_be_bytes());
        if properties.is_empty() {
            header.extend_from_slice(&[0, 0]);
        }
        header.extend_from_slice(properties);
        let parts = script.byte();
        self.send(&frame(channel, publish));
        if parts > 10 {
            self.send_payload(FrameType::Header.to_wire(), channel, &header);
        }
        if parts > 20 && !body.is_empty() {
            let (left, right) = body.split_at(body.len() / 2);
            self.send_payload(FrameType::Body.to_wire(), channel, left);
            if parts > 30 {
                self.send_payload(FrameType::Body.to_wire(), channel, right);
            }
        }
    }
}

impl Dialect for Amqp {
    type Session = AmqpSession;

    fn on_output(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.decode();
    }

    fn on_closed(&mut self) {
        self.written.clear();
    }
}

impl Amqp {
    /// Whole frames of what was written are a server's.
    fn decode(&mut self) {
        if !self.is_greeted && !self.written.is_empty() {
            // The answer to another protocol is no frame.
            if PROTOCOL_HEADER.starts_with(&self.written) {
                return;
            }
            if self.written.starts_with(&PROTOCOL_HEADER) {
                self.written.drain(..PROTOCOL_HEADER.len());
            }
            self.is_greeted = true;
        }
        let mut at = 0;
        while let Some(rest) = self.written.get(at..)
            && !rest.is_empty()
        {
            // A header of a message that another door brought in may be larger.
            match split_frame(rest, u32::MAX) {
                Ok(Split::Frame(frame)) => {
                    at += frame.consumed();
                    check_frame(frame);
                }
                Ok(Split::Incomplete { .. }) => break,
                Err(error) => {
                    assert_eq!(Err::<(), _>(error), Ok(()), "what was written is frames");
                    break;
                }
            }
        }
        self.written.drain(..at);
    }
}

fn check_frame(frame: tanda_wire::amqp::Frame<'_>) {
    match frame.frame_type {
        FrameType::Method => {
            let method = Method::decode(frame.payload);
            assert!(method.is_ok(), "{method:?}");
            if let Ok(Method::Channel(channel::Method::Close(close))) = method {
                assert!(
                    ReplyCode::from_wire(close.reply_code).is_some(),
                    "{close:?}"
                );
            }
        }
        FrameType::Header => {
            // Properties of messages are the engine's, which may be any here.
            if let Ok(header) = ContentHeader::decode(frame.payload) {
                assert_eq!(header.class_id, basic::CLASS);
            }
        }
        FrameType::Body => {
            let size = frame.consumed();
            assert!(size <= FRAME_MAX as usize, "a body frame of {size} bytes");
        }
        FrameType::Heartbeat => assert_eq!(frame.channel, 0),
    }
}
