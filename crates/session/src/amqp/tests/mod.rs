//! A scripted peer and a scripted engine around one session.

mod alarms;
mod channels;
mod confirms;
mod consumers;
mod deliveries;
mod handshake;
mod headers;
mod hostile;
mod lifecycle;
mod permissions;
mod publishes;
mod repeats;
mod replies;
mod settlements;
mod topology;
mod transactions;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tanda_engine::{
    AdminReply, AdminRequest, ConnId, DeclaredQueue, DeliveryBatch, DeliveryItem, Event, Form,
    MessageId, Millis, PublishBatch, PublishResult, QueueId, Request, SettleBatch, TopologyCode,
    TopologyError, VhostId,
};
use tanda_wire::amqp::{
    FrameType, LongStr, Method, Properties, PropertyValues, ShortStr, Split, Table, TableWriter,
    Value, basic, channel, connection, encode, split_frame,
};

use super::{AmqpConfig, AmqpSession};
use crate::Session;
use crate::login::{Identity, Unrestricted};

const CONN: ConnId = ConnId(9);
const START: Millis = Millis(1_000_000);
const VHOST: VhostId = VhostId(3);

/// One session, its peer and its engine.
struct Peer {
    session: AmqpSession,
    input: BytesMut,
    now: Millis,
}

/// A frame of a method.
fn frame<'a>(channel: u16, method: impl Into<Method<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    encode::write_any_method(&mut out, channel, &method.into());
    out
}

/// Any frame.
fn raw_frame(frame_type: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![frame_type];
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    out.extend_from_slice(payload);
    out.push(0xCE);
    out
}

fn short(text: &str) -> ShortStr<'_> {
    ShortStr::new(text.as_bytes()).unwrap()
}

/// What the peer reads, one line per frame.
fn shown(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(Split::Frame(frame)) = split_frame(rest, u32::MAX) else {
            panic!("no whole frame: {:?}", rest.escape_ascii().to_string())
        };
        let channel = frame.channel;
        lines.push(match frame.frame_type {
            FrameType::Method => line(channel, Method::decode(frame.payload).unwrap()),
            FrameType::Header => header_line(channel, frame.payload),
            FrameType::Body => format!("{channel} body {}", frame.payload.escape_ascii()),
            FrameType::Heartbeat => format!("{channel} heartbeat"),
        });
        rest = &rest[frame.consumed()..];
    }
    lines
}

fn line<'a>(channel: u16, method: impl Into<Method<'a>>) -> String {
    format!("{channel} {:?}", method.into())
}

fn header_line(channel: u16, payload: &[u8]) -> String {
    let header = tanda_wire::amqp::ContentHeader::decode(payload).unwrap();
    let size = header.body_size;
    let raw = header.properties.raw().escape_ascii();
    format!("{channel} header {size} {raw}")
}

fn channel_close(channel: u16, code: u16, text: &str, (class_id, method_id): (u16, u16)) -> String {
    let close = channel::Close {
        reply_code: code,
        reply_text: short(text),
        class_id,
        method_id,
    };
    line(channel, close)
}

fn connection_close(code: u16, text: &str, (class_id, method_id): (u16, u16)) -> String {
    let close = connection::Close {
        reply_code: code,
        reply_text: short(text),
        class_id,
        method_id,
    };
    line(0, close)
}

/// Entries of a table.
fn table(entries: &[(&str, Value<'_>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    for (key, value) in entries {
        writer.value(short(key), value);
    }
    out
}

/// The capabilities of most clients.
fn client_properties() -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out);
    writer.table(short("capabilities"), |table| {
        for name in [
            "authentication_failure_close",
            "consumer_cancel_notify",
            "connection.blocked",
        ] {
            table.value(short(name), &Value::Bool(true));
        }
    });
    out
}

fn start_ok<'a>(properties: &'a [u8], response: &'a [u8]) -> connection::StartOk<'a> {
    connection::StartOk {
        client_properties: Table::new(properties).unwrap(),
        mechanism: short("PLAIN"),
        response: LongStr::new(response).unwrap(),
        locale: short("en_US"),
    }
}

const TUNE_OK: connection::TuneOk = connection::TuneOk {
    channel_max: 2047,
    frame_max: 131_072,
    heartbeat: 60,
};

/// Frames of a message.
fn message(
    channel: u16,
    publish: basic::Publish<'_>,
    properties: &PropertyValues<'_>,
    body: &[u8],
) -> Vec<u8> {
    let mut raw = Vec::new();
    properties.encode(&mut raw);
    let properties = Properties::decode(&raw).unwrap();
    let mut out = Vec::new();
    encode::write_content(&mut out, channel, &publish, properties, body, 131_072);
    out
}

