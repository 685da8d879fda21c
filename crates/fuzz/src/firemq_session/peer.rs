//! The session, its peer and its engine, and what must hold between them.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tanda_engine::{
    ConnId, Content, DeliveryBatch, DeliveryItem, Event, Form, Got, Millis, Request,
};
use tanda_session::Session;
use tanda_session::firemq::{FireConfig, FireSession};
use tanda_session::login::{Identity, LoginError, Unrestricted};
use tanda_wire::firemq::consume::{Ack, Credit, Get, Nack, Subscribe, Unsubscribe};
use tanda_wire::firemq::frame::{Framing, write_head};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::session::{Auth, Close, Hello, Ping};
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteExchange, DeleteQueue, PurgeQueue,
};
use tanda_wire::firemq::{Header, Props, RawMap};
use tanda_wire::mapping::FireMessage;

use super::reader::Reader;
use crate::answers;
use crate::script::Script;

const CONN: ConnId = ConnId(9);
const START: Millis = Millis(1_000_000);
/// Subscriptions and requests that are kept to be spoken of.
const TOKENS_MAX: usize = 64;
/// What a session may hold beyond what is bounded by its configuration: a read and its answers.
const HELD_BYTES_MAX: usize = 1 << 20;

/// One session and what is known of it outside.
pub(super) struct Peer {
    session: FireSession,
    input: BytesMut,
    now: Millis,
    /// Requests that the engine has and has not answered.
    owed: Vec<Request>,
    /// Tokens of subscriptions, live or not.
    subs: Vec<u32>,
    refusals: u8,
    heard: Heard,
    reader: Reader,
    /// The number of the next publish.
    seq: u64,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Connect,
    Disconnect,
}

fn config(bits: u8) -> FireConfig {
    FireConfig {
        max_frame: if bits & 1 == 0 { 600 } else { 64 << 10 },
        max_message_bytes: 300,
        outbound_bytes_max: 10_000,
        reply_bytes_max: if bits & 2 == 0 { 2_000 } else { 64 << 10 },
        subscriptions_max: 5,
        unacked_max: 20,
        requests_in_flight_max: if bits & 4 == 0 { 5 } else { 40 },
        publish_bytes_in_flight_max: 20_000,
        ..FireConfig::default()
    }
}

fn frame<'a>(header: &impl Header<'a>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = write_head(&mut out, Framing::Stream, header, payload.len(), u32::MAX);
    assert!(written.is_ok(), "{written:?}");
    out.extend_from_slice(payload);
    out
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        ver: 1,
        auth: Auth {
            mech: "plain",
            user: "guest",
            pass: "guest",
        },
        heartbeat: 30,
        ..Hello::default()
    };
    frame(&hello, b"")
}

/// Frames of an ordinary conversation.
fn known(which: u8) -> Vec<u8> {
    let rid = u64::from(which);
    let sub = u64::from(which >> 6);
    let flag = which & 16 != 0;
    let subscribe = Subscribe {
        rid,
        sub,
        queue: "q",
        credit: 10,
        no_ack: flag,
        ..Subscribe::default()
    };
    let tag = u64::from(which >> 5);
    let nack = Nack {
        tag,
        multiple: flag,
        requeue: which & 32 != 0,
    };
    let declare = DeclareQueue {
        rid,
        name: "q",
        exclusive: true,
        ..DeclareQueue::default()
    };
    let get = Get {
        rid,
        queue: "q",
        no_ack: flag,
    };
    let delete = DeleteQueue {
        rid,
        name: "q",
        ..DeleteQueue::default()
    };
    let bind = Bind {
        rid,
        exchange: "ex",
        queue: "q",
        ..Bind::default()
    };
    match which % 16 {
        0 => frame(&subscribe, b""),
        1 => frame(
            &Ack {
                tag,
                multiple: flag,
            },
            b"",
        ),
        2 => frame(&nack, b""),
        3 => frame(&declare, b""),
        4 => frame(&Unsubscribe { rid, sub }, b""),
        5 => frame(&get, b""),
        6 => frame(&Credit { sub, credit: 5 }, b""),
        7 => frame(&delete, b""),
        8 => frame(&bind, b""),
        9 => frame(&PurgeQueue { rid, name: "q" }, b""),
        10 => frame(&DeclareExchange::default(), b""),
        11 => frame(&DeleteExchange::default(), b""),
        12 => frame(&Ping {}, b""),
        13 => hello(),
        14 => b"FMQ1".to_vec(),
        _ => frame(&Close::default(), b""),
    }
}

