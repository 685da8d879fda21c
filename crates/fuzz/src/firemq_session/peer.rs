//! What a client of FireMQ says and reads.

use std::sync::Arc;

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Event, Form, Got};
use tanda_session::firemq::{FireConfig, FireSession};
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
use crate::driven::{CONN, Dialect, Driven, START};
use crate::script::Script;

/// A session, its peer and its engine.
pub(super) type Peer = Driven<Fire>;

/// What a client knows of the conversation.
pub(super) struct Fire {
    reader: Reader,
    /// The number of the next publish.
    seq: u64,
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
        let fire = Fire {
            reader: Reader::default(),
            seq: 1,
        };
        let mut peer = Self::of(session, fire);
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
        let seq = if off > 250 { 7 } else { self.dialect.seq };
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
            self.dialect.seq += u64::from(is_confirmed);
        }
        self.send(&frame(&publish, body));
    }
}

impl Dialect for Fire {
    type Session = FireSession;

    fn on_output(&mut self, bytes: &[u8]) {
        self.reader.take(bytes);
    }

    fn on_closed(&mut self) {
        self.reader.forget();
    }

    fn make_sound(event: &mut Event) {
        if let Event::Delivery { batch, .. } = event {
            make_sound(batch);
        } else if let Event::Got {
            result: Ok(Got {
                batch: Some(batch), ..
            }),
            ..
        } = event
        {
            make_sound(batch);
        }
    }
}