/// A message to the default exchange.
fn plain(channel: u16, key: &str, body: &[u8]) -> Vec<u8> {
    let publish = basic::Publish {
        routing_key: short(key),
        ..basic::Publish::default()
    };
    message(channel, publish, &PropertyValues::default(), body)
}

fn topology_error<T>(code: TopologyCode, text: &str) -> Result<T, TopologyError> {
    Err(TopologyError {
        code,
        text: text.to_owned(),
    })
}

impl Peer {
    /// A connection of which nothing has come.
    fn accepted(config: AmqpConfig) -> Self {
        Self::with_certificate(config, None)
    }

    fn with_certificate(config: AmqpConfig, certificate: Option<&str>) -> Self {
        let certificate = certificate.map(str::to_owned);
        let session = AmqpSession::new(CONN, Arc::new(config), certificate, START);
        Self {
            session,
            input: BytesMut::new(),
            now: START,
        }
    }

    /// A connection that waits to hear who the peer is.
    fn logging_in(config: AmqpConfig, properties: &[u8]) -> Self {
        let mut peer = Self::accepted(config);
        peer.send(b"AMQP\0\0\x09\x01");
        assert_eq!(peer.lines().len(), 1);
        peer.send(&frame(0, start_ok(properties, b"\0guest\0guest")));
        assert!(peer.session.take_login().is_some());
        peer
    }

    /// An open connection of a client with these properties.
    fn open_as(config: AmqpConfig, properties: &[u8], identity: Arc<dyn Identity>) -> Self {
        let mut peer = Self::logging_in(config, properties);
        peer.session.on_login(peer.now, Ok(identity));
        assert_eq!(peer.lines().len(), 1);
        peer.finish_opening(TUNE_OK);
        peer
    }

    /// An open connection that agreed on this.
    fn tuned(tune_ok: connection::TuneOk) -> Self {
        let mut peer = Self::logging_in(AmqpConfig::default(), &client_properties());
        let identity = Arc::new(Unrestricted::new("guest"));
        peer.session.on_login(peer.now, Ok(identity));
        assert_eq!(peer.lines().len(), 1);
        peer.finish_opening(tune_ok);
        peer
    }

    fn finish_opening(&mut self, tune_ok: connection::TuneOk) {
        self.send(&frame(0, tune_ok));
        let open = connection::Open {
            virtual_host: short("/"),
        };
        self.send(&frame(0, open));
        let requests = self.requests();
        let [
            Request::Connect { conn: CONN, .. },
            Request::Admin { reply, .. },
        ] = &requests[..]
        else {
            panic!("{requests:?}")
        };
        self.admin(reply.token, AdminReply::Vhost(Ok(VHOST)));
        assert_eq!(self.lines(), [line(0, connection::OpenOk {})]);
    }

    fn open_with(config: AmqpConfig) -> Self {
        let identity = Arc::new(Unrestricted::new("guest"));
        Self::open_as(config, &client_properties(), identity)
    }

    /// An open connection with channel 1.
    fn open() -> Self {
        let mut peer = Self::open_with(AmqpConfig::default());
        peer.open_channel(1);
        peer
    }

    fn open_channel(&mut self, number: u16) {
        self.say(number, channel::Open {});
        assert_eq!(self.lines(), [line(number, channel::OpenOk {})]);
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    fn say<'a>(&mut self, channel: u16, method: impl Into<Method<'a>>) {
        self.send(&frame(channel, method));
    }

    fn event(&mut self, event: Event) {
        self.session.on_event(self.now, event);
        self.session.assert_invariants();
        self.session.on_bytes(self.now, &mut self.input);
        self.session.assert_invariants();
    }

    fn admin(&mut self, token: u32, reply: AdminReply) {
        let reply = Box::new(reply);
        self.event(Event::Admin { token, reply });
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.session.on_timer(self.now);
        self.session.assert_invariants();
    }

    /// All requests; that deliveries have left is not news here.
    fn requests(&mut self) -> Vec<Request> {
        let mut requests = self.all_requests();
        requests.retain(|request| !matches!(request, Request::Drained { .. }));
        requests
    }

    fn all_requests(&mut self) -> Vec<Request> {
        std::iter::from_fn(|| self.session.next_request()).collect()
    }

    fn request(&mut self) -> Request {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }

    /// The only request is about the topology.
    fn asked(&mut self) -> (u32, AdminRequest) {
        let request = self.request();
        let Request::Admin { reply, request } = request else {
            panic!("{request:?}")
        };
        (reply.token, request)
    }

    /// The only request is messages.
    fn published(&mut self) -> (u32, PublishBatch) {
        let request = self.request();
        let Request::Publish { reply, batch } = request else {
            panic!("{request:?}")
        };
        (reply.token, batch)
    }