/// Stored messages of this protocol are well-formed: their session saw to it.
fn make_sound(batch: &mut DeliveryBatch) {
    let is_broken = |item: &DeliveryItem| {
        let content = Content::new(item.form, batch.content(item));
        let message = FireMessage::decode(content.properties());
        item.form == Form::Fire
            && (Props::decode(message.props.as_bytes()).is_err()
                || RawMap::decode(message.headers.as_bytes()).is_err())
    };
    let broken: Vec<bool> = batch.items.iter().map(is_broken).collect();
    for (item, broken) in batch.items.iter_mut().zip(broken) {
        if broken {
            item.form = Form::Amqp;
        }
    }
}

impl Peer {
    pub(super) fn new(bits: u8) -> Self {
        let preamble = bits & 16 == 0;
        let session = FireSession::new(CONN, Arc::new(config(bits)), preamble, None, START);
        let mut peer = Self {
            session,
            input: BytesMut::new(),
            now: START,
            owed: Vec::new(),
            subs: Vec::new(),
            refusals: 0,
            heard: Heard::Nothing,
            reader: Reader::default(),
            seq: 1,
            is_closed: false,
        };
        if bits & 8 == 0 {
            if preamble {
                peer.send(b"FMQ1");
            }
            peer.send(&hello());
            peer.log_in(1);
            peer.check();
            peer.answer(&mut Script::new(&[]));
            peer.check();
        }
        peer
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.session.wants_read() {
            self.input.extend_from_slice(bytes);
        }
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(super) fn send_frame(&mut self, script: &mut Script<'_>) {
        let op = script.byte();
        let (header, payload) = (script.short(), script.short());
        let sizes = [5 + header.len() + payload.len(), header.len()];
        let [len, hlen] = sizes.map(|size| u32::try_from(size).unwrap_or_default());
        let mut frame = len.to_be_bytes().to_vec();
        frame.push(op);
        frame.extend_from_slice(&hlen.to_be_bytes());
        frame.extend_from_slice(header);
        frame.extend_from_slice(payload);
        self.send(&frame);
    }

    pub(super) fn send_known(&mut self, which: u8) {
        self.send(&known(which));
    }

    pub(super) fn send_message(&mut self, script: &mut Script<'_>) {
        let (flags, off) = (script.byte(), script.byte());
        let (props, headers, body) = (script.short(), script.short(), script.short());
        let is_confirmed = flags & 4 == 0;
        let seq = if off > 250 { 7 } else { self.seq };
        let publish = Publish {
            seq: if is_confirmed { seq } else { 0 },
            exchange: if flags & 1 == 0 { "" } else { "ex" },
            key: "q",
            mandatory: flags & 2 != 0,
            persistent: flags & 8 != 0,
            // Unchecked: what is no map makes a header that is none.
            props: Props::from_checked(props),
            headers: RawMap::from_checked(headers),
        };
        if self.session.wants_input() {
            self.seq += u64::from(is_confirmed);
        }
        self.send(&frame(&publish, body));
    }

    fn event(&mut self, mut event: Event) {
        if let Event::Subscribed { token, .. } = &event
            && self.subs.len() < TOKENS_MAX
        {
            self.subs.push(*token);
        }
        if let Event::Delivery { batch, .. } = &mut event {
            make_sound(batch);
        } else if let Event::Got {
            result: Ok(Got {
                batch: Some(batch), ..
            }),
            ..
        } = &mut event
        {
            make_sound(batch);
        }
        self.session.on_event(self.now, event);
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(super) fn answer(&mut self, script: &mut Script<'_>) {
        if self.owed.is_empty() {
            return;
        }
        let at = script.pick(self.owed.len());
        let request = self.owed.remove(at);
        if let Some(event) = answers::answer(script, &request) {
            self.event(event);
        }
    }

    pub(super) fn any_event(&mut self, script: &mut Script<'_>) {
        let token = self.token(script);
        let event = answers::any(script, token);
        self.event(event);
    }

    pub(super) fn deliver(&mut self, script: &mut Script<'_>) {
        let token = self.token(script);
        let count = 1 + script.pick(5);
        let batch = answers::deliveries(script, count);
        self.event(Event::Delivery { token, batch });
    }

    fn token(&self, script: &mut Script<'_>) -> u32 {
        let known = self.subs.get(script.pick(self.subs.len()));
        match (script.byte(), known) {
            (0..=200, Some(token)) => *token,
            _ => script.u32(),
        }
    }

    pub(super) fn read(&mut self, bytes: usize) {
        let output = self.session.output();
        let taken = output.len().min(bytes);
        self.reader.take(output.get(..taken).unwrap_or_default());
        output.advance(taken);
        self.session.on_written(taken);
    }

    pub(super) fn wait(&mut self, tenths: u16) {
        self.now = self.now.after_ms(u64::from(tenths) * 100);
        self.session.on_timer(self.now);
    }

    pub(super) const fn refuse(&mut self, count: u8) {
        self.refusals = count % 8;
    }

    pub(super) fn alarm(&mut self, which: u8) {
        let reason = (which & 1 == 0).then_some("memory");
        self.session.on_alarm(self.now, reason);
        self.session.on_bytes(self.now, &mut self.input);
    }

    pub(super) fn log_in(&mut self, which: u8) {
        let answer: Result<Arc<dyn Identity>, LoginError> = if which == 0 {
            Err(LoginError::Refused)
        } else {
            Ok(Arc::new(Unrestricted::new("guest")))
        };
        if self.session.take_login().is_some() || which > 250 {
            self.session.on_login(self.now, answer);
        }
    }

    pub(super) fn end(&mut self, which: u8) {
        match which % 3 {
            0 => self.session.begin_shutdown(self.now),
            1 => self.session.on_overload(self.now),
            _ => self.session.on_end(self.now),
        }
    }

    pub(super) fn close(&mut self) {
        self.session.close();
        self.is_closed = true;
        self.reader.forget();
    }

    /// What must hold after every step.
    pub(super) fn check(&mut self) {
        self.session.assert_invariants();
        while let Some(request) = self.session.next_request() {
            if self.refusals > 0 {
                self.refusals -= 1;
                self.session.on_refused(request);
                continue;
            }
            self.hear(request);
        }
        let held = self.session.held_bytes();
        assert!(held < HELD_BYTES_MAX, "{held} bytes held");
        assert!(self.input.len() < HELD_BYTES_MAX, "input is read ahead");
    }

    fn hear(&mut self, request: Request) {
        let before = self.heard;
        if matches!(request, Request::Connect { conn: CONN, .. }) {
            assert_eq!(before, Heard::Nothing, "{request:?}");
            self.heard = Heard::Connect;
        } else {
            assert_eq!(before, Heard::Connect, "{request:?}");
        }
        if matches!(request, Request::Disconnect { conn: CONN }) {
            self.heard = Heard::Disconnect;
        }
        if self.owed.len() < TOKENS_MAX {
            self.owed.push(request);
        }
    }

    /// What must hold in the end.
    pub(super) fn finish(&mut self) {
        if !self.is_closed {
            self.read(usize::MAX);
            self.read(usize::MAX);
            assert!(self.session.output().is_empty(), "all is written");
        }
        self.refusals = 0;
        self.close();
        self.now = self.now.after_ms(1_000);
        self.session.on_timer(self.now);
        self.check();
        assert_ne!(self.heard, Heard::Connect, "a Disconnect is owed");
        assert!(!self.session.wants_read());
    }
}