    /// The only request is settlements.
    fn settled(&mut self) -> (u32, SettleBatch) {
        let mut requests = self.requests();
        // Credit that comes back with it is another matter.
        requests.retain(|request| !matches!(request, Request::Grant { .. }));
        let [Request::Settle { reply, batch }] = &requests[..] else {
            panic!("{requests:?}")
        };
        (reply.token, batch.clone())
    }

    /// Writes everything and returns it.
    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let part = self.session.output().split();
            if part.is_empty() {
                return bytes;
            }
            self.session.on_written(part.len());
            self.session.assert_invariants();
            bytes.extend_from_slice(&part);
        }
    }

    /// Writes everything and returns a line per frame.
    fn lines(&mut self) -> Vec<String> {
        shown(&self.bytes())
    }

    /// The session answers with a `channel.close`, which the peer answers.
    fn expect_channel_close(&mut self, number: u16, code: u16, text: &str, method: (u16, u16)) {
        assert_eq!(self.lines(), [channel_close(number, code, text, method)]);
        assert!(!self.session.is_closing());
        self.say(number, channel::CloseOk {});
        self.open_channel(number);
    }

    /// The session answers with a `connection.close`, which the peer answers.
    fn expect_connection_close(&mut self, code: u16, text: &str, method: (u16, u16)) {
        assert_eq!(self.lines(), [connection_close(code, text, method)]);
        assert!(!self.session.is_closing());
        self.say(0, connection::CloseOk {});
        assert!(self.session.is_closing());
        assert_eq!(self.bytes(), b"");
    }

    /// Starts a consumer and returns its token.
    fn consume(&mut self, number: u16, consume: basic::Consume<'_>) -> u32 {
        self.say(number, consume);
        let request = self.request();
        let Request::Subscribe { sub, .. } = request else {
            panic!("{request:?}")
        };
        let token = sub.token;
        self.event(Event::Subscribed { token, consumer: 5 });
        let consume_ok = basic::ConsumeOk {
            consumer_tag: consume.consumer_tag,
        };
        assert_eq!(self.lines(), [line(number, consume_ok)]);
        token
    }

    /// A consumer "c" of queue "q" on channel 1.
    fn consume_q(&mut self) -> u32 {
        let consume = basic::Consume {
            queue: short("q"),
            consumer_tag: short("c"),
            ..basic::Consume::default()
        };
        self.consume(1, consume)
    }

    /// Delivers messages with ids from 1 on, and drops what the peer reads.
    fn deliver(&mut self, token: u32, count: u64) {
        let batch = deliveries(1, count);
        self.event(Event::Delivery { token, batch });
        self.bytes();
    }

    fn confirm_select(&mut self, number: u16) {
        self.say(number, tanda_wire::amqp::confirm::Select { no_wait: false });
        let select_ok = tanda_wire::amqp::confirm::SelectOk {};
        assert_eq!(self.lines(), [line(number, select_ok)]);
    }
}

/// A message ID.
fn id(number: u64) -> MessageId {
    MessageId(1_500 << 80 | u128::from(number))
}

/// A message as it is kept.
fn envelope(exchange: &str, key: &str, properties: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for name in [exchange, key] {
        out.push(u8::try_from(name.len()).unwrap());
        out.extend_from_slice(name.as_bytes());
    }
    for part in [properties, body] {
        out.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// Deliveries of contents in a form, with ids from `first` on.
fn deliveries_of(first: u64, form: Form, contents: &[Vec<u8>]) -> DeliveryBatch {
    let mut batch = DeliveryBatch {
        consumer: 5,
        queue: "q".into(),
        queue_id: QueueId(7),
        leased_at: START,
        lease_expires_at: Millis(u64::MAX),
        ..DeliveryBatch::default()
    };
    let mut chunk = Vec::new();
    for (number, content) in (first..).zip(contents) {
        batch.items.push(DeliveryItem {
            id: id(number),
            form,
            at: DeliveryItem::RESOLVED,
            len: u32::try_from(content.len()).unwrap(),
            start: u32::try_from(chunk.len()).unwrap(),
            deliveries: 1,
            attempts: 1,
            ..DeliveryItem::default()
        });
        chunk.extend_from_slice(content);
    }
    batch.chunks.push(Bytes::from(chunk));
    batch
}

/// Deliveries of AMQP messages with ids from `first` on.
fn deliveries(first: u64, count: u64) -> DeliveryBatch {
    let contents: Vec<Vec<u8>> = (0..count)
        .map(|_| envelope("ex", "key", &[0, 0], b"body"))
        .collect();
    deliveries_of(first, Form::Amqp, &contents)
}

fn stored(token: u32, count: usize) -> Event {
    Event::Published {
        token,
        results: vec![PublishResult::Stored(id(1)); count],
    }
}

fn declared(name: &str, messages: u64, consumers: u32) -> AdminReply {
    let name = name.to_owned();
    AdminReply::QueueDeclared(Ok(DeclaredQueue {
        name,
        messages,
        consumers,
    }))
}
